//! Limits per client, driven by addresses that a trusted proxy on loopback names.

mod connections;
mod proxies;

use std::time::Duration;

use porchlight::config::RawSettings;
use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{Answer, Program, Service, markup, on_each_database_with, on_one_database, on_one_database_with};
use crate::ops::{ask, watched};
use crate::unsubscribe::reader;

const ADA: &str = "203.0.113.7";
const BOB: &str = "203.0.113.8";
const FORM: (&str, &str) = ("content-type", "application/x-www-form-urlencoded");
const JSON: (&str, &str) = ("content-type", "application/json");
/// Looks like the token of an unsubscribe link, and is none.
const UNKNOWN_TOKEN: &str = "/unsubscribe/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

/// Settings of a service behind a proxy on this machine.
fn proxied() -> RawSettings {
    RawSettings {
        client_ip_header: Some("x-forwarded-for".to_owned()),
        trusted_proxies: Some("127.0.0.0/8".to_owned()),
        ..watched()
    }
}

async fn post_with(service: &Service, client: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
    service.send(Method::POST, path, &[&[("x-forwarded-for", client)], headers].concat(), body).await
}

async fn post(service: &Service, client: &str, path: &str, body: &Value) -> Answer {
    post_with(service, client, path, &[JSON], &body.to_string()).await
}

/// A download that is refused for its address.
async fn bad_download(service: &Service, client: &str) -> Answer {
    post(service, client, "/api/download", &json!({})).await
}

async fn bad_message(service: &Service, client: &str) -> Answer {
    post(service, client, "/api/contact", &json!({})).await
}

fn rpc(id: &Value, method: &str, params: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}

fn join(arguments: &Value) -> Value {
    rpc(&json!(1), "tools/call", &json!({ "name": "join_waitlist", "arguments": arguments }))
}

async fn ping(service: &Service, client: &str) -> Answer {
    post(service, client, "/mcp", &rpc(&json!(1), "ping", &json!({}))).await
}

/// Asserts that this is the answer to a client over a limit; returns its words.
#[track_caller]
fn expect_over_limit(answer: &Answer, retry_after: &str) -> String {
    let problem = answer.expect_problem(503, "unavailable");
    assert_eq!(answer.header("retry-after"), retry_after);
    problem["detail"].as_str().expect("a text").to_owned()
}

#[tokio::test]
async fn one_client_causes_few_mails_that_ask_for_a_confirmation() {
    let confirming = crate::confirmations::confirming();
    let settings = RawSettings {
        confirm_updates: confirming.confirm_updates,
        smtp_url: confirming.smtp_url,
        mail_from: confirming.mail_from,
        contact_to: confirming.contact_to,
        ..proxied()
    };
    on_one_database_with(settings, async |service| {
        let download = async |client: &str, number: usize, updates: bool| {
            let order = json!({ "email": format!("p{number}@example.com"), "updates": updates });
            post(service, client, "/api/download", &order).await
        };
        for number in 0..20 {
            download(ADA, number, true).await.expect_ok();
        }
        let words = expect_over_limit(&download(ADA, 20, true).await, "360");
        assert!(!words.is_empty());
        let form = "email=p21%40example.com&updates=on";
        assert_eq!(post_with(service, ADA, "/download", &[FORM], form).await.status, 503);
        assert_eq!(service.database.count("confirmations").await, 20, "nothing is stored");
        assert_eq!(service.database.count("people").await, 20);
        download(ADA, 20, false).await.expect_ok();
        download(BOB, 22, true).await.expect_ok();
        service.clock.advance(Duration::from_mins(6));
        download(ADA, 20, true).await.expect_ok();
        expect_over_limit(&download(ADA, 23, true).await, "360");
        let (_, _, metrics) = ask(service, "/metrics", &[]).await;
        assert!(metrics.contains("reason=\"opt_ins\"} 3"), "{metrics}");
    })
    .await;
}

