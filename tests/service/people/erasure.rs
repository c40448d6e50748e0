//! `porchlight people erase`

use std::path::PathBuf;
use std::time::Duration;

use porchlight::actions::{OutboxSender, SendStep};
use porchlight::config::RawSettings;
use porchlight::domain::letters::{Letter, RandomToken};
use porchlight::domain::mail::{EmailAddress, Mailbox, Relay};
use porchlight::mail::{MailAddress, Mailer};
use serde_json::json;
use sqlx::Executor;

use super::{download, join, run, shown, write};
use crate::harness::{Database, MailServer, Service, on_each_database, wait_until};

const TABLES: [&str; 9] = [
    "people",
    "signups",
    "consents",
    "withdrawals",
    "messages",
    "outbox",
    "message_hashes",
    "letter_recipients",
    "unsubscribe_tokens",
];

fn erase(service: &Service, email: &str) -> String {
    let (code, output) = run(service, &["people", "erase", email, "--yes"]);
    assert_eq!(code, 0, "{output}");
    output
}

fn address(email: &str) -> EmailAddress {
    EmailAddress::parse(email).expect("an address")
}

/// Sends a letter to everybody who opted in.
fn send_letter(service: &Service, server: &MailServer, text: &str) -> (i32, String) {
    let file = service.file("letter.md", text).display().to_string();
    let mut command = service.command(&["letter", "send", &file, "--yes"]);
    command.args(["--database-url", service.database.url(), "--base-url", "https://troupe.example"]);
    command.args(["--smtp-url", &server.url(), "--mail-from", "hello@troupe.example"]);
    command.args([
        "--contact-to",
        "makers@troupe.example",
        "--postal-address",
        "1 Lamp Street",
        "--letter-rate",
        "1000",
    ]);
    crate::harness::Program::run(command)
}

async fn recipients(server: &mut MailServer) -> Vec<String> {
    server.mails().await.into_iter().flat_map(|mail| mail.recipients).collect()
}

#[tokio::test]
async fn erasure_leaves_no_trace_and_the_person_can_start_over() {
    on_each_database(async |service| {
        let mut server = MailServer::start().await;
        for email in ["Ada@example.com", "bob@example.com"] {
            download(service, email, true).await;
            join(service, email).await;
            write(service, email, "Hello").await;
        }
        assert_eq!(send_letter(service, &server, "# One\n\nNews.\n").0, 0);
        assert_eq!(recipients(&mut server).await.len(), 2);
        let link = shown(service, "ada@example.com")["unsubscribe_url"].as_str().unwrap().to_owned();
        let path = link.strip_prefix(service.base_url()).unwrap();
        let form = [("content-type", "application/x-www-form-urlencoded")];
        service.send(reqwest::Method::POST, path, &form, "").await;
        service
            .database
            .execute(
                "INSERT INTO letter_months (hash, month, letter) SELECT hash, '2020-01', letter FROM letter_months",
            )
            .await;
        let all = shown(service, "ada@example.com");
        assert_eq!((&all["letters"][0]["state"], &all["letters"][0]["subject"]), (&json!("sent"), &json!("One")));
        assert_eq!(all["letter_months"].as_array().unwrap().len(), 2);

        let (code, output) = run(service, &["people", "erase", "ada@EXAMPLE.com"]);
        assert!(code == 2 && output.contains("--yes"), "{output}");
        assert_eq!(shown(service, "ada@example.com"), all);
        let output = erase(service, "ada@EXAMPLE.com");
        for expected in
            ["(downloads and joins: 2, opt-ins: 1, messages: 1, letters: 1)", "this month's letter", "Backups"]
        {
            assert!(output.contains(expected), "{output}");
        }
        for table in TABLES.iter().filter(|table| **table != "withdrawals") {
            let left = if *table == "signups" { 2 } else { 1 };
            assert_eq!(service.database.count(table).await, left, "only bob is left in {table}");
        }
        assert_eq!(service.database.count("withdrawals").await, 0);
        assert_eq!(service.database.texts("SELECT DISTINCT month FROM letter_months").await, ["2026-11"]);
        assert_eq!(service.database.count("letter_months").await, 2, "only the current month is kept");
        let (code, output) = run(service, &["people", "show", "ada@example.com"]);
        assert!(code == 1 && output.contains("Nothing is stored about ada@example.com, except"), "{output}");
        assert_eq!(service.get(path).await.status, 404);

        assert!(!download(service, "ada@example.com", true).await, "she is a new person");
        assert!(!join(service, "ada@example.com").await);
        write(service, "ada@example.com", "Hello").await;
        let all = shown(service, "ada@example.com");
        assert_eq!((&all["updates"], &all["downloads"]), (&json!(true), &json!(1)));
        assert_eq!(all["messages"].as_array().unwrap().len(), 1, "the same text is a new message");
        assert_eq!(
            send_letter(service, &server, "# Two\n\nMore.\n").0,
            1,
            "nobody would get a second letter this month"
        );
        assert!(recipients(&mut server).await.is_empty());
    })
    .await;
}

