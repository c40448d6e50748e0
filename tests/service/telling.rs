//! The mail that tells the makers what needs attention.

use std::path::Path;
use std::time::Duration;

use porchlight::actions::{Alerts, ImageStore, NewestImage, OutboxSender, ReleaseCatalog, SendStep};
use porchlight::domain::mail::{Mailbox, Relay};
use porchlight::domain::network::BaseUrl;
use porchlight::domain::time::Timestamp;
use porchlight::mail::{MailAddress, Mailer};
use porchlight::tls::{CertificateState, CertificateStatus, SiteCertificate};
use serde_json::json;

use crate::harness::{Database, MailServer, Program, ReceivedMail, Service, SmallDisk, each_migrated_database};
use crate::releases::live;

const DAY: Duration = Duration::from_hours(24);
const HOUR: Duration = Duration::from_hours(1);

/// There is no newer certificate, for this reason.
fn failed(why: &str) -> CertificateState {
    CertificateState { certificate: None, failure: Some(why.to_owned()) }
}

fn valid(begins: Timestamp, expires: Timestamp) -> CertificateState {
    let time = |at: Timestamp| rcgen::date_time_ymd(1970, 1, 1) + Timestamp::from_unix_millis(0).until(at);
    let mut params = rcgen::CertificateParams::new(vec!["troupe.example".to_owned()]).expect("a name");
    (params.not_before, params.not_after) = (time(begins), time(expires));
    let key = rcgen::KeyPair::generate().expect("a key");
    let certificate = params.self_signed(&key).expect("a certificate");
    SiteCertificate::from_pem(certificate.pem().as_bytes(), key.serialize_pem().as_bytes())
        .expect("a certificate")
        .into()
}

/// An instance of the service, whose steps the test runs.
pub(super) struct Instance {
    pub(super) alerts: Alerts,
    sender: OutboxSender,
}

impl Instance {
    /// Returns the number of things that a new alert is about, which is then sent.
    pub(super) async fn step(&self) -> usize {
        let troubles = self.alerts.step().await.expect("a database that answers");
        while let SendStep::Sent = self.send().await {}
        troubles
    }

    async fn send(&self) -> SendStep {
        self.sender.step().await.expect("a database that answers")
    }

    pub(super) async fn close(self) {
        self.alerts.store.close().await;
    }
}

pub(super) fn instance(service: &Service, server: &MailServer) -> Instance {
    let store = service.database.store();
    let base_url = BaseUrl::parse("https://troupe.example").expect("a URL");
    let mailbox = |text| Mailbox::parse(text).expect("a mailbox");
    let relay = Relay::parse(&server.url()).expect("a mail server");
    let sender = OutboxSender {
        store: store.clone(),
        mailer: Mailer::new(relay, &mailbox("Troupe <hello@troupe.example>")).expect("a sender"),
        to: MailAddress::from_mailbox(&mailbox("makers@troupe.example")).expect("a recipient"),
        desk_email: None,
        confirmations: crate::confirmations::texts(),
        clock: service.clock.clone(),
    };
    let alerts = Alerts {
        catalog: ReleaseCatalog::new(store.clone(), ImageStore::Folder(service.releases_dir().into())),
        newest_image: NewestImage::choose(None, &base_url, "Troupe"),
        certificate: Some(CertificateStatus::default()),
        data_dir: service.releases_dir(),
        releases_dir: Some(service.releases_dir()),
        backs_up: false,
        base_url,
        app: "Troupe".to_owned(),
        machine: "web-1".to_owned(),
        clock: service.clock.clone(),
        ops_pool: store.clone(),
        store,
    };
    Instance { alerts, sender }
}

/// Runs a test with a service that has nothing wrong with it, on either database.
async fn on_each_database(test: impl AsyncFn(&Service, &mut MailServer)) {
    for database in each_migrated_database().await {
        println!("on {database:?}");
        let mut server = MailServer::start().await;
        let service = Service::start(live(), database).await;
        service.publish("1.4.0");
        test(&service, &mut server).await;
        service.stop().await;
    }
}

/// The mails that arrived since the last call, without contact messages.
async fn alerts(server: &mut MailServer) -> Vec<ReceivedMail> {
    let mails = server.mails().await;
    mails.into_iter().filter(|mail| mail.header("subject") == "Troupe's site needs attention").collect()
}

