//! A `database_url` with several hosts, and one that leads to a pooler.

use std::net::TcpListener;
use std::pin::pin;

use futures_util::future::join_all;
use porchlight::config::RawSettings;
use serde_json::json;

use crate::backup::lived_in;
use crate::harness::{Database, PgBouncer, Program, Route, Service, free_port, wait_until};
use crate::moving::{move_to, wait_for_a_blocked_lock};
use crate::ops::{becomes_ready, readiness, watched};
use crate::unsubscribe::{post, reader};

#[tokio::test]
async fn of_several_hosts_the_one_that_takes_writes_is_used_and_named() {
    let database = Database::migrated_postgres().await;
    // Connections to it are opened, and nothing is ever answered.
    let silent = TcpListener::bind("127.0.0.1:0").expect("a listener");
    let address = silent.local_addr().expect("an address");
    let (start, server) = database.url().split_once('@').expect("a user");
    let (start, host) = (start.replace("//tests", "//tests:hunter2"), server.split('/').next().expect("a host"));
    let url = format!("{start}@{address},127.0.0.1:{},{server}", free_port());
    let service = Service::start(watched(), Database::postgres_at(&url)).await;
    becomes_ready(&service).await;
    service.post("/api/download", &json!({ "email": "ada@example.com" })).await.expect_ok();
    assert_eq!(database.texts("SELECT address FROM people").await, ["ada@example.com"]);

    assert_eq!(readiness(&service).await.1["database_host"], host);
    for arguments in [&["check"][..], &["config", "show"], &["config", "show", "--json"], &["people", "list"]] {
        let mut command = service.command(arguments);
        command.args(["--database-url", &url]);
        let (_, output) = Program::run(command);
        let expected = match arguments {
            ["people", ..] => "ada@example.com".to_owned(),
            ["config", "show", "--json"] => format!("\"host_in_use\": \"{host}\""),
            _ => format!("{host} takes writes and is used"),
        };
        assert!(output.contains(&expected) && !output.contains("hunter2"), "{output}");
    }
    service.stop().await;
    drop(silent);
}

#[tokio::test]
async fn a_host_that_falls_silent_is_left_for_another_that_takes_writes() {
    let database = Database::migrated_postgres().await;
    let (start, server) = database.url().split_once('@').expect("a user");
    let (server, name) = server.split_once('/').expect("a database");
    let (first, second) = (Route::to(server).await, Route::to(server).await);
    let url = format!("{start}@{},{}/{name}", first.address, second.address);
    let service = Service::start(watched(), Database::postgres_at(&url)).await;
    becomes_ready(&service).await;
    let link = reader(&service, "ada@example.com").await;
    let in_use = readiness(&service).await.1["database_host"].clone();
    let (used, other) = if in_use == first.address.to_string() { (first, second) } else { (second, first) };

    // A statement is under way when the host falls silent.
    let lock = database.lock_tables("people, suppressions").await;
    loop {
        let mut unsubscribed = pin!(post(&service, &link, ""));
        tokio::select! {
            () = wait_for_a_blocked_lock(&database) => {
                used.fall_silent();
                lock.release().await;
                assert_eq!(unsubscribed.await.status, 503);
                break;
            }
            answer = &mut unsubscribed => assert_eq!(answer.status, 503, "the lock was held for too long"),
        }
    }

    wait_until("the other host", async || readiness(&service).await.1["database_host"] == other.address.to_string())
        .await;
    service.post("/api/download", &json!({ "email": "bob@example.com" })).await.expect_ok();
    assert_eq!(post(&service, &link, "").await.status, 200);
    wait_until("the connections to be closed", async || used.open_connections() == 0).await;
    service.stop().await;
}

#[tokio::test]
async fn a_transaction_that_was_given_up_before_it_began_is_ended() {
    const IN_TRANSACTION: &str = "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() AND state LIKE 'idle in transaction%'";
    let database = Database::migrated_postgres().await;
    let (start, server) = database.url().split_once('@').expect("a user");
    let (server, name) = server.split_once('/').expect("a database");
    let route = Route::to(server).await;
    let url = format!("{start}@{}/{name}", route.address);
    let service = Service::start(RawSettings::default(), Database::postgres_at(&url)).await;
    let link = reader(&service, "ada@example.com").await;
    route.hold_answers_to_begin();
    assert_eq!(post(&service, &link, "").await.status, 503);
    route.forward_everything();
    // What a later request writes on such a connection would be acknowledged and never committed.
    wait_until("the end of the transaction", async || database.number(IN_TRANSACTION).await == 0).await;
    assert_eq!(post(&service, &link, "").await.status, 200);
    service.stop().await;
}

