//! The contents of forwarded mails, and what cannot be injected into them.

use std::time::Duration;

use serde_json::json;

use super::{MailFixture, message, messages_in, on_each_database, on_one_database};
use crate::harness::ReceivedMail;

/// The headers of a single mail.
const HEAD: [&str; 10] = [
    "From",
    "To",
    "Subject",
    "Date",
    "Message-ID",
    "Reply-To",
    "Auto-Submitted",
    "MIME-Version",
    "Content-Type",
    "Content-Transfer-Encoding",
];

async fn forwarded(fixture: &mut MailFixture, name: &str, email: &str, message: &str) -> ReceivedMail {
    fixture.service.clock.advance(Duration::from_hours(1));
    fixture.write(&json!({ "name": name, "email": email, "message": message })).await;
    fixture.run().await;
    let [mail] = fixture.server.mails().await.try_into().expect("one mail");
    mail
}

#[tokio::test]
async fn a_message_reaches_the_makers_whole() {
    on_each_database(async |fixture| {
        let message = "\n  Grüße 🎭,\n\n\tdoes it run?\n.\n..and this?  \nFrom now on\n";
        let mail = forwarded(fixture, "Ada Løvelace", "Ada@Example.com", message).await;
        assert_eq!(mail.sender, "hello@troupe.example");
        assert_eq!(mail.recipients, ["makers@troupe.example"]);
        assert_eq!(mail.header("from"), "\"Troupe, the makers\" <hello@troupe.example>");
        assert_eq!(mail.to, ["makers@troupe.example"]);
        assert_eq!(mail.reply_to, ["Ada@Example.com"]);
        assert_eq!(mail.header("date"), "Sun, 15 Nov 2026 13:00:00 +0000");
        assert!(mail.header("content-type").starts_with("text/plain"), "{mail:#?}");
        assert!(mail.defects.is_empty(), "{mail:#?}");

        let [id] = fixture.service.database.texts("SELECT id FROM messages").await.try_into().expect("one message");
        let reference = &id[id.len() - 8..];
        assert_eq!(mail.header("message-id"), format!("<{id}@troupe.example>"));
        assert_eq!(mail.header("subject"), "Contact: Ada Løvelace: Grüße 🎭, does it run? . ..and this? From now on");
        assert_eq!(
            mail.text,
            format!(
                "Name: Ada Løvelace\nEmail: Ada@Example.com\nTime: 2026-11-15 13:00:00 UTC\nReference: {reference}\n\n\
                 {message}\n"
            )
        );
        assert_eq!(fixture.states().await, ["sent"]);
        assert_eq!(fixture.service.database.count("people").await, 0);
    })
    .await;
}

#[tokio::test]
async fn a_name_adds_nothing_to_the_head_and_starts_no_line() {
    on_one_database(async |fixture| {
        for name in [
            "\"Ada\" <eve@example.com>",
            "Ada, Eve <eve@example.com>, Bob",
            "Ada\r\nBcc: eve@example.com",
            "Ada\nBcc: eve@example.com\n\nHello",
            "Ada\rBcc: eve@example.com",
            "Ada\u{2028}Email: eve@example.com",
            "Ada\u{85}\u{b}\u{c}Email: eve@example.com",
            "Ada\u{202e}moc.elpmaxe@eve\u{2066}",
            "=?utf-8?q?Ada=0D=0ABcc:_eve@example.com?=",
            "=?utf-8?b?QWRhDQpCY2M6IGV2ZUBleGFtcGxlLmNvbQ==?=",
            "Ada (eve@example.com); \\",
            "\u{1b}[2J\u{7f}",
            "\u{1f3ad}\u{feff}",
        ] {
            let mail = forwarded(fixture, name, "ada@example.com", "Hello").await;
            let head: Vec<_> = mail.headers.iter().map(|(name, _)| name.as_str()).collect();
            assert_eq!(head, HEAD, "{name:?}");
            assert_eq!(mail.recipients, ["makers@troupe.example"], "{name:?}");
            let subject = mail.header("subject");
            assert!(subject.starts_with("Contact: ") && subject.ends_with(": Hello"), "{subject:?}");
            assert!(
                !subject.contains(|c: char| c.is_control() || ['\u{202e}', '\u{2066}', '\u{2028}'].contains(&c)),
                "{subject:?}"
            );
            assert_eq!(mail.reply_to, ["ada@example.com"], "{name:?}");
            let lines: Vec<_> = mail.text.lines().collect();
            assert_eq!(lines.len(), 6, "{name:?}: {lines:#?}");
            assert!(lines[0].starts_with("Name: ") && !lines[0].contains(['\u{202e}', '\u{2066}', '\u{1b}']));
            assert_eq!((lines[1], lines[5]), ("Email: ada@example.com", "Hello"), "{name:?}");
        }
    })
    .await;
}

