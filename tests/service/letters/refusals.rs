//! Replies of the mail server that reject a letter.

use std::time::Duration;

use porchlight::actions::{LetterSender, LetterStep};
use porchlight::domain::letters::Letter;
use porchlight::domain::mail::{Mailbox, Relay};
use porchlight::domain::network::BaseUrl;
use porchlight::mail::{MailAddress, Mailer};
use porchlight::site::{Content, MailTemplates};
use serde_json::{Value, json};

use super::{LETTER, LetterFixture, on_each_database};
use crate::harness::Program;

/// A sender with the clock of the service, whose steps the test runs.
pub(super) async fn sender(fixture: &LetterFixture) -> LetterSender {
    let store = fixture.service.database.store();
    let from = Mailbox::parse("hello@troupe.example").unwrap();
    let mailer = Mailer::new(Relay::parse(&fixture.server.url()).unwrap(), &from).unwrap();
    let base_url = BaseUrl::parse(fixture.service.base_url()).unwrap();
    let templates = MailTemplates::read(&Content::default(), base_url.clone(), Some("1 Lamp Street")).unwrap();
    let letter = Letter::parse(LETTER).unwrap();
    let (contact_to, clock) = (MailAddress::from_mailbox(&from).unwrap(), fixture.service.clock.clone());
    let mut sender = LetterSender::new(store, mailer, templates.into(), base_url, letter, contact_to, clock);
    sender.start().await.unwrap();
    sender
}

/// Starts [`LETTER`], so that the command goes on with it and mails these people in this order.
async fn start_in_order(fixture: &LetterFixture, names: &[&str]) {
    for name in names {
        fixture.download(&format!("{name}@example.com"), true).await;
    }
    sender(fixture).await.store.close().await;
    let due = names
        .iter()
        .enumerate()
        .map(|(at, name)| format!("UPDATE letter_recipients SET at = {at} WHERE address = '{name}@example.com';"));
    fixture.service.database.execute(&due.collect::<String>()).await;
}

#[tokio::test]
async fn an_unknown_mailbox_is_never_mailed_again() {
    on_each_database(async |fixture| {
        for name in ["ada", "gone", "full"] {
            fixture.download(&format!("{name}@example.com"), true).await;
        }
        fixture.server.command("reject gone 550 5.1.1 no such user").await;
        fixture.server.command("reject full 552 5.2.2 over quota").await;
        let (code, output) = fixture.send(&fixture.file("a.md", LETTER));
        assert_eq!(code, 0, "{output}");
        assert_eq!(fixture.recipients().await, ["ada@example.com"]);
        let status = fixture.status();
        assert_eq!((&status["sent"], &status["refused"]), (&json!(1), &json!(2)), "{status:#}");
        assert_eq!(fixture.service.database.count("suppressions").await, 1, "a full mailbox may be emptied");

        fixture.server.command("accept").await;
        fixture.download("gone@example.com", true).await;
        fixture.send(&fixture.file("b.md", "# Another\n\nMore.\n"));
        assert_eq!(fixture.recipients().await, ["full@example.com"], "no public request undoes a suppression");
    })
    .await;
}

#[tokio::test]
async fn five_refusals_in_a_row_stop_the_run() {
    on_each_database(async |fixture| {
        for number in 0..9 {
            fixture.download(&format!("p{number}@example.com"), true).await;
        }
        fixture.server.command("reply recipient 554 5.7.1 we do not like you").await;
        let file = fixture.file("a.md", LETTER);
        let (code, output) = fixture.send(&file);
        assert_eq!(code, 1);
        assert!(
            output.contains("rejected 5 letters in a row") && output.contains("9 recipients have not been sent to yet"),
            "{output}"
        );
        let status = fixture.status();
        assert_eq!((&status["refused"], &status["waiting"]), (&json!(0), &json!(9)), "{status:#}");
        assert_eq!(fixture.service.database.count("letter_months").await, 0);
        fixture.server.command("accept").await;
        assert_eq!(fixture.send(&file).0, 0);
        assert_eq!(fixture.recipients().await.len(), 9);
    })
    .await;
}

