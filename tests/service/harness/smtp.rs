//! A real mail server that fails in the ways a test commands: `tests/smtp/server.py`.
//!
//! One Python process runs the servers of all tests, each on a port of its own.

use std::collections::{HashMap, VecDeque};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Mutex, OnceLock, PoisonError};

use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::timeout;

use super::wait::WATCHDOG;

/// The Python process, which ends when this program closes its standard input.
struct Process {
    _child: Child,
    commands: Mutex<ChildStdin>,
    /// Where the events of each server go. `None` once the process has ended.
    servers: Mutex<Option<HashMap<u64, UnboundedSender<Value>>>>,
}

pub struct MailServer {
    id: u64,
    events: UnboundedReceiver<Value>,
    /// Accepted, and not read by the test yet.
    mails: VecDeque<ReceivedMail>,
    port: u16,
}

/// A mail as the server accepted it, and as a mail client shows it.
#[derive(Clone, Debug, Deserialize)]
pub struct ReceivedMail {
    pub sender: String,
    pub recipients: Vec<String>,
    pub encrypted: bool,
    pub user: Option<String>,
    pub source: String,
    pub headers: Vec<(String, String)>,
    pub to: Vec<String>,
    pub reply_to: Vec<String>,
    pub text: String,
    pub html: String,
    /// In their order, each after the one that it is in.
    pub parts: Vec<ReceivedPart>,
    pub defects: Vec<String>,
}

#[derive(Clone, Debug, Deserialize)]
pub struct ReceivedPart {
    pub kind: String,
    pub id: Option<String>,
    pub disposition: Option<String>,
    pub file_name: Option<String>,
    /// In Base64.
    pub content: String,
}

impl ReceivedMail {
    /// The value of a header that occurs once.
    #[track_caller]
    pub fn header(&self, name: &str) -> &str {
        let mut found = self.headers.iter().filter(|(other, _)| other.eq_ignore_ascii_case(name));
        let (Some((_, value)), None) = (found.next(), found.next()) else {
            panic!("{name} does not occur exactly once: {self:#?}")
        };
        value
    }
}

impl Process {
    fn shared() -> &'static Self {
        static PROCESS: OnceLock<Process> = OnceLock::new();
        PROCESS.get_or_init(|| {
            let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/smtp");
            let python = folder.join(".venv/bin/python");
            assert!(python.exists(), "the mail server of the tests is not installed: run ./test, which installs it");
            let mut process = Command::new(python)
                .arg(folder.join("server.py"))
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .expect("a mail server");
            let commands = process.stdin.take().expect("its standard input");
            let events = process.stdout.take().expect("its standard output");
            std::thread::spawn(move || Self::shared().dispatch(events));
            Self { _child: process, commands: Mutex::new(commands), servers: Mutex::new(Some(HashMap::new())) }
        })
    }

    /// Hands each event to its server until the process ends.
    fn dispatch(&self, events: ChildStdout) {
        for line in BufReader::new(events).lines().map_while(Result::ok) {
            let (id, event): (u64, Value) = serde_json::from_str(&line).expect("an event");
            let servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(server) = servers.as_ref().and_then(|servers| servers.get(&id)) {
                let _ = server.send(event);
            }
        }
        *self.servers.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    fn send(&self, command: &Value) -> std::io::Result<()> {
        writeln!(self.commands.lock().unwrap_or_else(PoisonError::into_inner), "{command}")
    }

    fn open(&self) -> (u64, UnboundedReceiver<Value>) {
        static OPENED: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
        let id = OPENED.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let (sender, events) = unbounded_channel();
        let mut servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
        servers.as_mut().expect("the mail server's process has ended").insert(id, sender);
        (id, events)
    }

    fn close(&self, id: u64) {
        if let Some(servers) = self.servers.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
            servers.remove(&id);
        }
        let _ = self.send(&json!([id, "close"]));
    }
}

impl MailServer {
    pub async fn start() -> Self {
        Self::start_with(json!({})).await
    }

    /// Starts it with options of the script: `certificate`, `key`, `starttls`, `user`, `password`.
    pub async fn start_with(options: Value) -> Self {
        let (id, events) = Process::shared().open();
        let mut server = Self { id, events, mails: VecDeque::new(), port: 0 };
        Process::shared().send(&json!([id, "open", options])).expect("a mail server that reads commands");
        server.port = u16::try_from(server.wait_for("port").await.as_u64().expect("a number")).expect("a port");
        server
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    pub fn url(&self) -> String {
        format!("smtp://127.0.0.1:{}", self.port)
    }

    /// Changes how the server behaves, and waits until it does.
    pub async fn command(&mut self, command: &str) {
        Process::shared().send(&json!([self.id, command])).expect("a mail server that reads commands");
        assert_eq!(self.wait_for("done").await, command);
    }

    /// Waits for a mail.
    pub async fn next_mail(&mut self) -> ReceivedMail {
        while self.mails.is_empty() {
            self.next_event("mail").await;
        }
        self.mails.pop_front().expect("a mail")
    }

    /// All mails that the server accepted and that the test has not read yet.
    pub async fn mails(&mut self) -> Vec<ReceivedMail> {
        self.command("report").await;
        self.mails.drain(..).collect()
    }

    /// Waits for an event of this kind; mails are kept.
    pub async fn wait_for(&mut self, kind: &str) -> Value {
        loop {
            if let Some(value) = self.next_event(kind).await.get(kind) {
                return value.clone();
            }
        }
    }

    async fn next_event(&mut self, awaited: &str) -> Value {
        let event = timeout(WATCHDOG, self.events.recv()).await.ok().flatten();
        let event = event.unwrap_or_else(|| panic!("the mail server did not report {awaited:?} within {WATCHDOG:?}"));
        if let Some(mail) = event.get("mail") {
            self.mails.push_back(serde_json::from_value(mail.clone()).expect("a mail"));
        }
        event
    }
}

impl Drop for MailServer {
    fn drop(&mut self) {
        Process::shared().close(self.id);
    }
}
