//! The peer of the write benchmark: responds like `/api/download`, with one commit per request or without storage. It
//! runs in its own process, so that its CPU time can be measured.

use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Incoming};
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use sqlx::postgres::PgPoolOptions;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};
use sqlx::{Executor, PgPool, SqlitePool};
use tokio::net::TcpListener;

use crate::service::{Server, free_address};

type BoxError = Box<dyn std::error::Error + Send + Sync>;

const TABLES: &str = "CREATE TABLE people (address TEXT NOT NULL PRIMARY KEY, first_download TEXT NOT NULL); \
                      CREATE TABLE events (id TEXT NOT NULL PRIMARY KEY, address TEXT NOT NULL, source TEXT); \
                      CREATE INDEX events_by_address ON events (address);";

const UPSERT_PERSON: &str = "INSERT INTO people (address, first_download) VALUES ($1, $2) \
                             ON CONFLICT (address) DO UPDATE SET address = excluded.address RETURNING first_download";
const INSERT_EVENT: &str = "INSERT INTO events (id, address, source) VALUES ($1, $2, $3)";
/// Both in one statement, which saves PostgreSQL two round trips.
const UPSERT_AND_INSERT: &str = "WITH event AS (INSERT INTO events (id, address, source) VALUES ($2, $1, $3)) \
                    INSERT INTO people (address, first_download) VALUES ($1, $2) \
                    ON CONFLICT (address) DO UPDATE SET address = excluded.address RETURNING first_download";

enum Storage {
    None,
    Sqlite(SqlitePool),
    Postgres(PgPool),
}

/// Starts the peer with storage in the database at `url`, and at most this many connections to it. Any other `url` is no
/// storage.
pub fn start(url: &str, connections: u32) -> Server {
    start_as("peer", &[url, &connections.to_string()])
}

/// Starts this program again as one of the peers.
pub fn start_as(name: &str, arguments: &[&str]) -> Server {
    let address = free_address();
    let mut command = std::process::Command::new(std::env::current_exe().expect("this program"));
    command.args([name, &address.to_string()]).args(arguments);
    Server::spawn(command, address)
}

/// Serves until the process is killed.
pub async fn serve(address: &str, url: &str, connections: &str) {
    let storage = Arc::new(open(url, connections.parse().expect("a number of connections")).await);
    listen(address, || {
        let storage = Arc::clone(&storage);
        service_fn(move |request| handle(Arc::clone(&storage), request))
    })
    .await;
}

/// Accepts connections and serves each with a new service.
pub async fn listen<S, B>(address: &str, mut service: impl FnMut() -> S)
where
    S: Service<Request<Incoming>, Response = Response<B>, Future: Send, Error: Into<BoxError>> + Send + 'static,
    B: Body<Data: Send, Error: Into<BoxError>> + Send + 'static,
{
    let listener = TcpListener::bind(address).await.expect("the address");
    loop {
        let (stream, _) = listener.accept().await.expect("a connection");
        stream.set_nodelay(true).expect("TCP_NODELAY");
        let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), service());
        tokio::spawn(connection);
    }
}

async fn open(url: &str, connections: u32) -> Storage {
    if url.starts_with("sqlite:") {
        let options = SqliteConnectOptions::from_str(url).expect("a URL").create_if_missing(true);
        let options = options.journal_mode(SqliteJournalMode::Wal).synchronous(SqliteSynchronous::Full);
        let pool = SqlitePoolOptions::new().max_connections(connections).connect_with(options).await.expect("a file");
        pool.execute(TABLES).await.expect("tables");
        Storage::Sqlite(pool)
    } else if url.starts_with("postgres:") {
        // Without a ping before each statement, which would cost another round trip.
        let options = PgPoolOptions::new().max_connections(connections).test_before_acquire(false);
        let pool = options.connect(url).await.expect("a server");
        pool.execute(TABLES).await.expect("tables");
        Storage::Postgres(pool)
    } else {
        Storage::None
    }
}

async fn handle(storage: Arc<Storage>, request: Request<Incoming>) -> Result<Response<Full<Bytes>>, hyper::Error> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let body = request.into_body().collect().await?.to_bytes();
    let order: Value = serde_json::from_slice(&body).expect("JSON");
    let member = |name: &str| order[name].as_str().expect("a string");
    let (address, source) = (member("email").to_lowercase(), member("source"));
    let id = format!("{:032x}", NUMBER.fetch_add(1, Ordering::Relaxed));
    let first = match storage.as_ref() {
        Storage::None => id.clone(),
        Storage::Sqlite(pool) => {
            let mut tx = pool.begin_with("BEGIN IMMEDIATE").await.expect("the write lock");
            let person = sqlx::query_scalar(UPSERT_PERSON).bind(&address).bind(&id);
            let first: String = person.fetch_one(&mut *tx).await.expect("a person");
            let event = sqlx::query(INSERT_EVENT).bind(&id).bind(&address).bind(source);
            event.execute(&mut *tx).await.expect("an event");
            tx.commit().await.expect("a commit");
            first
        }
        Storage::Postgres(pool) => {
            let statement = sqlx::query_scalar(UPSERT_AND_INSERT).bind(&address).bind(&id).bind(source);
            statement.fetch_one(pool).await.expect("a person")
        }
    };
    let already = first != id;
    let body = format!(r#"{{"ok":true,"url":"http://127.0.0.1/releases/latest/Troupe.dmg","already":{already}}}"#);
    let response = Response::builder().header("content-type", "application/json").header("cache-control", "no-store");
    Ok(response.body(Full::from(body)).expect("a response"))
}
