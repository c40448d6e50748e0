//! A bucket that cannot be used: what is said of it, and that the backup is made once it can.

use std::time::Duration;

use porchlight::actions::BucketBackupStep;

use super::{DAY, HOUR, Instance, MADE, Offsite};
use crate::harness::{Database, MailServer, Program, Service, address_in, each_migrated_database, free_port};
use crate::releases::live;
use crate::telling;

#[track_caller]
fn assert_failed(step: &BucketBackupStep, words: &str) {
    let BucketBackupStep::Failed(why) = step else { panic!("{step:?}") };
    assert!(why.contains(words), "{why}");
}

async fn is_said_and_tried_again(database: Database) {
    let service = Service::start(live(), database).await;
    service.publish("1.4.0");
    for (fault, words) in [
        ("away", "the bucket is unavailable: "),
        ("cut", "the bucket is unavailable: "),
        ("cut:images/", "the bucket is unavailable: "),
        ("cut:porchlight.db", "the bucket is unavailable: "),
        ("away:contents", "the bucket is unavailable: "),
        ("fail", "the bucket is unavailable: it answers 503 Service Unavailable, SlowDown"),
        ("full", "the bucket is full (403 Forbidden, QuotaExceeded)"),
        ("full:contents", "the bucket is full (403 Forbidden, QuotaExceeded)"),
        ("deny", "the bucket refused the request (403 Forbidden, AccessDenied); check its name, the access key"),
        ("lie", "the object in the bucket is another one: its SHA-256 differs"),
        ("rot:porchlight.db", "the object in the bucket is another one: its SHA-256 differs"),
    ] {
        let offsite = Offsite::new();
        let instance = offsite.instance(&service, service.clock.clone());
        offsite.bucket.command(fault);
        assert_failed(&instance.step().await, words);
        assert_eq!(offsite.days(), Vec::<String>::new(), "{fault}");
        assert_eq!(
            offsite.images().is_empty(),
            !fault.contains(':') || fault.contains("images"),
            "{fault}: only what was read"
        );
        let (_, output) = Program::run(offsite.command(&service, &["check"]));
        assert!(output.contains(words), "{fault}: {output}");
        offsite.bucket.command("work");
        assert_eq!(instance.step().await, BucketBackupStep::Waiting, "{fault}");
        service.clock.advance(HOUR / 2);
        assert_eq!(instance.step().await, MADE, "{fault}");
    }
    let (_, output) = Program::run(Offsite::new().command(&service, &["check"]));
    assert!(output.contains("The last backup in the bucket was made on 2026-11-15, 0 days ago"), "{output}");
    service.stop().await;
}

#[tokio::test]
async fn whatever_is_wrong_is_said_and_tried_again_half_an_hour_later() {
    for database in each_migrated_database().await {
        println!("on {database:?}");
        is_said_and_tried_again(database).await;
    }
}

#[tokio::test]
async fn wrong_access_keys_are_said_where_the_settings_are() {
    let [sqlite, _] = each_migrated_database().await;
    let service = Service::start(live(), sqlite).await;
    let offsite = Offsite::new();
    let mut instance = offsite.instance(&service, service.clock.clone());
    let wrong = offsite.bucket.settings("another-key");
    instance.backups.bucket = porchlight::bucket::Bucket::open(&wrong, service.clock.clone()).expect("a bucket");
    assert_failed(&instance.step().await, "the bucket refused the request (403 Forbidden, InvalidAccessKeyId)");
    for (variable, value, words) in [
        ("AWS_ACCESS_KEY_ID", "another-key", "cannot be used: the bucket refused the request (403 Forbidden"),
        ("AWS_ACCESS_KEY_ID", "", "`backup_url` cannot be used: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY belong"),
        ("AWS_ENDPOINT_URL", "", "`backup_url` cannot be used: it needs AWS_ENDPOINT_URL, or AWS_REGION"),
    ] {
        let mut check = offsite.command(&service, &["check"]);
        check.env(variable, value);
        let (code, output) = Program::run(check);
        assert!(code == 1 && output.contains(words), "{output}");
    }
    let mut serve = offsite.command(&service, &["serve", "--listen", "127.0.0.1:0", "--ops-listen", "off"]);
    serve.env_remove("AWS_SECRET_ACCESS_KEY");
    let (code, output) = Program::run(serve);
    assert!(code > 0 && output.contains("The setting `backup_url` cannot be used: AWS_ACCESS_KEY_ID and"), "{output}");
    service.stop().await;
}

