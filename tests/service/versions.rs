//! Programs of different versions on one database: a newer one has migrated it.

use std::path::Path;

use porchlight::config::RawSettings;
use serde_json::json;

use crate::harness::{Database, Program, Service, each_migrated_database};
use crate::opening::refused;
use crate::releases::live;

/// What a newer program would leave behind: a migration that adds a column and a table.
async fn migrate_to_the_future(database: &Database, oldest_compatible: i64) {
    let addition = "INSERT INTO _sqlx_migrations (version, description, installed_on, success, checksum, execution_time) \
         SELECT 9999, 'from the future', installed_on, success, checksum, execution_time FROM _sqlx_migrations \
             WHERE version = 1; \
         ALTER TABLE people ADD COLUMN mood TEXT; \
         CREATE TABLE moods (name TEXT PRIMARY KEY); \
         INSERT INTO moods (name) VALUES ('curious'); \
         INSERT INTO schema_versions (version, oldest_compatible) VALUES (9999, OLDEST)";
    database.execute(&addition.replace("OLDEST", &oldest_compatible.to_string())).await;
}

async fn newest_known(database: &Database) -> i64 {
    database.number("SELECT MAX(version) FROM _sqlx_migrations").await
}

fn run(folder: &Path, arguments: &[&str], database: &Database) -> (i32, String) {
    let mut command = Program::command(folder, arguments);
    command.args(["--database-url", database.url()]);
    Program::run(command)
}

#[tokio::test]
async fn a_program_works_on_a_newer_database_that_allows_it() {
    for database in each_migrated_database().await {
        println!("on {database:?}");
        migrate_to_the_future(&database, newest_known(&database).await).await;
        let migrations = database.count("_sqlx_migrations").await;
        let service = Service::start(live(), database.clone()).await;
        service.publish("1.4.0");
        service.post("/api/download", &json!({ "email": "ada@example.com", "updates": true })).await.expect_ok();
        service.post("/api/contact", &json!({ "email": "ada@example.com", "message": "Hello" })).await.expect_ok();
        let folder = tempfile::tempdir().expect("a folder");
        for arguments in [
            &["people", "list"][..],
            &["inbox", "retry", "--all"],
            &["people", "suppress", "bob@example.com"],
            &["people", "erase", "ada@example.com", "--yes"],
        ] {
            let (code, output) = run(folder.path(), arguments, &database);
            assert_eq!(code, 0, "{arguments:?}: {output}");
        }
        let (_, checks) = run(folder.path(), &["check", "--base-url", "https://troupe.example"], &database);
        assert!(checks.contains("A newer version of Porchlight has updated the schema"), "{checks}");
        assert_eq!(database.count("_sqlx_migrations").await, migrations, "no migration was run");
        service.stop().await;
    }
}

#[tokio::test]
async fn a_newer_database_that_does_not_allow_this_program_is_left_alone() {
    for database in each_migrated_database().await {
        println!("on {database:?}");
        migrate_to_the_future(&database, newest_known(&database).await + 1).await;
        let before = database.everything().await;
        let failure = Service::try_start(RawSettings::default(), database.clone()).await.err().expect("no start");
        let sentence = "belongs to a newer porchlight (it has migration 9999";
        assert!(failure.to_string().contains(sentence), "{failure}");
        let folder = tempfile::tempdir().expect("a folder");
        for arguments in
            [&["people", "list"][..], &["inbox", "retry", "--all"], &["people", "suppress", "bob@example.com"]]
        {
            refused(run(folder.path(), arguments, &database), sentence);
        }
        assert_eq!(database.everything().await, before);
    }
}

#[tokio::test]
async fn a_newer_migration_that_records_nothing_allows_nobody() {
    for database in each_migrated_database().await {
        let allowed = newest_known(&database).await;
        migrate_to_the_future(&database, allowed).await;
        database.execute("DELETE FROM schema_versions WHERE version = 9999").await;
        let failure = Service::try_start(RawSettings::default(), database).await.err().expect("no start");
        assert!(failure.to_string().contains("run that version, or restore an older backup"), "{failure}");
    }
}

#[tokio::test]
async fn nothing_is_copied_that_would_lose_what_a_newer_program_wrote() {
    let folder = tempfile::tempdir().expect("a folder");
    let sentence = "a copy by this version would lack what it does not know; use that version";
    let [sqlite, postgres] = each_migrated_database().await;
    for database in [&sqlite, &postgres] {
        migrate_to_the_future(database, newest_known(database).await).await;
        refused(run(folder.path(), &["backup", "backup"], database), sentence);
    }
    let target = Database::postgres().await;
    refused(run(folder.path(), &["move", "--to", target.url()], &sqlite), sentence);
    assert!(target.everything().await.is_empty());

    let source = Database::migrated_sqlite().await;
    assert_eq!(run(folder.path(), &["backup", "older"], &source).0, 0);
    let backup = Database::sqlite_at(&folder.path().join("older/porchlight.db"));
    migrate_to_the_future(&backup, newest_known(&source).await).await;
    refused(run(folder.path(), &["restore", "older"], &Database::sqlite()), sentence);
}
