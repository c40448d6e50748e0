//! Starts the service for one test and sends requests to it.

mod certificates;
mod database;
mod disk;
mod dkim;
pub mod dns;
pub mod folder;
mod free_port;
mod maker_browser;
pub mod markup;
mod namespace;
mod pebble;
mod pgbouncer;
mod postgres;
mod postgres_tls;
mod program;
mod releases;
mod route;
mod s3;
mod smtp;
mod terminal;
mod wait;
mod wire;

use std::path::Path;
use std::process::Command;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use porchlight::clock::Clock;
use porchlight::config::{RawSettings, Settings};
use porchlight::domain::time::Timestamp;
use porchlight::serve::{self, RunningService, ServeFailure};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

pub use certificates::{Authority, Identity, Site};
pub use database::Database;
pub use disk::SmallDisk;
pub use dkim::DkimKey;
pub use free_port::free_port;
pub use maker_browser::{MakerBrowser, MultipartForm, sign_in_path};
pub use namespace::{PUBLIC_ADDRESSES, connect_from, in_network_namespace};
pub use pebble::Pebble;
pub use pgbouncer::PgBouncer;
pub use postgres_tls::start_with_tls;
pub use program::{Program, address_in};
pub use releases::{disk_image, trailer};
pub use route::Route;
pub use s3::Bucket;
pub use smtp::{MailServer, ReceivedMail};
pub use terminal::Terminal;
pub use wait::{WATCHDOG, wait_for, wait_until};
pub use wire::{Connection, raw};

/// Noon of 15 November 2026: what the clock of every test shows until the test advances it.
pub const NOW: Timestamp = Timestamp::from_unix_millis(1_794_744_000_000);

/// A service that runs for one test, on threads of its own: it answers while the test blocks, as while it waits for a
/// command to end.
pub struct Service {
    running: RunningService,
    runtime: ServiceRuntime,
    client: reqwest::Client,
    /// The data directory of this service.
    folder: tempfile::TempDir,
    pub clock: Clock,
    pub database: Database,
    last_command: Mutex<Option<Instant>>,
}

/// Ends the tasks of a service that was not stopped, as the end of its process would.
struct ServiceRuntime(Option<Runtime>);

impl ServiceRuntime {
    fn new() -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
        Self(Some(runtime.expect("a runtime")))
    }

    async fn run<T: Send + 'static>(&self, future: impl Future<Output = T> + Send + 'static) -> T {
        self.0.as_ref().expect("a runtime").spawn(future).await.expect("a service that does not panic")
    }
}

impl ServiceRuntime {
    /// As [`Self::run`], while the caller does nothing else.
    fn run_blocking<T: Send + 'static>(&self, future: impl Future<Output = T> + Send + 'static) -> T {
        let (sender, result) = std::sync::mpsc::channel();
        self.0.as_ref().expect("a runtime").spawn(async move { sender.send(future.await) });
        result.recv().expect("a service that does not panic")
    }
}

impl Drop for ServiceRuntime {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

/// A response, read to its end.
#[derive(Debug)]
pub struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
}

/// Runs the same test on SQLite and on PostgreSQL.
pub async fn on_each_database(test: impl AsyncFn(&Service)) {
    on_each_database_with(RawSettings::default(), test).await;
}

pub async fn on_each_database_with(written: RawSettings, test: impl AsyncFn(&Service)) {
    for database in each_migrated_database().await {
        println!("on {database:?}");
        let service = Service::start(written.clone(), database).await;
        test(&service).await;
        service.stop().await;
    }
}

/// Empty databases, for tests that start the service themselves.
pub async fn each_database() -> [Database; 2] {
    [Database::sqlite(), Database::postgres().await]
}

/// Databases with all tables, so that a start takes less time.
pub async fn each_migrated_database() -> [Database; 2] {
    [Database::migrated_sqlite().await, Database::migrated_postgres().await]
}

