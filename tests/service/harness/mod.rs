//! Starts the service for one test and talks to it.

mod certificates;
mod database;
mod disk;
pub mod dns;
pub mod markup;
mod postgres;
mod program;
mod releases;
mod smtp;
mod terminal;
mod wire;

use std::time::Duration;

use porchlight::clock::Clock;
use porchlight::config::{RawSettings, Settings};
use porchlight::domain::time::Timestamp;
use porchlight::serve::{self, Running, ServeFailure};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

pub use certificates::{Authority, Identity, Site};
pub use database::Database;
pub use disk::SmallDisk;
pub use program::Program;
pub use releases::{disk_image, trailer};
pub use smtp::{MailServer, TakenMail};
pub use terminal::Terminal;
pub use wire::{Connection, raw};

/// Noon of 15 November 2026: where the clock of every test stands until it is moved.
const NOW: Timestamp = Timestamp::from_unix_millis(1_794_744_000_000);

/// A service that runs for one test.
pub struct Service {
    running: Running,
    client: reqwest::Client,
    /// Where this service alone keeps what is no database.
    folder: tempfile::TempDir,
    pub clock: Clock,
    pub database: Database,
}

/// An answer, read to its end.
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
    for database in each_database().await {
        println!("on {database:?}");
        let service = Service::start(written.clone(), database).await;
        test(&service).await;
        service.stop().await;
    }
}

/// For tests that start the service themselves.
pub async fn each_database() -> [Database; 2] {
    [Database::sqlite(), Database::postgres().await]
}

/// The JSON endpoints, each with a request that it takes.
pub fn endpoints() -> [(&'static str, Value); 3] {
    [
        ("/api/download", json!({ "email": "ada@example.com", "updates": true, "source": "tests" })),
        ("/api/waitlist", json!({ "email": "ada@example.com", "source": "tests" })),
        ("/api/contact", json!({ "name": "Ada", "email": "ada@example.com", "message": "Hello" })),
    ]
}

/// For what no database has a part in.
pub async fn on_one_database(test: impl AsyncFn(&Service)) {
    on_one_database_with(RawSettings::default(), test).await;
}

pub async fn on_one_database_with(written: RawSettings, test: impl AsyncFn(&Service)) {
    let service = Service::start(written, Database::sqlite()).await;
    test(&service).await;
    service.stop().await;
}

impl Service {
    pub async fn start(written: RawSettings, database: Database) -> Self {
        Self::try_start(written, database).await.expect("a service that starts")
    }

    pub async fn try_start(written: RawSettings, database: Database) -> Result<Self, ServeFailure> {
        let folder = tempfile::tempdir().expect("a folder");
        let written = RawSettings {
            listen: Some("127.0.0.1:0".to_owned()),
            ops_listen: Some(written.ops_listen.unwrap_or_else(|| "off".to_owned())),
            database_url: Some(database.url().to_owned()),
            data_dir: Some(written.data_dir.unwrap_or_else(|| folder.path().display().to_string())),
            ..written
        };
        let settings = Settings::load(None, &written).expect("settings that can be used");
        let clock = Clock::manual(NOW);
        let running = serve::start(settings, clock.clone()).await?;
        let client = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .timeout(Duration::from_secs(30))
            .build()
            .expect("a client");
        Ok(Self { running, client, folder, clock, database })
    }

    pub async fn stop(self) {
        self.running.stop().await;
    }

    pub fn address(&self) -> std::net::SocketAddr {
        self.running.address()
    }

    /// Where the makers' own eyes look.
    pub fn ops_address(&self) -> std::net::SocketAddr {
        self.running.ops_address().expect("a listener for the makers")
    }

    /// The address as the service itself has it, which need not be where it listens.
    pub fn base_url(&self) -> &str {
        self.running.base_url().as_str()
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

    /// Posts a JSON value, as callers do.
    pub async fn post(&self, path: &str, body: &Value) -> Answer {
        self.post_text(path, &body.to_string()).await
    }

    /// Posts a text that need not be JSON, and calls it JSON.
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

    /// A header that is there once, or an empty text.
    pub fn header(&self, name: &str) -> &str {
        assert!(self.headers.get_all(name).iter().count() < 2, "{name} is there more than once");
        self.headers.get(name).map_or("", |value| value.to_str().expect("a readable header"))
    }

    /// The Content-Type without its parameters.
    pub fn media_type(&self) -> &str {
        self.header("content-type").split(';').next().unwrap_or_default()
    }

    /// Makes sure that this is a problem with this code, whole and as documented.
    #[track_caller]
    pub fn is_problem(&self, status: u16, code: &str) -> Value {
        assert_eq!(self.status, status, "{}", self.text());
        assert_eq!(self.header("content-type"), "application/problem+json");
        let problem = self.json();
        assert_eq!(problem["code"], code, "{problem:#}");
        assert_eq!(problem["status"], status);
        assert_eq!(problem["error"], problem["detail"]);
        problem
    }

    #[track_caller]
    pub fn is_ok(&self) -> Value {
        assert_eq!(self.status, 200, "{}", self.text());
        assert_eq!(self.header("content-type"), "application/json");
        self.json()
    }
}
