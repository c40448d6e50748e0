//! The database is unavailable, locked or slow: pages are served, writes get 503, and both work afterwards.

use futures_util::future::join_all;
use porchlight::config::RawSettings;
use serde_json::json;

use crate::harness::{
    Connection, Database, Program, Service, SmallDisk, endpoints, on_each_database, on_each_database_with, wait_until,
};
use crate::ops::{becomes_ready, readiness, watched};

/// Every write gets 503 with `Retry-After`, and pages are served.
async fn writes_are_unavailable_and_pages_are_served(service: &Service) {
    let writes = endpoints().map(|(path, example)| async move { (path, service.post(path, &example).await) });
    for (path, answer) in join_all(writes).await {
        println!("{path}");
        answer.expect_problem(503, "unavailable");
        let seconds: u32 = answer.header("retry-after").parse().expect("seconds");
        assert!((1..=60).contains(&seconds));
    }
    for page in ["/", "/developers", "/contact.md", "/openapi.json"] {
        assert_eq!(service.get(page).await.status, 200, "{page}");
    }
    let refused = service.post("/api/download", &json!({ "email": "nobody" })).await;
    refused.expect_problem(400, "invalid_email");
}

/// Each endpoint accepts its example as new: the refused ones left no trace.
async fn writes_work(service: &Service) {
    for (path, example) in endpoints() {
        service.post(path, &example).await.expect_ok();
    }
    assert_eq!(service.database.texts("SELECT address FROM people").await, ["ada@example.com"]);
    assert_eq!(service.database.texts("SELECT kind FROM signups ORDER BY kind").await, ["download", "join"]);
    assert_eq!(service.database.texts("SELECT body FROM messages").await, ["Hello"]);
}

#[tokio::test]
async fn while_the_database_is_locked_writes_are_503_and_pages_are_served() {
    on_each_database(async |service| {
        let lock = service.database.lock().await;
        writes_are_unavailable_and_pages_are_served(service).await;
        lock.release().await;
        writes_work(service).await;
    })
    .await;
}

#[tokio::test]
async fn a_postgres_that_goes_away_and_comes_back_is_noticed_at_once() {
    let service = Service::start(RawSettings::default(), Database::migrated_postgres().await).await;
    service.post("/api/waitlist", &json!({ "email": "nobody" })).await.expect_problem(400, "invalid_email");
    service.database.refuse_connections().await;
    writes_are_unavailable_and_pages_are_served(&service).await;
    service.database.accept_connections().await;
    writes_work(&service).await;

    // Now with connections that have been used before.
    service.database.refuse_connections().await;
    writes_are_unavailable_and_pages_are_served(&service).await;
    service.database.accept_connections().await;
    let result = service.post("/api/download", &json!({ "email": "ada@example.com" })).await.expect_ok();
    assert_eq!(result["already"], true);
    service.stop().await;
}

#[tokio::test]
async fn connections_that_postgres_ended_meanwhile_fail_no_request() {
    let service = Service::start(RawSettings::default(), Database::migrated_postgres().await).await;
    service.post("/api/download", &json!({ "email": "bob@example.com" })).await.expect_ok();
    service.database.refuse_connections().await;
    service.database.accept_connections().await;
    service.post("/api/download", &json!({ "email": "ada@example.com" })).await.expect_ok();
    service.stop().await;
}

#[tokio::test]
async fn a_connection_that_ends_between_two_writes_fails_none_of_them() {
    let service = Service::start(RawSettings::default(), Database::migrated_postgres().await).await;
    let end_others = "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity \
                      WHERE datname = current_database() AND pid <> pg_backend_pid()";
    // At once after a write, as long as the writer keeps its connection.
    for number in 0..10 {
        service.post("/api/download", &json!({ "email": format!("p{number}@example.com") })).await.expect_ok();
        service.database.execute(end_others).await;
    }
    service.post("/api/download", &json!({ "email": "ada@example.com" })).await.expect_ok();
    assert_eq!(service.database.count("signups").await, 11);
    service.stop().await;
}

#[tokio::test]
async fn a_service_that_starts_before_its_postgres_writes_once_it_is_there() {
    let database = Database::postgres().await;
    database.refuse_connections().await;
    let service = Service::start(watched(), database.clone()).await;
    writes_are_unavailable_and_pages_are_served(&service).await;
    assert_eq!(readiness(&service).await.0, 503);
    database.accept_connections().await;
    becomes_ready(&service).await;
    writes_work(&service).await;
    service.stop().await;
}

#[tokio::test]
async fn what_was_refused_while_locked_may_be_sent_again_without_harm() {
    on_each_database(async |service| {
        let letter = json!({ "email": "ada@example.com", "message": "Hello" });
        let lock = service.database.lock().await;
        service.post("/api/contact", &letter).await.expect_problem(503, "unavailable");
        lock.release().await;
        for _ in 0..2 {
            service.post("/api/contact", &letter).await.expect_ok();
        }
        assert_eq!(service.database.count("messages").await, 1);
    })
    .await;
}

