//! Which commands may create or migrate the database.

use std::collections::BTreeMap;
use std::path::Path;

use crate::harness::{Database, Program, each_database};

/// Commands that only read.
const READERS: [&[&str]; 11] = [
    &["people", "show", "ada@example.com"],
    &["people", "list"],
    &["people", "export"],
    &["inbox", "list"],
    &["inbox", "show", "5f2c9a01"],
    &["stats"],
    &["letter", "list"],
    &["letter", "status"],
    &["release", "list"],
    &["release", "show", "1.4.0"],
    &["backup", "backup"],
];

/// Commands that change existing data.
const WRITERS: [&[&str]; 5] = [
    &["people", "purge", "--source", "casino", "--yes"],
    &["people", "erase", "ada@example.com", "--yes"],
    &["people", "unsuppress", "ada@example.com"],
    &["inbox", "retry", "--all"],
    &["release", "withdraw", "1.4.0", "--yes"],
];

/// Asserts that a command failed with one sentence that contains `expected`.
#[track_caller]
pub(super) fn refused((code, output): (i32, String), expected: &str) {
    assert_eq!(code, 1, "{output}");
    assert!(output.contains(expected) && output.trim().lines().count() == 1, "{output}");
}

fn run(folder: &Path, arguments: &[&str], database: &Database) -> (i32, String) {
    let mut command = Program::command(folder, arguments);
    command.args(["--database-url", database.url()]);
    Program::run(command)
}

/// Returns every file in a folder with its content.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    entries.map(|path| (path.display().to_string(), std::fs::read(&path).unwrap_or_default())).collect()
}

#[test]
fn a_missing_database_is_named_with_its_full_path_and_not_created() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().canonicalize().unwrap().join("data/porchlight.db");
    for arguments in READERS.iter().chain(&WRITERS) {
        println!("{arguments:?}");
        let output = Program::run(Program::command(folder.path(), arguments));
        assert!(output.1.contains("does not exist. Check `data_dir`"), "{}", output.1);
        refused(output, path.to_str().unwrap());
        assert!(files(folder.path()).is_empty());
    }
}

#[tokio::test]
async fn a_database_without_our_tables_is_rejected_and_not_changed() {
    let folder = tempfile::tempdir().expect("a folder");
    let [empty_file, postgres] = each_database().await;
    let file = empty_file.url().trim_start_matches("sqlite:").to_owned();
    std::fs::write(&file, "").unwrap();
    for database in [&empty_file, &postgres] {
        for arguments in READERS.iter().chain(&WRITERS) {
            println!("{arguments:?} on {database:?}");
            refused(run(folder.path(), arguments, database), "has no Porchlight tables. Check `database_url`");
        }
        assert!(database.everything().await.is_empty());
    }
    assert_eq!(std::fs::metadata(&file).unwrap().len(), 0);
}

#[tokio::test]
async fn a_command_that_may_write_first_creates_the_database() {
    let folder = tempfile::tempdir().expect("a folder");
    for database in each_database().await {
        let (code, output) = run(folder.path(), &["people", "suppress", "ada@example.com"], &database);
        assert_eq!((code, database.count("suppressions").await), (0, 1), "{output}");
    }
}

#[tokio::test]
async fn commands_that_only_read_do_not_change_the_files() {
    let folder = tempfile::tempdir().expect("a folder");
    let (database, target) = (Database::sqlite(), Database::postgres().await);
    // Made by a command and not by a service in this process, whose tasks may still be connecting when it has stopped.
    assert_eq!(run(folder.path(), &["people", "suppress", "ada@example.com"], &database).0, 0);
    let file = Path::new(database.url().trim_start_matches("sqlite:"));
    // An empty WAL and its index are left if two connections are closed at the same time, which SQLite takes for no last one.
    let contents = || {
        let mut contents = files(file.parent().unwrap());
        contents.retain(|name, content| !content.is_empty() && !name.ends_with("-shm"));
        contents
    };
    let before = contents();
    assert_eq!(before.len(), 1, "no WAL next to it");
    // A backup records when it was made.
    let readers = READERS.iter().copied().filter(|arguments| arguments[0] != "backup");
    for arguments in readers.chain([&["check"][..], &["move", "--to", target.url()]]) {
        println!("{arguments:?}");
        run(folder.path(), arguments, &database);
        assert!(contents() == before);
    }
    assert_eq!(target.everything_copied().await, database.everything().await, "everything was copied");
}

#[test]
fn a_database_that_cannot_be_opened_is_not_reported_as_missing() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("data"), "not a folder").unwrap();
    for arguments in READERS {
        let output = Program::run(Program::command(folder.path(), arguments));
        refused(output, "cannot be read: ");
    }
}

#[tokio::test]
async fn root_writes_nothing_where_another_user_runs_the_service() {
    // Only root can give files to another user, and only root is refused.
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("data");
    std::fs::create_dir(&data).expect("a folder");
    std::os::unix::fs::chown(&data, Some(4321), None).expect("another owner");
    for command in WRITERS.iter().chain(&[&["people", "suppress", "ada@example.com"][..]]) {
        refused(Program::run(Program::command(folder.path(), command)), "belongs to another user (id 4321)");
    }
    let restored = Program::run(Program::command(folder.path(), &["restore", "backup"]));
    refused(restored, "belongs to another user (id 4321)");
    assert_eq!(std::fs::read_dir(&data).expect("a folder").count(), 0);
}
