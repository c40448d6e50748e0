//! `porchlight inbox` while the service runs.

use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::{Program, Service, on_each_database};
use crate::people::{data, json_of, run};

async fn write(service: &Service, email: &str, text: &str) {
    service.clock.advance(Duration::from_secs(1));
    service.post("/api/contact", &json!({ "name": "Ada", "email": email, "message": text })).await.expect_ok();
}

fn listed(service: &Service, more: &[&str]) -> Vec<String> {
    let list = json_of(service, &[&["inbox", "list", "--json"], more].concat());
    list.as_array().unwrap().iter().map(|message| message["message"].as_str().unwrap().to_owned()).collect()
}

async fn set(service: &Service, text: &str, state: &str, more: &str) {
    let messages = format!("SELECT id FROM messages WHERE body = '{text}'");
    service.database.execute(&format!("UPDATE outbox SET state = '{state}' {more} WHERE id IN ({messages})")).await;
}

#[tokio::test]
async fn every_message_is_listed_and_shown_in_full() {
    on_each_database(async |service| {
        assert_eq!(data(service, &["inbox", "list", "--json"]), "[]\n");
        let long = "First line\n\u{1b}[31mred\u{7} and \u{202e}more ".repeat(80);
        write(service, "ada@example.com", &long).await;
        write(service, "bob@example.com", "Second").await;
        write(service, "cyd@example.com", "Third").await;
        set(service, "Second", "failed", ", tries = 56, last_error = 'no such user'").await;
        set(service, "Third", "sent", "").await;

        assert_eq!(listed(service, &[]), [long.as_str(), "Second", "Third"]);
        assert_eq!(listed(service, &["--waiting"]), [long.as_str()]);
        assert_eq!(listed(service, &["--failed"]), ["Second"]);
        assert_eq!(listed(service, &["--limit", "2"]), [long.as_str(), "Second"]);
        assert_eq!(run(service, &["inbox", "list", "--failed", "--waiting"]).0, 2);
        let lines = data(service, &["inbox", "list"]);
        assert_eq!(lines.lines().count(), 3);
        let whole = data(service, &["inbox", "list", "--json"]);
        assert!([lines, whole].iter().all(|output| !output.contains(['\u{1b}', '\u{202e}'])));

        let all = json_of(service, &["inbox", "list", "--json"]);
        let (id, reference) = (all[0]["id"].as_str().unwrap(), all[0]["reference"].as_str().unwrap());
        for name in [id, reference, &id.to_uppercase(), &id.replace('-', "")] {
            assert_eq!(json_of(service, &["inbox", "show", name, "--json"]), all[0]);
        }
        let text = data(service, &["inbox", "show", reference]);
        assert!(
            text.contains("Ada <ada@example.com>")
                && text.contains(&long.replace(['\u{1b}', '\u{7}', '\u{202e}'], "\u{fffd}"))
        );
        let failed = data(service, &["inbox", "show", all[1]["reference"].as_str().unwrap()]);
        assert!(failed.contains("after 56 attempts") && failed.contains("no such user"), "{failed}");
        let (code, output) = run(service, &["inbox", "show", "00000000"]);
        assert!(code == 1 && output.contains("There is no message 00000000"), "{output}");
        assert_eq!(run(service, &["inbox", "show", "%"]).0, 2);
    })
    .await;
}

#[tokio::test]
async fn makers_can_retry_messages() {
    on_each_database(async |service| {
        for text in ["One", "Two", "Three", "Four"] {
            write(service, "ada@example.com", text).await;
        }
        let later = ", at = 4000000000000, tries = 3";
        set(service, "One", "failed", later).await;
        set(service, "Two", "failed", later).await;
        set(service, "Three", "waiting", later).await;
        set(service, "Four", "sent", "").await;
        let all = json_of(service, &["inbox", "list", "--json"]);
        let reference = |index: usize| all[index]["reference"].as_str().unwrap().to_owned();
        let states = || -> Vec<Value> {
            let all = json_of(service, &["inbox", "list", "--json"]);
            all.as_array().unwrap().iter().map(|message| message["state"].clone()).collect()
        };

        assert_eq!(run(service, &["inbox", "retry"]).0, 2, "a message or --all is required");
        assert_eq!(run(service, &["inbox", "retry", &reference(0), "--all"]).0, 2);
        let (code, output) = run(service, &["inbox", "retry", &reference(0)]);
        assert!(code == 0 && output.contains("1 message will be mailed"), "{output}");
        assert_eq!(states(), ["waiting", "failed", "waiting", "sent"]);
        let (code, output) = run(service, &["inbox", "retry", &reference(3)]);
        assert!(code == 1 && output.contains("was already mailed on"), "{output}");

        let (code, output) = run(service, &["inbox", "retry", "--all"]);
        assert!(code == 0 && output.contains("2 messages will be mailed"), "{output}");
        assert_eq!(states(), ["waiting", "waiting", "waiting", "sent"]);
        let late = "SELECT COUNT(*) FROM outbox WHERE at = 4000000000000";
        assert_eq!(service.database.number(late).await, 0, "every message is due now");
        assert!(run(service, &["inbox", "retry", "--all"]).1.contains("No messages are waiting"));
    })
    .await;
}