/// The whole of a download, as bytes.
fn download(email: &str) -> String {
    let body = json!({ "email": email }).to_string();
    let head = format!("Host: x\r\nContent-Type: application/json\r\nContent-Length: {}", body.len());
    format!("POST /api/download HTTP/1.1\r\n{head}\r\n\r\n{body}")
}

#[tokio::test]
async fn a_write_survives_a_client_that_disconnects() {
    on_each_database(async |service| {
        for number in 0..20 {
            let mut connection = Connection::open(service.address()).await;
            connection.send(download(&format!("p{number}@example.com"))).await;
            drop(connection);
        }
        service.database.wait_for_rows("people", 20).await;

        // The same while the write is certain to be in progress.
        let lock = service.database.lock().await;
        let mut connection = Connection::open(service.address()).await;
        connection.send(download("ada@example.com")).await;
        drop(connection);
        lock.release().await;
        service.database.wait_for_rows("people", 21).await;
    })
    .await;
}

#[tokio::test]
async fn a_client_that_closes_its_sending_side_gets_a_response() {
    on_each_database(async |service| {
        let mut connection = Connection::open(service.address()).await;
        connection.send(download("ada@example.com")).await;
        connection.end_sending().await;
        let answer = connection.read_to_end().await;
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer:?}");
    })
    .await;
}

#[tokio::test]
async fn a_full_disk_refuses_writes_and_forgets_none_and_takes_them_again_when_there_is_room() {
    let disk = SmallDisk::new();
    let database = Database::sqlite_at(&disk.folder().join("porchlight.db"));
    let service = Service::start(watched(), database).await;
    let mut taken = 0;
    let join = |number| json!({ "email": format!("p{number}@example.com"), "source": "x".repeat(30) });
    // A checkpoint may make room for a few more writes. Refused more often than there are connections: none of them may be
    // left in a transaction.
    let mut refused = 0;
    while refused < 10 {
        let answer = service.post("/api/waitlist", &join(taken)).await;
        if answer.status == 200 {
            (taken, refused) = (taken + 1, 0);
        } else {
            answer.expect_problem(503, "unavailable");
            refused += 1;
        }
    }
    assert_eq!(service.get("/").await.status, 200);
    assert_eq!(readiness(&service).await.0, 503);
    disk.grow();
    becomes_ready(&service).await;
    for number in 0..10 {
        service.post("/api/waitlist", &join(taken + number)).await.expect_ok();
    }
    assert_eq!(service.database.count("people").await, taken + 10);
    service.stop().await;
}

/// Makes the database refuse every insert into a table, as missing permissions do.
async fn refuse_all(database: &Database, table: &str) {
    let refuse = if database.is_postgres() {
        format!(
            "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'hunter2'; END $$; \
             CREATE TRIGGER refuse BEFORE INSERT ON {table} FOR EACH ROW EXECUTE FUNCTION refuse()"
        )
    } else {
        format!("CREATE TRIGGER refuse BEFORE INSERT ON {table} BEGIN SELECT RAISE(ABORT, 'hunter2'); END")
    };
    database.execute(&refuse).await;
}

/// Ends [`refuse_all`].
async fn accept_all(database: &Database) {
    let accept = if database.is_postgres() { "DROP FUNCTION refuse CASCADE" } else { "DROP TRIGGER refuse" };
    database.execute(accept).await;
}

#[tokio::test]
async fn a_database_that_refuses_every_write_is_not_ready_until_it_accepts_them() {
    for table in ["people", "messages"] {
        on_each_database_with(watched(), async |service| {
            assert_eq!(readiness(service).await.0, 200);
            refuse_all(&service.database, table).await;
            for (path, example) in
                endpoints().iter().filter(|(path, _)| (*path == "/api/contact") == (table == "messages"))
            {
                let answer = service.post(path, example).await;
                answer.expect_problem(503, "unavailable");
                assert!(!answer.text().contains("hunter2"), "the cause is for the makers");
                let (status, report) = readiness(service).await;
                assert_eq!(status, 503, "{report}");
                assert!(report["parts"]["writer"].to_string().contains("hunter2"), "{report}");
            }
            accept_all(&service.database).await;
            becomes_ready(service).await;
            writes_work(service).await;
        })
        .await;
    }
}

#[tokio::test]
async fn the_health_check_covers_every_table_that_requests_insert_into() {
    on_each_database(async |service| {
        let before = service.database.everything().await;
        writes_work(service).await;
        let after = service.database.everything().await;
        let store = service.database.store();
        for table in after.keys().filter(|table| after[*table] != before[*table]) {
            refuse_all(&service.database, table).await;
            let failure = store.health().await.expect_err(table);
            assert!(failure.to_string().contains("hunter2"), "{table}: {failure}");
            accept_all(&service.database).await;
            store.health().await.expect(table);
        }
        store.close().await;
    })
    .await;
}

#[tokio::test]
async fn a_write_that_is_refused_alone_leaves_the_service_ready() {
    on_each_database_with(watched(), async |service| {
        service.database.refuse_poison_in("people").await;
        for _ in 0..2 {
            let answer = service.post("/api/waitlist", &json!({ "email": "poison@example.com" })).await;
            answer.expect_problem(503, "unavailable");
            assert_eq!(readiness(service).await.0, 200);
        }
        service.post("/api/waitlist", &json!({ "email": "ada@example.com" })).await.expect_ok();
    })
    .await;
}

