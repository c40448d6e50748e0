//! `POST /api/download`

use porchlight::config::RawSettings;
use porchlight::domain::signups::Wording;
use serde_json::json;

use crate::harness::{on_each_database, on_each_database_with};

const PATH: &str = "/api/download";

#[tokio::test]
async fn a_download_is_answered_with_the_way_to_the_newest_image() {
    on_each_database(async |service| {
        let result = service.post(PATH, &json!({ "email": "ada@example.com" })).await.expect_ok();
        let url = format!("{}/releases/latest/Troupe.dmg", service.base_url());
        assert_eq!(result, json!({ "ok": true, "url": url, "already": false }));
    })
    .await;
}

#[tokio::test]
async fn a_second_download_of_the_same_person_is_already_known() {
    on_each_database(async |service| {
        for (email, already) in [
            ("ada@example.com", false),
            ("ada@example.com", true),
            ("ADA@Example.COM", true),
            ("bob@example.com", false),
        ] {
            let result = service.post(PATH, &json!({ "email": email })).await.expect_ok();
            assert_eq!(result["already"], already, "{email}");
        }
        assert_eq!(
            service.database.texts("SELECT email FROM people ORDER BY address").await,
            ["ada@example.com", "bob@example.com"]
        );
        assert_eq!(service.database.count("signups").await, 4);
    })
    .await;
}

#[tokio::test]
async fn a_download_can_turn_updates_on_but_never_off() {
    on_each_database(async |service| {
        for (updates, on_afterwards) in [(json!(false), false), (json!(true), true), (json!(false), true)] {
            service.post(PATH, &json!({ "email": "ada@example.com", "updates": updates })).await.expect_ok();
            assert_eq!(service.database.has_updates_on("ada@example.com").await, on_afterwards);
        }
        service.post(PATH, &json!({ "email": "ada@example.com" })).await.expect_ok();
        assert!(service.database.has_updates_on("ada@example.com").await);
        assert_eq!(service.database.count("consents").await, 1);
    })
    .await;
}

#[tokio::test]
async fn an_opt_in_is_kept_with_what_it_was_given_through() {
    on_each_database(async |service| {
        let first = json!({ "email": "ada@example.com", "updates": true, "source": "my-agent" });
        let later = json!({ "email": "ada@example.com", "updates": true, "source": "another" });
        for body in [&first, &later] {
            service.post(PATH, body).await.expect_ok();
        }
        let now = service.clock.now().unix_millis();
        let line = "SELECT address || ' ' || via || ' ' || source || ' ' || at || ' ' || wording FROM consents";
        assert_eq!(
            service.database.texts(line).await,
            [format!("ada@example.com api my-agent {now} {}", Wording::BUILT_IN.number())],
            "the opt-in that turned the email on"
        );
        assert_eq!(
            service.database.texts("SELECT kind || ' ' || source FROM signups ORDER BY source").await,
            ["download another", "download my-agent"]
        );
    })
    .await;
}

#[tokio::test]
async fn only_the_address_is_required_and_nothing_is_invented() {
    on_each_database(async |service| {
        service.post(PATH, &json!({ "email": "ada@example.com" })).await.expect_ok();
        assert!(!service.database.has_updates_on("ada@example.com").await);
        assert_eq!(service.database.number("SELECT COUNT(*) FROM signups WHERE source IS NULL").await, 1);
        assert_eq!(service.database.traces().await, 5, "one person and one event, each counted, and from where");
    })
    .await;
}

#[tokio::test]
async fn an_image_hosted_elsewhere_is_linked() {
    let written = RawSettings {
        base_url: Some("https://troupe.example".to_owned()),
        download_url: Some("https://files.example/latest/Troupe.dmg".to_owned()),
        ..RawSettings::default()
    };
    on_each_database_with(written, async |service| {
        let result = service.post(PATH, &json!({ "email": "ada@example.com" })).await.expect_ok();
        assert_eq!(result["url"], "https://files.example/latest/Troupe.dmg");
    })
    .await;
}

#[tokio::test]
async fn without_an_image_a_valid_request_is_503_and_leaves_no_trace() {
    let written = RawSettings { base_url: Some("https://troupe.example".to_owned()), ..RawSettings::default() };
    on_each_database_with(written, async |service| {
        let answer = service.post(PATH, &json!({ "email": "ada@example.com", "updates": true })).await;
        answer.expect_problem(503, "unavailable");
        assert!(!answer.header("retry-after").is_empty());
        service.post(PATH, &json!({ "email": "nobody" })).await.expect_problem(400, "invalid_email");
        let form = [("content-type", "application/x-www-form-urlencoded")];
        let page = service.send(reqwest::Method::POST, "/download", &form, "email=ada%40example.com").await;
        assert!(page.status == 503 && page.text().contains("There is no download yet"), "{}", page.text());
        assert_eq!(service.database.traces().await, 0);
    })
    .await;
}