/// The JSON endpoints, each with a request that it accepts.
pub fn endpoints() -> [(&'static str, Value); 3] {
    [
        ("/api/download", json!({ "email": "ada@example.com", "updates": true, "source": "tests" })),
        ("/api/waitlist", json!({ "email": "ada@example.com", "source": "tests" })),
        ("/api/contact", json!({ "name": "Ada", "email": "ada@example.com", "message": "Hello" })),
    ]
}

/// Runs a test of something that does not depend on the database.
pub async fn on_one_database(test: impl AsyncFn(&Service)) {
    on_one_database_with(RawSettings::default(), test).await;
}

pub async fn on_one_database_with(written: RawSettings, test: impl AsyncFn(&Service)) {
    let service = Service::start(written, Database::migrated_sqlite().await).await;
    test(&service).await;
    service.stop().await;
}

impl Service {
    pub async fn start(written: RawSettings, database: Database) -> Self {
        Box::pin(Self::try_start(written, database)).await.expect("a service that starts")
    }

    pub async fn try_start(written: RawSettings, database: Database) -> Result<Self, ServeFailure> {
        let folder = folder::new();
        let written = RawSettings {
            listen: Some("127.0.0.1:0".to_owned()),
            ops_listen: Some(written.ops_listen.unwrap_or_else(|| "off".to_owned())),
            database_url: Some(database.url().to_owned()),
            data_dir: Some(written.data_dir.unwrap_or_else(|| folder.path().display().to_string())),
            ..written
        };
        let settings = Settings::load(Some(Path::new("/dev/null")), &written).expect("settings that can be used");
        let clock = Clock::manual(NOW);
        let runtime = ServiceRuntime::new();
        let running = runtime.run(serve::start(settings, clock.clone())).await?;
        let client = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .timeout(Duration::from_secs(30))
            // Less than the service waits for another request, because a test may compute for longer than that.
            .pool_idle_timeout(Duration::from_secs(5))
            .build()
            .expect("a client");
        Ok(Self { running, runtime, client, folder, clock, database, last_command: Mutex::default() })
    }

    pub async fn stop(self) {
        // Closes its idle connections, each of which may send a last request for a second.
        drop(self.client);
        self.runtime.run(self.running.stop()).await;
    }

    pub fn address(&self) -> std::net::SocketAddr {
        self.running.address
    }

    /// `porchlight …` in the folder of this service, at the time that its clock shows.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Program::command(self.folder.path(), arguments);
        Program::set_clock(&mut command, self.time_of_next_command());
        command
    }

    /// Commands run on a real clock, so the service's clock is advanced by the time since the last command.
    fn time_of_next_command(&self) -> Timestamp {
        let mut last = self.last_command.lock().expect("a time");
        let now = Instant::now();
        self.clock.advance(last.replace(now).map_or(Duration::ZERO, |last| now - last));
        self.clock.now()
    }

    /// The address that redirects to https.
    pub fn redirect_address(&self) -> std::net::SocketAddr {
        self.running.redirect_addresses[0]
    }

    /// The address of the ops listener.
    pub fn ops_address(&self) -> std::net::SocketAddr {
        self.running.ops_address.expect("an ops listener")
    }

    /// The public address that the service was configured with, which need not be where it listens.
    pub fn base_url(&self) -> &str {
        self.running.base_url.as_str()
    }

    pub async fn send(&self, method: Method, path: &str, headers: &[(&str, &str)], body: impl Into<Vec<u8>>) -> Answer {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            let name = HeaderName::from_bytes(name.as_bytes()).expect("a header name");
            map.append(name, HeaderValue::from_str(value).expect("a header value"));
        }
        let url = format!("http://{}{path}", self.address());
        let response = self.client.request(method, url).headers(map).body(body.into()).send().await.expect("an answer");
        let (status, headers) = (response.status(), response.headers().clone());
        let body = response.bytes().await.expect("a whole answer").to_vec();
        Answer { status, headers, body }
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.send(Method::GET, path, &[], "").await
    }

    pub async fn get_as(&self, path: &str, accept: &str) -> Answer {
        self.send(Method::GET, path, &[("accept", accept)], "").await
    }

    pub async fn head(&self, path: &str) -> Answer {
        self.send(Method::HEAD, path, &[], "").await
    }

    /// Posts a JSON value.
    pub async fn post(&self, path: &str, body: &Value) -> Answer {
        self.post_text(path, &body.to_string()).await
    }

    /// Posts a text that need not be JSON as `application/json`.
    pub async fn post_text(&self, path: &str, body: &str) -> Answer {
        self.send(Method::POST, path, &[("content-type", "application/json")], body).await
    }
}

impl Answer {
    pub fn text(&self) -> String {
        String::from_utf8(self.body.clone()).expect("an answer in UTF-8")
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    /// The value of a header that occurs at most once; empty if it does not occur.
    pub fn header(&self, name: &str) -> &str {
        assert!(self.headers.get_all(name).iter().count() < 2, "{name} occurs more than once");
        self.headers.get(name).map_or("", |value| value.to_str().expect("a readable header"))
    }

    /// The Content-Type without its parameters.
    pub fn media_type(&self) -> &str {
        self.header("content-type").split(';').next().unwrap_or_default()
    }

    /// Asserts that this is a complete problem document with this status and code, and returns it.
    #[track_caller]
    pub fn expect_problem(&self, status: u16, code: &str) -> Value {
        assert_eq!(self.status, status, "{}", self.text());
        assert_eq!(self.header("content-type"), "application/problem+json");
        let problem = self.json();
        assert_eq!(problem["code"], code, "{problem:#}");
        assert_eq!(problem["status"], status);
        assert_eq!(problem["error"], problem["detail"]);
        problem
    }

    /// Asserts that this is a 200 with JSON, and returns that.
    #[track_caller]
    pub fn expect_ok(&self) -> Value {
        assert_eq!(self.status, 200, "{}", self.text());
        assert_eq!(self.header("content-type"), "application/json");
        self.json()
    }
}
