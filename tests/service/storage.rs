//! What is stored, and that it stays stored: concurrent clients, several instances, restarts, upgrades.

use std::collections::HashMap;

use futures_util::future::join_all;
use porchlight::config::RawSettings;
use serde_json::json;

use crate::harness::{Database, Program, Service, each_database, on_each_database};

async fn start(database: &Database) -> Service {
    Service::start(RawSettings::default(), database.clone()).await
}

/// Whether an address was known before a download or a join.
async fn already(service: &Service, path: &str, email: &str) -> bool {
    let result = service.post(path, &json!({ "email": email })).await.expect_ok();
    result["already"].as_bool().expect("true or false")
}

/// Sends 200 downloads and joins of 40 people at once, to each of the instances in turn, and asserts
/// that each person was new exactly once to each list, and that everything was stored.
async fn flood(instances: &[&Service]) {
    let requests = (0..200).map(|number| {
        let service = instances[number % instances.len()];
        let (path, person) = if number < 100 { ("/api/download", number / 5) } else { ("/api/waitlist", number / 5) };
        // Spellings differ, so that people are compared and not texts.
        let email = if number % 2 == 0 { format!("p{person}@example.com") } else { format!("P{person}@EXAMPLE.com") };
        async move { (path, person, already(service, path, &email).await) }
    });
    let letters = (0..50).map(|number| {
        let service = instances[number % instances.len()];
        let letter = json!({ "email": "ada@example.com", "message": format!("Letter {}", number / 5) });
        async move { service.post("/api/contact", &letter).await.expect_ok() }
    });
    let (answers, _) = tokio::join!(join_all(requests), join_all(letters));

    let mut new = HashMap::new();
    for (path, person, already) in answers {
        *new.entry((path, person)).or_insert(0) += u32::from(!already);
    }
    assert!(new.len() == 40 && new.values().all(|times| *times == 1), "each is new exactly once: {new:?}");
    let database = &instances[0].database;
    assert_eq!(database.count("people").await, 40);
    assert_eq!(database.count("signups").await, 200);
    assert_eq!(database.count("messages").await, 10);
}

#[tokio::test]
async fn of_many_at_once_each_person_is_new_exactly_once_and_all_are_stored() {
    on_each_database(async |service| flood(&[service]).await).await;
}

#[tokio::test]
async fn two_instances_on_one_postgres_agree_on_who_is_new() {
    let database = Database::postgres().await;
    let (first, second) = tokio::join!(start(&database), start(&database));
    flood(&[&first, &second]).await;
    assert!(!already(&first, "/api/download", "ada@example.com").await);
    assert!(already(&second, "/api/download", "ada@example.com").await);
    assert!(!already(&second, "/api/waitlist", "ada@example.com").await);
    assert!(already(&first, "/api/waitlist", "ada@example.com").await);
    first.stop().await;
    second.stop().await;
}

#[tokio::test]
async fn an_opt_in_among_many_downloads_at_once_is_kept_once() {
    on_each_database(async |service| {
        let requests = (0..60).map(|number| {
            let body = json!({ "email": "ada@example.com", "updates": number % 3 == 0, "source": "tests" });
            async move { service.post("/api/download", &body).await.expect_ok() }
        });
        join_all(requests).await;
        assert!(service.database.has_updates_on("ada@example.com").await);
        assert_eq!(service.database.count("consents").await, 1);
    })
    .await;
}

#[tokio::test]
async fn what_was_answered_with_200_is_there_after_a_restart() {
    for database in each_database().await {
        println!("on {database:?}");
        let service = start(&database).await;
        let download = json!({ "email": "ada@example.com", "updates": true });
        service.post("/api/download", &download).await.expect_ok();
        assert!(!already(&service, "/api/waitlist", "bob@example.com").await);
        let letter = json!({ "email": "eve@example.com", "message": "Hello" });
        service.post("/api/contact", &letter).await.expect_ok();
        service.stop().await;

        let service = start(&database).await;
        assert!(already(&service, "/api/download", "ada@example.com").await);
        assert!(already(&service, "/api/waitlist", "bob@example.com").await);
        assert!(database.has_updates_on("ada@example.com").await);
        service.post("/api/contact", &letter).await.expect_ok();
        assert_eq!(database.texts("SELECT body FROM messages").await, ["Hello"]);
        service.stop().await;
    }
}

/// Makes the database record, with every new person, the durability settings of the connection that writes.
const NOTE_DURABILITY: [&str; 2] = [
    "CREATE TABLE noted (value TEXT); \
     CREATE TRIGGER note AFTER INSERT ON people BEGIN \
         INSERT INTO noted SELECT synchronous || ' ' || journal_mode FROM pragma_synchronous, pragma_journal_mode; \
     END",
    "CREATE TABLE noted (value TEXT); \
     CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS \
         $$ BEGIN INSERT INTO noted VALUES (current_setting('synchronous_commit')); RETURN NEW; END $$; \
     CREATE TRIGGER note AFTER INSERT ON people FOR EACH ROW EXECUTE FUNCTION note(); \
     DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET synchronous_commit = off', current_database()); END $$",
];

