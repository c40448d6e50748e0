//! A real S3-compatible service that fails in the ways a test commands: `tests/s3/server.py`.
//!
//! One Python process has the buckets of all tests.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use porchlight::config::{AccessKey, BucketAccess, BucketSettings, Secret};
use serde_json::{Value, json};
use url::Url;

use super::Identity;

/// The Python process, which ends when this program closes its standard input.
struct Process {
    _child: Child,
    pipes: Mutex<(ChildStdin, BufReader<ChildStdout>)>,
    port: u16,
}

/// A bucket of its own for one test.
pub struct Bucket {
    pub name: String,
}

impl Process {
    fn shared() -> &'static Self {
        static PROCESS: OnceLock<Process> = OnceLock::new();
        PROCESS.get_or_init(|| {
            let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/s3");
            let python = folder.join(".venv/bin/python");
            assert!(python.exists(), "the S3 service of the tests is not installed: run ./test, which installs it");
            let mut child = Command::new(python)
                .arg(folder.join("server.py"))
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .expect("an S3 service");
            let commands = child.stdin.take().expect("its standard input");
            let mut answers = BufReader::new(child.stdout.take().expect("its standard output"));
            let mut port = String::new();
            answers.read_line(&mut port).expect("a line");
            let port = port.trim().parse().expect("a port");
            Self { _child: child, pipes: Mutex::new((commands, answers)), port }
        })
    }

    fn command(&self, bucket: &str, command: &str) -> Value {
        let mut pipes = self.pipes.lock().unwrap_or_else(PoisonError::into_inner);
        writeln!(pipes.0, "{}", json!([bucket, command])).expect("an S3 service that reads commands");
        let mut answer = String::new();
        pipes.1.read_line(&mut answer).expect("a line");
        serde_json::from_str(&answer).expect("an answer")
    }
}

impl Bucket {
    pub fn new() -> Self {
        static OPENED: AtomicU64 = AtomicU64::new(0);
        Self::named(&format!("images-{}", OPENED.fetch_add(1, Ordering::Relaxed)))
    }

    /// A bucket of a name that a document has.
    pub fn named(name: &str) -> Self {
        let bucket = Self { name: name.to_owned() };
        bucket.command("open");
        bucket
    }

    pub fn endpoint() -> String {
        format!("http://127.0.0.1:{}", Process::shared().port)
    }

    /// Changes how the bucket behaves, or what is in it.
    pub fn command(&self, command: &str) {
        assert_eq!(Process::shared().command(&self.name, command), command);
    }

    /// The names of the objects in it.
    pub fn objects(&self) -> Vec<String> {
        serde_json::from_value(Process::shared().command(&self.name, "list")).expect("names")
    }

    /// The names of the objects whose content has this text.
    pub fn objects_with(&self, text: &str) -> Vec<String> {
        serde_json::from_value(Process::shared().command(&self.name, &format!("find:{text}"))).expect("names")
    }

    /// Another endpoint, with TLS.
    pub fn tls_endpoint(identity: &Identity) -> String {
        let [certificate, key] = [identity.certificate(), identity.key()].map(|path| path.display().to_string());
        let port = Process::shared().command("", &format!("tls:{certificate}:{key}"));
        format!("https://localhost:{port}")
    }

    /// Lets a command use the bucket.
    pub fn configure(&self, command: &mut Command, options: &str) {
        command.env("PORCHLIGHT_RELEASES_URL", format!("s3://{}/troupe{options}", self.name)).envs(Self::environment());
    }

    /// What tells a program where the buckets are, and the key.
    pub fn environment() -> [(&'static str, String); 3] {
        [
            ("AWS_ENDPOINT_URL", Self::endpoint()),
            ("AWS_ACCESS_KEY_ID", "key-of-the-tests".to_owned()),
            ("AWS_SECRET_ACCESS_KEY", "secret-of-the-tests".to_owned()),
        ]
    }

    /// The bucket as settings have it.
    pub fn settings(&self, access_key: &str) -> BucketSettings {
        let key = AccessKey {
            id: access_key.to_owned(),
            secret: Secret::new("secret-of-the-tests".to_owned()),
            session_token: None,
        };
        let url = Url::parse(&format!("{}/{}/", Self::endpoint(), self.name)).expect("a URL");
        let access = BucketAccess { url, prefix: "site/".to_owned(), region: "us-east-1".to_owned(), key };
        let name = format!("s3://{}/site", self.name);
        BucketSettings { setting: "backup_url", name, proxy: false, access: Ok(access) }
    }
}