#[tokio::test]
async fn an_embedded_database_can_be_moved_to_several_hosts() {
    let (service, _server) = lived_in(Database::migrated_sqlite().await).await;
    let (target, before) = (Database::postgres().await, service.database.everything().await);
    let url = target.url().replace('@', &format!("@127.0.0.1:{},", free_port()));
    let (code, output) = move_to(&service, &Database::postgres_at(&url));
    assert_eq!(code, 0, "{output}");
    assert_eq!(target.everything_copied().await, before);
    service.stop().await;
}

#[tokio::test]
async fn hosts_of_which_none_takes_writes_are_reported_and_pages_are_served() {
    let url = format!("postgres://tests@127.0.0.1:{},127.0.0.1:{}/site", free_port(), free_port());
    let service = Service::start(RawSettings::default(), Database::postgres_at(&url)).await;
    service.post("/api/download", &json!({ "email": "ada@example.com" })).await.expect_problem(503, "unavailable");
    assert_eq!(service.get("/").await.status, 200);
    let mut command = service.command(&["people", "list"]);
    command.args(["--database-url", &url]);
    let (code, output) = Program::run(command);
    assert!(code == 1 && output.contains("none of its hosts takes writes"), "{output}");
    service.stop().await;
}

/// The trigger notes what a commit waits for.
const NOTE_DURABILITY: &str = "CREATE TABLE noted (value TEXT); \
    CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS \
    'BEGIN INSERT INTO noted VALUES (current_setting(''synchronous_commit'')); RETURN NEW; END'; \
    CREATE TRIGGER note AFTER INSERT ON people FOR EACH ROW EXECUTE FUNCTION note()";

#[tokio::test]
async fn behind_a_pooler_in_transaction_mode_everything_works() {
    const PEOPLE: usize = 60;
    // Without tables: the service has to create them through the pooler.
    let direct = Database::postgres().await;
    direct.execute(&format!("ALTER DATABASE {} SET synchronous_commit = off", direct.name())).await;
    let pooler = PgBouncer::start(&direct).await;
    let service = Service::start(RawSettings::default(), Database::postgres_at(&pooler.url())).await;
    direct.execute(NOTE_DURABILITY).await;

    // At once, so that the sessions of the server change hands.
    let all = (0..PEOPLE).map(async |number| {
        let email = format!("p{number}@example.com");
        let download = json!({ "email": email, "updates": true });
        let message = json!({ "email": email, "message": format!("Hello from {number}") });
        assert_eq!(service.post("/api/download", &download).await.expect_ok()["already"], false);
        service.post("/api/contact", &message).await.expect_ok();
        assert_eq!(service.post("/api/download", &download).await.expect_ok()["already"], true);
        assert_eq!(service.get("/releases").await.status, 200);
    });
    join_all(all).await;
    assert_eq!((direct.count("people").await, direct.count("messages").await), (60, 60));
    assert_eq!(direct.texts("SELECT DISTINCT value FROM noted").await, ["on"]);

    for (arguments, expected) in [
        (&["people", "list"][..], "p59@example.com"),
        (&["people", "show", "p7@example.com"], "p7@example.com"),
        (&["inbox", "list"], "p8@example.com"),
        (&["stats", "--json"], "downloads"),
        (&["people", "suppress", "p9@example.com"], ""),
        (&["people", "erase", "p7@example.com", "--yes"], ""),
        (&["backup", "backup"], ""),
        (&["check"], ", schema "),
    ] {
        let mut command = service.command(arguments);
        command.args(["--database-url", &pooler.url()]);
        let (code, output) = Program::run(command);
        assert!((code == 0 || arguments == ["check"]) && output.contains(expected), "{arguments:?}: {output}");
    }
    assert_eq!(direct.count("people").await, 59);
    service.stop().await;
}
