//! Backup and restore: the whole round trip, beside a running service.

mod bucket;
mod rotation;
mod troubles;

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::json;

use crate::harness::{Database, MailServer, Program, Service, each_database};
use crate::releases::live;

/// A service with every kind of row, text that is hard to copy, more rows than one batch holds, and images that are
/// here, elsewhere and withdrawn.
pub(super) async fn lived_in(database: Database) -> (Service, MailServer) {
    let (mut server, service) = (MailServer::start().await, Service::start(live(), database).await);
    service.publish("1.4.0");
    service.publish("1.5.0");
    service.release(&["withdraw", "1.5.0", "--yes"]);
    let elsewhere = ["publish", "--url", "https://files.example/a.dmg", "--length", "7", "--sha256"];
    let (code, output) =
        service.release(&[&elsewhere[..], &[&"ab".repeat(32), "--version", "1.3.0", "--force"]].concat());
    assert_eq!(code, 0, "{output}");

    let odd = "a \"b\" \\u0041 \\ 'c' 🏮\t{}";
    for (email, updates) in [("Ada@Example.com", true), ("bob@example.com", false), ("dan@bücher.example", true)] {
        let order = json!({ "email": email, "updates": updates, "source": odd });
        service.post("/api/download", &order).await.expect_ok();
    }
    service.post("/api/waitlist", &json!({ "email": "cyd@example.com" })).await.expect_ok();
    let message = format!("{odd}\r\nline two\u{0}\u{1f}\n{}", "long ".repeat(600));
    let letter = json!({ "email": "eve@example.com", "name": "Eve, \"E\"", "message": message });
    service.post("/api/contact", &letter).await.expect_ok();
    let events: Vec<_> =
        (0..2500).map(|n| format!("('e{n}', 'bob@example.com', 'download', {n}, 'api', NULL)")).collect();
    service.database.execute(&format!("INSERT INTO signups VALUES {}", events.join(", "))).await;

    let (code, output) = send_letter(&service, &server, "november.md");
    assert_eq!(code, 0, "{output}");
    let mails = server.mails().await;
    let to_dan = mails.iter().find(|mail| mail.recipients[0].starts_with("dan")).expect("a letter to Dan");
    let way_out = to_dan.header("list-unsubscribe").trim_matches(['<', '>']).replace(service.base_url(), "");
    let form = [("content-type", "application/x-www-form-urlencoded")];
    let left = service.send(reqwest::Method::POST, &way_out, &form, "reason=not-me").await;
    assert!(left.status.is_success() || left.status.is_redirection(), "{}", left.status);
    assert_eq!(service.database.count("suppressions").await, 1);
    (service, server)
}

/// Sends a letter as a maker does.
pub(super) fn send_letter(service: &Service, server: &MailServer, name: &str) -> (i32, String) {
    let file = service.file(name, format!("# {name}\n\nWords.\n"));
    let mut command = Program::command(&home(service), &["letter", "send", file.to_str().unwrap(), "--yes"]);
    command.args([
        "--database-url",
        service.database.url(),
        "--base-url",
        "https://troupe.example",
        "--smtp-url",
        &server.url(),
    ]);
    command.args(["--mail-from", "a@troupe.example", "--contact-to", "b@troupe.example"]);
    command.args(["--postal-address", "1 Lamp Street", "--letter-rate", "1000"]);
    Program::run(command)
}

/// The data directory of this service.
pub(super) fn home(service: &Service) -> PathBuf {
    service.releases_dir().parent().expect("a folder above").to_owned()
}

/// `porchlight COMMAND …` as a maker types it beside this service.
pub(super) fn command(service: &Service, arguments: &[&str]) -> Command {
    let mut command = service.command(arguments);
    command.args(["--database-url", service.database.url(), "--releases-dir", "releases"]);
    command
}

pub(super) fn back_up(service: &Service, folder: &str) -> (i32, String) {
    Program::run(command(service, &["backup", folder]))
}

fn restore(backup: &Path, database: &Database, home: &Path) -> (i32, String) {
    let mut command = Program::command(home, &["restore", backup.to_str().unwrap()]);
    command.args(["--data-dir", "data", "--database-url", database.url()]);
    Program::run(command)
}

/// The same, whatever became of its manifest.
fn restore_unverified(backup: &Path, database: &Database, home: &Path) -> (i32, String) {
    let mut command = Program::command(home, &["restore", backup.to_str().unwrap(), "--unverified"]);
    command.args(["--data-dir", "data", "--database-url", database.url()]);
    Program::run(command)
}

/// Names and contents of all files in a folder.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let files = std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    let named = |path: PathBuf| path.file_name().expect("a name").to_str().expect("UTF-8").to_owned();
    files.filter(|path| path.is_file()).map(|path| (named(path.clone()), std::fs::read(path).expect("bytes"))).collect()
}