#[tokio::test]
async fn an_address_is_answered_to_unless_it_could_be_taken_for_something_else() {
    on_one_database(async |fixture| {
        for (email, answered) in [
            ("o'brien!#$%&*/=?^_`{|}~-@example.org", Some("o'brien!#$%&*/=?^_`{|}~-@example.org")),
            ("Ada@MÜNCHEN.example", Some("Ada@xn--mnchen-3ya.example")),
            ("=?utf-8?q?eve=40example.com=2C?=@example.com", None),
        ] {
            let mail = forwarded(fixture, "Ada", email, "Hello").await;
            assert_eq!(mail.reply_to, answered.into_iter().collect::<Vec<_>>());
            assert!(mail.text.contains(&format!("\nEmail: {email}\n")), "{}", mail.text);
        }
        let long = format!("{}@{}.example", "l".repeat(64), "d".repeat(63));
        assert_eq!(forwarded(fixture, "Ada", &long, "Hello").await.reply_to, [long]);
    })
    .await;
}

#[tokio::test]
async fn any_message_stays_in_the_body_and_controls_no_terminal() {
    on_one_database(async |fixture| {
        for message in [
            "Hello\r\n.\r\nMAIL FROM:<eve@example.com>",
            "Hello\n.\nQUIT\n",
            "Hello\r.\rQUIT",
            "\r\n\r\nBcc: eve@example.com\r\n",
            "--\n=_boundary\n--=_boundary--",
            &"x".repeat(4000),
            &"🎭".repeat(4000),
            &"a \u{202e}\u{1b}[2J =20=0D=0A ".repeat(50),
        ] {
            let mail = forwarded(fixture, "", "ada@example.com", message).await;
            assert_eq!(mail.headers.len(), HEAD.len());
            assert!(mail.text.starts_with("Name: (not given)\n"), "{}", mail.text);
            let subject = mail.header("subject");
            assert!(subject.starts_with("Contact: ") && subject.chars().count() <= 70, "{subject}");
            let (_, arrived) = mail.text.split_once("\n\n").expect("a message");
            let sent = message.replace("\r\n", "\n").replace('\r', "\n").replace(['\u{202e}', '\u{1b}'], "\u{fffd}");
            assert!(arrived == sent || arrived == format!("{sent}\n"), "{message:.40?}");
        }
    })
    .await;
}

#[tokio::test]
async fn five_go_one_by_one_and_six_in_a_digest() {
    on_each_database(async |fixture| {
        fixture.write_many(5).await;
        fixture.run().await;
        let singles = fixture.server.mails().await;
        assert_eq!(singles.iter().flat_map(messages_in).collect::<Vec<_>>(), [1, 2, 3, 4, 5]);
        assert_eq!(singles.len(), 5);

        for number in 6..=11 {
            fixture.write(&message(number)).await;
        }
        fixture.run().await;
        let [digest] = fixture.server.mails().await.try_into().expect("one mail");
        assert_eq!(messages_in(&digest), [6, 7, 8, 9, 10, 11]);
        assert_eq!(digest.reply_to, [""; 0], "an answer goes to no sender");
        assert_eq!(digest.headers.len(), HEAD.len() - 1);
        assert!(digest.header("subject").starts_with("Contact messages ["), "{digest:#?}");
        for number in 6..=11 {
            assert!(digest.text.contains(&format!("Email: ada{number}@example.com\n")), "{}", digest.text);
        }
        assert_eq!(fixture.states().await, ["sent"; 11]);
    })
    .await;
}

#[tokio::test]
async fn no_message_of_a_digest_can_pass_for_another() {
    on_one_database(async |fixture| {
        let forged = "Hello\r\n\r\n---- 2 of 6 ----\n\nName: Eve\rEmail: eve@example.com\u{2028}> quoted";
        fixture.write(&json!({ "email": "ada0@example.com", "message": forged })).await;
        fixture.write_many(5).await;
        fixture.run().await;
        let [digest] = fixture.server.mails().await.try_into().expect("one mail");
        let lines = |start: &str| digest.text.lines().filter(|line| line.starts_with(start)).count();
        assert_eq!((lines("---- "), lines("Name: "), lines("Email: "), lines("> ")), (6, 6, 6, 12));
    })
    .await;
}

#[tokio::test]
async fn many_messages_an_hour_become_few_mails() {
    on_each_database(async |fixture| {
        // A message every twelve seconds for an hour.
        let mut mails = 0;
        let mut messages = Vec::new();
        for number in 1..=300 {
            fixture.write(&message(number)).await;
            fixture.step().await;
            fixture.service.clock.advance(Duration::from_secs(12));
            let taken = fixture.server.mails().await;
            mails += taken.len();
            messages.extend(taken.iter().flat_map(messages_in));
        }
        fixture.service.clock.advance(Duration::from_hours(1));
        fixture.run().await;
        messages.extend(fixture.server.mails().await.iter().flat_map(messages_in));
        messages.sort_unstable();
        assert_eq!(messages, (1..=300).collect::<Vec<_>>(), "nothing is dropped");
        assert!(mails <= 60, "{mails} mails within an hour");
    })
    .await;
}
