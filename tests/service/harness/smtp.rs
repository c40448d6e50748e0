//! A real mail server that behaves as badly as a test tells it to: `tests/smtp/server.py`.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};

use serde::Deserialize;
use serde_json::Value;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::time::timeout;

use super::wire::WATCHDOG;

pub struct MailServer {
    process: Child,
    orders: ChildStdin,
    events: UnboundedReceiver<Value>,
    /// Taken, and not looked at yet.
    mails: VecDeque<TakenMail>,
    port: u16,
}

/// A mail as the server took it, and as a mail reader shows it.
#[derive(Clone, Debug, Deserialize)]
pub struct TakenMail {
    pub sender: String,
    pub recipients: Vec<String>,
    pub encrypted: bool,
    pub user: Option<String>,
    pub head: Vec<(String, String)>,
    pub to: Vec<String>,
    pub reply_to: Vec<String>,
    pub text: String,
    pub html: String,
    pub defects: Vec<String>,
}

impl TakenMail {
    /// A line of the head that is there once.
    #[track_caller]
    pub fn header(&self, name: &str) -> &str {
        let mut found = self.head.iter().filter(|(other, _)| other.eq_ignore_ascii_case(name));
        let (Some((_, value)), None) = (found.next(), found.next()) else {
            panic!("{name} is not there once: {self:#?}")
        };
        value
    }
}

impl MailServer {
    pub async fn start() -> Self {
        Self::start_with(&[]).await
    }

    /// Starts it with arguments of the script.
    pub async fn start_with(arguments: &[&str]) -> Self {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/smtp");
        let python = folder.join(".venv/bin/python");
        assert!(python.exists(), "the mail server of the tests is not installed: run ./test, which installs it");
        let mut process = Command::new(python)
            .arg(folder.join("server.py"))
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a mail server");
        let orders = process.stdin.take().expect("its ear");
        let output = BufReader::new(process.stdout.take().expect("its mouth"));
        let (sender, events) = unbounded_channel();
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                let _ = sender.send(serde_json::from_str(&line).expect("an event"));
            }
        });
        let mut server = Self { process, orders, events, mails: VecDeque::new(), port: 0 };
        server.port = u16::try_from(server.hear("port").await.as_u64().expect("a number")).expect("a port");
        server
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    pub fn url(&self) -> String {
        format!("smtp://127.0.0.1:{}", self.port)
    }

    /// Tells it how to behave, and waits until it does.
    pub async fn order(&mut self, order: &str) {
        writeln!(self.orders, "{order}").expect("to be heard");
        assert_eq!(self.hear("done").await, order);
    }

    /// Waits for a mail.
    pub async fn next_mail(&mut self) -> TakenMail {
        while self.mails.is_empty() {
            self.next_event("mail").await;
        }
        self.mails.pop_front().expect("a mail")
    }

    /// All mails that it took and that were not looked at yet.
    pub async fn mails(&mut self) -> Vec<TakenMail> {
        self.order("report").await;
        self.mails.drain(..).collect()
    }

    /// Waits until it says something of this kind; mails are kept.
    pub async fn hear(&mut self, kind: &str) -> Value {
        loop {
            if let Some(value) = self.next_event(kind).await.get(kind) {
                return value.clone();
            }
        }
    }

    async fn next_event(&mut self, awaited: &str) -> Value {
        let event = timeout(WATCHDOG, self.events.recv()).await.ok().flatten();
        let event = event.unwrap_or_else(|| panic!("the mail server never said {awaited:?}"));
        if let Some(mail) = event.get("mail") {
            self.mails.push_back(serde_json::from_value(mail.clone()).expect("a mail"));
        }
        event
    }
}

impl Drop for MailServer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
