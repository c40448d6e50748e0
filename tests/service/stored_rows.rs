//! Rows that the rules of today would refuse: another version stored them, or the rules have changed. Each is shown, and
//! fails alone.

use std::time::Duration;

use porchlight::config::RawSettings;
use serde_json::{Value, json};

use crate::harness::{MailServer, Program, Service, each_migrated_database, on_each_database, wait_until};
use crate::people::{command, json_of, run};

const ODD_ADDRESS: &str = "odd one@nowhere\r\nBcc: eve@example.com";

async fn sign_up(service: &Service, email: &str) {
    service.post("/api/download", &json!({ "email": email, "updates": true })).await.expect_ok();
}

/// A text in SQL.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

#[tokio::test]
async fn a_message_that_could_not_be_sent_today_is_listed_and_mailed() {
    for database in each_migrated_database().await {
        println!("on {database:?}");
        let mut server = MailServer::start().await;
        let service = Service::start(RawSettings::default(), database).await;
        for (email, text) in [("ada@example.com", "First"), ("bob@example.com", "Odd"), ("cyd@example.com", "Last")] {
            let message = json!({ "name": "N", "email": email, "message": text });
            service.post("/api/contact", &message).await.expect_ok();
            service.clock.advance(Duration::from_secs(1));
        }
        let odd = format!(
            "UPDATE messages SET email = {}, address = 'odd', name = '{}' WHERE body = 'Odd'; \
             UPDATE messages SET body = 'x' WHERE body = 'Odd'",
            quoted(ODD_ADDRESS),
            "N".repeat(300)
        );
        service.database.execute(&odd).await;
        let listed = json_of(&service, &["inbox", "list", "--json"]);
        let texts: Vec<_> = listed.as_array().unwrap().iter().map(|message| message["message"].clone()).collect();
        assert_eq!(texts, ["First", "x", "Last"]);
        assert_eq!(listed[1]["email"], ODD_ADDRESS);
        assert_eq!(run(&service, &["inbox", "show", listed[1]["reference"].as_str().unwrap()]).0, 0);

        let mailed = RawSettings {
            smtp_url: Some(server.url()),
            mail_from: Some("hello@troupe.example".to_owned()),
            contact_to: Some("makers@troupe.example".to_owned()),
            ..RawSettings::default()
        };
        let database = service.database.clone();
        service.stop().await;
        let service = Service::start(mailed, database).await;
        let sent = "SELECT COUNT(*) FROM outbox WHERE state = 'sent'";
        wait_until("three messages that are mailed", async || service.database.number(sent).await == 3).await;
        let mails = server.mails().await;
        let odd = mails.iter().find(|mail| mail.text.ends_with("\n\nx\n")).expect("the odd message");
        assert!(odd.reply_to.is_empty() && odd.recipients == ["makers@troupe.example"], "{odd:#?}");
        assert!(!odd.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("bcc")), "{odd:#?}");
        assert!(odd.text.contains("Email: odd one@nowhere\u{fffd}\u{fffd}Bcc: eve@example.com\n"), "{}", odd.text);
        service.stop().await;
    }
}

#[tokio::test]
async fn a_person_who_could_not_sign_up_today_is_listed_and_misses_the_letter_alone() {
    on_each_database(async |service| {
        let mut server = MailServer::start().await;
        for name in ["ada", "bob", "cyd", "dan"] {
            sign_up(service, &format!("{name}@example.com")).await;
        }
        let odd = format!(
            "UPDATE people SET email = {} WHERE address = 'bob@example.com'; \
             UPDATE consents SET via = 'pigeon', source = '{}' WHERE address = 'cyd@example.com'",
            quoted(ODD_ADDRESS),
            "s".repeat(100)
        );
        service.database.execute(&odd).await;
        let listed = json_of(service, &["people", "list", "--json"]);
        assert_eq!(listed.as_array().unwrap().len(), 4);
        assert!(listed.as_array().unwrap().iter().any(|person| person["email"] == ODD_ADDRESS), "{listed:#}");
        let shown = json_of(service, &["people", "show", "cyd@example.com", "--json"]);
        assert_eq!(shown["consents"][0]["via"], "unknown", "{shown:#}");
        assert_eq!(run(service, &["people", "show", "bob@example.com"]).0, 0);
        assert_eq!(run(service, &["people", "export"]).0, 0);

        let file = service.file("a.md", "# News\n\nText.\n").display().to_string();
        let mut send = service.command(&["letter", "send", &file, "--yes"]);
        send.args(["--database-url", service.database.url(), "--base-url", "https://troupe.example"]);
        send.args(["--smtp-url", &server.url(), "--mail-from", "hello@troupe.example", "--letter-rate", "1000"]);
        send.args(["--contact-to", "makers@troupe.example", "--postal-address", "1 Lamp Street"]);
        let (code, output) = Program::run(send);
        assert_eq!(code, 0, "{output}");
        assert!(output.contains("3 sent") && output.contains("1 refused"), "{output}");
        let mut to: Vec<_> = server.mails().await.into_iter().flat_map(|mail| mail.recipients).collect();
        to.sort();
        assert_eq!(to, ["ada@example.com", "cyd@example.com", "dan@example.com"]);
    })
    .await;
}

#[tokio::test]
async fn a_release_that_could_not_be_published_today_hides_no_other() {
    on_each_database(async |service| {
        for (version, notes) in [("1.0.0", "n".repeat(70 * 1024)), ("1.1.0", "Fine".to_owned())] {
            let insert = format!(
                "INSERT INTO releases (version, written, file, external_url, length, sha256, notes, build, minimum_macos, \
                 channel, critical, phased_days, published_at) VALUES ('{version}', '{version}', 'T-{version}.dmg', 'https://dl.example/{version}.dmg', 1, '{}', '{notes}', \
                 'build one', 'fourteen', 'stable', 0, 0, 0)",
                "0".repeat(64)
            );
            service.database.execute(&insert).await;
        }
        let damaged = "INSERT INTO releases (version, written, file, length, sha256, notes, channel, critical, \
                       phased_days, published_at) \
                       VALUES ('two', 'two', 'T-two.dmg', 1, 'none', '', 'stable', 0, 0, 0); \
                       INSERT INTO revisions (name, number) VALUES ('releases', 1)";
        service.database.execute(damaged).await;
        service.read_releases();
        let output = Program::run_to_end(&mut command(service, &["release", "list", "--json"]));
        let listed: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
        let versions: Vec<_> = listed.iter().map(|release| release["version"].clone()).collect();
        assert_eq!(versions, ["1.1.0", "1.0.0"]);
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(told.contains("The release two in the database is damaged"), "{told}");
        let (code, output) = run(service, &["check"]);
        assert!(code == 1 && output.contains("The release two in the database is damaged"), "{output}");
        assert_eq!(service.get("/releases/latest/Troupe.dmg").await.status, 302);
        wait_until("both releases on the site", async || {
            let releases = service.get("/releases.json").await.json();
            releases["releases"].as_array().is_some_and(|releases| releases.len() == 2)
        })
        .await;
    })
    .await;
}
