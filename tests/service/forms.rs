//! The site's forms, as a browser without JavaScript sends them.

use reqwest::Method;

use crate::harness::{Answer, Service, on_each_database, on_one_database};

const FORM: (&str, &str) = ("content-type", "application/x-www-form-urlencoded");

async fn submit(service: &Service, path: &str, form: &str) -> Answer {
    service.send(Method::POST, path, &[FORM], form).await
}

#[tokio::test]
async fn the_download_form_leads_to_the_page_that_helps_on() {
    on_each_database(async |service| {
        let answer = submit(service, "/download", "email=ada%40example.com&website_confirm=").await;
        assert_eq!((answer.status.as_u16(), answer.header("location")), (303, "/download/started"));
        assert_eq!(answer.header("cache-control"), "no-store");
        assert_eq!(service.database.texts("SELECT source FROM signups WHERE via = 'site'").await, ["site"]);
        assert!(!service.database.has_updates_on("ada@example.com").await);

        submit(service, "/download", "email=ada%40example.com&updates=on").await;
        assert!(service.database.has_updates_on("ada@example.com").await);

        let page = service.get("/download/started").await;
        assert_eq!(page.status, 200);
        assert_eq!((page.header("cache-control"), page.header("x-robots-tag")), ("no-store", "noindex"));
        assert!(page.text().contains(&format!("{}/releases/latest/Troupe.dmg", service.base_url())));
    })
    .await;
}

#[tokio::test]
async fn the_contact_form_stores_the_message_as_it_was_typed() {
    on_each_database(async |service| {
        let answer = submit(service, "/contact", "name=&email=ada%40example.com&message=Hello%0D%0Ayou").await;
        assert_eq!((answer.status.as_u16(), answer.header("location")), (303, "/contact/sent"));
        assert_eq!(service.database.texts("SELECT body FROM messages").await, ["Hello\nyou"]);
        assert_eq!(service.database.texts("SELECT name FROM messages").await, Vec::<String>::new());
        assert_eq!(service.get("/contact/sent").await.status, 200);
    })
    .await;
}

#[tokio::test]
async fn a_rejected_form_comes_back_with_the_api_s_message_and_everything_typed() {
    on_each_database(async |service| {
        let answer = submit(service, "/download", "email=%3Cnobody%3E&updates=on").await;
        assert_eq!(answer.status, 400);
        assert_eq!(answer.header("content-type"), "text/html; charset=utf-8");
        assert_eq!(answer.header("cache-control"), "no-store");
        let page = answer.text();
        let api = service.post("/api/download", &serde_json::json!({ "email": "<nobody>" })).await.json();
        let words = api["detail"].as_str().unwrap();
        assert!(page.contains(words), "{words}\n{page}");
        assert!(page.contains("value=\"&lt;nobody&gt;\""), "{page}");
        assert!(page.contains("checked"), "{page}");

        let answer = submit(service, "/contact", "name=Ada&email=ada%40example.com&message=+").await;
        assert_eq!(answer.status, 400);
        let page = answer.text();
        assert!(page.contains("The message has fewer than 2 characters.") && page.contains("value=\"Ada\""), "{page}");
        assert!(page.contains("value=\"ada@example.com\""), "{page}");
        assert_eq!(service.database.traces().await, 0);
    })
    .await;
}

#[tokio::test]
async fn a_filled_honeypot_is_reported_and_keeps_everything_typed() {
    on_each_database(async |service| {
        let answer = submit(service, "/download", "email=ada%40example.com&website_confirm=x").await;
        assert_eq!(answer.status, 400);
        let page = answer.text();
        assert!(page.contains("password manager") && page.contains("value=\"ada@example.com\""), "{page}");
        assert_eq!(service.database.traces().await, 0);
    })
    .await;
}

#[tokio::test]
async fn json_that_a_program_sends_to_a_form_is_told_the_endpoint() {
    on_one_database(async |service| {
        for path in ["/download", "/contact"] {
            let body = r#"{"email":"ada@example.com","message":"Hello"}"#;
            let answer = service.send(Method::POST, path, &[("content-type", "application/json")], body).await;
            let problem = answer.expect_problem(400, "invalid_body");
            let resolution = problem["resolution"].as_str().unwrap();
            assert!(resolution.contains(&format!("{}/api{path}.", service.base_url())), "{problem}");
            let large = " ".repeat(70_000);
            let answer = service.send(Method::POST, path, &[("content-type", "application/json")], large).await;
            answer.expect_problem(400, "invalid_body");
        }
        assert_eq!(service.database.traces().await, 0);
    })
    .await;
}

#[tokio::test]
async fn a_form_of_very_many_fields_is_refused() {
    on_one_database(async |service| {
        let answer = submit(service, "/download", &format!("email=ada%40example.com{}", "&a=b".repeat(10_000))).await;
        assert_eq!(answer.status, 400);
        assert!(answer.text().contains("value=\"ada@example.com\""));
        assert_eq!(service.database.traces().await, 0);
    })
    .await;
}

#[tokio::test]
async fn forms_of_other_sites_are_refused_and_requests_without_origin_accepted() {
    on_each_database(async |service| {
        let own = service.base_url().to_owned();
        for (sender, status) in [
            (vec![("origin", "https://evil.example")], 400),
            (vec![("origin", "null")], 400),
            (vec![("sec-fetch-site", "cross-site")], 400),
            (vec![("sec-fetch-site", "same-site")], 400),
            (vec![("sec-fetch-site", "cross-site"), ("origin", own.as_str())], 400),
            (vec![("sec-fetch-site", "same-origin")], 303),
            (vec![("sec-fetch-site", "same-origin"), ("origin", "http://localhost:8080")], 303),
            (vec![("sec-fetch-site", "none")], 303),
            (vec![("origin", own.as_str())], 303),
            (vec![], 303),
        ] {
            let before = service.database.count("signups").await;
            let headers: Vec<_> = sender.iter().copied().chain([FORM]).collect();
            let answer = service.send(Method::POST, "/download", &headers, "email=a%40b.co").await;
            assert_eq!(answer.status, status, "{sender:?}");
            let stored = service.database.count("signups").await - before;
            assert_eq!(stored, i64::from(status == 303), "{sender:?}");
        }
    })
    .await;
}

#[tokio::test]
async fn a_get_of_a_form_action_redirects_to_the_form() {
    on_one_database(async |service| {
        for method in [Method::GET, Method::HEAD] {
            let answer = service.send(method, "/download", &[], "").await;
            assert_eq!((answer.status.as_u16(), answer.header("location")), (303, "/#download"));
        }
        let answer = service.send(Method::DELETE, "/contact", &[], "").await;
        assert_eq!((answer.status.as_u16(), answer.header("allow")), (405, "GET, HEAD, POST"));
    })
    .await;
}