#[tokio::test]
async fn downloads_and_joins_of_a_client_are_counted_together_whatever_their_answer() {
    on_one_database_with(proxied(), async |service| {
        for number in 0..20 {
            let person = json!({ "email": format!("{number}@example.com") });
            post(service, ADA, "/api/download", &person).await.expect_ok();
            assert_eq!(bad_download(service, ADA).await.status, 400);
            assert_eq!(post_with(service, ADA, "/api/waitlist", &[JSON], "no JSON").await.status, 400);
            assert_eq!(post_with(service, ADA, "/download", &[FORM], "email=nobody").await.status, 400);
            let answer = post(service, ADA, "/mcp", &join(&json!({}))).await.expect_ok();
            assert_eq!(answer["result"]["isError"], true);
        }
        let person = json!({ "email": "ada@example.com" });
        expect_over_limit(&post(service, ADA, "/api/download", &person).await, "1");
        expect_over_limit(&post(service, ADA, "/api/waitlist", &person).await, "1");
        assert_eq!(post_with(service, ADA, "/download", &[FORM], "email=ada%40example.com").await.status, 503);
        let answer = post(service, ADA, "/mcp", &join(&person)).await.expect_ok();
        assert_eq!(answer["result"]["isError"], true);
        assert_eq!(service.database.count("people").await, 20, "nothing of a refused request is stored");

        // Other clients, and everything else, are not affected.
        post(service, BOB, "/api/download", &person).await.expect_ok();
        ping(service, ADA).await.expect_ok();
        assert_eq!(bad_message(service, ADA).await.status, 400);
        assert_eq!(service.send(Method::GET, "/", &[("x-forwarded-for", ADA)], "").await.status, 200);

        // Ten a second.
        service.clock.advance(Duration::from_secs(1));
        for _ in 0..10 {
            assert_eq!(bad_download(service, ADA).await.status, 400);
        }
        expect_over_limit(&bad_download(service, ADA).await, "1");
    })
    .await;
}

#[tokio::test]
async fn retry_after_is_true_and_refused_requests_do_not_lengthen_it() {
    on_one_database_with(proxied(), async |service| {
        for _ in 0..12 {
            assert_eq!(bad_message(service, ADA).await.status, 400);
        }
        let words = expect_over_limit(&bad_message(service, ADA).await, "10");
        assert!(words.contains("10 seconds"), "{words}");
        for _ in 0..20 {
            expect_over_limit(&bad_message(service, ADA).await, "10");
        }
        service.clock.advance(Duration::from_millis(8_500));
        expect_over_limit(&bad_message(service, ADA).await, "2");
        service.clock.advance(Duration::from_millis(500));
        let words = expect_over_limit(&bad_message(service, ADA).await, "1");
        assert!(words.contains("1 second."), "{words}");
        service.clock.advance(Duration::from_secs(1));
        let message = json!({ "email": "ada@example.com", "message": "Hello" });
        post(service, ADA, "/api/contact", &message).await.expect_ok();
        expect_over_limit(&post(service, ADA, "/api/contact", &message).await, "10");
    })
    .await;
}

#[tokio::test]
async fn the_words_are_the_same_in_json_form_page_and_tool() {
    on_one_database_with(proxied(), async |service| {
        for _ in 0..100 {
            bad_download(service, ADA).await;
        }
        for _ in 0..50 {
            post_with(service, ADA, UNKNOWN_TOKEN, &[FORM], "").await;
        }
        let words = expect_over_limit(&bad_download(service, ADA).await, "1");

        let form = post_with(service, ADA, "/download", &[FORM], "email=ada%40example.com").await;
        assert_eq!((form.status.as_u16(), form.header("retry-after")), (503, "1"));
        assert!(form.text().contains(&words) && form.text().contains("ada@example.com"), "{}", form.text());

        let page = post_with(service, ADA, UNKNOWN_TOKEN, &[FORM], "").await;
        assert_eq!((page.status.as_u16(), page.header("retry-after")), (503, "1"));
        assert_eq!(page.text().trim_end(), words);

        let answer = post(service, ADA, "/mcp", &join(&json!({ "email": "ada@example.com" }))).await.expect_ok();
        let expected = json!({ "content": [{ "type": "text", "text": words }], "isError": true });
        assert_eq!(answer, json!({ "jsonrpc": "2.0", "id": 1, "result": expected }));
    })
    .await;
}