#[tokio::test]
async fn everything_comes_back_as_it_was_on_either_database() {
    for database in each_database().await {
        println!("from {database:?}");
        let (service, _server) = lived_in(database).await;
        let before = service.database.everything().await;
        let backup = home(&service).join("backup");
        std::fs::create_dir(&backup).expect("an empty folder that others can look into");
        let (code, output) = back_up(&service, "backup");
        assert_eq!(code, 0, "{output}");
        let mode = backup.join("porchlight.db").metadata().expect("a file").mode();
        assert_eq!(mode & 0o077, 0, "for its owner alone");
        assert!(output.contains("Troupe-1.3.0.dmg is hosted at https://files.example/a.dmg"), "{output}");
        assert_eq!(service.database.everything().await, before);
        let beside = files(&backup).into_keys().collect::<Vec<_>>();
        assert_eq!(beside, ["manifest.json", "porchlight.db"], "one file, and what it held");
        let written = files(&backup);

        let mut images = files(&service.releases_dir());
        images.remove(".lock");
        assert_eq!(images.keys().collect::<Vec<_>>(), ["Troupe-1.4.0.dmg", "Troupe-1.5.0.dmg"]);
        for target in each_database().await {
            println!("to {target:?}");
            let elsewhere = tempfile::tempdir().expect("a folder");
            let (code, output) = restore(&backup, &target, elsewhere.path());
            assert_eq!(code, 0, "{output}");
            assert_eq!(target.everything_copied().await, before);
            assert!(files(&elsewhere.path().join("data/releases")) == images);
            if let Some(file) = target.url().strip_prefix("sqlite:") {
                assert_eq!(Path::new(file).metadata().expect("a file").mode() & 0o077, 0, "for its owner alone");
            }
            assert!(files(&elsewhere.path().join("data")).is_empty(), "nothing else was written");
            assert!(files(&backup) == written, "the backup is as it was");

            let (code, output) = restore(&backup, &target, elsewhere.path());
            assert_eq!((code, target.everything_copied().await == before), (0, true), "again, and harmless: {output}");
        }
        service.stop().await;
    }
}

#[tokio::test]
async fn every_table_is_copied() {
    let service = Service::start(live(), Database::migrated_sqlite().await).await;
    let (code, output) = back_up(&service, "backup");
    assert_eq!(code, 0, "{output}");
    let table = |line: &str| match line.split_whitespace().collect::<Vec<_>>()[..] {
        [table, _rows] => Some(table.to_owned()),
        _ => None,
    };
    let mut listed: Vec<_> = output.lines().filter_map(table).collect();
    listed.sort_unstable();
    let mut tables = service.database.everything().await;
    tables.remove("schema_versions").expect("a table that the migrations of the copy fill");
    assert_eq!(
        service.database.count("tasks WHERE name = 'backup'").await,
        1,
        "what instances and commands did is not copied"
    );
    for lets_somebody_in in ["sessions", "sign_in_links"] {
        tables.remove(lets_somebody_in).expect("a table");
    }
    assert_eq!(listed, tables.into_keys().collect::<Vec<_>>());
    service.stop().await;
}

#[tokio::test]
async fn a_backup_made_during_writes_is_a_consistent_snapshot() {
    for database in each_database().await {
        println!("on {database:?}");
        let (service, _server) = lived_in(database).await;
        let before = service.database.count("people").await;
        let mut backing_up = command(&service, &["backup", "backup"]);
        let mut backing_up = backing_up.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the program");
        let mut written = 0;
        let ended = loop {
            let order = json!({ "email": format!("p{written}@example.com"), "updates": true });
            service.post("/api/download", &order).await.expect_ok();
            written += 1;
            if let Some(ended) = backing_up.try_wait().expect("its state") {
                break ended;
            }
        };
        assert!(ended.success());
        assert_eq!(service.database.count("people").await, before + written);

        let (elsewhere, target) = (tempfile::tempdir().expect("a folder"), Database::sqlite());
        let (code, output) = restore(&home(&service).join("backup"), &target, elsewhere.path());
        assert_eq!(code, 0, "{output}");
        assert!((before..=before + written).contains(&target.count("people").await));
        // A person, the event and the opt-in are written in one transaction.
        for halves in [
            "SELECT COUNT(*) FROM people WHERE first_download NOT IN (SELECT id FROM signups)",
            "SELECT COUNT(*) FROM people WHERE opt_in NOT IN (SELECT id FROM consents)",
            "SELECT COUNT(*) FROM signups WHERE address NOT IN (SELECT address FROM people)",
            "SELECT COUNT(*) FROM consents WHERE address NOT IN (SELECT address FROM people)",
        ] {
            assert_eq!(target.number(halves).await, 0, "{halves}");
        }
        service.stop().await;
    }
}