fn back_up(service: &Service, folder: &str) {
    let mut command = service.command(&["backup", folder, "--database-url", service.database.url()]);
    command.arg("--releases-dir").arg(service.releases_dir());
    let (code, output) = Program::run(command);
    assert_eq!(code, 0, "{output}");
}

/// Asserts that the mail has exactly these parts, each with its words.
#[track_caller]
fn assert_parts(mail: &ReceivedMail, parts: &[(&str, &str)]) {
    let titles: Vec<_> = mail.text.lines().filter(|line| line.starts_with(|c: char| c.is_ascii_digit())).collect();
    let titles: Vec<_> =
        titles.iter().filter_map(|title| title.split_once(". ")).filter(|(n, _)| n.len() < 3).collect();
    assert_eq!(
        titles.iter().map(|(_, title)| *title).collect::<Vec<_>>(),
        parts.iter().map(|(title, _)| *title).collect::<Vec<_>>(),
        "{}",
        mail.text
    );
    for (_, words) in parts {
        assert!(mail.text.contains(words), "{words}: {}", mail.text);
    }
}

#[tokio::test]
async fn a_part_that_cannot_be_looked_at_leaves_the_others() {
    on_each_database(async |service, server| {
        let disk = SmallDisk::new();
        let mut instance = instance(service, server);
        disk.folder().clone_into(&mut instance.alerts.data_dir);
        back_up(service, "first");
        service.clock.advance(DAY * 9);
        service.database.execute("ALTER TABLE releases RENAME TO other").await;
        assert_eq!(instance.step().await, 2);
        assert_parts(
            &server.next_mail().await,
            &[("Disk", "MB are free in"), ("Backup", "The last backup was made on")],
        );
        service.database.execute("ALTER TABLE other RENAME TO releases").await;
        instance.close().await;
    })
    .await;
}

#[tokio::test]
async fn one_mail_a_day_lists_everything_that_needs_a_hand() {
    on_each_database(async |service, server| {
        let disk = SmallDisk::new();
        let [mut one, other] = [instance(service, server), instance(service, server)];
        disk.folder().clone_into(&mut one.alerts.data_dir);
        back_up(service, "first");
        service.post("/api/contact", &json!({ "email": "ada@example.com", "message": "It waits." })).await.expect_ok();
        service.post("/api/contact", &json!({ "email": "ada@example.com", "message": "It failed." })).await.expect_ok();
        let database = &service.database;
        let failed =
            "UPDATE outbox SET state = 'failed' WHERE id = (SELECT id FROM messages WHERE body = 'It failed.')";
        database.execute(failed).await;
        service.clock.advance(DAY * 9);
        let now = service.clock.now();
        std::fs::remove_file(service.releases_dir().join("Troupe-1.4.0.dmg")).expect("a file");
        let certificate = one.alerts.certificate.as_ref().expect("a certificate");
        let failure = Some("the authority is away".to_owned());
        certificate.update(CertificateState { failure, ..valid(now.before(DAY * 85), now.after(DAY * 5)) });

        assert_eq!(one.step().await, 6);
        let mail = server.next_mail().await;
        assert_eq!(mail.header("subject"), "Troupe's site needs attention");
        assert_eq!(mail.header("auto-submitted"), "auto-generated");
        assert_eq!((mail.to.as_slice(), mail.reply_to.len()), (["makers@troupe.example".to_owned()].as_slice(), 0));
        assert!(mail.text.contains("https://troupe.example") && mail.text.contains("web-1"), "{}", mail.text);
        assert_parts(
            &mail,
            &[
                ("Certificate", "It expires on 2026-11-29; the authority is away."),
                ("Disk", " MB are free in `data_dir` ("),
                ("Newest image", "Downloads fail: Troupe-1.4.0.dmg cannot be read here: there is no such file"),
                ("Mail that waits", "1 message waits for the mail server, for 9 days now."),
                ("Mail that failed", "1 message was not forwarded to you within 7 days, and is not tried again."),
                ("Backup", "The last backup was made on 2026-11-15, 9 days ago."),
            ],
        );

        println!("{}", mail.text);
        assert!(!mail.text.contains("os error"), "{}", mail.text);
        assert_eq!(mail.text.contains("several instances"), service.database.is_postgres(), "{}", mail.text);
        for instance in [&one, &other] {
            assert_eq!(instance.step().await, 0);
        }
        service.clock.advance(Duration::from_hours(23));
        assert_eq!(other.step().await, 0);
        service.clock.advance(HOUR);
        let (by_one, by_other) = tokio::join!(one.step(), other.step());
        assert_eq!(by_one > 0, by_other == 0, "one of the two");
        assert_eq!(alerts(server).await.len(), 1);
        one.close().await;
        other.close().await;
    })
    .await;
}

