//! `porchlight bounce`
//!
//! A mail server or a cron job runs it without anybody watching. So a failure that passes, or that the makers can correct,
//! exits with 75, upon which a mail server keeps the mail and tries again; a mail that changes nothing is a success.

mod maildir;

use std::fmt;
use std::fs::File;
use std::io::{self, IsTerminal, Read};
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::{Value, json};

use super::{Access, CommandFailure, block_on, eprint_line, open_store, print_json};
use crate::actions::{self, BounceOutcome, Failure, UnchangedReason};
use crate::clock::Clock;
use crate::config::{InvalidSettings, Settings};
use crate::domain::limits::MAX_RETURNED_MAIL_BYTES;
use crate::domain::plural::quantity;
use crate::mail::ReturnedMail;
use crate::store::Store;

pub(super) const EXAMPLES: &str = "\
Examples:
  porchlight bounce < returned.eml
      Read one mail, as a mail server passes it to a command
  porchlight bounce --maildir /home/bounces/Maildir
      Read all unread mails of a Maildir, such as in a cron job";

#[derive(Args, Debug)]
pub(super) struct BounceArguments {
    /// Files with one returned mail each [default: one mail from standard input]
    files: Vec<PathBuf>,
    /// Read the unread mails in this Maildir and mark them as read
    #[arg(long, value_name = "FOLDER", conflicts_with = "files")]
    maildir: Option<PathBuf>,
    /// Delete the mails that were read, instead of marking them
    #[arg(long, requires = "maildir")]
    delete: bool,
    /// Address that the mail on standard input was sent to, as the mail server knows it
    #[arg(long, value_name = "ADDRESS", allow_hyphen_values = true, conflicts_with_all = ["files", "maildir"])]
    recipient: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Why `bounce` failed, in one sentence.
#[derive(Debug, thiserror::Error)]
pub(super) enum BounceFailure {
    /// `EX_TEMPFAIL` of sysexits.h: nothing is wrong with the mail.
    #[error("{0}")]
    Postponed(String),
    #[error("{0} is not a Maildir that can be read: {1}.")]
    Maildir(String, io::Error),
    #[error("{} not handled.", quantity(*.0, "mail was", "mails were"))]
    Unhandled(u64),
}

impl BounceFailure {
    pub(super) const fn exit_code(&self) -> u8 {
        match self {
            Self::Postponed(_) => 75,
            Self::Maildir(..) | Self::Unhandled(_) => 1,
        }
    }

    fn stopped(failure: &Failure) -> Self {
        Self::Postponed(format!("Stopped: {failure}. The mail was not changed. Run the same command again."))
    }
}

/// Where a mail is read from.
#[derive(Debug)]
enum Source {
    Stdin,
    File(PathBuf),
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stdin => f.write_str("standard input"),
            Self::File(path) => write!(f, "{}", path.display()),
        }
    }
}

impl Source {
    fn read(&self) -> io::Result<Vec<u8>> {
        match self {
            Self::Stdin => {
                let bytes = read_start(io::stdin().lock())?;
                // A mail server may report an error if the command does not read everything.
                io::copy(&mut io::stdin().lock(), &mut io::sink())?;
                Ok(bytes)
            }
            Self::File(path) => read_start(File::open(path)?),
        }
    }
}

