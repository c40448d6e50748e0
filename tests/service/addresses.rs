//! Email addresses: which are valid, and which are the same person.

use serde_json::{Value, json};

use crate::harness::{Service, endpoints, on_each_database};

/// Each endpoint with its own example, for another `email`.
fn with_email(email: &Value) -> impl Iterator<Item = (&'static str, Value)> {
    endpoints().into_iter().map(move |(path, mut example)| {
        example["email"] = email.clone();
        (path, example)
    })
}

async fn all_refuse(service: &Service, email: &Value) {
    for (path, body) in with_email(email) {
        println!("{path} {body}");
        let problem = service.post(path, &body).await.expect_problem(400, "invalid_email");
        assert_eq!(problem["errors"].as_array().map(Vec::len), Some(1), "{problem:#}");
        assert_eq!(problem["errors"][0]["pointer"], "#/email");
    }
}

async fn all_take(service: &Service, email: &str) {
    for (path, body) in with_email(&email.into()) {
        println!("{path} {body}");
        service.post(path, &body).await.expect_ok();
    }
}

/// An address of so many characters whose parts are within their limits.
fn address_of(length: usize) -> String {
    let (local, label) = ("l".repeat(64), "d".repeat(63));
    format!("{local}@{label}.{label}.{}", "d".repeat(length - 193))
}

#[tokio::test]
async fn an_address_that_is_missing_or_not_text_is_invalid() {
    on_each_database(async |service| {
        for email in [json!(null), json!(7), json!(true), json!(["ada@example.com"]), json!({ "at": "example.com" })] {
            all_refuse(service, &email).await;
        }
        for (path, mut body) in with_email(&Value::Null) {
            body.as_object_mut().expect("an object").remove("email");
            service.post(path, &body).await.expect_problem(400, "invalid_email");
            service.post_text(path, "{}").await.expect_problem(400, "invalid_email");
        }
        assert_eq!(service.database.traces().await, 0);
    })
    .await;
}

#[tokio::test]
async fn an_invalid_address_is_refused() {
    on_each_database(async |service| {
        let long_local_part = format!("{}@example.com", "l".repeat(65));
        let long_label = format!("ada@{}.com", "d".repeat(64));
        for email in [
            "",
            "ada",
            "ada@",
            "@example.com",
            "ada@example",
            "ada@example.",
            "ada@example.com.",
            "ada@.example.com",
            "ada@example..com",
            "ada@-example.com",
            "ada@exa_mple.com",
            "ada@[127.0.0.1]",
            "ada@xn--.com",
            "ada@@example.com",
            "ada@example@example.com",
            ".ada@example.com",
            "ada.@example.com",
            "a..da@example.com",
            "ädä@example.com",
            " ada@example.com",
            "ada@example.com\n",
            "ada@example.com\r\nBcc: bob@example.com",
            "a\tda@example.com",
            "\"a da\"@example.com",
            "Ada <ada@example.com>",
            "ada@example.com (home)",
            "ada@example.com, bob@example.com",
            &long_local_part,
            &long_label,
            &address_of(255),
        ] {
            all_refuse(service, &email.into()).await;
        }
        assert_eq!(service.database.traces().await, 0);
    })
    .await;
}

#[tokio::test]
async fn addresses_of_many_kinds_are_taken() {
    on_each_database(async |service| {
        let longest_local_part = format!("{}@example.com", "l".repeat(64));
        let addresses = [
            "a@b.co",
            "First.Last+tag@example.com",
            "o'brien!#$%&*/=?^_`{|}~-@example.org",
            "ada@sub.domain.example.com",
            "ada@münchen.example",
            "ada@例え.テスト",
            "bob@xn--mnchen-3ya.example",
            &longest_local_part,
            &address_of(254),
        ];
        for email in addresses {
            all_take(service, email).await;
        }
        let mut kept = service.database.texts("SELECT email FROM people").await;
        kept.sort();
        let mut typed = addresses;
        typed.sort_unstable();
        assert_eq!(kept, typed, "each is kept as it was typed");
    })
    .await;
}

#[tokio::test]
async fn one_person_is_one_address_however_it_is_typed() {
    on_each_database(async |service| {
        let already = async |email: &str| {
            let result = service.post("/api/download", &json!({ "email": email })).await.expect_ok();
            result["already"].as_bool().expect("true or false")
        };
        assert!(!already("Ada@München.example").await);
        for spelling in ["ada@münchen.example", "ADA@MÜNCHEN.EXAMPLE", "ada@xn--mnchen-3ya.example"] {
            assert!(already(spelling).await, "{spelling}");
        }
        for somebody_else in ["ada+tag@münchen.example", "a.da@münchen.example", "ada@munchen.example"] {
            assert!(!already(somebody_else).await, "{somebody_else}");
        }
        assert_eq!(
            service.database.texts("SELECT email FROM people WHERE address = 'ada@xn--mnchen-3ya.example'").await,
            ["Ada@München.example"]
        );
    })
    .await;
}
