//! DKIM signatures of mail to the makers, as receivers verify them.

use porchlight::config::{RawSettings, Settings};
use porchlight::mail::Mailer;
use serde_json::{Value, json};

use super::{FROM, MailFixture, TO, message, on_each_database, on_one_database};
use crate::harness::{Database, DkimKey, MailServer, NOW, Service};

/// The signed headers of a contact message. A digest has no Reply-To.
const SIGNED: [&str; 10] = [
    "from",
    "to",
    "subject",
    "date",
    "message-id",
    "reply-to",
    "auto-submitted",
    "mime-version",
    "content-type",
    "content-transfer-encoding",
];

/// Messages that are easily changed on their way: dots and spaces at the ends of lines, long lines, other scripts.
fn fragile_messages() -> [Value; 4] {
    let texts = [
        "Plain.\n.\n..two dots\n.hidden\n\n\n  spaces  \t\nFrom now on\n\n\n".to_owned(),
        format!(".{}\n{}", "a very long line ".repeat(90), "x".repeat(1500)),
        "Grüße 🎭\n.\n..é \n漢字\n".to_owned(),
        format!("{}\n.", "ü".repeat(900)),
    ];
    texts.map(|text| json!({ "name": "Ada Løvelace", "email": "ada@example.com", "message": text }))
}

/// The settings of a service that signs with this key.
fn signing(key: &DkimKey, server: &MailServer) -> RawSettings {
    RawSettings {
        smtp_url: Some(server.url()),
        mail_from: Some(FROM.to_owned()),
        contact_to: Some(TO.to_owned()),
        dkim_selector: Some("mail".to_owned()),
        dkim_key: Some(key.path().display().to_string()),
        ..RawSettings::default()
    }
}

/// Makes the forwarder of the fixture sign.
fn sign(fixture: &mut MailFixture, key: &DkimKey) {
    let settings = Settings::load(Some(std::path::Path::new("/dev/null")), &signing(key, &fixture.server));
    fixture.forwarder.mailer = Mailer::from_settings(&settings.unwrap().mail.unwrap()).unwrap();
}

#[tokio::test]
async fn a_service_with_a_key_signs_contact_messages() {
    let (mut server, key) = (MailServer::start().await, DkimKey::rsa());
    let service = Service::start(signing(&key, &server), Database::migrated_sqlite().await).await;
    service.post("/api/contact", &message(1)).await.expect_ok();
    let mail = server.next_mail().await;
    let verdict = key.assert_signed(&mail.source, &SIGNED);
    let tag = |name: &str| verdict.tags[name].as_str();
    assert_eq!([tag("a"), tag("c"), tag("d")], ["rsa-sha256", "relaxed/relaxed", "troupe.example"]);
    assert_eq!(tag("t"), NOW.unix_seconds().to_string(), "by the clock of the service");
    service.stop().await;
}

#[tokio::test]
async fn every_message_arrives_with_a_valid_signature() {
    on_one_database(async |fixture| {
        for key in [DkimKey::rsa(), DkimKey::ed25519()] {
            sign(fixture, &key);
            for message in fragile_messages() {
                fixture.service.clock.advance(std::time::Duration::from_hours(25));
                fixture.write(&message).await;
                fixture.run().await;
                let [mail] = fixture.server.mails().await.try_into().expect("one mail");
                assert!(mail.defects.is_empty(), "{mail:#?}");
                key.assert_signed(&mail.source, &SIGNED);
            }
        }
    })
    .await;
}

#[tokio::test]
async fn a_digest_arrives_with_a_valid_signature() {
    on_each_database(async |fixture| {
        for key in [DkimKey::rsa(), DkimKey::ed25519()] {
            sign(fixture, &key);
            fixture.service.clock.advance(std::time::Duration::from_hours(25));
            for message in fragile_messages() {
                fixture.write(&message).await;
            }
            fixture.write_many(3).await;
            fixture.run().await;
            let [mail] = fixture.server.mails().await.try_into().expect("one mail");
            assert!(mail.header("subject").starts_with("Contact messages ["), "{mail:#?}");
            let signed: Vec<_> = SIGNED.into_iter().filter(|name| *name != "reply-to").collect();
            key.assert_signed(&mail.source, &signed);
        }
    })
    .await;
}

#[tokio::test]
async fn without_a_key_nothing_is_signed() {
    on_one_database(async |fixture| {
        fixture.write(&message(1)).await;
        fixture.run().await;
        let [mail] = fixture.server.mails().await.try_into().expect("one mail");
        assert!(!mail.source.to_lowercase().contains("dkim"), "{}", mail.source);
    })
    .await;
}
