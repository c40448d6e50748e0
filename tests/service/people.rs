//! `porchlight people` while the service runs.

mod erasure;
mod lists;
mod other_tools;
mod pages;
mod purge;
mod search;

use std::process::Command;
use std::time::Duration;

use porchlight::config::RawSettings;
use serde_json::{Value, json};

use crate::harness::{Database, Program, Service, on_each_database};

/// Returns a command with the settings of the service.
pub(super) fn command(service: &Service, arguments: &[&str]) -> Command {
    let mut command = service.command(arguments);
    command.args(["--database-url", service.database.url(), "--base-url", service.base_url()]);
    command
}

/// Runs a command and returns its exit code and output.
pub(super) fn run(service: &Service, arguments: &[&str]) -> (i32, String) {
    Program::run(command(service, arguments))
}

/// Runs a command that succeeds and returns its standard output.
pub(super) fn data(service: &Service, arguments: &[&str]) -> String {
    let output = Program::run_to_end(&mut command(service, arguments));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}

pub(super) fn json_of(service: &Service, arguments: &[&str]) -> Value {
    serde_json::from_str(&data(service, arguments)).expect("JSON and nothing else")
}

/// The addresses that `people list` prints, in its order.
fn listed(service: &Service, more: &[&str]) -> Vec<String> {
    let listed = json_of(service, &[&["people", "list", "--json"], more].concat());
    listed.as_array().unwrap().iter().map(|person| person["email"].as_str().unwrap().to_owned()).collect()
}

fn shown(service: &Service, email: &str) -> Value {
    json_of(service, &["people", "show", email, "--json"])
}

async fn download(service: &Service, email: &str, updates: bool) -> bool {
    let order = json!({ "email": email, "updates": updates, "source": "tests" });
    service.post("/api/download", &order).await.expect_ok()["already"].as_bool().expect("an answer")
}

async fn join(service: &Service, email: &str) -> bool {
    let order = json!({ "email": email });
    service.post("/api/waitlist", &order).await.expect_ok()["already"].as_bool().expect("an answer")
}

async fn write(service: &Service, email: &str, text: &str) {
    service.post("/api/contact", &json!({ "name": "Ada", "email": email, "message": text })).await.expect_ok();
}

#[tokio::test]
async fn a_data_request_returns_everything_stored_about_a_person() {
    on_each_database(async |service| {
        download(service, "Ada@Example.com", true).await;
        service.clock.advance(Duration::from_millis(1));
        download(service, "ada@example.com", true).await;
        service.clock.advance(Duration::from_millis(1));
        join(service, "ada@example.com").await;
        write(service, "ADA@example.com", "Hello\nthere").await;
        download(service, "bob@example.com", true).await;
        let at = service.clock.now().rfc3339();

        let all = shown(service, "ada@EXAMPLE.com");
        let message = &all["messages"][0];
        let event = |kind: &str, source: Value| json!({ "kind": kind, "at": at, "via": "api", "source": source });
        assert_eq!(
            all,
            json!({
                "email": "Ada@Example.com",
                "first_seen": at,
                "updates": true,
                "pending": false,
                "asked_at": null,
                "waitlist": true,
                "downloads": 2,
                "suppressed": false,
                "suppression": null,
                "events": [event("download", json!("tests")), event("download", json!("tests")), event("join", Value::Null)],
                "consents": [{
                    "at": at, "via": "api", "source": "tests", "wording": 1, "text": "Send me one email a month about what is new.", "stands": true,
                    "pending": false, "confirmed_at": null, "withdrawn": null,
                }],
                "messages": [{
                    "id": message["id"], "reference": message["reference"], "at": at, "email": "ADA@example.com",
                    "name": "Ada", "message": "Hello\nthere", "state": "waiting", "state_at": at, "tries": 0, "trouble": null,
                    "answered_at": null,
                }],
                "letters": [],
                "letter_months": [],
                "unsubscribe_url": null,
            })
        );
        let lines = data(service, &["people", "show", "ada@example.com"]);
        let message = "from Ada <ADA@example.com> (waiting):\n    Hello\n    there\n";
        for expected in ["Ada@Example.com", "updates      yes", "downloads    2", "opt-in (api", message] {
            assert!(lines.contains(expected), "{expected}: {lines}");
        }
        assert!(!all.to_string().contains("bob") && !lines.contains("bob"));
    })
    .await;
}

#[tokio::test]
async fn repeated_commands_print_the_same_bytes() {
    on_each_database(async |service| {
        for number in 0..12 {
            download(service, "ada@example.com", number % 3 == 0).await;
            write(service, "ada@example.com", &format!("Message {number}")).await;
        }
        for arguments in [
            &["people", "show", "ada@example.com", "--json"][..],
            &["people", "list", "--json"],
            &["people", "export"],
            &["inbox", "list", "--json"],
        ] {
            assert_eq!(data(service, arguments), data(service, arguments), "{arguments:?}");
        }
    })
    .await;
}