#[tokio::test]
async fn a_source_that_nobody_else_used_goes_with_the_person() {
    on_each_database(async |service| {
        for (email, source) in
            [("ada", "from-ada-lovelace"), ("ada", "hn"), ("bob", "hn"), ("ada", "from-ada-lovelace")]
        {
            let order = json!({ "email": format!("{email}@example.com"), "updates": false, "source": source });
            service.post("/api/download", &order).await.expect_ok();
        }
        erase(service, "ada@example.com");
        assert_eq!(service.database.texts("SELECT source FROM sources").await, ["hn"]);
        let downloads = "SELECT CAST(SUM(times) AS BIGINT) FROM counts WHERE kind = 'download'";
        assert_eq!(service.database.number(downloads).await, 4, "what happened stays counted");
    })
    .await;
}

#[tokio::test]
async fn a_suppression_outlives_the_erasure_of_a_person() {
    on_each_database(async |service| {
        download(service, "ada@example.com", true).await;
        run(service, &["people", "suppress", "ada@example.com"]);
        assert!(erase(service, "ada@example.com").contains("the address is suppressed"));
        for table in TABLES {
            assert_eq!(service.database.count(table).await, 0, "{table}");
        }
        assert!(!download(service, "ada@example.com", true).await);
        let all = shown(service, "ada@example.com");
        assert_eq!((&all["suppressed"], &all["updates"]), (&json!(true), &json!(false)));
    })
    .await;
}

/// Whether a text is in the files of the database; of SQLite also in its WAL.
async fn is_in_files(database: &Database, text: &str) -> bool {
    let files = if database.is_postgres() {
        database.execute("CHECKPOINT").await;
        let folder = "SELECT current_setting('data_directory') || '/base/' || oid FROM pg_database \
                      WHERE datname = current_database()";
        let folder = database.texts(folder).await.remove(0);
        std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("a file").path()).collect()
    } else {
        let file = database.url().strip_prefix("sqlite:").expect("a path");
        vec![PathBuf::from(file), PathBuf::from(format!("{file}-wal"))]
    };
    files.iter().any(|file| {
        let bytes = std::fs::read(file).unwrap_or_default().to_ascii_lowercase();
        bytes.windows(text.len()).any(|window| window == text.as_bytes())
    })
}

/// Transactions of other tests would keep the server from clearing what was deleted.
async fn on_databases_without_other_tests(test: impl AsyncFn(&Service)) {
    let (database, _server) = Database::on_a_server_of_its_own();
    for database in [Database::migrated_sqlite().await, database] {
        println!("on {database:?}");
        let service = Service::start(RawSettings::default(), database).await;
        test(&service).await;
        service.stop().await;
    }
}

#[tokio::test]
async fn with_vacuum_nothing_of_an_erased_person_is_left_in_the_database_files() {
    on_databases_without_other_tests(async |service| {
        // In this order, rows are moved to other pages, which leaves copies of them behind.
        for number in 0..400 {
            let email = format!("{:x}.{number}@example.com", (number * 7919) % 400);
            service.database.execute(&signup_by_hand(&email, 1)).await;
        }
        for email in ["unforgettable@example.com", "bob@example.com"] {
            download(service, email, true).await;
            write(service, email, &format!("Inimitable words of {email}")).await;
        }
        assert!(is_in_files(&service.database, "words of unforgettable").await);
        assert_eq!(
            run(service, &["people", "erase", "unforgettable@example.com", "--yes"]).0,
            0,
            "somebody who is erased"
        );
        let (code, output) = run(service, &["people", "erase", "unforgettable@example.com", "--vacuum", "--yes"]);
        assert!(code == 0 && output.contains("nothing is left in them"), "{output}");
        assert!(!is_in_files(&service.database, "unforgettable").await);
        assert!(is_in_files(&service.database, "words of bob").await);
        assert_eq!(service.database.count("people").await, 401);
        download(service, "cyd@example.com", true).await;
    })
    .await;
}

