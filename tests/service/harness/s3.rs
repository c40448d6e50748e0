//! A real S3-compatible service that fails in the ways a test commands: `tests/s3/server.py`.
//!
//! One Python process has the buckets of all tests.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use serde_json::{Value, json};

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
        let bucket = Self { name: format!("images-{}", OPENED.fetch_add(1, Ordering::Relaxed)) };
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

    /// Another endpoint, with TLS.
    pub fn tls_endpoint(identity: &Identity) -> String {
        let [certificate, key] = [identity.certificate(), identity.key()].map(|path| path.display().to_string());
        let port = Process::shared().command("", &format!("tls:{certificate}:{key}"));
        format!("https://localhost:{port}")
    }

    /// Lets a command use the bucket.
    pub fn configure(&self, command: &mut Command, options: &str) {
        command
            .env("PORCHLIGHT_RELEASES_URL", format!("s3://{}/troupe{options}", self.name))
            .env("AWS_ENDPOINT_URL", Self::endpoint())
            .env("AWS_ACCESS_KEY_ID", "key-of-the-tests")
            .env("AWS_SECRET_ACCESS_KEY", "secret-of-the-tests");
    }
}
