//! `POST /api/contact`

use std::time::Duration;

use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::harness::{Service, on_each_database};

const PATH: &str = "/api/contact";

fn letter(name: &str, email: &str, message: &str) -> Value {
    json!({ "name": name, "email": email, "message": message })
}

async fn send(service: &Service, letter: &Value) {
    assert_eq!(service.post(PATH, letter).await.expect_ok(), json!({ "ok": true }));
}

#[tokio::test]
async fn a_message_is_answered_and_kept_whole() {
    on_each_database(async |service| {
        let message = "\n  Grüße 🎭,\n\n\tdoes it run?  \n";
        send(service, &letter("Ada Løvelace", "Ada@Example.com", message)).await;

        let database = &service.database;
        assert_eq!(database.texts("SELECT body FROM messages").await, [message]);
        assert_eq!(database.texts("SELECT name FROM messages").await, ["Ada Løvelace"]);
        assert_eq!(database.texts("SELECT email FROM messages").await, ["Ada@Example.com"]);
        assert_eq!(database.count("people").await, 0, "who writes has neither downloaded nor joined");
    })
    .await;
}

#[tokio::test]
async fn a_name_may_be_left_out() {
    on_each_database(async |service| {
        send(service, &json!({ "email": "ada@example.com", "message": "Hello" })).await;
        assert_eq!(service.database.number("SELECT COUNT(*) FROM messages WHERE name IS NULL").await, 1);
    })
    .await;
}

#[tokio::test]
async fn a_message_has_2_to_4000_characters() {
    on_each_database(async |service| {
        let refused = [
            ("empty_message", String::new()),
            ("empty_message", " \n\t\u{a0}\u{2003}".to_owned()),
            ("empty_message", "🎭".to_owned()),
            ("empty_message", "  x  ".to_owned()),
            ("empty_message", " ".repeat(4001)),
            ("message_too_long", "🎭".repeat(4001)),
            ("message_too_long", format!(" {}", "x".repeat(4000))),
        ];
        for (code, message) in refused {
            let problem =
                service.post(PATH, &letter("Ada", "ada@example.com", &message)).await.expect_problem(400, code);
            assert_eq!(problem["errors"][0]["pointer"], "#/message");
        }
        let missing = service.post(PATH, &json!({ "email": "ada@example.com" })).await;
        assert_eq!(missing.expect_problem(400, "empty_message")["errors"][0]["pointer"], "#/message");
        assert_eq!(service.database.traces().await, 0);

        for message in ["🎭🎭".to_owned(), " hi ".to_owned(), "🎭".repeat(4000), format!(" {}", "x".repeat(3999))]
        {
            send(service, &letter("Ada", "ada@example.com", &message)).await;
        }
        assert_eq!(service.database.count("messages").await, 4);
    })
    .await;
}

#[tokio::test]
async fn a_message_that_is_not_text_is_invalid_rather_than_empty() {
    on_each_database(async |service| {
        for message in [json!(null), json!(7), json!(true), json!(["Hello"]), json!({ "text": "Hello" })] {
            let body = json!({ "email": "ada@example.com", "message": message });
            let problem = service.post(PATH, &body).await.expect_problem(400, "invalid_body");
            assert_eq!(problem["errors"][0]["pointer"], "#/message", "{body}");
        }
        assert_eq!(service.database.traces().await, 0);
    })
    .await;
}

#[tokio::test]
async fn the_same_text_within_a_day_is_one_message() {
    on_each_database(async |service| {
        let words = letter("Ada", "ada@example.com", "Hello");
        let almost_a_day = Duration::from_millis(24 * 60 * 60 * 1000 - 1);
        // The time counts from the message that was stored, not from the latest repetition.
        for (pause, stored) in [
            (Duration::ZERO, 1),
            (almost_a_day, 1),
            (Duration::from_millis(1), 2),
            (almost_a_day, 2),
            (Duration::from_millis(1), 3),
        ] {
            service.clock.advance(pause);
            send(service, &words).await;
            assert_eq!(service.database.count("messages").await, stored, "after another {pause:?}");
        }
    })
    .await;
}

#[tokio::test]
async fn another_sender_name_or_wording_is_another_message() {
    on_each_database(async |service| {
        let different = [
            letter("Ada", "ada@example.com", "Hello"),
            letter("Bob", "ada@example.com", "Hello"),
            letter("", "ada@example.com", "Hello"),
            json!({ "email": "ada@example.com", "message": "Hello" }),
            letter("Ada", "bob@example.com", "Hello"),
            letter("Ada", "ada@example.com", "Hello!"),
            letter("Ada", "ada@example.com", "Hello "),
        ];
        for letter in &different {
            send(service, letter).await;
        }
        assert_eq!(service.database.count("messages").await, 7);

        send(service, &letter("Ada", "ADA@Example.com", "Hello")).await;
        assert_eq!(service.database.count("messages").await, 7, "one person is one address, however it is typed");
    })
    .await;
}

#[tokio::test]
async fn the_same_text_sent_concurrently_is_one_message() {
    on_each_database(async |service| {
        let words = letter("Ada", "ada@example.com", "Hello");
        join_all((0..50).map(|_| send(service, &words))).await;
        assert_eq!(service.database.texts("SELECT body FROM messages").await, ["Hello"]);
    })
    .await;
}