#[tokio::test]
async fn with_vacuum_what_another_transaction_may_still_read_is_not_called_erased() {
    on_databases_without_other_tests(async |service| {
        let erase = ["people", "erase", "unforgettable@example.com", "--vacuum", "--yes"];
        let reader = service.database.read_in_a_transaction("people").await;
        write(service, "unforgettable@example.com", "Inimitable words").await;
        let (code, output) = run(service, &erase);
        assert!(code == 1 && output.contains("may still read") && !output.contains("nothing is left"), "{output}");
        reader.release().await;
        if service.database.is_postgres() {
            // A snapshot begins with the oldest transaction that writes to any database of the server.
            let writer = service.database.write_to_another_database().await;
            assert!(run(service, &erase).1.contains("may still read"));
            writer.release().await;
        }
        let (code, output) = run(service, &erase);
        assert!(code == 0 && output.contains("nothing is left"), "{output}");
        assert!(!is_in_files(&service.database, "unforgettable").await);
    })
    .await;
}

#[tokio::test]
async fn erasures_disturb_nobody_who_writes() {
    on_each_database(async |service| {
        let erased = ["unforgettable@example.com", "3a.quiet@example.com", "c7.busy@example.com"];
        for (email, downloads) in erased.iter().zip([1, 2, 3000]) {
            service.database.execute(&signup_by_hand(email, downloads)).await;
            write(service, email, "Inimitable words").await;
        }
        let done = tokio_util::sync::CancellationToken::new();
        let callers = futures_util::future::join_all((0..8).map(|caller| {
            let done = done.clone();
            async move {
                let mut number = 0;
                while !done.is_cancelled() {
                    download(service, &format!("{number}.{caller}@example.org"), true).await;
                    number += 1;
                }
                number
            }
        }));
        let erasures = async {
            for email in erased {
                let mut command = service.command(&["people", "erase", email, "--yes"]);
                command.args(["--database-url", service.database.url()]);
                let output = tokio::task::spawn_blocking(move || crate::harness::Program::run(command)).await.unwrap();
                assert!(
                    output.0 == 0 && output.1.contains("`porchlight people erase ADDRESS --vacuum` clears them"),
                    "{output:?}"
                );
            }
            done.cancel();
        };
        let (downloads, ()) = tokio::join!(callers, erasures);
        assert!(downloads.iter().all(|number| *number > 0), "{downloads:?}");
        assert_eq!(service.database.count("people WHERE address LIKE '%@example.com'").await, 0);
        assert_eq!(service.database.count("messages").await + service.database.count("message_hashes").await, 0);
    })
    .await;
}

/// Statements that store a person with so many downloads.
fn signup_by_hand(email: &str, downloads: u32) -> String {
    format!(
        "INSERT INTO signups (id, address, kind, at, via) \
             WITH RECURSIVE number(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < {downloads}) \
             SELECT '{email} ' || n, '{email}', 'download', 1794744000000, 'api' FROM number; \
         INSERT INTO people (address, email, first_seen_at, first_download) \
             VALUES ('{email}', '{email}', 1794744000000, '{email} 1')"
    )
}

#[tokio::test]
async fn a_role_that_may_not_vacuum_is_told_so_after_the_erasure() {
    let (database, _) = Database::migrated_postgres().await.as_limited_role().await;
    let service = Service::start(RawSettings::default(), database).await;
    download(&service, "ann@example.com", true).await;
    let (code, output) = run(&service, &["people", "erase", "ann@example.com", "--vacuum", "--yes"]);
    assert!(code == 1 && output.contains("owns neither the tables nor the database"), "{output}");
    assert_eq!(service.database.count("people").await, 0);
    service.stop().await;
}

#[tokio::test]
async fn hashes_of_past_months_and_of_old_messages_are_gone_after_a_start() {
    for database in crate::harness::each_migrated_database().await {
        let insert = "INSERT INTO letter_months (hash, month, letter) VALUES ('a', '2026-10', 'l'), ('b', '2026-11', 'l'); \
             INSERT INTO message_hashes (hash, message, at) \
                 VALUES ('old', 'm', 1794744000000 - 86400001), ('new', 'm', 1794744000000)";
        database.execute(insert).await;
        let many = "INSERT INTO message_hashes (hash, message, at) \
             WITH RECURSIVE number(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < 1000) \
             SELECT 'old ' || n, 'm', n FROM number";
        database.execute(many).await;
        let service = Service::start(RawSettings::default(), database.clone()).await;
        wait_until("the end of the pruning", async || {
            database.count("message_hashes").await == 1 && database.count("letter_months").await == 1
        })
        .await;
        assert_eq!(database.texts("SELECT hash FROM message_hashes").await, ["new"]);
        assert_eq!(database.texts("SELECT hash FROM letter_months").await, ["b"]);
        service.stop().await;
    }
}

