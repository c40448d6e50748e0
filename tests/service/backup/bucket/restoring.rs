//! `porchlight restore s3://…`

use std::path::Path;
use std::process::Command;

use porchlight::actions::BackupKey;
use serde_json::json;

use super::{DAY, MADE, Offsite};
use crate::backup::lived_in;
use crate::harness::{Bucket, Database, Program, Service, each_database, each_migrated_database};
use crate::releases::live;

/// The command on another machine, which has the key and nothing else.
fn restoring(offsite: &Offsite, name: &str, target: &Database, folder: &tempfile::TempDir) -> Command {
    std::fs::write(folder.path().join("backup.key"), offsite.key.file()).expect("a file");
    let url = format!("s3://{}/site{name}", offsite.bucket.name);
    let mut command = Program::command(folder.path(), &["restore", &url, "--key", "backup.key"]);
    command.args(["--data-dir", "data", "--database-url", target.url()]).envs(Bucket::environment());
    command
}

async fn is_untouched(target: &Database) -> bool {
    match target.url().strip_prefix("sqlite:") {
        Some(file) => !Path::new(file).exists(),
        None => target.everything().await.is_empty(),
    }
}

#[tokio::test]
async fn everything_comes_back_on_a_bare_machine_on_either_database() {
    for database in each_database().await {
        println!("from {database:?}");
        let (service, _server) = lived_in(database).await;
        let offsite = Offsite::new();
        assert_eq!(offsite.instance(&service, service.clock.clone()).step().await, MADE);
        let before = service.database.everything().await;
        for target in each_database().await {
            println!("to {target:?}");
            let elsewhere = tempfile::tempdir().expect("a folder");
            for again in [false, true] {
                let (code, output) = Program::run(restoring(&offsite, "/2026-11-15", &target, &elsewhere));
                assert_eq!(code, 0, "{output}");
                assert!(output.contains("from the backup of 2026-11-15"), "{output}");
                assert_eq!(target.everything_copied().await, before, "again: {again}");
            }
            let data = elsewhere.path().join("data");
            for image in ["Troupe-1.4.0.dmg", "Troupe-1.5.0.dmg"] {
                let restored = std::fs::read(data.join("releases").join(image)).expect("an image");
                assert!(restored == std::fs::read(service.releases_dir().join(image)).expect("an image"));
            }
            let files = std::fs::read_dir(&data).expect("a folder").map(|entry| entry.expect("an entry").file_name());
            assert_eq!(files.collect::<Vec<_>>(), ["releases"], "no copy is left");
            assert_eq!(target.count("tasks WHERE name = 'backup'").await, 1, "it is known when the backup was made");
        }
        service.stop().await;
    }
}

#[tokio::test]
async fn without_a_day_the_newest_backup_is_restored_and_an_unknown_day_is_answered_with_those_that_there_are() {
    let [sqlite, _] = each_migrated_database().await;
    let service = Service::start(live(), sqlite).await;
    let offsite = Offsite::new();
    let instance = offsite.instance(&service, service.clock.clone());
    let (elsewhere, target) = (tempfile::tempdir().expect("a folder"), Database::sqlite());
    let (code, output) = Program::run(restoring(&offsite, "", &target, &elsewhere));
    assert!(code == 1 && output.contains("Nothing was restored: there is no backup in s3://"), "{output}");
    assert_eq!(instance.step().await, MADE);
    service.post("/api/waitlist", &json!({ "email": "new@example.com" })).await.expect_ok();
    service.clock.advance(DAY);
    assert_eq!(instance.step().await, MADE);
    let (code, output) = Program::run(restoring(&offsite, "/2026-11-20", &target, &elsewhere));
    assert_eq!(code, 1, "{output}");
    assert!(output.contains("There are backups of: 2026-11-16, 2026-11-15."), "{output}");
    let (code, output) = Program::run(restoring(&offsite, "/2026-11-15/", &target, &elsewhere));
    assert_eq!((code, target.count("people").await), (0, 0), "{output}");
    let newest = Database::sqlite();
    let (code, output) = Program::run(restoring(&offsite, "", &newest, &elsewhere));
    assert_eq!((code, newest.count("people").await), (0, 1), "{output}");
    let (code, output) = Program::run(restoring(&offsite, "", &service.database, &elsewhere));
    assert!(code == 0, "the same data, and harmless: {output}");
    let (code, output) = Program::run(restoring(&offsite, "/2026-11-15", &service.database, &elsewhere));
    assert!(code == 1 && output.contains("is not empty"), "{output}");
    service.stop().await;
}

