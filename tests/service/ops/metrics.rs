//! `/metrics`: valid `OpenMetrics`, and without anything that clients sent.

use std::collections::{BTreeMap, HashMap, HashSet};

use fancy_regex::Regex;
use serde_json::json;

use super::{ask, watched};
use crate::harness::{Service, on_each_database_with, on_one_database_with};

type Labels = BTreeMap<String, String>;

/// One line: its name, its labels in order, its value.
#[derive(Debug)]
struct Sample {
    name: String,
    labels: Labels,
    value: f64,
}

/// Parses the `OpenMetrics` text format, and fails where a rule of it is broken.
fn read(text: &str) -> Vec<Sample> {
    let text = text.strip_suffix("# EOF\n").expect("the end of the exposition");
    let name = Regex::new("^[a-z_:][a-z0-9_:]*$").unwrap();
    let label = Regex::new(r#"([a-z_][a-z0-9_]*)="((?:[^"\\]|\\["\\n])*)"(?:,|$)"#).unwrap();
    assert!(text.ends_with('\n') && !text.contains("\n\n"), "ends in one newline");
    let mut types: HashMap<&str, &str> = HashMap::new();
    let mut helped = HashSet::new();
    let (mut samples, mut family, mut closed, mut seen) = (Vec::new(), "", HashSet::new(), HashSet::new());
    for line in text.lines() {
        if let Some(help) = line.strip_prefix("# HELP ") {
            let (of, words) = help.split_once(' ').expect("words after the name");
            assert!(helped.insert(of) && words.len() > 5, "HELP once: {line}");
            assert!(closed.insert(of), "a family stands together: {line}");
            family = of;
            continue;
        }
        if let Some(kind) = line.strip_prefix("# TYPE ") {
            let (of, kind) = kind.split_once(' ').expect("a type");
            assert!(of == family && ["counter", "gauge", "histogram"].contains(&kind), "{line}");
            assert!(types.insert(of, kind).is_none(), "TYPE once: {line}");
            assert!(!of.ends_with("_total"), "the suffix belongs to the samples: {line}");
            continue;
        }
        assert!(!line.starts_with('#'), "{line}");
        let (head, value) = line.rsplit_once(' ').expect("a value");
        let (of, labels) = head.split_once('{').map_or((head, ""), |(of, rest)| (of, rest.strip_suffix('}').unwrap()));
        assert!(name.is_match(of).unwrap() && of.starts_with("porchlight_"), "{line}");
        let suffixes: &[&str] = match types[family] {
            "counter" => &["_total"],
            "histogram" => &["_bucket", "_sum", "_count"],
            _ => &[""],
        };
        assert!(suffixes.iter().any(|suffix| of.strip_suffix(suffix) == Some(family)), "{line}");
        assert!(seen.insert(head), "once: {line}");
        let read = label.captures_iter(labels).map(|found| found.unwrap());
        let read: BTreeMap<_, _> = read.map(|found| (found[1].to_owned(), found[2].to_owned())).collect();
        let length: usize = read.iter().map(|(name, value)| name.len() + value.len() + 4).sum();
        assert_eq!(length, if labels.is_empty() { 0 } else { labels.len() + 1 }, "labels are whole: {line}");
        samples.push(Sample { name: of.to_owned(), labels: read, value: value.parse().expect("a number") });
    }
    assert_eq!(helped, types.keys().copied().collect::<HashSet<_>>(), "each has HELP and TYPE");
    check_histograms(&samples);
    samples
}

fn check_histograms(samples: &[Sample]) {
    let mut histograms: BTreeMap<(String, Labels), Vec<(f64, f64)>> = BTreeMap::new();
    for sample in samples.iter().filter(|sample| sample.labels.contains_key("le")) {
        let mut labels = sample.labels.clone();
        let le = labels.remove("le").unwrap().parse().expect("a bound");
        histograms.entry((sample.name.replace("_bucket", ""), labels)).or_default().push((le, sample.value));
    }
    assert!(!histograms.is_empty());
    for ((name, labels), buckets) in histograms {
        assert!(buckets.is_sorted() && buckets.is_sorted_by_key(|(_, count)| *count), "{name}{labels:?} {buckets:?}");
        let count = samples.iter().find(|sample| sample.name == format!("{name}_count") && sample.labels == labels);
        let (bound, all) = buckets.last().unwrap();
        assert!(bound.is_infinite(), "{name}{labels:?}");
        assert_eq!(Some(*all), count.map(|count| count.value), "{name}{labels:?}");
        assert!(samples.iter().any(|sample| sample.name == format!("{name}_sum") && sample.labels == labels));
    }
}

async fn metrics(service: &Service) -> Vec<Sample> {
    let (status, headers, text) = ask(service, "/metrics", &[]).await;
    assert_eq!(
        (status, headers["content-type"].as_bytes()),
        (200, b"application/openmetrics-text; version=1.0.0; charset=utf-8".as_slice())
    );
    assert!(!text.contains("secret"), "{text}");
    read(&text)
}

/// The value of the only sample that has this name and these labels.
fn value(samples: &[Sample], name: &str, labels: &[(&str, &str)]) -> Option<f64> {
    let fits = |sample: &&Sample| {
        sample.name == name && labels.iter().all(|(name, value)| sample.labels.get(*name).is_some_and(|v| v == value))
    };
    let found: Vec<_> = samples.iter().filter(fits).collect();
    assert!(found.len() < 2, "{found:#?}");
    found.first().map(|sample| sample.value)
}

#[tokio::test]
async fn what_prometheus_reads_is_valid_and_holds_nothing_that_callers_sent() {
    on_each_database_with(watched(), async |service| {
        let order = json!({ "email": "secret@example.com", "updates": true, "source": "secret" });
        service.post("/api/download", &order).await.expect_ok();
        service.post("/api/download", &json!({ "email": "secret" })).await.expect_problem(400, "invalid_email");
        let message = json!({ "email": "secret@example.com", "name": "secret", "message": "secret" });
        service.post("/api/contact", &message).await.expect_ok();
        let (get, head) = (reqwest::Method::GET, reqwest::Method::HEAD);
        for path in ["/secret", "/api/secret", "/releases/secret", "/unsubscribe/secret", "/?secret", "/about"] {
            service.send(get.clone(), path, &[("user-agent", "secret"), ("referer", "secret")], "").await;
        }
        let style = crate::harness::markup::attributes(&service.get("/").await.text(), "link", "href");
        service.get(style.iter().find(|href| href.starts_with("/assets/style")).expect("a style")).await;

        let image = service.publish("1.4.0");
        let path = "/releases/Troupe-1.4.0.dmg";
        assert!(service.get(path).await.body == image);
        for (method, range) in [(get.clone(), "bytes=0-9"), (get.clone(), "bytes=10-"), (head, "bytes=0-")] {
            service.send(method, path, &[("range", range)], "").await;
        }
        for (agent, tool) in [("claude-code/2", "get_download"), ("secret", "get_download"), ("secret", "secret")] {
            let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": tool } });
            service.send(reqwest::Method::POST, "/mcp", &[("user-agent", agent)], call.to_string()).await;
        }
        let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize",
            "params": { "clientInfo": { "name": "secret cursor", "version": "1" } } });
        service.send(reqwest::Method::POST, "/mcp", &[], hello.to_string()).await;

        let samples = metrics(service).await;
        let requests = |route, status| {
            let labels = [("route", route), ("status", status)];
            value(&samples, "porchlight_http_request_duration_seconds_count", &labels)
        };
        assert_eq!(requests("/api/download", "200"), Some(1.0));
        assert_eq!(requests("/api/download", "400"), Some(1.0));
        assert_eq!(requests("/api/{*path}", "404"), Some(1.0));
        assert_eq!(requests("*", "404"), Some(1.0));
        assert_eq!(requests("/", "200"), Some(2.0));
        assert_eq!(requests("/assets/*", "200"), Some(1.0));
        assert_eq!(value(&samples, "porchlight_images_sent_total", &[("version", "1.4.0")]), Some(2.0));
        let calls = |client| {
            value(&samples, "porchlight_mcp_tool_calls_total", &[("tool", "get_download"), ("client", client)])
        };
        assert_eq!((calls("Claude Code"), calls("other programs")), (Some(1.0), Some(1.0)));
        assert_eq!(value(&samples, "porchlight_mcp_initializations_total", &[("client", "Cursor")]), Some(1.0));
        assert_eq!(value(&samples, "porchlight_writer_waiting", &[]), Some(0.0));
        assert_eq!(value(&samples, "porchlight_writer_batch_size_count", &[]), Some(2.0));
        assert_eq!(value(&samples, "porchlight_outbox_messages", &[("state", "waiting")]), Some(1.0));
        assert_eq!(value(&samples, "porchlight_counted_total", &[("what", "opt_ins")]), Some(1.0));
        assert_eq!(value(&samples, "porchlight_database_up", &[]), Some(1.0));

        service.clock.advance(std::time::Duration::from_secs(90));
        assert_eq!(value(&metrics(service).await, "porchlight_outbox_oldest_seconds", &[]), Some(90.0));
    })
    .await;
}