/// References that must always resolve: a column, and the query of its allowed values.
const REFERENCES: [(&str, &str); 8] = [
    ("signups WHERE address", "SELECT address FROM people"),
    ("consents WHERE address", "SELECT address FROM people"),
    ("people WHERE first_download IS NOT NULL AND first_download", "SELECT id FROM signups"),
    ("people WHERE first_join IS NOT NULL AND first_join", "SELECT id FROM signups"),
    ("people WHERE opt_in IS NOT NULL AND opt_in", "SELECT id FROM consents"),
    ("message_hashes WHERE message", "SELECT id FROM messages"),
    ("messages WHERE id", "SELECT message FROM message_hashes"),
    ("messages WHERE id", "SELECT id FROM outbox"),
];

#[tokio::test]
async fn a_reader_blocks_no_writes_and_the_command_reports_data_left_in_the_wal() {
    let service = Service::start(RawSettings::default(), Database::migrated_sqlite().await).await;
    download(&service, "ada@example.com", true).await;
    let mut reader = service.database.sqlite_connection().await;
    reader.execute("BEGIN; SELECT COUNT(*) FROM people").await.unwrap();
    let output = erase(&service, "ada@example.com");
    assert!(output.contains("-wal"), "{output}");
    download(&service, "bob@example.com", true).await;
    reader.execute("COMMIT").await.unwrap();
    assert!(!erase(&service, "bob@example.com").contains("-wal"));
    service.stop().await;
}

#[tokio::test]
async fn a_person_who_signs_up_during_an_erasure_is_stored_completely_or_not_at_all() {
    on_each_database(async |service| {
        let store = service.database.store();
        let ada = address("ada@example.com");
        for round in 0..15 {
            let now = service.clock.now();
            let text = format!("Hello {round}");
            tokio::join!(
                async {
                    for _ in 0..3 {
                        store.erase(&ada, now).await.expect("to be erased");
                        tokio::task::yield_now().await;
                    }
                },
                async {
                    download(service, "ada@example.com", true).await;
                    join(service, "ada@example.com").await;
                },
                write(service, "ada@example.com", &text),
            );
            for (what, missing) in REFERENCES {
                assert_eq!(
                    service.database.count(&format!("{what} NOT IN ({missing})")).await,
                    0,
                    "{what}, in round {round}"
                );
            }
        }
        store.close().await;
    })
    .await;
}

/// PostgreSQL allows concurrent writes. A table lock stops the erasure half way, until a download of the same person has
/// been stored or waits.
#[tokio::test]
async fn a_download_during_an_erasure_waits_until_it_is_done() {
    let service = Service::start(RawSettings::default(), Database::migrated_postgres().await).await;
    let store = service.database.store();
    let waiting =
        "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
    for known in [false, true] {
        if known {
            download(&service, "ada@example.com", true).await;
        }
        let mut locker = service.database.postgres_connection().await;
        locker.execute("BEGIN; LOCK TABLE withdrawals").await.expect("a lock");
        let (ada, now) = (address("ada@example.com"), service.clock.now());
        tokio::join!(
            async {
                // The erasure may time out, which is also correct.
                let _ = store.erase(&ada, now).await;
            },
            async {
                let blocked = async |count| service.database.number(waiting).await >= count;
                wait_until("a blocked erasure", async || blocked(1).await).await;
                let written = download(&service, "ada@example.com", true);
                let stopped = wait_until("a blocked download", async || blocked(2).await);
                let mut written = std::pin::pin!(written);
                let done = tokio::select! { _ = &mut written => true, () = stopped => false };
                locker.execute("ROLLBACK").await.expect("a rollback");
                if !done {
                    written.await;
                }
            },
        );
        for (what, other) in REFERENCES {
            assert_eq!(service.database.count(&format!("{what} NOT IN ({other})")).await, 0, "{what}");
        }
        assert_eq!(service.database.count("people").await, 1);
    }
    store.close().await;
    service.stop().await;
}

