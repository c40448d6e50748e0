//! `porchlight stats`, as a table and as JSON.

use std::process::Command;

use serde_json::{Value, json};

use crate::harness::{Program, Service, on_each_database};

fn command(service: &Service, arguments: &[&str]) -> Command {
    let mut command = service.command(&["stats"]);
    command.args(arguments).args(["--database-url", service.database.url()]);
    command
}

fn stats(service: &Service, arguments: &[&str]) -> Value {
    let output = Program::run_to_end(command(service, arguments).arg("--json"));
    assert!(output.status.success() && output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON and nothing else")
}

/// Adds one event of each kind, and a few more, on 15 November 2026.
async fn add_events(service: &Service) {
    for (email, updates, source) in [("ada", true, "hn"), ("bob", false, "hn"), ("ada", false, "blog")] {
        let order = json!({ "email": format!("{email}@example.com"), "updates": updates, "source": source });
        service.post("/api/download", &order).await.expect_ok();
    }
    service.post("/api/waitlist", &json!({ "email": "cyd@example.com" })).await.expect_ok();
    service.post("/api/contact", &json!({ "email": "cyd@example.com", "message": "Hello" })).await.expect_ok();
}

#[tokio::test]
async fn statistics_as_json_are_grouped_by_period_and_source() {
    on_each_database(async |service| {
        add_events(service).await;
        let json = stats(service, &["--since", "2026-11-10"]);
        let total = json!({
            "downloads": 3, "new_people": 3, "opt_ins": 1, "joins": 1, "messages": 1, "unsubscribes": 0,
        });
        assert_eq!(json["total"], total);
        assert_eq!(json["since"], "2026-11-10", "it starts on the requested day");
        let (first, counted) = (&json["periods"][0], &json["periods"][5]);
        assert_eq!((&first["start"], &first["downloads"]), (&json!("2026-11-10"), &json!(0)));
        assert_eq!((&counted["start"], &counted["downloads"]), (&json!("2026-11-15"), &json!(3)));
        let sources: Vec<_> = json["sources"].as_array().unwrap().iter().collect();
        assert_eq!(sources[0]["source"], "hn");
        assert_eq!((&sources[0]["downloads"], &sources[0]["opt_ins"]), (&json!(2), &json!(1)));
        assert!(sources.iter().any(|row| row["source"] == Value::Null && row["joins"] == 1), "{sources:#?}");
        assert_eq!((&json["via"][0]["via"], &json["via"][0]["downloads"]), (&json!("api"), &json!(3)));
        for (by, start) in [("week", "2026-11-09"), ("month", "2026-11-01")] {
            let json = stats(service, &["--since", "2026-11-15", "--by", by]);
            assert_eq!((&json["by"], &json["periods"][0]["start"]), (&json!(by), &json!(start)));
            assert_eq!(json["periods"][0]["downloads"], 3);
            assert_eq!(json["total"], total);
        }
    })
    .await;
}

#[tokio::test]
async fn statistics_use_only_the_counts_and_stay_when_people_are_erased() {
    on_each_database(async |service| {
        add_events(service).await;
        let counted = || {
            let mut counted = stats(service, &["--since", "2026-11-15"]);
            (counted.as_object_mut().unwrap().remove("totals").expect("totals"), counted)
        };
        let (people, before) = counted();
        assert_eq!(people, json!({ "people": 3, "opted_in": 1, "pending": 0, "suppressed": 0 }));
        let rows =
            "DELETE FROM outbox; DELETE FROM messages; DELETE FROM consents; DELETE FROM signups; DELETE FROM people";
        service.database.execute(rows).await;
        assert_eq!(counted(), (json!({ "people": 0, "opted_in": 0, "pending": 0, "suppressed": 0 }), before));
    })
    .await;
}

#[tokio::test]
async fn statistics_are_printed_as_a_table_and_wrong_arguments_are_explained() {
    on_each_database(async |service| {
        let empty = stats(service, &[]);
        assert_eq!(empty["periods"].as_array().unwrap().len(), 30, "days without events are included");
        assert_eq!(empty["total"]["downloads"], 0);
        let (_, output) = Program::run(command(service, &["--since", "2026-11-14"]));
        assert!(
            output.ends_with("suppressed  0\n\n2026-11-14 to 2026-11-15\nNobody signed up or wrote.\n"),
            "{output}"
        );
        add_events(service).await;
        let suppress = ["people", "suppress", "eve@example.com", "--database-url", service.database.url()];
        assert_eq!(Program::run(service.command(&suppress)).0, 0);
        let (_, output) = Program::run(command(service, &["--since", "2026-11-01"]));
        assert!(output.starts_with("people      3\nopted in    1\npending     0\nsuppressed  1\n"), "{output}");
        assert!(output.contains("\n2026-11-15  ") && !output.contains("\n2026-11-14  "), "no empty days: {output}");
        let (code, output) = Program::run(command(service, &["--since", "2026-11-15", "--by", "month"]));
        assert_eq!(code, 0, "{output}");
        let row = output.lines().find(|line| line.starts_with("2026-11 ")).expect("the month");
        assert_eq!(row.split_whitespace().collect::<Vec<_>>(), ["2026-11", "3", "3", "1", "1", "1", "0"]);
        assert!(output.contains("\nhn") && !output.contains('█') && !output.contains('\u{1b}'), "{output}");
        for (wrong, expected) in [
            (["--since", "yesterday"], "write a day as"),
            (["--since", "9999-01-01"], "9999-01-01 is in the future"),
            (["--since", "0001-01-01"], "more than ten years ago"),
            (["--by", "hour"], "hour"),
        ] {
            let (code, output) = Program::run(command(service, &wrong));
            assert!(code == 2 && output.contains(expected), "{output}");
        }
    })
    .await;
}