#[tokio::test]
async fn a_role_without_the_permission_to_insert_makes_the_service_unready() {
    let database = Database::migrated_postgres().await;
    let (limited, role) = database.as_limited_role().await;
    let service = Service::start(watched(), limited).await;
    service.post("/api/waitlist", &json!({ "email": "ada@example.com" })).await.expect_ok();
    for table in ["people", "signups", "counts", "sources"] {
        database.execute(&format!("REVOKE INSERT ON {table} FROM {role}")).await;
        let signup = json!({ "email": "ada@example.com", "source": format!("list of {table}") });
        service.post("/api/waitlist", &signup).await.expect_problem(503, "unavailable");
        let (status, report) = readiness(&service).await;
        assert_eq!(status, 503, "{report}");
        assert!(report["parts"]["writer"].to_string().contains("permission denied"), "{report}");
        if table == "people" {
            let message = json!({ "email": "ada@example.com", "message": "Hello" });
            service.post("/api/contact", &message).await.expect_ok();
            assert_eq!(readiness(&service).await.0, 503, "other writes are still refused");
        }
        database.execute(&format!("GRANT INSERT ON {table} TO {role}")).await;
        becomes_ready(&service).await;
    }
    service.stop().await;
}

#[tokio::test]
async fn readers_that_wait_for_the_database_hold_up_no_write_and_leave_connections_to_others() {
    let service = Service::start(watched(), Database::migrated_postgres().await).await;
    let lock = service.database.lock_tables("unsubscribe_tokens").await;
    let token = "a".repeat(40);
    let readers = join_all((0..64).map(async |_| {
        for _ in 0..3 {
            service.get(&format!("/unsubscribe/{token}")).await;
        }
    }));
    let writes = async {
        let here = "(SELECT oid FROM pg_database WHERE datname = current_database())";
        let blocked = format!("SELECT COUNT(*) FROM pg_locks WHERE NOT granted AND database = {here}");
        // As many as look up a token at once, of eight connections for requests.
        wait_until("readers that wait", async || service.database.number(&blocked).await >= 2).await;
        assert_eq!(readiness(&service).await.0, 200);
        assert_eq!(service.database.number(&blocked).await, 2);
        for number in 0..10 {
            let email = format!("p{number}@example.com");
            service.post("/api/waitlist", &json!({ "email": email })).await.expect_ok();
        }
        lock.release().await;
    };
    tokio::join!(readers, writes);
    service.stop().await;
}

#[tokio::test]
async fn sessions_that_were_opened_while_the_database_was_read_only_are_not_kept() {
    let service = Service::start(RawSettings::default(), Database::migrated_postgres().await).await;
    let alter = format!("BEGIN READ WRITE; ALTER DATABASE {}", service.database.name());
    service.database.execute(&format!("{alter} SET default_transaction_read_only = on; COMMIT")).await;
    service.database.refuse_connections().await;
    service.database.accept_connections().await;
    writes_are_unavailable_and_pages_are_served(&service).await;
    service.database.execute(&format!("{alter} RESET default_transaction_read_only; COMMIT")).await;
    writes_work(&service).await;
    service.stop().await;
}

/// A server that answers as a standby does.
async fn standby() -> Database {
    let database = Database::migrated_postgres().await;
    let pretend = format!(
        "CREATE FUNCTION public.pg_is_in_recovery() RETURNS boolean LANGUAGE sql AS 'SELECT true'; \
         ALTER DATABASE {name} SET search_path = public, pg_catalog; \
         ALTER DATABASE {name} SET default_transaction_read_only = on",
        name = database.name()
    );
    database.execute(&pretend).await;
    database
}

#[tokio::test]
async fn a_standby_that_is_asked_to_write_is_named_as_such() {
    let database = standby().await;
    let folder = tempfile::tempdir().expect("a folder");
    for arguments in [&["check"][..], &["people", "suppress", "ada@example.com"]] {
        let mut command = Program::command(folder.path(), arguments);
        command.args(["--database-url", database.url()]);
        let (code, output) = Program::run(command);
        assert!(code == 1 && output.contains("this PostgreSQL server is a standby and accepts no writes"), "{output}");
    }
}

/// Only the time of the backup cannot be recorded there. `trials/instances` backs up a real standby.
#[tokio::test]
async fn a_standby_can_be_read_and_backed_up() {
    let database = standby().await;
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = Program::command(folder.path(), &["people", "list"]);
    command.args(["--database-url", database.url()]);
    let (code, output) = Program::run(command);
    assert_eq!(code, 0, "{output}");
    let mut command = Program::command(folder.path(), &["backup", "backup"]);
    command.args(["--database-url", database.url()]);
    let (code, output) = Program::run(command);
    assert_eq!(code, 0, "{output}");
    assert!(output.contains("complete and was verified"), "{output}");
    assert!(output.contains("The database does not know of this backup"), "{output}");
}