#[tokio::test]
async fn without_the_right_key_nothing_is_restored() {
    let [sqlite, _] = each_migrated_database().await;
    let service = Service::start(live(), sqlite).await;
    let offsite = Offsite::new();
    assert_eq!(offsite.instance(&service, service.clock.clone()).step().await, MADE);
    let (elsewhere, target) = (tempfile::tempdir().expect("a folder"), Database::sqlite());
    let other = Offsite::new();
    let wrong = Offsite { bucket: offsite.bucket, key: other.key };
    let (code, output) = Program::run(restoring(&wrong, "", &target, &elsewhere));
    assert_eq!(code, 1, "{output}");
    assert!(output.contains("Nothing was restored: 2026-11-15/manifest.json"), "{output}");
    assert!(output.contains("it was encrypted for another key. There are backups of: 2026-11-15."), "{output}");
    let url = format!("s3://{}/site", wrong.bucket.name);
    for (arguments, words) in [
        (vec!["restore", &url], "add `--key FILE`"),
        (vec!["restore", &url, "--key", "missing.key"], "the key in missing.key cannot be used: No such file"),
        (vec!["restore", "s3://x", "--key", "backup.key"], "it has no valid name of a bucket"),
    ] {
        let (code, output) = Program::run(Program::command(elsewhere.path(), &arguments));
        assert!(code > 0 && output.contains(words), "{output}");
    }
    let mut keyless = restoring(&wrong, "", &target, &elsewhere);
    keyless.env("AWS_ACCESS_KEY_ID", "wrong");
    let (code, output) = Program::run(keyless);
    assert!(
        code == 1 && output.contains("the bucket refused the request (403 Forbidden, InvalidAccessKeyId)"),
        "{output}"
    );
    assert!(is_untouched(&target).await, "nothing was begun");
    service.stop().await;
}

#[tokio::test]
async fn what_was_changed_in_the_bucket_is_refused() {
    let [sqlite, postgres] = each_migrated_database().await;
    let (service, stranger) = (Service::start(live(), sqlite).await, Service::start(live(), postgres).await);
    service.publish("1.4.0");
    let theirs = Offsite::new();
    let mut instance = theirs.instance(&stranger, stranger.clock.clone());
    instance.backups.piece_bytes = 300_000;
    assert_eq!(instance.step().await, MADE);
    let from_them = |part: &str| format!("take:{}:{part}", theirs.bucket.name);
    for (tampering, words) in [
        ("damage:porchlight.db", "the object in the bucket is another one"),
        ("truncate:porchlight.db", "the object in the bucket is another one"),
        ("lose:porchlight.db", "is not in the bucket. There are backups of: 2026-11-15."),
        ("forge:porchlight.db", "it was changed or damaged after it was encrypted. There are backups of: 2026-11-15."),
        ("forge:manifest.json", "it was changed or damaged after it was encrypted"),
        ("swap:porchlight.db", "the backup is damaged ("),
        (&from_them("porchlight.db"), "rows of the table secrets were changed"),
        (&from_them("manifest.json"), "rows of the table secrets were changed"),
        ("damage:contents", "2026-11-15/contents does not list 2026-11-15/manifest.json."),
        ("lose:contents", "there is no backup in s3://"),
        ("rename:2026-11-15:2026-11-16", "the backup of 2026-11-16 is one of another day"),
    ] {
        let offsite = Offsite { bucket: Bucket::new(), key: BackupKey::parse(&theirs.key.file()).expect("a key") };
        let mut instance = offsite.instance(&service, service.clock.clone());
        instance.backups.piece_bytes = if tampering.starts_with("swap") { 150_000 } else { 300_000 };
        assert_eq!(instance.step().await, MADE, "{tampering}");
        offsite.bucket.command(tampering);
        for target in each_database().await {
            let elsewhere = tempfile::tempdir().expect("a folder");
            let (code, output) = Program::run(restoring(&offsite, "", &target, &elsewhere));
            assert_eq!(code, 1, "{tampering}: {output}");
            assert!(output.starts_with("Nothing was restored: ") && output.contains(words), "{tampering}: {output}");
            assert!(!elsewhere.path().join("data/releases").exists());
            assert!(is_untouched(&target).await, "{tampering}");
        }
    }
    let offsite = Offsite::new();
    assert_eq!(offsite.instance(&service, service.clock.clone()).step().await, MADE);
    offsite.bucket.command("forge:images/");
    let (elsewhere, target) = (tempfile::tempdir().expect("a folder"), Database::sqlite());
    let (code, output) = Program::run(restoring(&offsite, "", &target, &elsewhere));
    assert_eq!(code, 1, "{output}");
    assert!(output.contains("some images are missing: Troupe-1.4.0.dmg (images/"), "{output}");
    assert!(output.contains("it was changed or damaged after it was encrypted"), "{output}");
    assert_eq!(
        target.everything_copied().await,
        service.database.everything().await,
        "the data is worth it all the same"
    );
    stranger.stop().await;
    service.stop().await;
}

#[tokio::test]
async fn a_restored_service_goes_on_with_the_backups_in_its_bucket() {
    let [sqlite, _] = each_migrated_database().await;
    let service = Service::start(live(), sqlite).await;
    let offsite = Offsite::new();
    assert_eq!(offsite.instance(&service, service.clock.clone()).step().await, MADE);
    let (elsewhere, target) = (tempfile::tempdir().expect("a folder"), Database::sqlite());
    let (code, output) = Program::run(restoring(&offsite, "", &target, &elsewhere));
    assert_eq!(code, 0, "{output}");
    let restored = Service::start(live(), target).await;
    let instance = offsite.instance(&restored, restored.clock.clone());
    assert_eq!(instance.step().await, porchlight::actions::BucketBackupStep::Present);
    let (_, output) = Program::run(offsite.command(&restored, &["check"]));
    assert!(output.contains("The last backup in the bucket was made on 2026-11-15, 0 days ago"), "{output}");
    restored.clock.advance(DAY);
    assert_eq!(instance.step().await, MADE);
    restored.stop().await;
    service.stop().await;
}