#[tokio::test]
async fn a_server_that_rejects_every_mailbox_suppresses_nobody() {
    on_each_database(async |fixture| {
        for number in 0..9 {
            fixture.download(&format!("p{number}@example.com"), true).await;
        }
        let file = fixture.file("a.md", LETTER);
        fixture.server.command("reply recipient 550 5.1.1 no such user").await;
        let (code, output) = fixture.send(&file);
        assert_eq!(code, 1, "{output}");
        assert!(output.contains("a mail to `contact_to` as well"), "{output}");
        assert_eq!(fixture.service.database.count("suppressions").await, 0);
        assert_eq!(fixture.service.database.count("letter_months").await, 0);
        assert_eq!(fixture.status()["waiting"], 9);

        fixture.server.command("accept").await;
        assert_eq!(fixture.send(&file).0, 0);
        assert_eq!(fixture.recipients().await.len(), 9);
    })
    .await;
}

/// Somebody signed up with sixty addresses that do not exist, and they happen to come first.
#[tokio::test]
async fn invented_addresses_do_not_keep_the_letter_from_others() {
    on_each_database(async |fixture| {
        let invented: Vec<_> = (0..60).map(|number| format!("invented{number}")).collect();
        let names: Vec<_> = invented.iter().map(String::as_str).chain(["ada", "bob"]).collect();
        start_in_order(fixture, &names).await;
        fixture.server.command("reject invented 550 5.1.1 no such user").await;
        let (code, output) = fixture.send(&fixture.file("a.md", LETTER));
        assert_eq!(code, 0, "{output}");
        let mails = fixture.server.mails().await;
        let to: Vec<_> = mails.iter().flat_map(|mail| mail.recipients.clone()).collect();
        assert_eq!(to, ["makers@troupe.example", "ada@example.com", "bob@example.com"]);
        assert!(mails[0].header("subject").contains("the first recipients were rejected"), "{:#?}", mails[0]);
        let status = fixture.status();
        assert_eq!((&status["sent"], &status["refused"]), (&json!(2), &json!(60)), "{status:#}");
        assert_eq!(fixture.service.database.count("suppressions").await, 60);
    })
    .await;
}

#[tokio::test]
async fn a_letter_goes_on_while_a_mail_to_the_makers_is_neither_accepted_nor_refused() {
    on_each_database(async |fixture| {
        let invented: Vec<_> = (0..12).map(|number| format!("invented{number}")).collect();
        let names: Vec<_> = invented.iter().map(String::as_str).chain(["ada"]).collect();
        start_in_order(fixture, &names).await;
        fixture.server.command("reject invented 550 5.1.1 no such user").await;
        fixture.server.command("reject makers 451 4.7.1 greylisted").await;
        let (code, output) = fixture.send(&fixture.file("a.md", LETTER));
        assert_eq!(code, 0, "{output}");
        assert_eq!(fixture.recipients().await, ["ada@example.com"]);
        assert_eq!(fixture.status()["refused"], 12);
    })
    .await;
}

#[tokio::test]
async fn rejected_mailboxes_do_not_count_among_the_refusals_that_stop_a_run() {
    on_each_database(async |fixture| {
        let names = ["ada", "odd0", "gone0", "odd1", "gone1", "odd2", "gone2", "odd3", "gone3", "odd4", "bob"];
        start_in_order(fixture, &names).await;
        fixture.server.command("reject gone 550 5.1.1 no such user").await;
        fixture.server.command("reject odd 554 5.7.1 we do not like you").await;
        let file = fixture.file("a.md", LETTER);
        let (code, output) = fixture.send(&file);
        assert_eq!(code, 1, "{output}");
        let status = fixture.status();
        let counts = ["sent", "refused", "waiting"].map(|name| status[name].as_u64().unwrap());
        assert_eq!(counts, [1, 4, 6], "the mailboxes stay refused, the others wait again");
        assert_eq!(fixture.service.database.count("suppressions").await, 4);

        // Those who were refused come last, so that the next run reaches the others.
        fixture.send(&file);
        assert_eq!(fixture.recipients().await, ["ada@example.com", "bob@example.com"]);
    })
    .await;
}

