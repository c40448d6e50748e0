//! `POST /api/waitlist`

use porchlight::config::RawSettings;
use reqwest::Method;
use serde_json::json;

use crate::harness::{Answer, on_each_database, on_one_database_with};

const PATH: &str = "/api/waitlist";
const DOWNLOAD: &str = "/api/download";

#[tokio::test]
async fn a_join_is_answered_and_kept_with_its_source() {
    on_each_database(async |service| {
        let result = service.post(PATH, &json!({ "email": "Ada@example.com", "source": "my-agent" })).await.expect_ok();
        assert_eq!(result, json!({ "ok": true, "already": false }));

        let database = &service.database;
        assert_eq!(database.texts("SELECT email FROM people").await, ["Ada@example.com"]);
        assert_eq!(database.texts("SELECT kind FROM signups").await, ["join"]);
        assert_eq!(database.texts("SELECT source FROM signups").await, ["my-agent"]);
    })
    .await;
}

#[tokio::test]
async fn joining_does_not_change_an_opt_in() {
    on_each_database(async |service| {
        service.post(PATH, &json!({ "email": "ada@example.com" })).await.expect_ok();
        assert!(!service.database.has_updates_on("ada@example.com").await);
        assert_eq!(service.database.count("consents").await, 0);

        service.post(DOWNLOAD, &json!({ "email": "bob@example.com", "updates": true })).await.expect_ok();
        service.post(PATH, &json!({ "email": "bob@example.com" })).await.expect_ok();
        assert!(service.database.has_updates_on("bob@example.com").await);
    })
    .await;
}

#[tokio::test]
async fn a_download_knows_of_joins_and_a_join_only_of_joins() {
    on_each_database(async |service| {
        let stories: [&[(&str, bool)]; 6] = [
            &[(PATH, false), (PATH, true), (DOWNLOAD, true), (PATH, true)],
            &[(PATH, false), (DOWNLOAD, true), (PATH, true), (DOWNLOAD, true)],
            &[(DOWNLOAD, false), (PATH, false), (PATH, true), (DOWNLOAD, true)],
            &[(DOWNLOAD, false), (PATH, false), (DOWNLOAD, true), (PATH, true)],
            &[(DOWNLOAD, false), (DOWNLOAD, true), (PATH, false), (PATH, true)],
            &[(PATH, false), (DOWNLOAD, true), (DOWNLOAD, true), (PATH, true)],
        ];
        for (number, story) in stories.iter().enumerate() {
            let spellings = ["person{}@example.com", "Person{}@Example.COM", "PERSON{}@EXAMPLE.COM"];
            for ((path, already), spelling) in story.iter().zip(spellings.iter().cycle()) {
                let email = spelling.replace("{}", &number.to_string());
                let result = service.post(path, &json!({ "email": email })).await.expect_ok();
                assert_eq!(result["already"], *already, "{path} for {email} in {story:?}");
            }
        }
        assert_eq!(service.database.count("people").await, 6);
        assert_eq!(service.database.count("signups").await, 24);
    })
    .await;
}

#[tokio::test]
async fn every_response_marks_the_list_as_deprecated() {
    let base_url = "https://troupe.example";
    let written = RawSettings { base_url: Some(base_url.to_owned()), ..RawSettings::default() };
    on_one_database_with(written, async |service| {
        let says_so = |answer: &Answer, status: u16| {
            assert_eq!(answer.status, status);
            assert_eq!(answer.header("deprecation"), "@1794700800", "on {status}");
            let links = format!(
                "<{base_url}/developers#waitlist>; rel=\"deprecation\"; type=\"text/html\", \
                 <{base_url}/api/download>; rel=\"successor-version\""
            );
            assert_eq!(answer.header("link"), links, "on {status}");
            assert!(!answer.headers.contains_key("sunset"));
        };
        says_so(&service.post(PATH, &json!({ "email": "ada@example.com" })).await, 200);
        says_so(&service.post(PATH, &json!({ "email": "nobody" })).await, 400);
        says_so(&service.post_text(PATH, "").await, 400);
        says_so(&service.get(PATH).await, 405);
        says_so(&service.send(Method::OPTIONS, PATH, &[], "").await, 405);

        let lock = service.database.lock().await;
        says_so(&service.post(PATH, &json!({ "email": "bob@example.com" })).await, 503);
        lock.release().await;

        assert!(service.get("/developers").await.text().contains("id=\"waitlist\""));
        for (path, body) in [(DOWNLOAD, json!({ "email": "nobody" })), ("/api/contact", json!({}))] {
            assert!(!service.post(path, &body).await.headers.contains_key("deprecation"), "{path}");
        }
    })
    .await;
}
