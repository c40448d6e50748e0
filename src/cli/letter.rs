//! `porchlight letter`

mod preview;
mod send_loop;
mod view;

use std::path::{Path, PathBuf};

use clap::Subcommand;

use self::preview::{preview, test};
use self::send_loop::SendLoop;
use self::view::{counts, letter_json, short_counts};
use super::check::opt_in_sentences;
use super::terminal::{format_row, sanitize_line, terminal_width};
use super::{Access, CommandFailure, base_url, block_on, confirm, eprint_line, open_store, print_json, print_line};
use crate::actions::{LetterFailure, LetterSender};
use crate::clock::Clock;
use crate::config::{InvalidSettings, Settings};
use crate::domain::email::EmailAddress;
use crate::domain::letter::Letter;
use crate::domain::plural::quantity;
use crate::mail::{MailAddress, Mailer};
use crate::site::{Content, LetterTemplate};
use crate::store::StartedLetter;

#[derive(Debug, Subcommand)]
pub(super) enum LetterCommand {
    /// Write a preview of the letter next to the file; nothing is sent
    ///
    /// november.md becomes november.preview.html and november.preview.txt, as readers see it, and november.preview.eml, the
    /// complete mail with all headers, which mail programs open. No other file is written.
    #[command(before_help = "Example:\n  porchlight letter preview november.md")]
    Preview {
        /// Markdown file with the letter
        file: PathBuf,
    },
    /// Send a test copy to one address; nothing is recorded
    #[command(before_help = "Example:\n  porchlight letter test november.md --to me@troupe.example")]
    Test {
        /// Markdown file with the letter
        file: PathBuf,
        /// Address that gets the copy
        #[arg(long, value_name = "ADDRESS", value_parser = address)]
        to: EmailAddress,
    },
    /// Send the letter to everybody who opted in, at most one a month to each
    ///
    /// You can interrupt it at any time: the same command with the same file continues where it stopped.
    #[command(before_help = "Example:\n  porchlight letter send november.md")]
    Send {
        /// Markdown file with the letter
        file: PathBuf,
        /// Do not ask for confirmation
        #[arg(long)]
        yes: bool,
    },
    /// Show how many copies of a letter were sent
    #[command(before_help = "Example:\n  porchlight letter status --json")]
    Status {
        /// Markdown file with the letter [default: the latest letter]
        file: Option<PathBuf>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// List all letters, latest first
    #[command(before_help = "Example:\n  porchlight letter list")]
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

fn address(text: &str) -> Result<EmailAddress, String> {
    EmailAddress::parse(text).map_err(|error| error.to_string())
}

/// Why a `letter` command failed, in one sentence.
#[derive(Debug, thiserror::Error)]
pub(super) enum LetterCommandFailure {
    #[error("The letter in {0} cannot be sent: {1}.")]
    Letter(String, String),
    #[error("The preview cannot be written to {0}: {1}.")]
    Preview(String, std::io::Error),
    #[error("The test copy was not sent: {0}.")]
    Test(String),
    #[error("{0}. {1} Run the same command to continue.")]
    Stopped(String, String),
    #[error("No letter has been sent yet. `porchlight letter send --help` shows how.")]
    NoLetters,
    #[error("That letter has not been sent yet. `porchlight letter list` lists those that have.")]
    Unknown,
}

pub(super) fn run(command: LetterCommand, settings: &Settings) -> Result<(), CommandFailure> {
    block_on(async {
        match command {
            LetterCommand::Preview { file } => preview(settings, &file),
            LetterCommand::Test { file, to } => test(settings, &file, &to).await,
            LetterCommand::Send { file, yes } => send(settings, &file, yes).await,
            LetterCommand::Status { file, json } => status(settings, file.as_deref(), json).await,
            LetterCommand::List { json } => list(settings, json).await,
        }
    })
}

fn read(file: &Path) -> Result<Letter, LetterCommandFailure> {
    let unusable = |error: String| LetterCommandFailure::Letter(file.display().to_string(), error);
    let text = std::fs::read_to_string(file).map_err(|error| unusable(error.to_string()))?;
    Letter::parse(&text).map_err(|error| unusable(error.to_string()))
}

fn letter_template(settings: &Settings, postal_address: &str) -> Result<LetterTemplate, CommandFailure> {
    let content = Content::from_settings(settings)?;
    Ok(LetterTemplate::read(&content, base_url(settings), postal_address)?)
}

/// Returns what all copies of a letter that is sent are made with, and the address of the makers.
fn mailer_and_template(settings: &Settings) -> Result<(Mailer, LetterTemplate, MailAddress), CommandFailure> {
    let missing = |name, reason: &str| InvalidSettings::new(name, reason);
    let postal_address = settings
        .postal_address
        .as_deref()
        .ok_or_else(|| missing("postal_address", "it is not set, and every letter must include it"))?;
    let mail = settings.mail.as_ref().ok_or_else(|| missing("smtp_url", "it is not set, and letters need it"))?;
    let contact_to =
        MailAddress::from_mailbox(&mail.contact_to).map_err(|why| InvalidSettings::new("contact_to", why))?;
    Ok((Mailer::from_settings(mail)?, letter_template(settings, postal_address)?, contact_to))
}

/// Refuses a `base_url` whose unsubscribe links would not work for the recipients.
fn require_public_base_url(settings: &Settings) -> Result<(), InvalidSettings> {
    let base_url = base_url(settings);
    let problem = match (base_url.is_loopback(), base_url.is_https()) {
        (true, _) => "leads to this machine",
        (false, false) => "is not https",
        (false, true) => return Ok(()),
    };
    Err(InvalidSettings::new(
        "base_url",
        format!(
            "{base_url} {problem}, and the unsubscribe links of the letter start with it; set the public https URL"
        ),
    ))
}

async fn send(settings: &Settings, file: &Path, yes: bool) -> Result<(), CommandFailure> {
    let letter = read(file)?;
    require_public_base_url(settings)?;
    let id = letter.id;
    let store = open_store(settings, Access::Create).await?;
    let (mailer, letter_template, contact_to) = mailer_and_template(settings)?;
    let (base_url, clock) = (base_url(settings), Clock::System);
    let mut sender = LetterSender::new(store.clone(), mailer, letter_template, base_url, letter, contact_to, clock);
    let started = store.letter(&id).await?;
    let remaining = match &started {
        Some(letter) => letter.counts.waiting,
        None => store.count_recipients().await?,
    };
    if started.is_none() && remaining == 0 {
        eprint_line("Nobody has opted in to the monthly letter yet, so nothing was sent.");
        return Ok(());
    }
    if let Some(letter) = started.as_ref().filter(|letter| letter.counts.waiting == 0) {
        eprint_line(&format!("This letter has already been sent. {}", counts(letter)));
        return Ok(());
    }
    for sentence in opt_in_sentences(store.opt_in_counts().await?, settings.confirm_updates) {
        eprint_line(&sentence);
    }
    let people = quantity(remaining, "person", "people");
    if !confirm(&format!("Send “{}” to {people}?", sender.letter.subject), yes)? {
        eprint_line("Nothing was sent.");
        return Ok(());
    }
    sender.start().await.map_err(|failure| stopped(&failure, started.as_ref()))?;
    let result = SendLoop::new(settings.letter_rate, remaining)?.run(&mut sender).await;
    sender.close().await;
    if result.is_err() {
        sender.stop().await.map_err(|failure| stopped(&failure, started.as_ref()))?;
    }
    let letter = store.letter(&id).await?;
    if let Some(letter) = &letter {
        eprint_line(&counts(letter));
    }
    result.map_err(|reason| LetterCommandFailure::Stopped(sanitize_line(&reason), waiting(letter.as_ref())).into())
}

fn stopped(failure: &LetterFailure, letter: Option<&StartedLetter>) -> LetterCommandFailure {
    LetterCommandFailure::Stopped(failure.to_string(), waiting(letter))
}

fn waiting(letter: Option<&StartedLetter>) -> String {
    quantity(
        letter.map_or(0, |letter| letter.counts.waiting),
        "recipient has not been sent to yet.",
        "recipients have not been sent to yet.",
    )
}

async fn status(settings: &Settings, file: Option<&Path>, as_json: bool) -> Result<(), CommandFailure> {
    let id = file.map(|file| read(file).map(|letter| letter.id)).transpose()?;
    let store = open_store(settings, Access::Read).await?;
    let (letter, missing) = match &id {
        Some(id) => (store.letter(id).await, LetterCommandFailure::Unknown),
        None => (store.latest_letter().await, LetterCommandFailure::NoLetters),
    };
    store.close().await;
    let letter = letter?.ok_or(missing)?;
    if as_json {
        print_json(&letter_json(&letter));
    } else {
        print_line(&counts(&letter));
    }
    Ok(())
}

async fn list(settings: &Settings, as_json: bool) -> Result<(), CommandFailure> {
    let store = open_store(settings, Access::Read).await?;
    let letters = store.letters().await;
    store.close().await;
    let letters = letters?;
    if as_json {
        print_json(&letters.iter().map(letter_json).collect());
        return Ok(());
    }
    if letters.is_empty() {
        eprint_line(&LetterCommandFailure::NoLetters.to_string());
    }
    let summary = |letter: &StartedLetter| short_counts(&letter.counts);
    let width = letters.iter().map(|letter| summary(letter).len()).max().unwrap_or_default();
    for letter in &letters {
        let cells = [(letter.started_at.date(), 10), (summary(letter), width)];
        print_line(&format_row(&cells, &sanitize_line(&letter.subject), terminal_width()));
    }
    Ok(())
}