#[tokio::test]
async fn what_the_mail_says_of_confirmations_has_no_zeros() {
    on_each_database(async |service, server| {
        let instance = instance(service, server);
        let mail = |id, state| {
            format!("INSERT INTO outbox (id, kind, state, at) VALUES ('{id}', 'confirmation', '{state}', 0);")
        };
        let old = "01900000-0000-7000-8000-000000000000";
        let waits = "1 person still waits for the mail that asks to confirm the opt-in";
        let failed = "1 person could not be asked to confirm the opt-in, because the mail was not accepted";
        for (rows, problem, to_do) in [
            (mail(old, "leased"), format!("\n{waits}.\n"), "at most 300 mails in an hour.\n"),
            (mail("x", "failed"), format!("\n{failed}.\n"), "can opt in again 30 days after the first time.\n"),
            (
                mail(old, "leased") + &mail("x", "failed"),
                format!("\n{waits}, and {failed}.\n"),
                "in an hour. Who could not be asked can opt in again",
            ),
        ] {
            service.database.execute(&format!("DELETE FROM outbox; {rows}")).await;
            service.clock.advance(DAY);
            assert_eq!(instance.alerts.step().await.expect("a database that answers"), 1);
            let [text] =
                service.database.texts("SELECT body FROM outbox WHERE kind = 'alert'").await.try_into().unwrap();
            println!("{text}");
            assert!(text.contains(&problem) && text.contains(to_do), "{text}");
        }
        instance.close().await;
    })
    .await;
}

#[tokio::test]
async fn a_day_on_which_nothing_is_wrong_has_no_mail() {
    on_each_database(async |service, server| {
        let instance = instance(service, server);
        let certificate = instance.alerts.certificate.as_ref().expect("a certificate");
        let now = service.clock.now();
        // An order that failed is repeated for weeks before that matters.
        let failure = Some("the authority is away".to_owned());
        certificate.update(CertificateState { failure, ..valid(now.before(DAY * 79), now.after(DAY * 11)) });
        back_up(service, "first");
        service.post("/api/contact", &json!({ "email": "ada@example.com", "message": "New." })).await.expect_ok();
        service.clock.advance(Duration::from_mins(59));
        assert_eq!(instance.step().await, 0);
        service.database.execute("UPDATE outbox SET state = 'sent'").await;
        service.clock.advance(DAY);
        // One that lasts six days is never valid for ten.
        let now = service.clock.now();
        certificate.update(valid(now.before(DAY * 4), now.after(DAY * 2)));
        assert_eq!(instance.step().await, 0);
        assert!(alerts(server).await.is_empty());

        certificate.update(valid(now.before(DAY * 80), now.after(DAY * 9 + HOUR * 23)));
        assert_eq!(instance.step().await, 1, "ten days before its end");
        service.clock.advance(DAY);
        certificate.update(failed("the file is damaged"));
        assert_eq!(instance.step().await, 1);
        let mails = alerts(server).await;
        assert!(mails[1].text.contains("; the file is damaged."), "{}", mails[1].text);
        instance.close().await;
    })
    .await;
}

#[tokio::test]
async fn a_site_that_has_published_nothing_is_not_in_trouble() {
    let mut server = MailServer::start().await;
    for database in each_migrated_database().await {
        let service = Service::start(live(), database).await;
        let instance = instance(&service, &server);
        assert_eq!(instance.step().await, 0);
        instance.alerts.certificate.as_ref().unwrap().update(failed("the authority refused it"));
        assert_eq!(instance.step().await, 1, "a certificate that never came");
        let mail = server.next_mail().await;
        assert!(mail.text.contains("The authority refused it."), "{}", mail.text);
        instance.close().await;
        service.stop().await;
    }
}

