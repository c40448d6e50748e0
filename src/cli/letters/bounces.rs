//! `porchlight bounce`
//!
//! A mail server or a cron job runs it without anybody watching. So a failure that passes, or that the makers can correct,
//! exits with 75, upon which a mail server keeps the mail and tries again; a mail that changes nothing is a success.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, IsTerminal, Read};
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::{Value, json};

use crate::actions::{self, BounceOutcome};
use crate::cli::activity::record;
use crate::cli::failure::{Failure, OrFail};
use crate::cli::run::{Access, block_on, open_store};
use crate::cli::terminal::{eprint_line, print_json};
use crate::clock::Clock;
use crate::config::{InvalidSettings, Settings};
use crate::domain::desk::Change;
use crate::domain::limits::MAX_RETURNED_MAIL_BYTES;
use crate::domain::text::quantity;
use crate::mail::ReturnedMail;
use crate::store::Store;

pub(in crate::cli) const EXAMPLES: &str = "\
Examples:
  porchlight bounce < returned.eml
      Read one mail, as a mail server passes it to a command
  porchlight bounce --maildir /home/bounces/Maildir
      Read all unread mails of a Maildir, such as in a cron job";

#[derive(Args, Debug)]
pub(in crate::cli) struct BounceArguments {
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

/// `EX_TEMPFAIL` of sysexits.h: nothing is wrong with the mail.
const POSTPONED: u8 = 75;

/// What was done, for the last line and for JSON.
#[derive(Debug, Default)]
struct Summary {
    unhandled: u64,
    mails: Vec<Value>,
}

pub(in crate::cli) fn run(
    arguments: &BounceArguments,
    settings: Result<Settings, InvalidSettings>,
) -> Result<(), Failure> {
    let settings = settings.map_err(|invalid| Failure::from(invalid).with_exit_code(POSTPONED))?;
    let files = arguments.files()?;
    block_on(async {
        let mut summary = Summary::default();
        // An empty Maildir needs no database.
        let result =
            if files.is_empty() { Ok(()) } else { arguments.handle_all(&settings, &files, &mut summary).await };
        summary.print(arguments.json);
        result?;
        match summary.unhandled {
            0 => Ok(()),
            count => Err(Failure::new(format!("{} not handled.", quantity(count, "mail was", "mails were")))),
        }
    })
}

impl BounceArguments {
    /// Returns the files to read; `-` is standard input.
    fn files(&self) -> Result<Vec<PathBuf>, Failure> {
        if let Some(folder) = &self.maildir {
            let mails = unread_mails(folder)
                .or_fail(|error| format!("{} is not a Maildir that can be read: {error}.", folder.display()))?;
            if mails.is_empty() && io::stderr().is_terminal() {
                eprint_line("The Maildir has no unread mail.");
            }
            return Ok(mails);
        }
        if self.files.is_empty() {
            if io::stdin().is_terminal() {
                eprint_line("Paste the returned mail, then press Control-D.");
            }
            return Ok(vec![PathBuf::from("-")]);
        }
        Ok(self.files.clone())
    }

    async fn handle_all(&self, settings: &Settings, files: &[PathBuf], summary: &mut Summary) -> Result<(), Failure> {
        let store = open_store(settings, Access::Write).await;
        let store = store.map_err(|failure| failure.with_exit_code(POSTPONED))?;
        let mut result = Ok(());
        for file in files {
            result = self.handle(&store, file, summary).await;
            if result.is_err() {
                break;
            }
        }
        let suppressed = summary.count("suppressed");
        if suppressed > 0 {
            record(&store, Change::SuppressedRecipients(suppressed)).await;
        }
        store.close().await;
        result.map_err(|failure| failure.with_exit_code(POSTPONED))
    }

