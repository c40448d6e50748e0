//! What a letter says about the opt-in of its recipient: the date and how it came, and no text of a caller.

use std::collections::BTreeMap;

use serde_json::json;

use super::{LETTER, on_each_database};

#[tokio::test]
async fn a_letter_tells_the_site_from_a_program_by_how_the_opt_in_came() {
    on_each_database(async |fixture| {
        let service = &fixture.service;
        let own = service.base_url().to_owned();
        let json_type = ("content-type", "application/json");
        let requests: [(&str, &[(&str, &str)]); 5] = [
            ("script", &[json_type, ("sec-fetch-site", "same-origin"), ("origin", &own)]),
            ("older-browser", &[json_type, ("origin", &own)]),
            ("program", &[json_type]),
            ("other-site", &[json_type, ("sec-fetch-site", "cross-site"), ("origin", "https://evil.example")]),
            ("other-origin", &[json_type, ("origin", "https://evil.example")]),
        ];
        for (name, headers) in requests {
            // Everybody may say that they are the site.
            let body = json!({ "email": format!("{name}@example.com"), "updates": true, "source": "site" }).to_string();
            service.send(reqwest::Method::POST, "/api/download", headers, body).await.expect_ok();
        }
        let form = [("content-type", "application/x-www-form-urlencoded")];
        let posted = service.send(reqwest::Method::POST, "/download", &form, "email=form@example.com&updates=on").await;
        assert_eq!(posted.status, 303);
        fixture.download("older-version@example.com", true).await;
        let older = "UPDATE consents SET from_program = NULL WHERE address = 'older-version@example.com'";
        service.database.execute(older).await;

        let (code, output) = fixture.send(&fixture.file("a.md", LETTER));
        assert_eq!(code, 0, "{output}");
        let mails = fixture.server.mails().await;
        let mut told = BTreeMap::new();
        for mail in &mails {
            let (_, rest) = mail.text.split_once("on 15 November 2026, through ").expect("the reason");
            told.insert(mail.recipients[0].trim_end_matches("@example.com"), rest.lines().next().unwrap());
        }
        let expected = BTreeMap::from([
            ("script", "the site."),
            ("older-browser", "the site."),
            ("form", "the site."),
            ("program", "a program."),
            ("other-site", "a program."),
            ("other-origin", "a program."),
            ("older-version", "the site or a program."),
        ]);
        assert_eq!(told, expected);
    })
    .await;
}

#[tokio::test]
async fn no_text_of_a_caller_is_in_a_letter() {
    on_each_database(async |fixture| {
        let source = "x\rVisit https://evil.example/now";
        let order = json!({ "email": "ada@example.com", "updates": true, "source": source });
        fixture.service.post("/api/download", &order).await.expect_ok();
        assert_eq!(fixture.send(&fixture.file("a.md", LETTER)).0, 0);
        let mails = fixture.server.mails().await;
        assert_eq!(mails.len(), 1);
        for part in [&mails[0].text, &mails[0].html] {
            assert!(part.contains("a program") && !part.contains("evil.example") && !part.contains("Visit"), "{part}");
        }
    })
    .await;
}