#[tokio::test]
async fn no_recipient_chooses_their_place_in_the_order() {
    on_each_database(async |fixture| {
        let addresses: Vec<_> = (0..20).map(|number| format!("p{number:02}@example.com")).collect();
        for address in &addresses {
            fixture.download(address, true).await;
        }
        sender(fixture).await.store.close().await;
        let order = "SELECT address FROM letter_recipients ORDER BY at";
        let first = fixture.service.database.texts(order).await;
        assert_eq!(fixture.send(&fixture.file("a.md", LETTER)).0, 0);
        let sent: Vec<_> = fixture.server.mails().await.into_iter().flat_map(|mail| mail.recipients).collect();
        assert_eq!(sent, first);
        assert_ne!(sent, addresses);
        fixture.service.database.execute("DELETE FROM letter_months").await;
        assert_eq!(fixture.send(&fixture.file("b.md", "# Another\n\nMore.\n")).0, 0);
        let second = "SELECT address FROM letter_recipients WHERE state = 'skipped' ORDER BY at";
        assert_ne!(fixture.service.database.texts(second).await, first, "another letter has another order");
    })
    .await;
}

#[tokio::test]
async fn only_a_code_of_the_mailbox_at_the_start_of_the_reply_suppresses() {
    on_each_database(async |fixture| {
        let replies = [
            ("a1", "5.1.1 no such user", true),
            ("a2", "5.1.2 no such host", true),
            ("a3", "5.1.3 bad syntax", true),
            ("b1", "5.1.7 bad sender", false),
            ("b2", "5.1.8 bad sender", false),
            ("b3", "5.7.1 not for you, unlike 5.1.1", false),
            ("c1", "5.1.6 moved", true),
            ("c2", "5.1.10 null MX", true),
            ("c3", "no such user", false),
            ("c4", "<c4@example.com>: 5.1.1 no such user", false),
        ];
        for (name, reply, _) in replies {
            fixture.server.command(&format!("reject {name} 550 {reply}")).await;
        }
        // Accepted between them, so that no five are in a row; the first three come before anybody is accepted.
        let names = ["a1", "a2", "a3", "a9", "b1", "b2", "b3", "b9", "c1", "c2", "c3", "c4", "c5"];
        start_in_order(fixture, &names).await;
        let (code, output) = fixture.send(&fixture.file("a.md", LETTER));
        assert_eq!(code, 0, "{output}");
        assert_eq!(fixture.recipients().await.len(), 3);
        let status = fixture.status();
        assert_eq!((&status["sent"], &status["refused"]), (&json!(3), &json!(10)), "{status:#}");
        let mut command = fixture.service.command(&["people", "list", "--json"]);
        let output = Program::run_to_end(command.args(["--database-url", fixture.service.database.url()]));
        let people: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
        for (name, reply, suppressed) in replies {
            let person = people.iter().find(|person| person["email"] == format!("{name}@example.com")).unwrap();
            assert_eq!(person["suppressed"], suppressed, "{reply}: {person:#}");
        }
    })
    .await;
}

#[tokio::test]
async fn nobody_is_suppressed_in_a_run_without_an_accepted_letter() {
    on_each_database(async |fixture| {
        for name in ["gone", "lost"] {
            fixture.download(&format!("{name}@example.com"), true).await;
        }
        fixture.server.command("reply recipient 550 5.1.1 no such user").await;
        assert_eq!(fixture.send(&fixture.file("a.md", LETTER)).0, 0);
        assert_eq!(fixture.status()["refused"], 2);
        assert_eq!(fixture.service.database.count("suppressions").await, 0);
    })
    .await;
}

#[tokio::test]
async fn a_run_that_stops_before_anybody_is_accepted_lets_the_refused_wait_again() {
    on_each_database(async |fixture| {
        start_in_order(fixture, &["p0", "p1", "p2"]).await;
        fixture.server.command("reject p0 550 5.1.1 no such user").await;
        fixture.server.command("reject p1 554 5.7.1 we do not like you").await;
        let mut sender = sender(fixture).await;
        for _ in 0..2 {
            assert!(matches!(sender.step().await.unwrap(), LetterStep::Finished));
        }
        assert_eq!(fixture.status()["refused"], 2);
        sender.stop().await.unwrap();
        assert_eq!(fixture.status()["waiting"], 3);

        // The next run accepts one first: then the refusals count at once.
        fixture.server.command("accept").await;
        assert!(matches!(sender.step().await.unwrap(), LetterStep::Finished));
        fixture.server.command("reply recipient 550 5.1.1 no such user").await;
        assert!(matches!(sender.step().await.unwrap(), LetterStep::Finished));
        assert_eq!(fixture.service.database.count("suppressions").await, 1);
        sender.stop().await.unwrap();
        let status = fixture.status();
        assert_eq!((&status["sent"], &status["refused"], &status["waiting"]), (&json!(1), &json!(1), &json!(1)));
        sender.store.close().await;
    })
    .await;
}