#[tokio::test]
async fn only_an_empty_place_is_restored_into_and_only_an_empty_folder_backed_up_to() {
    for database in each_database().await {
        println!("on {database:?}");
        let (service, _server) = lived_in(database).await;
        assert_eq!(back_up(&service, "backup").0, 0);
        let backup = home(&service).join("backup");
        let refused = |(code, output): (i32, String), words: &str| {
            assert_eq!(code, 1, "{output}");
            assert!(output.contains(words) && output.trim().lines().count() == 1, "{output}");
        };
        refused(back_up(&service, "backup"), "is not empty");

        service.post("/api/waitlist", &json!({ "email": "new@example.com" })).await.expect_ok();
        let (elsewhere, before) = (tempfile::tempdir().expect("a folder"), service.database.everything().await);
        refused(restore(&backup, &service.database, elsewhere.path()), "is not empty");
        assert_eq!(service.database.everything().await, before);
        refused(restore(elsewhere.path(), &Database::sqlite(), elsewhere.path()), "holds no complete backup");

        let foreign = Database::postgres().await;
        foreign.execute("CREATE TABLE notes (text TEXT)").await;
        refused(restore(&backup, &foreign, elsewhere.path()), "is not empty");
        assert_eq!(foreign.everything().await.into_keys().collect::<Vec<_>>(), ["notes"]);

        let other = elsewhere.path().join("data/releases/Troupe-1.4.0.dmg");
        std::fs::create_dir_all(other.parent().unwrap()).unwrap();
        std::fs::write(&other, "something else").unwrap();
        let target = Database::sqlite();
        refused(restore(&backup, &target, elsewhere.path()), "differs from the image of that name");
        assert_eq!(std::fs::read(&other).unwrap(), b"something else");
        std::fs::remove_file(&other).unwrap();
        assert_eq!(restore(&backup, &target, elsewhere.path()).0, 0);
        service.stop().await;
    }
}

#[tokio::test]
async fn an_interrupted_backup_is_not_a_backup_and_can_be_repeated() {
    for database in each_database().await {
        println!("on {database:?}");
        let (service, _server) = lived_in(database).await;
        let whole = command(&service, &["backup", "backup"]);
        let mut cut_off = Command::new("sh");
        // The system kills the program when a file exceeds so many blocks.
        cut_off.args(["-c", "ulimit -f 800; exec \"$@\"", "sh"]).arg(whole.get_program()).args(whole.get_args());
        let ended = Program::run_to_end(cut_off.current_dir(home(&service))).status;
        assert_eq!(ended.code(), None, "it was to be killed");
        let elsewhere = tempfile::tempdir().expect("a folder");
        let (code, output) = restore(&home(&service).join("backup"), &Database::sqlite(), elsewhere.path());
        assert_eq!(code, 1, "{output}");
        assert!(output.contains("holds no complete backup"), "{output}");

        let (code, output) = back_up(&service, "backup");
        assert_eq!(code, 0, "{output}");
        let target = Database::sqlite();
        assert_eq!(restore(&home(&service).join("backup"), &target, elsewhere.path()).0, 0);
        assert_eq!(target.everything_copied().await, service.database.everything().await);
        service.stop().await;
    }
}

#[tokio::test]
async fn a_missing_or_changed_image_is_reported() {
    let (service, _server) = lived_in(Database::migrated_sqlite().await).await;
    let image = service.releases_dir().join("Troupe-1.4.0.dmg");
    std::fs::remove_file(service.releases_dir().join("Troupe-1.5.0.dmg")).unwrap();
    assert_eq!(back_up(&service, "without-the-withdrawn").0, 0);

    let mut bytes = std::fs::read(&image).unwrap();
    bytes[100] ^= 1;
    std::fs::remove_file(&image).unwrap();
    std::fs::write(&image, bytes).unwrap();
    let (code, output) = back_up(&service, "backup");
    assert_eq!(code, 1, "{output}");
    assert!(output.contains("but some images are missing: Troupe-1.4.0.dmg"), "{output}");
    let (elsewhere, target) = (tempfile::tempdir().expect("a folder"), Database::sqlite());
    let (code, output) = restore(&home(&service).join("backup"), &target, elsewhere.path());
    assert_eq!(code, 1, "not everything is back: {output}");
    assert!(output.contains("Troupe-1.4.0.dmg (it is not in the backup)"), "{output}");
    assert_eq!(
        target.everything_copied().await,
        service.database.everything().await,
        "the data is worth it all the same"
    );
    service.stop().await;
}

#[tokio::test]
async fn a_backup_of_a_newer_version_is_refused_with_a_sentence() {
    let service = Service::start(live(), Database::migrated_sqlite().await).await;
    assert_eq!(back_up(&service, "backup").0, 0);
    let backup = home(&service).join("backup");
    let newer = "UPDATE _sqlx_migrations SET version = 9999 WHERE version = 1";
    Database::sqlite_at(&backup.join("porchlight.db")).execute(newer).await;
    let (elsewhere, target) = (tempfile::tempdir().expect("a folder"), Database::sqlite());
    let (code, output) = restore(&backup, &target, elsewhere.path());
    assert_eq!(code, 1, "{output}");
    assert!(output.starts_with("Nothing was restored: the database belongs to a newer porchlight"), "{output}");
    service.stop().await;
}