#[tokio::test]
async fn a_form_over_its_limit_gets_a_small_page_that_keeps_what_was_typed() {
    on_one_database_with(proxied(), async |service| {
        for _ in 0..12 {
            bad_message(service, ADA).await;
        }
        let form = "name=Ada+%3CL.%3E&email=ada%40example.com&message=One%0D%0A%22two%22&website_confirm=";
        let answer = post_with(service, ADA, "/contact", &[FORM], form).await;
        assert_eq!((answer.status.as_u16(), answer.header("cache-control")), (503, "no-store"));
        let page = answer.text();
        assert!(page.len() < 3_000, "{} bytes", page.len());
        for kept in ["value=\"Ada &lt;L.&gt;\"", "value=\"ada@example.com\"", ">\nOne\r\n&quot;two&quot;</textarea>"] {
            assert!(page.contains(kept), "{kept}\n{page}");
        }
        assert_eq!(markup::attributes(&page, "form", "action"), ["/contact"]);
        assert_eq!(service.database.count("messages").await, 0);
        service.clock.advance(Duration::from_secs(10));
        assert_eq!(post_with(service, ADA, "/contact", &[FORM], form).await.status, 303);
        assert_eq!(service.database.texts("SELECT body FROM messages").await, ["One\n\"two\""]);
    })
    .await;
}

#[tokio::test]
async fn a_client_sends_at_most_a_hundred_messages_in_a_day() {
    on_one_database_with(proxied(), async |service| {
        let (mut sent, mut seconds) = (0, 0);
        while seconds < 24 * 60 * 60 {
            let answer = bad_message(service, ADA).await;
            if answer.status == 400 {
                sent += 1;
                continue;
            }
            let wait = answer.header("retry-after").parse().expect("seconds");
            service.clock.advance(Duration::from_secs(wait));
            seconds += wait;
        }
        assert!((99..=100).contains(&sent), "{sent}");
        assert_eq!(bad_message(service, BOB).await.status, 400);
    })
    .await;
}

#[tokio::test]
async fn the_networks_of_one_customer_get_a_few_times_what_one_client_gets() {
    on_one_database_with(proxied(), async |service| {
        let sent = async |network: &str| {
            let mut sent = 0;
            while bad_message(service, &format!("{network}::{sent:x}")).await.status == 400 {
                sent += 1;
            }
            sent
        };
        // A /56 has 256 clients, and a /48 has 256 of those.
        for (network, expected) in [
            ("2001:db8:1:0", 12),
            ("2001:db8:1:1", 12),
            ("2001:db8:1:2", 12),
            ("2001:db8:1:ff", 12),
            ("2001:db8:1:3", 0),
        ] {
            assert_eq!(sent(network).await, expected, "{network}");
        }
        let mut others = 0;
        for number in 1..20 {
            others += sent(&format!("2001:db8:1:{number:x}00")).await;
        }
        assert_eq!(others, 12 * 12);
        assert_eq!(sent("2001:db8:2:0").await, 12);
    })
    .await;
}

#[tokio::test]
async fn method_and_size_are_checked_before_the_limit_and_everything_else_after_it() {
    on_one_database_with(proxied(), async |service| {
        let large = " ".repeat(64 * 1024 + 1);
        for _ in 0..6 {
            let get = service.send(Method::GET, "/api/contact", &[("x-forwarded-for", ADA)], "").await;
            get.expect_problem(405, "method_not_allowed");
            // A body that is too large counts.
            post_with(service, ADA, "/api/contact", &[JSON], &large).await.expect_problem(400, "invalid_body");
            assert_eq!(post_with(service, ADA, "/contact", &[FORM], &large).await.status, 400);
        }
        expect_over_limit(&post_with(service, ADA, "/api/contact", &[], "").await, "10");
        expect_over_limit(&post_with(service, ADA, "/api/contact", &[JSON], "no JSON").await, "10");
        post_with(service, ADA, "/api/contact", &[JSON], &large).await.expect_problem(400, "invalid_body");
        let cross_site = [FORM, ("sec-fetch-site", "cross-site")];
        assert_eq!(post_with(service, ADA, "/contact", &cross_site, "").await.status, 503);
        let waitlist = post_with(service, ADA, "/api/waitlist", &[JSON], "").await;
        assert_eq!(waitlist.status, 400, "messages do not count there");
    })
    .await;
}