#[tokio::test]
async fn a_commit_waits_for_the_disk_whatever_the_database_has_as_its_default() {
    for (database, (note, safe)) in
        each_database().await.into_iter().zip(NOTE_DURABILITY.into_iter().zip(["2 wal", "on"]))
    {
        start(&database).await.stop().await;
        database.execute(note).await;
        let service = start(&database).await;
        let people = (0..20).map(|number| format!("p{number}@example.com"));
        join_all(people.map(async |email| already(&service, "/api/download", &email).await)).await;
        assert_eq!(database.texts("SELECT value FROM noted").await, [safe; 20]);
        service.stop().await;
    }
}

#[tokio::test]
async fn a_write_that_the_database_refuses_fails_alone() {
    on_each_database(async |service| {
        service.database.refuse_poison_in("people").await;
        let requests = (0..100).map(|number| async move {
            let poison = number % 10 == 5;
            let email = if poison { "poison@example.com".to_owned() } else { format!("p{number}@example.com") };
            (poison, service.post("/api/waitlist", &json!({ "email": email })).await)
        });
        for (poison, answer) in join_all(requests).await {
            if poison {
                answer.expect_problem(503, "unavailable");
                assert!(!answer.text().contains("hunter2"), "the cause is for the log alone");
                assert!(answer.headers.contains_key("deprecation"));
            } else {
                answer.expect_ok();
            }
        }
        assert_eq!(service.database.count("people").await, 90);
        assert_eq!(service.database.count("signups").await, 90);
    })
    .await;
}

#[tokio::test]
async fn others_on_the_machine_cannot_read_an_embedded_database() {
    use std::os::unix::fs::PermissionsExt;
    let database = Database::sqlite();
    let service = start(&database).await;
    let file = database.url().strip_prefix("sqlite:").expect("a file");
    for file in [file.to_owned(), format!("{file}-wal")] {
        let mode = std::fs::metadata(&file).expect("a file").permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{file}");
    }
    service.stop().await;
}

#[tokio::test]
async fn four_programs_can_migrate_one_file_at_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let url = format!("sqlite:{}", folder.path().join("porchlight.db").display());
    std::fs::write(folder.path().join("people.csv"), "email\nada@example.com\n").expect("a file");
    let start = |_| {
        let mut command = Program::command(folder.path(), &["people", "import", "people.csv", "--database-url", &url]);
        command.stderr(std::process::Stdio::piped()).spawn().expect("the program")
    };
    let programs: Vec<_> = (0..4).map(start).collect();
    for program in programs {
        let output = Program::wait(program, "the end of the program");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}

#[tokio::test]
async fn both_databases_have_the_same_tables_columns_and_indexes() {
    let [sqlite, postgres] = each_database().await;
    for database in [&sqlite, &postgres] {
        start(database).await.stop().await;
    }
    let columns = [
        "SELECT t.name || '.' || c.name || ' ' || replace(lower(c.type), 'integer', 'bigint') || ' ' || \
             CASE c.\"notnull\" WHEN 1 THEN 'NO' ELSE 'YES' END AS line \
         FROM sqlite_schema t, pragma_table_info(t.name) c \
         WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite%' AND t.name <> '_sqlx_migrations'",
        "SELECT table_name || '.' || column_name || ' ' || data_type || ' ' || is_nullable AS line \
         FROM information_schema.columns WHERE table_schema = 'public' AND table_name <> '_sqlx_migrations'",
    ];
    // A primary key is an index, too, with a name that each database chooses.
    let indexes = [
        "SELECT t.name || ' ' || i.\"unique\" || ' ' || group_concat(c.name, ',' ORDER BY c.seqno) AS line \
         FROM sqlite_schema t, pragma_index_list(t.name) i, pragma_index_info(i.name) c \
         WHERE t.type = 'table' AND t.name <> '_sqlx_migrations' GROUP BY t.name, i.name",
        "SELECT c.relname || ' ' || CASE WHEN i.indisunique THEN 1 ELSE 0 END || ' ' || \
             string_agg(a.attname, ',' ORDER BY array_position(i.indkey::int2[], a.attnum)) \
         FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid JOIN pg_namespace n ON n.oid = c.relnamespace \
         JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = ANY (i.indkey) \
         WHERE n.nspname = 'public' AND c.relname <> '_sqlx_migrations' GROUP BY c.relname, i.indexrelid, i.indisunique",
    ];
    for [in_sqlite, in_postgres] in [columns, indexes] {
        let mut twins = [sqlite.texts(in_sqlite).await, postgres.texts(in_postgres).await];
        for lines in &mut twins {
            lines.sort();
        }
        assert!(twins[0].len() > 5, "{twins:#?}");
        assert_eq!(twins[0], twins[1]);
    }
    let ordered_otherwise = "SELECT table_name || '.' || column_name FROM information_schema.columns \
                             WHERE table_schema = 'public' AND data_type = 'text' AND table_name <> '_sqlx_migrations' \
                             AND collation_name IS DISTINCT FROM 'C'";
    assert_eq!(postgres.texts(ordered_otherwise).await, Vec::<String>::new(), "all texts are ordered byte by byte");
}