/// What the ops listener of a running service says.
async fn ops(program: &Program, path: &str) -> String {
    let url = format!("http://{}{path}", address_in(program.output(), "ops_listen"));
    reqwest::get(url).await.expect("an answer").text().await.expect("a text")
}

/// Returns the mail about backups that is due, if one is.
async fn mailed(service: &Service, server: &mut MailServer) -> Option<String> {
    let mut makers = telling::instance(service, server);
    makers.alerts.backs_up = true;
    let troubles = makers.step().await;
    makers.close().await;
    if troubles == 0 { None } else { Some(server.next_mail().await.text) }
}

async fn says_what_is_wrong(database: Database) {
    let mut server = MailServer::start().await;
    let service = Service::start(live(), database).await;
    service.publish("1.4.0");
    let offsite = Offsite::new();
    offsite.bucket.command("deny");
    let mut serve = offsite.command(&service, &["serve", "--listen", "127.0.0.1:0", "--log-format", "logfmt"]);
    serve.args(["--ops-listen", &format!("127.0.0.1:{}", free_port())]);
    let mut program = Program::start(serve, "Porchlight is serving");
    program.wait_for_output("the backup in the bucket failed");

    let words = "The backup in the bucket fails: the bucket refused the request (403 Forbidden, AccessDenied)";
    for path in ["/readyz", "/"] {
        let page = ops(&program, path).await;
        assert!(page.contains(words), "{path}: {page}");
        assert!(page.contains("There is no backup in the bucket yet"), "{path}: {page}");
    }
    let metrics = ops(&program, "/metrics").await;
    assert!(metrics.contains("\nporchlight_backup_failing 1\n"), "{metrics}");
    assert!(!metrics.contains("porchlight_backup_age_seconds"), "{metrics}");
    let (code, output) = Program::run(offsite.command(&service, &["check"]));
    assert!(code == 1 && output.contains("cannot be used: the bucket refused the request"), "{output}");
    let mail = mailed(&service, &mut server).await.expect("a mail");
    assert!(mail.contains("1. Backup\n") && mail.contains("bucket refused the request (403 Forbidden"), "{mail}");
    assert!(mail.contains("The service tries again every half hour."), "{mail}");

    offsite.bucket.command("work");
    service.clock.advance(HOUR / 2);
    let instance: Instance = offsite.instance(&service, service.clock.clone());
    assert_eq!(instance.step().await, MADE);
    let ready = ops(&program, "/readyz").await;
    assert!(ready.contains("\"backup\":\"ok\"") || ready.contains("\"backup\": \"ok\""), "{ready}");
    let metrics = ops(&program, "/metrics").await;
    assert!(metrics.contains("\nporchlight_backup_failing 0\n"), "{metrics}");
    assert!(metrics.contains("\nporchlight_backup_age_seconds "), "{metrics}");
    assert!(ops(&program, "/").await.contains("The last backup in the bucket was made on 2026-11-15"));

    // A bucket that refuses for a moment is no reason for a mail.
    offsite.bucket.command("deny");
    service.clock.advance(DAY);
    assert_failed(&instance.step().await, "refused the request");
    assert!(ops(&program, "/readyz").await.contains(words));
    assert_eq!(mailed(&service, &mut server).await, None, "it is tried again first");
    service.clock.advance(HOUR + Duration::from_mins(1));
    let mail = mailed(&service, &mut server).await.expect("a mail");
    assert!(mail.contains("bucket refused the request") && mail.contains("on 2026-11-15, 1 day ago"), "{mail}");
    offsite.bucket.command("work");
    assert_eq!(instance.step().await, MADE);

    // No instance runs for some days.
    service.clock.advance(DAY * 3);
    let mail = mailed(&service, &mut server).await.expect("a mail");
    assert!(mail.contains("The last backup in the bucket was made on 2026-11-16, 3 days ago."), "{mail}");
    let (_, output) = Program::run(offsite.command(&service, &["check"]));
    assert!(output.contains("3 days ago. The service tries again"), "{output}");
    drop(program);
    service.stop().await;
}

#[tokio::test]
async fn the_dashboard_the_metrics_and_a_mail_say_that_the_bucket_refuses_and_that_a_backup_is_overdue() {
    for database in each_migrated_database().await {
        println!("on {database:?}");
        says_what_is_wrong(database).await;
    }
}