#[tokio::test]
async fn a_valid_unsubscribe_link_is_never_refused() {
    on_each_database_with(proxied(), async |service| {
        let link = reader(service, "ada@example.com").await;
        for path in [UNKNOWN_TOKEN, "/unsubscribe/nonsense"].into_iter().cycle().take(50) {
            assert_eq!(post_with(service, ADA, path, &[FORM], "").await.status, 404);
        }
        for path in [UNKNOWN_TOKEN, "/unsubscribe/nonsense"] {
            assert_eq!(post_with(service, ADA, path, &[FORM], "").await.status, 503, "{path}");
            assert_eq!(service.send(Method::GET, path, &[("x-forwarded-for", ADA)], "").await.status, 404);
        }
        for _ in 0..60 {
            assert_eq!(post_with(service, ADA, &link, &[FORM], "List-Unsubscribe=One-Click").await.status, 200);
        }
        assert!(!service.database.has_updates_on("ada@example.com").await);
        assert_eq!(post_with(service, BOB, UNKNOWN_TOKEN, &[FORM], "").await.status, 404);
    })
    .await;
}

#[tokio::test]
async fn requests_to_mcp_are_limited_after_parsing() {
    on_one_database_with(proxied(), async |service| {
        let foreign = [JSON, ("origin", "https://evil.example")];
        let large = " ".repeat(64 * 1024 + 1);
        for _ in 0..40 {
            ping(service, ADA).await.expect_ok();
            assert_eq!(post_with(service, ADA, "/mcp", &[], "no JSON").await.status, 400);
            assert_eq!(post_with(service, ADA, "/mcp", &foreign, "").await.status, 403);
            assert_eq!(post_with(service, ADA, "/mcp", &[], &large).await.status, 400);
            let notification = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
            assert_eq!(post(service, ADA, "/mcp", &notification).await.status, 202);
        }
        let unsupported = [JSON, ("mcp-protocol-version", "1999-01-01")];
        let named = |id: Value| rpc(&id, "initialize", &json!({})).to_string();
        for (headers, body, id) in [
            (&[][..], named(json!("a")), json!("a")),
            (&unsupported, named(json!(7)), json!(7)),
            (&[], "no JSON".to_owned(), Value::Null),
            (&[], json!({ "jsonrpc": "1.0", "id": 8, "method": "ping" }).to_string(), json!(8)),
            (&[], json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }).to_string(), Value::Null),
        ] {
            let answer = post_with(service, ADA, "/mcp", headers, &body).await;
            assert_eq!((answer.status.as_u16(), answer.header("retry-after")), (503, "1"), "{body}");
            let message = answer.json();
            let error = json!({ "code": -32000, "message": message["error"]["message"] });
            assert_eq!(message, json!({ "jsonrpc": "2.0", "id": id, "error": error }));
        }
        // The origin and the size are checked before the limit.
        assert_eq!(post_with(service, ADA, "/mcp", &foreign, "").await.status, 403);
        assert_eq!(post_with(service, ADA, "/mcp", &[], &large).await.status, 400);
        let call = rpc(&json!("b"), "tools/call", &json!({ "name": "about_service" }));
        let answer = post(service, ADA, "/mcp", &call).await.expect_ok();
        assert_eq!((&answer["id"], &answer["result"]["isError"]), (&json!("b"), &json!(true)));
        // A join counts as a signup.
        let answer = post(service, ADA, "/mcp", &join(&json!({ "email": "ada@example.com" }))).await.expect_ok();
        assert_eq!(answer["result"]["structuredContent"]["ok"], true, "{answer}");
        service.clock.advance(Duration::from_millis(20));
        ping(service, ADA).await.expect_ok();
        assert_eq!(ping(service, ADA).await.status, 503);
    })
    .await;
}

#[tokio::test]
async fn a_client_is_an_ipv4_address_or_an_ipv6_network_as_the_proxy_names_it() {
    on_one_database_with(proxied(), async |service| {
        for number in 0..12 {
            let client = format!("1.1.1.1, 2001:db8:1:2::{number}");
            assert_eq!(bad_message(service, &client).await.status, 400);
        }
        for same in ["2001:db8:1:2:ffff::1", "[2001:db8:1:2::1]:443", "198.51.100.1, 2001:db8:1:2::1, 127.0.0.1"] {
            assert_eq!(bad_message(service, same).await.status, 503, "{same}");
        }
        for other in ["2001:db8:1:3::1", "1.1.1.1", "2001:db8:1:2::1, 203.0.113.9"] {
            assert_eq!(bad_message(service, other).await.status, 400, "{other}");
        }
    })
    .await;
    let forwarded = RawSettings { client_ip_header: Some("Forwarded".to_owned()), ..proxied() };
    on_one_database_with(forwarded, async |service| {
        let contact = async |value: &str| {
            service.send(Method::POST, "/api/contact", &[("forwarded", value), JSON], "{}").await.status
        };
        for _ in 0..12 {
            assert_eq!(contact("for=\"[2001:db8:1:2::1]:4711\";proto=https").await, 400);
        }
        assert_eq!(contact("for=1.1.1.1, for=\"[2001:db8:1:2::2]\"").await, 503);
        assert_eq!(contact("for=1.1.1.1").await, 400);
    })
    .await;
}