    /// Handles one mail. A mail that cannot be read does not keep the others from being handled.
    async fn handle(&self, store: &Store, file: &Path, summary: &mut Summary) -> Result<(), Failure> {
        let is_stdin = file == Path::new("-");
        let name = if is_stdin { "standard input".to_owned() } else { file.display().to_string() };
        let mail = match if is_stdin { read_stdin() } else { File::open(file).and_then(read_start) } {
            Ok(bytes) => ReturnedMail::read(&bytes),
            Err(error) if is_stdin => {
                return Err(Failure::new(format!("Standard input cannot be read: {error}.")));
            }
            // Another process has read it.
            Err(error) if self.maildir.is_some() && error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => {
                summary.unhandled += 1;
                eprint_line(&format!("{name} cannot be read: {error}."));
                return Ok(());
            }
        };
        let outcome = actions::record_bounce(store, &mail, self.recipient.as_deref(), Clock::System.now()).await;
        let outcome = outcome
            .or_fail(|failure| format!("Stopped: {failure}. The mail was not changed. Run the same command again."))?;
        summary.add(&name, &outcome);
        if let Some(folder) = &self.maildir
            && let Err(error) =
                if self.delete { ignore_missing(std::fs::remove_file(file)) } else { mark_as_read(folder, file) }
        {
            summary.unhandled += 1;
            eprint_line(&format!("{name} was handled, but cannot be moved or deleted: {error}."));
        }
        Ok(())
    }
}

fn read_stdin() -> io::Result<Vec<u8>> {
    let bytes = read_start(io::stdin().lock())?;
    // A mail server may report an error if the command does not read everything.
    io::copy(&mut io::stdin().lock(), &mut io::sink())?;
    Ok(bytes)
}

fn read_start(reader: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    reader.take(MAX_RETURNED_MAIL_BYTES as u64).read_to_end(&mut bytes)?;
    Ok(bytes)
}

impl Summary {
    /// Notes and prints what a mail led to.
    fn add(&mut self, name: &str, outcome: &BounceOutcome) {
        let mut mail = json!({ "mail": name, "result": "unchanged", "email": null, "status": null, "reason": null });
        let text = match outcome {
            BounceOutcome::Recorded(email, bounce) => {
                let (typed, code) = (email.as_typed(), bounce.code().as_str());
                mail["email"] = typed.into();
                mail["status"] = code.into();
                if bounce.suppresses() {
                    mail["result"] = "suppressed".into();
                    format!("{typed} has no mailbox ({code}), so it is suppressed")
                } else {
                    mail["result"] = "counted".into();
                    format!("the letter to {typed} did not arrive ({code}); counted")
                }
            }
            BounceOutcome::Unchanged(reason) => {
                mail["reason"] = json!(reason);
                format!("nothing was changed, because {reason}")
            }
        };
        self.mails.push(mail);
        eprint_line(&format!("{name}: {text}."));
    }

    fn count(&self, result: &str) -> u64 {
        self.mails.iter().filter(|mail| mail["result"] == result).count() as u64
    }

    fn print(&self, as_json: bool) {
        let Self { unhandled, mails } = self;
        let [suppressed, counted, unchanged] = ["suppressed", "counted", "unchanged"].map(|result| self.count(result));
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

// A Maildir: each mail is a file in `new` or `cur`.

/// What starts the flags at the end of a file name.
const FLAGS: &str = ":2,";
/// The flag of a mail that was read.
const SEEN: char = 'S';

/// Returns the files of all mails that were not read, oldest first as far as their names tell.
fn unread_mails(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut mails = Vec::new();
    for name in ["new", "cur"] {
        for entry in folder.join(name).read_dir()? {
            let entry = entry?;
            if is_unread(&entry.file_name()) && entry.file_type()?.is_file() {
                mails.push(entry.path());
            }
        }
    }
    mails.sort_by(|one, other| one.file_name().cmp(&other.file_name()));
    Ok(mails)
}

fn is_unread(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    !name.starts_with('.') && !name.split_once(FLAGS).is_some_and(|(_, flags)| flags.contains(SEEN))
}

/// Moves a mail to `cur` and marks it as read, as a mail client does. Nothing happens if another process did.
fn mark_as_read(folder: &Path, mail: &Path) -> io::Result<()> {
    let name = with_seen_flag(mail.file_name().unwrap_or_default());
    ignore_missing(std::fs::rename(mail, folder.join("cur").join(name)))
}

/// Flags are sorted.
fn with_seen_flag(name: &OsStr) -> OsString {
    let Some((unique, flags)) = name.to_str().and_then(|name| name.split_once(FLAGS)) else {
        let mut name = name.to_owned();
        name.push(format!("{FLAGS}{SEEN}"));
        return name;
    };
    let mut flags: Vec<char> = flags.chars().chain([SEEN]).collect();
    flags.sort_unstable();
    format!("{unique}{FLAGS}{}", flags.into_iter().collect::<String>()).into()
}

/// Nothing happens to a mail that another process moved or deleted.
fn ignore_missing(result: io::Result<()>) -> io::Result<()> {
    result.or_else(|error| if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mail_is_read_once_and_keeps_its_other_flags() {
        for (name, marked) in [
            ("1.M1P1.host", "1.M1P1.host:2,S"),
            ("1.M1P1.host:2,", "1.M1P1.host:2,S"),
            ("1.M1P1.host:2,FT", "1.M1P1.host:2,FST"),
        ] {
            assert!(is_unread(OsStr::new(name)), "{name}");
            assert_eq!(with_seen_flag(OsStr::new(name)), marked);
            assert!(!is_unread(OsStr::new(marked)), "{marked}");
        }
        assert!(!is_unread(OsStr::new(".hidden")));
    }
}