#[tokio::test]
async fn without_the_database_the_other_metrics_are_served() {
    let database = crate::harness::Database::postgres().await;
    let service = Service::start(watched(), database).await;
    service.get("/").await;
    service.database.refuse_connections().await;
    let samples = metrics(&service).await;
    assert_eq!(value(&samples, "porchlight_database_up", &[]), Some(0.0));
    assert_eq!(value(&samples, "porchlight_outbox_messages", &[("state", "waiting")]), None);
    assert!(value(&samples, "porchlight_http_request_duration_seconds_count", &[("route", "/")]).is_some());
    service.database.accept_connections().await;
    service.stop().await;
}

#[tokio::test]
async fn calls_and_images_are_in_the_counts_when_the_service_has_stopped() {
    for database in crate::harness::each_database().await {
        let service = Service::start(watched(), database.clone()).await;
        service.publish("1.4.0");
        service.get("/releases/Troupe-1.4.0.dmg").await;
        let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "about_service" } });
        for _ in 0..3 {
            service.post("/mcp", &call).await;
        }
        service.stop().await;
        let counts = "SELECT kind || ' ' || name || ' ' || CAST(SUM(times) AS BIGINT) FROM counts \
                      GROUP BY kind, name ORDER BY kind";
        assert_eq!(database.texts(counts).await, ["image 1.4.0 1", "tool about_service 3"]);
    }
}