#[tokio::test]
async fn a_withdrawn_opt_in_and_a_new_one_are_both_shown() {
    on_each_database(async |service| {
        download(service, "ada@example.com", true).await;
        service.database.execute("INSERT INTO withdrawals (consent, address, at, how) SELECT opt_in, address, 5, 'unsubscribe' FROM people").await;
        service.database.execute("UPDATE people SET opt_in = NULL").await;
        assert_eq!(shown(service, "ada@example.com")["updates"], false);
        service.clock.advance(Duration::from_secs(1));
        download(service, "ada@example.com", true).await;
        let all = shown(service, "ada@example.com");
        assert_eq!(all["updates"], true);
        assert_eq!(all["consents"][0]["withdrawn"], json!({ "at": "1970-01-01T00:00:00Z", "how": "unsubscribe" }));
        let lines = data(service, &["people", "show", "ada@example.com"]);
        let times: Vec<_> = lines.lines().filter_map(|line| Some(line.split_once("Z  ")?.0)).collect();
        assert!(times.len() == 5 && times.is_sorted(), "in order of time: {lines}");
        assert_eq!((&all["consents"][0]["stands"], &all["consents"][1]["stands"]), (&json!(false), &json!(true)));
    })
    .await;
}

#[tokio::test]
async fn an_unknown_person_is_reported_with_exit_code_one() {
    on_each_database(async |service| {
        download(service, "bob@example.com", true).await;
        for arguments in
            [&["people", "show", "ada@example.com", "--json"][..], &["people", "erase", "ada@example.com", "--yes"]]
        {
            let output = Program::run_to_end(&mut command(service, arguments));
            assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0));
            assert!(String::from_utf8_lossy(&output.stderr).contains("Nothing is stored about ada@example.com"));
        }
        assert_eq!(run(service, &["people", "show", "nobody"]).0, 2, "not an address");
    })
    .await;
}

#[tokio::test]
async fn a_person_who_only_sent_a_message_is_shown() {
    on_each_database(async |service| {
        write(service, "Ada@example.com", "Hello").await;
        let all = shown(service, "ada@example.com");
        assert_eq!((&all["email"], &all["first_seen"]), (&json!("Ada@example.com"), &Value::Null));
        assert_eq!(all["messages"].as_array().unwrap().len(), 1);
    })
    .await;
}

#[tokio::test]
async fn a_suppression_stops_the_email_and_only_makers_can_remove_it() {
    on_each_database(async |service| {
        let (code, output) = run(service, &["people", "suppress", "Ada@example.com"]);
        assert_eq!(code, 0, "{output}");
        let all = shown(service, "ada@example.com");
        assert_eq!(
            (&all["suppressed"], &all["suppression"]["reason"]),
            (&json!(true), &json!("makers")),
            "found by its hash"
        );
        assert_eq!(service.database.count("people").await, 0, "nothing else is stored");

        download(service, "ada@example.com", true).await;
        assert_eq!(shown(service, "ada@example.com")["updates"], false);
        assert_eq!(json_of(service, &["people", "list", "--json", "--updates"]), json!([]));
        let (code, output) = run(service, &["people", "unsuppress", "ada@example.com"]);
        assert!(code == 0 && output.contains("gets the monthly letter"), "{output}");
        assert_eq!(shown(service, "ada@example.com")["updates"], true);
        let (code, output) = run(service, &["people", "unsuppress", "ada@example.com"]);
        assert!(code == 1 && output.contains("is not suppressed"), "{output}");
    })
    .await;
}

#[tokio::test]
async fn the_list_has_everybody_unless_it_is_limited_or_filtered() {
    on_each_database(async |service| {
        assert_eq!(data(service, &["people", "list", "--json"]), "[]\n");
        download(service, "Cyd@example.com", true).await;
        join(service, "ada@example.com").await;
        download(service, "bob@example.com", false).await;
        let at = service.clock.now().rfc3339();
        let everybody = json_of(service, &["people", "list", "--json"]);
        assert_eq!(
            everybody,
            json!([
                { "email": "Cyd@example.com", "updates": true, "waitlist": false, "downloads": 1, "suppressed": false, "first_seen": at },
                { "email": "bob@example.com", "updates": false, "waitlist": false, "downloads": 1, "suppressed": false, "first_seen": at },
                { "email": "ada@example.com", "updates": false, "waitlist": true, "downloads": 0, "suppressed": false, "first_seen": at },
            ])
        );
        let emails = |more: &[&str]| listed(service, more);
        assert_eq!(emails(&["--limit", "2"]), ["Cyd@example.com", "bob@example.com"]);
        assert!(emails(&["--limit", "0"]).is_empty());
        assert_eq!(run(service, &["people", "list", "--limit", "0"]), (0, String::new()), "no note for an empty request");
        assert_eq!(emails(&["--updates"]), ["Cyd@example.com"]);
        assert_eq!(data(service, &["people", "list"]).lines().count(), 3);
    })
    .await;
}

#[tokio::test]
async fn an_unreachable_database_is_reported_in_one_sentence() {
    let service = Service::start(RawSettings::default(), Database::migrated_sqlite().await).await;
    let mut command = Program::command(service.releases_dir().parent().unwrap(), &["people", "list"]);
    command.args(["--database-url", "postgres://nobody@127.0.0.1:1/nothing"]);
    let (code, output) = Program::run(command);
    assert_eq!(code, 1, "{output}");
    assert!(output.contains("127.0.0.1:1) cannot be used: it did not respond in time. Check that"), "{output}");
    assert_eq!(output.lines().count(), 1, "{output}");
    service.stop().await;
}