fn forwarder(service: &Service, server: &MailServer) -> OutboxSender {
    let relay = Relay::parse(&server.url()).expect("a mail server");
    let mailbox = Mailbox::parse("makers@troupe.example").expect("a mailbox");
    OutboxSender {
        store: service.database.store(),
        mailer: Mailer::new(relay, &mailbox).expect("a sender"),
        to: MailAddress::from_mailbox(&mailbox).expect("a recipient"),
        desk_email: None,
        confirmations: crate::confirmations::texts(),
        clock: service.clock.clone(),
    }
}

#[tokio::test]
async fn a_message_erased_while_it_is_mailed_arrives_and_leaves_no_trace() {
    on_each_database(async |service| {
        let mut server = MailServer::start().await;
        let forwarder = forwarder(service, &server);
        for number in 0..7 {
            write(service, &format!("p{number}@example.com"), "Hello").await;
        }
        server.command("hold").await;
        let (step, ()) = tokio::join!(forwarder.step(), async {
            server.wait_for("held").await;
            erase(service, "p3@example.com");
            server.command("resume").await;
        });
        assert!(matches!(step.expect("a step"), SendStep::Sent));
        assert_eq!(server.next_mail().await.text.matches("Hello").count(), 7, "it was already being sent");
        assert_eq!(service.database.count("outbox WHERE state = 'sent'").await, 6);
        assert_eq!((service.database.count("outbox").await, service.database.count("messages").await), (6, 6));
        forwarder.store.close().await;
    })
    .await;
}

#[tokio::test]
async fn an_erased_message_is_not_mailed_again_even_if_its_delivery_is_uncertain() {
    on_each_database(async |service| {
        let mut server = MailServer::start().await;
        let forwarder = forwarder(service, &server);
        for number in 0..7 {
            write(service, &format!("p{number}@example.com"), "Hello").await;
        }
        server.command("drop answer").await;
        assert!(matches!(forwarder.step().await.expect("a step"), SendStep::Failed(_)));
        let first = server.next_mail().await;
        assert_eq!(first.text.matches("Hello").count(), 7);
        erase(service, "p3@example.com");
        server.command("accept").await;
        service.clock.advance(Duration::from_hours(1));
        while let SendStep::Sent = forwarder.step().await.expect("a step") {}
        let again = server.next_mail().await;
        assert_eq!(again.text.matches("Hello").count(), 6);
        assert!(!again.text.contains("p3@"), "{}", again.text);
        assert_ne!(again.header("Message-ID"), first.header("Message-ID"), "a mail with other content is another mail");
        forwarder.store.close().await;
    })
    .await;
}

#[tokio::test]
async fn a_letter_skips_people_who_were_erased_or_opted_in_while_it_started() {
    on_each_database(async |service| {
        let store = service.database.store();
        for email in ["ada@example.com", "bob@example.com"] {
            download(service, email, true).await;
        }
        let people = store.recipients_page("").await.expect("recipients").expect("a page").people;
        assert_eq!(people.len(), 2);
        erase(service, "ada@example.com");
        let now = service.clock.now();
        let with_token = |(email, byte)| (email, RandomToken::from_random([byte; 20]));
        let people: Vec<_> = people.into_iter().zip(1..).map(with_token).collect();
        let letter = Letter::parse("# News\n\nNone.\n").expect("a letter");
        store.prepare_letter(&letter).await.expect("to be prepared");
        store.record_recipients(&letter.id, &people, now).await.expect("to be recorded");
        assert!(store.letter(&letter.id).await.expect("a letter").is_none(), "not before all recipients are recorded");
        store.start_letter(&letter.id, false, now).await.expect("to be started");

        download(service, "cyd@example.com", true).await;
        let late = [(address("cyd@example.com"), RandomToken::from_random([9; 20]))];
        store.record_recipients(&letter.id, &late, now).await.expect("nothing to do");
        assert_eq!(service.database.texts("SELECT address FROM letter_recipients").await, ["bob@example.com"]);
        let counts = store.letter(&letter.id).await.expect("a letter").expect("a started one").counts;
        assert_eq!((counts.recipients, counts.waiting), (1, 1));
        erase(service, "bob@example.com");
        assert_eq!(store.letter(&letter.id).await.expect("a letter").expect("a started one").counts.recipients, 0);
        store.close().await;
    })
    .await;
}