fn read_start(reader: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    reader.take(MAX_RETURNED_MAIL_BYTES as u64).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// What was done, for the last line and for JSON.
#[derive(Debug, Default)]
struct Summary {
    suppressed: u64,
    counted: u64,
    unchanged: u64,
    unhandled: u64,
    mails: Vec<Value>,
}

pub(super) fn run(
    arguments: &BounceArguments,
    settings: Result<Settings, InvalidSettings>,
) -> Result<(), CommandFailure> {
    let settings = settings.map_err(|error| BounceFailure::Postponed(error.to_string()))?;
    let sources = arguments.sources()?;
    block_on(async {
        let mut summary = Summary::default();
        // An empty Maildir needs no database.
        let result =
            if sources.is_empty() { Ok(()) } else { arguments.handle_all(&settings, &sources, &mut summary).await };
        summary.print(arguments.json);
        result?;
        match summary.unhandled {
            0 => Ok(()),
            count => Err(BounceFailure::Unhandled(count).into()),
        }
    })
}

impl BounceArguments {
    fn sources(&self) -> Result<Vec<Source>, BounceFailure> {
        if let Some(folder) = &self.maildir {
            let mails = maildir::unread_mails(folder);
            let mails = mails.map_err(|error| BounceFailure::Maildir(folder.display().to_string(), error))?;
            if mails.is_empty() && io::stderr().is_terminal() {
                eprint_line("The Maildir has no unread mail.");
            }
            return Ok(mails.into_iter().map(Source::File).collect());
        }
        if self.files.is_empty() {
            if io::stdin().is_terminal() {
                eprint_line("Paste the returned mail, then press Control-D.");
            }
            return Ok(vec![Source::Stdin]);
        }
        Ok(self.files.iter().cloned().map(Source::File).collect())
    }

    async fn handle_all(
        &self,
        settings: &Settings,
        sources: &[Source],
        summary: &mut Summary,
    ) -> Result<(), BounceFailure> {
        let store = open_store(settings, Access::Write).await;
        let store = store.map_err(|failure| BounceFailure::Postponed(failure.with_database(settings).to_string()))?;
        let mut result = Ok(());
        for source in sources {
            result = self.handle(&store, source, summary).await;
            if result.is_err() {
                break;
            }
        }
        store.close().await;
        result
    }

    /// Handles one mail. A mail that cannot be read does not keep the others from being handled.
    async fn handle(&self, store: &Store, source: &Source, summary: &mut Summary) -> Result<(), BounceFailure> {
        let mail = match (source.read(), source) {
            (Ok(bytes), _) => ReturnedMail::read(&bytes),
            (Err(error), Source::Stdin) => {
                return Err(BounceFailure::Postponed(format!("Standard input cannot be read: {error}.")));
            }
            // Another process has read it.
            (Err(error), Source::File(_)) if self.maildir.is_some() && error.kind() == io::ErrorKind::NotFound => {
                return Ok(());
            }
            (Err(error), Source::File(_)) => {
                summary.unhandled += 1;
                eprint_line(&format!("{source} cannot be read: {error}."));
                return Ok(());
            }
        };
        let outcome = actions::record_bounce(store, &mail, self.recipient.as_deref(), Clock::System.now()).await;
        summary.add(source, &outcome.map_err(|failure| BounceFailure::stopped(&failure))?);
        if let (Some(folder), Source::File(path)) = (&self.maildir, source)
            && let Err(error) = self.finish(folder, path)
        {
            summary.unhandled += 1;
            eprint_line(&format!("{source} was handled, but cannot be moved or deleted: {error}."));
        }
        Ok(())
    }

    fn finish(&self, folder: &Path, mail: &Path) -> io::Result<()> {
        if self.delete { maildir::delete(mail) } else { maildir::mark_as_read(folder, mail) }
    }
}

impl Summary {
    /// Notes and prints what a mail led to.
    fn add(&mut self, source: &Source, outcome: &BounceOutcome) {
        let mut mail =
            json!({ "mail": source.to_string(), "result": null, "email": null, "status": null, "reason": null });
        let (count, result, text) = match outcome {
            BounceOutcome::Recorded(email, bounce) => {
                let (typed, code) = (email.as_typed(), bounce.code().as_str());
                mail["email"] = typed.into();
                mail["status"] = code.into();
                if bounce.suppresses() {
                    let text = format!("{typed} has no mailbox ({code}), so it is suppressed");
                    (&mut self.suppressed, "suppressed", text)
                } else {
                    (&mut self.counted, "counted", format!("the letter to {typed} did not arrive ({code}); counted"))
                }
            }
            BounceOutcome::Unchanged(reason) => {
                mail["reason"] = reason_name(*reason).into();
                (&mut self.unchanged, "unchanged", format!("nothing was changed, because {reason}"))
            }
        };
        *count += 1;
        mail["result"] = result.into();
        self.mails.push(mail);
        eprint_line(&format!("{source}: {text}."));
    }

    fn print(&self, as_json: bool) {
        let Self { suppressed, counted, unchanged, unhandled, mails } = self;
        if as_json {
            print_json(&json!({
                "suppressed": suppressed, "counted": counted, "unchanged": unchanged, "unhandled": unhandled, "mails": mails,
            }));
        }
        if mails.len() > 1 {
            let all = quantity(mails.len() as u64, "mail", "mails");
            eprint_line(&format!("{all}: {suppressed} suppressed, {counted} counted, {unchanged} changed nothing."));
        }
    }
}

const fn reason_name(reason: UnchangedReason) -> &'static str {
    match reason {
        UnchangedReason::NoTag => "no-tag",
        UnchangedReason::NoFailure => "no-failure",
        UnchangedReason::UnknownTag => "unknown-tag",
        UnchangedReason::Repeated => "repeated",
    }
}