#[tokio::test]
async fn makers_can_discard_messages_mailed_or_not() {
    on_each_database(async |service| {
        for (email, text) in [
            ("ada@example.com", "Hello"),
            ("bot1@spam.example", "Visit our CASINO now"),
            ("bot2@spam.example", "The casino is open"),
            ("bot3@spam.example", "Roulette"),
            ("bob@example.com", "Mailed"),
            ("eve@example.com", "In the mail"),
        ] {
            write(service, email, text).await;
        }
        set(service, "Mailed", "sent", "").await;
        set(service, "In the mail", "leased", ", at = 4000000000000").await;
        set(service, "Roulette", "failed", "").await;
        let counted = "SELECT CAST(SUM(times) AS BIGINT) FROM counts WHERE kind = 'message'";
        let before = service.database.number(counted).await;
        let all = json_of(service, &["inbox", "list", "--json"]);
        let reference = |index: usize| all[index]["reference"].as_str().unwrap().to_owned();

        assert_eq!(run(service, &["inbox", "discard"]).0, 2, "which ones is required");
        let (code, output) = run(service, &["inbox", "discard", &reference(1), &reference(2)]);
        assert!(code == 2 && output.contains("--yes"), "{output}");
        assert!(output.contains("CASINO now") && output.contains("casino is open"), "what would go is shown: {output}");
        assert_eq!(service.database.count("messages").await, 6);
        let (code, output) = run(service, &["inbox", "discard", &reference(0), "00000000", "--yes"]);
        assert!(code == 1 && output.contains("There is no message 00000000"), "{output}");
        assert_eq!(service.database.count("messages").await, 6, "all or nothing");

        let (code, output) = run(service, &["inbox", "discard", &reference(1), &reference(2), "--yes"]);
        assert!(code == 0 && output.contains("2 messages were deleted"), "{output}");
        assert_eq!(listed(service, &[]), ["Hello", "Roulette", "Mailed", "In the mail"]);
        let (code, output) = run(service, &["inbox", "discard", &reference(3), &reference(5), "--yes"]);
        assert!(code == 1 && output.contains("1 message was deleted") && output.contains("and stayed"), "{output}");
        assert_eq!(listed(service, &[]), ["Hello", "Mailed", "In the mail"], "what is being mailed stays");
        let (code, output) = run(service, &["inbox", "discard", &reference(5), "--yes"]);
        assert!(code == 1 && output.contains("nothing was deleted"), "{output}");
        let (code, output) = run(service, &["inbox", "retry", &reference(5)]);
        assert!(code == 1 && output.contains("being mailed now"), "{output}");
        let (code, output) = run(service, &["inbox", "discard", &reference(4), "--yes"]);
        assert!(code == 0 && output.contains("1 message was deleted"), "{output}");

        assert_eq!(service.database.number(counted).await, before, "statistics stay");
        assert_eq!(service.database.count("outbox").await, 2);
        assert_eq!(service.database.count("message_hashes").await, 2, "the same message can be sent again");
    })
    .await;
}

#[tokio::test]
async fn a_flood_is_discarded_by_ids_from_standard_input() {
    on_each_database(async |service| {
        for number in 0..30 {
            write(service, "bot@spam.example", &format!("Spam {number}")).await;
        }
        write(service, "ada@example.com", "Hello").await;
        let all = json_of(service, &["inbox", "list", "--json"]);
        let ids = all.as_array().unwrap().iter().take(30).map(|message| message["id"].as_str().unwrap());
        let file = service.file("ids.txt", ids.collect::<Vec<_>>().join("\n"));
        let mut command = crate::people::command(service, &["inbox", "discard", "-", "--yes"]);
        command.stdin(std::fs::File::open(file).unwrap());
        let (code, output) = Program::run(command);
        assert!(code == 0 && output.contains("and 20 more") && output.contains("30 messages were deleted"), "{output}");
        assert_eq!(listed(service, &[]), ["Hello"]);
    })
    .await;
}

#[tokio::test]
async fn a_message_is_free_again_when_the_program_that_was_mailing_it_has_died() {
    on_each_database(async |service| {
        write(service, "ada@example.com", "Retried").await;
        write(service, "bob@example.com", "Discarded").await;
        for text in ["Retried", "Discarded"] {
            set(service, text, "leased", ", lease = id, at = 1").await;
        }
        let all = json_of(service, &["inbox", "list", "--json"]);
        let reference = |index: usize| all[index]["reference"].as_str().unwrap().to_owned();

        let (code, output) = run(service, &["inbox", "retry", &reference(0)]);
        assert!(code == 0 && output.contains("1 message will be mailed"), "{output}");
        assert_eq!(json_of(service, &["inbox", "show", &reference(0), "--json"])["state"], "waiting");
        let (code, output) = run(service, &["inbox", "discard", &reference(1), "--yes"]);
        assert!(code == 0 && output.contains("1 message was deleted"), "{output}");
        assert_eq!(listed(service, &[]), ["Retried"]);
    })
    .await;
}
