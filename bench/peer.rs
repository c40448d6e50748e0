//! What the service is compared with: the same answer to the same request, stored by one commit a request, or not stored
//! at all. It runs as a process of its own, so that its processor time can be told.

use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use sqlx::postgres::PgPoolOptions;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};
use sqlx::{Executor, PgPool, SqlitePool};
use tokio::net::TcpListener;

use crate::service::{Database, Serving};

const TABLES: &str = "CREATE TABLE people (address TEXT NOT NULL PRIMARY KEY, first_download TEXT NOT NULL); \
                      CREATE TABLE events (id TEXT NOT NULL PRIMARY KEY, address TEXT NOT NULL, source TEXT); \
                      CREATE INDEX events_by_address ON events (address);";

const UPSERT_PERSON: &str = "INSERT INTO people (address, first_download) VALUES ($1, $2) \
                             ON CONFLICT (address) DO UPDATE SET address = excluded.address RETURNING first_download";
const INSERT_EVENT: &str = "INSERT INTO events (id, address, source) VALUES ($1, $2, $3)";
/// Both in one question, which spares PostgreSQL two ways there and back.
const BOTH: &str = "WITH event AS (INSERT INTO events (id, address, source) VALUES ($2, $1, $3)) \
                    INSERT INTO people (address, first_download) VALUES ($1, $2) \
                    ON CONFLICT (address) DO UPDATE SET address = excluded.address RETURNING first_download";

enum Storage {
    None,
    Sqlite(SqlitePool),
    Postgres(PgPool),
}

/// Starts one that stores there, if anywhere.
pub fn start(database: Option<&Database>) -> Serving {
    let folder = std::env::temp_dir();
    let mut command = std::process::Command::new(std::env::current_exe().expect("this program"));
    command.arg("peer").arg(database.map_or_else(|| "none".to_owned(), Database::url));
    let log = database.map_or(folder.as_path(), Database::folder).join("peer.log");
    Serving::spawn(command, &log)
}

/// Serves until it is ended.
#[expect(clippy::print_stderr, reason = "as the service says where it listens")]
pub async fn serve(url: &str) {
    let storage = Arc::new(open(url).await);
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    eprintln!("listening on {}", listener.local_addr().expect("an address"));
    loop {
        let (stream, _) = listener.accept().await.expect("a caller");
        stream.set_nodelay(true).expect("to send at once");
        let storage = Arc::clone(&storage);
        tokio::spawn(async move {
            let service = service_fn(|request| answer(&storage, request));
            let _ = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

async fn open(url: &str) -> Storage {
    if url.starts_with("sqlite:") {
        let options = SqliteConnectOptions::from_str(url).expect("an address").create_if_missing(true);
        let options = options.journal_mode(SqliteJournalMode::Wal).synchronous(SqliteSynchronous::Full);
        // One connection: more of them would only wait for each other's locks.
        let pool = SqlitePoolOptions::new().max_connections(1).connect_with(options).await.expect("a file");
        pool.execute(TABLES).await.expect("tables");
        Storage::Sqlite(pool)
    } else if url.starts_with("postgres:") {
        let pool = PgPoolOptions::new().max_connections(64).connect(url).await.expect("a server");
        pool.execute(TABLES).await.expect("tables");
        Storage::Postgres(pool)
    } else {
        Storage::None
    }
}

async fn answer(storage: &Storage, request: Request<Incoming>) -> Result<Response<Full<Bytes>>, hyper::Error> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let body = request.into_body().collect().await?.to_bytes();
    let order: Value = serde_json::from_slice(&body).expect("JSON");
    let member = |name: &str| order[name].as_str().expect("a text");
    let (address, source) = (member("email").to_lowercase(), member("source"));
    let id = format!("{:032x}", NUMBER.fetch_add(1, Ordering::Relaxed));
    let first = match storage {
        Storage::None => id.clone(),
        Storage::Sqlite(pool) => {
            let mut tx = pool.begin_with("BEGIN IMMEDIATE").await.expect("the writer's place");
            let person = sqlx::query_scalar(UPSERT_PERSON).bind(&address).bind(&id);
            let first: String = person.fetch_one(&mut *tx).await.expect("a person");
            let event = sqlx::query(INSERT_EVENT).bind(&id).bind(&address).bind(source);
            event.execute(&mut *tx).await.expect("an event");
            tx.commit().await.expect("a commit");
            first
        }
        Storage::Postgres(pool) => {
            let both = sqlx::query_scalar(BOTH).bind(&address).bind(&id).bind(source);
            both.fetch_one(pool).await.expect("to be stored")
        }
    };
    let already = first != id;
    let body = format!(r#"{{"ok":true,"url":"http://127.0.0.1/releases/latest/Troupe.dmg","already":{already}}}"#);
    let response = Response::builder().header("content-type", "application/json").header("cache-control", "no-store");
    Ok(response.body(Full::from(body)).expect("an answer"))
}
