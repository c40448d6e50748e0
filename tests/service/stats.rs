//! `porchlight stats`: what the maker sees of the launch at a terminal, and programs as JSON.

use std::process::Command;

use serde_json::{Value, json};

use crate::harness::{Program, Service, on_each_database};

fn command(service: &Service, arguments: &[&str]) -> Command {
    let folder = service.releases_dir();
    let mut command = Program::command(folder.parent().expect("a folder"), &["stats"]);
    command.args(arguments).args(["--database-url", service.database.url()]);
    command
}

fn stats(service: &Service, arguments: &[&str]) -> Value {
    let output = command(service, arguments).arg("--json").output().expect("the program");
    assert!(output.status.success() && output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON and nothing else")
}

/// A little of everything on 15 November 2026.
async fn launch(service: &Service) {
    for (email, updates, source) in [("ada", true, "hn"), ("bob", false, "hn"), ("ada", false, "blog")] {
        let order = json!({ "email": format!("{email}@example.com"), "updates": updates, "source": source });
        service.post("/api/download", &order).await.is_ok();
    }
    service.post("/api/waitlist", &json!({ "email": "cyd@example.com" })).await.is_ok();
    service.post("/api/contact", &json!({ "email": "cyd@example.com", "message": "Hello" })).await.is_ok();
}

#[tokio::test]
async fn a_program_reads_what_happened_by_period_and_by_source() {
    on_each_database(async |service| {
        launch(service).await;
        let told = stats(service, &["--since", "2026-11-10"]);
        let total = json!({
            "downloads": 3, "new_people": 3, "opt_ins": 1, "joins": 1, "messages": 1, "unsubscribes": 0,
        });
        assert_eq!(told["total"], total);
        assert_eq!(told["since"], "2026-11-10", "it begins where it was asked to");
        let (asked, counted) = (&told["periods"][0], &told["periods"][5]);
        assert_eq!((&asked["start"], &asked["downloads"]), (&json!("2026-11-10"), &json!(0)));
        assert_eq!((&counted["start"], &counted["downloads"]), (&json!("2026-11-15"), &json!(3)));
        let sources: Vec<_> = told["sources"].as_array().unwrap().iter().collect();
        assert_eq!(sources[0]["source"], "hn");
        assert_eq!((&sources[0]["downloads"], &sources[0]["opt_ins"]), (&json!(2), &json!(1)));
        assert!(sources.iter().any(|row| row["source"] == Value::Null && row["joins"] == 1), "{sources:#?}");
        assert_eq!((&told["via"][0]["via"], &told["via"][0]["downloads"]), (&json!("api"), &json!(3)));
        for (by, start) in [("week", "2026-11-09"), ("month", "2026-11-01")] {
            let told = stats(service, &["--since", "2026-11-15", "--by", by]);
            assert_eq!((&told["by"], &told["periods"][0]["start"]), (&json!(by), &json!(start)));
            assert_eq!(told["periods"][0]["downloads"], 3);
            assert_eq!(told["total"], total);
        }
    })
    .await;
}

#[tokio::test]
async fn statistics_come_from_the_counts_alone_and_stay_when_people_are_erased() {
    on_each_database(async |service| {
        launch(service).await;
        let before = stats(service, &["--since", "2026-11-15"]);
        let rows =
            "DELETE FROM outbox; DELETE FROM messages; DELETE FROM consents; DELETE FROM events; DELETE FROM people";
        service.database.execute(rows).await;
        assert_eq!(stats(service, &["--since", "2026-11-15"]), before);
    })
    .await;
}

#[tokio::test]
async fn people_read_a_table_and_wrong_use_is_told() {
    on_each_database(async |service| {
        let empty = stats(service, &[]);
        assert_eq!(empty["periods"].as_array().unwrap().len(), 30, "days without anything are there");
        assert_eq!(empty["total"]["downloads"], 0);
        launch(service).await;
        let (code, said) = Program::run(command(service, &["--since", "2026-11-15", "--by", "month"]));
        assert_eq!(code, 0, "{said}");
        let row = said.lines().find(|line| line.starts_with("2026-11 ")).expect("the month");
        assert_eq!(row.split_whitespace().collect::<Vec<_>>(), ["2026-11", "3", "3", "1", "1", "1", "0"]);
        assert!(said.contains("\nhn") && !said.contains('█') && !said.contains('\u{1b}'), "{said}");
        for (wrong, words) in [
            (["--since", "yesterday"], "write a day as"),
            (["--since", "9999-01-01"], "9999-01-01 is in the future"),
            (["--since", "0001-01-01"], "more than ten years ago"),
            (["--by", "hour"], "hour"),
        ] {
            let (code, said) = Program::run(command(service, &wrong));
            assert!(code == 2 && said.contains(words), "{said}");
        }
    })
    .await;
}