#[tokio::test]
async fn a_mail_that_was_refused_or_may_have_arrived_is_sent_again() {
    on_each_database(async |service, server| {
        let instance = instance(service, server);
        instance.alerts.certificate.as_ref().unwrap().update(failed("there is none"));
        let failing = async || matches!(instance.send().await, SendStep::Failed(_));
        assert_eq!(instance.alerts.step().await.expect("a database that answers"), 1);
        for refusal in ["reply sender 451 later", "reply recipient 550 who is that", "reply content 554 no"] {
            server.command("accept").await;
            server.command(refusal).await;
            assert!(failing().await, "{refusal}");
            service.clock.advance(HOUR);
        }
        server.command("accept").await;
        assert_eq!(instance.step().await, 0, "it waits already");
        assert_eq!(alerts(server).await.len(), 1);

        service.clock.advance(DAY);
        server.command("drop answer").await;
        assert_eq!(instance.alerts.step().await.expect("a database that answers"), 1);
        assert!(failing().await, "it may have arrived");
        let first = server.next_mail().await;
        server.command("accept").await;
        service.clock.advance(HOUR);
        assert_eq!(instance.step().await, 0);
        assert_eq!(server.next_mail().await.source, first.source, "the same mail");
        instance.close().await;
    })
    .await;
}

#[tokio::test]
async fn check_says_when_the_last_backup_was_made() {
    on_each_database(async |service, _| {
        let check = |place: &Path| {
            let mut command = service.command(&["check", "--json", "--database-url", service.database.url()]);
            command.arg("--releases-dir").arg(place);
            let output = Program::run_to_end(&mut command);
            let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
            let checks = report["checks"].as_array().expect("a list").clone();
            checks.into_iter().find(|check| check["name"] == "backup")
        };
        let place = service.releases_dir();
        assert_eq!(check(&place), None, "nobody expects one");
        back_up(service, "first");
        service.clock.advance(DAY * 7);
        let finding = check(&place).expect("a finding");
        assert_eq!(
            (&finding["state"], &finding["detail"]),
            (&json!("ok"), &json!("The last backup was made on 2026-11-15, 7 days ago"))
        );
        service.clock.advance(DAY + HOUR);
        let finding = check(&place).expect("a finding");
        assert_eq!(finding["state"], "note");
        assert!(
            finding["detail"].as_str().unwrap().contains("8 days ago. `porchlight backup FOLDER` makes one."),
            "{finding:#}"
        );
        assert_eq!(service.database.texts("SELECT name FROM tasks WHERE name = 'backup'").await.len(), 1);

        // A backup that lacks an image is not complete.
        std::fs::remove_file(place.join("Troupe-1.4.0.dmg")).expect("a file");
        let mut command = service.command(&["backup", "second", "--database-url", service.database.url()]);
        command.arg("--releases-dir").arg(&place);
        assert_eq!(Program::run(command).0, 1);
        assert_eq!(check(&place).expect("a finding")["state"], "note");
    })
    .await;
}

#[tokio::test]
async fn the_last_backup_is_known_after_a_restore_and_after_a_move() {
    let service = Service::start(live(), Database::migrated_sqlite().await).await;
    back_up(&service, "first");
    service.clock.advance(DAY);
    let made =
        async |database: &Database| database.texts("SELECT CAST(at AS TEXT) FROM tasks WHERE name = 'backup'").await;
    let (restored, moved) = (Database::sqlite(), Database::postgres().await);
    let arguments = ["restore", "first", "--database-url", restored.url(), "--releases-dir", "restored"];
    let (code, output) = Program::run(service.command(&arguments));
    assert_eq!(code, 0, "{output}");
    let (code, output) =
        Program::run(service.command(&["move", "--to", moved.url(), "--database-url", service.database.url()]));
    assert_eq!(code, 0, "{output}");
    let [at] = made(&service.database).await.try_into().expect("one time");
    assert_eq!(made(&moved).await, [at.as_str()]);
    // Its manifest has seconds.
    assert_eq!(made(&restored).await, [format!("{}000", &at[..at.len() - 3])]);
    service.stop().await;
}