#[tokio::test]
async fn paths_are_matched_as_they_were_sent_and_a_parameter_is_one_segment_that_is_not_empty() {
    on_one_database_with(watched(), async |service| {
        let mut expected = BTreeMap::new();
        for (path, route) in [
            ("/releases/App-1.dmg", "/releases/{file}"),
            ("/releases/latest", "/releases/{file}"),
            ("/releases/latest%2FApp.dmg", "/releases/{file}"),
            ("/releases/latest/App.dmg", "/releases/latest/{file}"),
            ("/releases/", "*"),
            ("/releases/latest/", "*"),
            ("/releases/a/b", "*"),
            ("/releases/latest/a/b", "/releases/latest/{channel}/{file}"),
            ("/releases/latest/a/b/c", "*"),
            ("/unsubscribe/", "*"),
            ("/unsubscribe/token", "/unsubscribe/{token}"),
            ("/confirm/", "*"),
            ("/confirm/token", "/confirm/{token}"),
            ("/api/", "/api/"),
            ("/api/a/b", "/api/{*path}"),
            ("/api%2Fdownload", "*"),
            ("/api", "*"),
            ("/mcp", "/mcp"),
            ("/mcp/", "*"),
            ("/download", "/download"),
            ("/about/", "*"),
            ("/about", "/about"),
        ] {
            service.send(reqwest::Method::DELETE, path, &[], "").await;
            *expected.entry(route.to_owned()).or_insert(0.0) += 1.0;
        }
        let mut counted = BTreeMap::new();
        for sample in read(&ask(service, "/metrics", &[]).await.2) {
            if sample.name == "porchlight_http_request_duration_seconds_count" {
                *counted.entry(sample.labels["route"].clone()).or_insert(0.0) += sample.value;
            }
        }
        assert_eq!(counted, expected);
    })
    .await;
}