#[tokio::test]
async fn local_peers_are_not_limited_and_limits_can_be_switched_off() {
    let contact_often = async |service: &Service| {
        for _ in 0..20 {
            assert_eq!(bad_message(service, ADA).await.status, 400);
        }
    };
    // A header is not believed unless its sender is a trusted proxy.
    on_one_database(contact_often).await;
    let elsewhere = RawSettings { trusted_proxies: Some("10.0.0.0/8".to_owned()), ..proxied() };
    on_one_database_with(elsewhere, contact_often).await;
    on_one_database_with(RawSettings { client_limits: Some("off".to_owned()), ..proxied() }, contact_often).await;
    // A trusted proxy that names nobody is a local peer.
    on_one_database_with(proxied(), async |service| {
        for _ in 0..20 {
            assert_eq!(service.post("/api/contact", &json!({})).await.status, 400);
        }
    })
    .await;
}

#[tokio::test]
async fn the_reference_says_what_the_limits_are() {
    on_one_database(async |service| {
        let page = service.get("/developers.md").await.text();
        for limit in [
            "downloads and joins together: 10 a second, 100 at once, 5000 a day",
            "contact messages: 6 a minute, 12 at once, 100 a day",
            "unsubscribe requests with an unknown token: 5 a second, 50 at once",
            "other requests to `/mcp`: 50 a second, 200 at once",
            "256 connections at once",
        ] {
            assert!(page.contains(limit), "{limit}\n{page}");
        }
        assert!(service.get("/developers").await.text().contains("6 a minute, 12 at once"));
    })
    .await;
}

#[tokio::test]
async fn metrics_and_dashboard_show_what_was_refused() {
    on_one_database_with(proxied(), async |service| {
        let (_, _, metrics) = ask(service, "/metrics", &[]).await;
        for reason in [
            "signups",
            "messages",
            "unknown_tokens",
            "mcp_requests",
            "connections_per_client",
            "requests_in_flight",
            "idle_connections",
            "writer_overload",
        ] {
            let line = format!("porchlight_refused_total{{reason=\"{reason}\"}} 0");
            assert!(metrics.contains(&line), "{line}\n{metrics}");
        }
        for _ in 0..15 {
            bad_message(service, ADA).await;
        }
        let (_, _, metrics) = ask(service, "/metrics", &[]).await;
        assert!(metrics.contains("porchlight_refused_total{reason=\"messages\"} 3"), "{metrics}");
        assert!(metrics.contains("porchlight_refused_total{reason=\"signups\"} 0"), "{metrics}");
        let (_, _, page) = ask(service, "/", &[]).await;
        assert!(page.contains("<dt>Messages of one client</dt><dd>3</dd>"), "{page}");
        assert!(!metrics.contains(ADA) && !page.contains(ADA));
    })
    .await;
}

#[tokio::test]
async fn the_log_says_once_that_clients_are_refused_and_never_who() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = Program::command(folder.path(), &["serve", "--listen", "127.0.0.1:0", "--ops-listen", "off"]);
    command.args(["--client-ip-header", "x-forwarded-for", "--trusted-proxies", "127.0.0.1"]);
    let program = Program::start(command, "not mailed to anybody");
    let client = reqwest::Client::new();
    let url = format!("http://{}/api/contact", program.address());
    let mut refused = 0;
    while refused < 3 {
        let answer = client.post(&url).header("x-forwarded-for", ADA).body("").send().await.expect("an answer");
        refused += u32::from(answer.status() == 503);
    }
    program.signal(rustix::process::Signal::TERM);
    let (_, log) = program.end();
    let lines: Vec<_> = log.lines().filter(|line| line.contains("exceeded a limit")).collect();
    assert_eq!(lines.len(), 1, "{log}");
    for named in ["client_ip_header", "trusted_proxies", "messages"] {
        assert!(lines[0].contains(named), "{log}");
    }
    assert!(!log.contains(ADA), "{log}");
}