#[tokio::test]
async fn a_mailbox_that_got_its_letter_gets_no_other_because_a_variant_of_it_waits_again() {
    on_each_database(async |fixture| {
        start_in_order(fixture, &["p+1", "p", "q1", "q2", "q3", "q4"]).await;
        fixture.server.command("reject p+1 554 5.7.1 we do not like you").await;
        fixture.server.command("reject q 554 5.7.1 we do not like you").await;
        let mut sender = sender(fixture).await;
        assert!(matches!(sender.step().await.unwrap(), LetterStep::Finished));
        fixture.server.command("drop answer").await;
        assert!(matches!(sender.step().await.unwrap(), LetterStep::Finished));
        assert_eq!(fixture.recipients().await, ["p@example.com"]);
        fixture.server.command("accept").await;
        fixture.server.command("reject q 554 5.7.1 we do not like you").await;
        for _ in 0..3 {
            assert!(matches!(sender.step().await.unwrap(), LetterStep::Finished));
        }
        assert!(sender.step().await.is_err(), "the fifth in a row");
        assert_eq!(fixture.status()["waiting"], 5);
        fixture.server.command("accept").await;
        while !matches!(sender.step().await.unwrap(), LetterStep::Complete) {}
        let later = fixture.recipients().await;
        assert_eq!(later.len(), 4, "not the variant: {later:?}");
        sender.store.close().await;
    })
    .await;
}

#[tokio::test]
async fn a_temporary_refusal_is_tried_again_later() {
    on_each_database(async |fixture| {
        fixture.download("ada@example.com", true).await;
        let mut sender = sender(fixture).await;
        for stage in ["recipient", "content"] {
            fixture.server.command(&format!("reply {stage} 451 4.7.1 greylisted")).await;
            assert!(matches!(sender.step().await.unwrap(), LetterStep::Deferred));
            assert!(matches!(sender.step().await.unwrap(), LetterStep::WaitUntil(_)));
            assert_eq!(fixture.service.database.count("letter_months").await, 0);
            fixture.service.clock.advance(Duration::from_mins(1));
        }
        fixture.server.command("accept").await;
        assert!(matches!(sender.step().await.unwrap(), LetterStep::Finished));
        assert!(matches!(sender.step().await.unwrap(), LetterStep::Complete));
        assert_eq!(fixture.recipients().await, ["ada@example.com"]);
        assert_eq!(fixture.status()["sent"], 1);
        sender.store.close().await;
    })
    .await;
}

#[tokio::test]
async fn a_letter_with_an_unknown_outcome_is_uncertain_and_not_retried() {
    on_each_database(async |fixture| {
        fixture.download("ada@example.com", true).await;
        let file = fixture.file("a.md", LETTER);
        fixture.server.command("drop answer").await;
        let (code, output) = fixture.send(&file);
        assert_eq!(code, 0, "{output}");
        assert_eq!(fixture.status()["uncertain"], 1);
        assert_eq!(fixture.recipients().await, ["ada@example.com"], "it had arrived after all");
        fixture.server.command("accept").await;
        fixture.send(&file);
        fixture.send(&fixture.file("b.md", "# Another\n\nMore.\n"));
        assert!(fixture.recipients().await.is_empty());
    })
    .await;
}

#[tokio::test]
async fn a_suppressed_person_is_skipped_at_the_last_moment() {
    on_each_database(async |fixture| {
        fixture.download("ada@example.com", true).await;
        let mut sender = sender(fixture).await;
        let ada = porchlight::domain::mail::EmailAddress::parse("ADA@example.com").unwrap();
        let why = porchlight::domain::people::SuppressionReason::Makers;
        sender.store.suppress(&ada, why, fixture.service.clock.now()).await.unwrap();
        while !matches!(sender.step().await.unwrap(), LetterStep::Complete) {}
        assert!(fixture.recipients().await.is_empty());
        assert_eq!(fixture.status()["skipped"], 1);
        let reasons = fixture.service.database.texts("SELECT last_error FROM letter_recipients").await;
        assert_eq!(reasons, ["suppressed"]);
        assert!(fixture.service.database.texts("SELECT month FROM letter_months").await.is_empty());
        sender.store.close().await;
    })
    .await;
}
