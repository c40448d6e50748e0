//! A key that the program makes, and signatures that another implementation verifies: `tests/smtp/verify_dkim.py`.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::Deserialize;
use serde_json::{Value, json};

use super::Program;

/// A key of the domain troupe.example with the selector `mail`.
pub struct DkimKey {
    folder: tempfile::TempDir,
    pub record: String,
}

/// What a receiver finds out about a signature.
#[derive(Debug, Deserialize)]
pub struct Verdict {
    pub valid: bool,
    pub tags: HashMap<String, String>,
}

impl DkimKey {
    pub const RECORD_NAME: &str = "mail._domainkey.troupe.example";

    pub fn rsa() -> Self {
        Self::make(&[])
    }

    pub fn ed25519() -> Self {
        Self::make(&["--ed25519"])
    }

    fn make(kind: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let output = Program::run_to_end(
            Program::command(folder.path(), &["mail", "key", "--out", "dkim.pem", "--json"]).args(kind),
        );
        let printed: Value = serde_json::from_slice(&output.stdout).expect("JSON and nothing else");
        Self { folder, record: printed["value"].as_str().expect("a record").to_owned() }
    }

    pub fn path(&self) -> PathBuf {
        self.folder.path().join("dkim.pem")
    }

    /// The settings that sign with it.
    pub fn arguments(&self) -> [String; 4] {
        ["--dkim-selector", "mail", "--dkim-key", &self.path().display().to_string()].map(str::to_owned)
    }

    /// Verifies mails as they arrived.
    fn verify(&self, mails: &[String]) -> Vec<Verdict> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/smtp");
        let mut process = Command::new(folder.join(".venv/bin/python"))
            .arg(folder.join("verify_dkim.py"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("Python, which ./test installs");
        let request = json!({ "mails": mails, "name": Self::RECORD_NAME, "record": self.record });
        serde_json::to_writer(process.stdin.take().expect("its standard input"), &request).expect("to be read");
        let output = Program::wait(process, "the verification of signatures");
        serde_json::from_slice(&output.stdout).expect("verdicts")
    }

    /// Asserts that the signature is valid, and that it is not once anything that it covers is changed.
    #[track_caller]
    pub fn assert_signed(&self, mail: &str, signed_headers: &[&str]) -> Verdict {
        let longest = mail.lines().map(str::len).max();
        assert!(longest < Some(998), "{longest:?}");
        let replaced = |old: &str, new: &str| mail.replacen(old, new, 1);
        let mut mails = vec![
            mail.to_owned(),
            format!("Received: from relay.test by mx.test; Sun, 15 Nov 2026 12:00:00 +0000\r\n{mail}"),
            replaced("\r\n\r\n", "\r\n\r\nWell, "),
            format!("{mail}More.\r\n"),
            replaced("\r\nDate: ", "\r\nSubject: Another\r\nDate: "),
            format!("From: other@troupe.example\r\n{mail}"),
        ];
        let names: Vec<_> = mail.lines().filter_map(|line| line.split_once(": ")).map(|(name, _)| name).collect();
        let is_signed = |name: &&&str| signed_headers.contains(&name.to_lowercase().as_str());
        let renamed: Vec<_> =
            names.iter().filter(is_signed).map(|name| replaced(&format!("\r\n{name}: "), "\r\nX: ")).collect();
        mails.extend(renamed);
        let mut verdicts = self.verify(&mails);
        for (number, (verdict, mail)) in verdicts.iter().zip(&mails).enumerate() {
            assert_eq!(verdict.valid, number < 2, "only servers on the way may add headers: {mail}");
        }
        let verdict = verdicts.swap_remove(0);
        let names: Vec<_> = verdict.tags["h"].split(':').collect();
        assert_eq!(names, [signed_headers, signed_headers].concat(), "each once more than it occurs");
        verdict
    }
}
