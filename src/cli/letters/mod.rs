//! `porchlight letter`

mod archive;
mod bounces;
mod copies;
mod letter_file;
mod recipients;
mod send;

use std::path::{Path, PathBuf};

use clap::Subcommand;
use serde_json::json;

use super::failure::Failure;
use super::run::{Access, block_on, with_store};
use super::terminal::{ListPrinter, format_row, print_record, sanitize_line, terminal_width};
use crate::config::Settings;
use crate::domain::letters::{LetterCounts, LetterReference};
use crate::domain::mail::EmailAddress;
use crate::domain::text::quantity;
use crate::store::{StartedLetter, Store};
use archive::archive;
use copies::{preview, test};
use letter_file::read;
use recipients::RecipientsArguments;
use send::{SendArguments, send};

pub(super) use bounces::{BounceArguments, EXAMPLES as BOUNCE_EXAMPLES, run as run_bounce};

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
        #[arg(long, value_name = "ADDRESS", value_parser = EmailAddress::parse)]
        to: EmailAddress,
    },
    /// Send the letter to everybody who opted in, at most one a month to each
    ///
    /// The letter and its images are stored in the database, and sent from there. You can interrupt it at any time: the same
    /// command with the same file, or without one, continues where it stopped, on any machine.
    #[command(before_help = "Examples:\n  porchlight letter send november.md\n  porchlight letter send --go-on")]
    Send(SendArguments),
    /// Show how many copies of a letter were sent
    #[command(before_help = "Example:\n  porchlight letter status --json")]
    Status {
        /// Markdown file with the letter [default: the latest letter]
        file: Option<PathBuf>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// List the recipients of a letter, by address
    #[command(before_help = "Examples:\n  porchlight letter recipients 9f86d081 --state refused\n  \
        porchlight letter recipients 9f86d081 --csv > november.csv")]
    Recipients(RecipientsArguments),
    /// Let a letter that was sent be read on the site, or take it out
    ///
    /// With the setting `letters_archive`, that is so for each letter whose sending begins. This is for the others.
    #[command(
        before_help = "Examples:\n  porchlight letter archive 9f86d081\n  porchlight letter archive 9f86d081 --remove"
    )]
    Archive {
        /// Id of the letter, or its beginning, as `letter list` shows it
        #[arg(value_parser = LetterReference::parse)]
        letter: LetterReference,
        /// Take it out
        #[arg(long)]
        remove: bool,
    },
    /// List all letters, latest first
    #[command(before_help = "Example:\n  porchlight letter list")]
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

/// How much of a letter's id is shown.
const SHORT_ID_CHARS: usize = 8;

const NO_LETTERS: &str = "No letter has been sent yet. `porchlight letter send --help` shows how.";

pub(super) fn run(command: LetterCommand, settings: &Settings) -> Result<(), Failure> {
    match command {
        LetterCommand::Preview { file } => preview(settings, &file),
        LetterCommand::Test { file, to } => block_on(test(settings, &file, &to)),
        LetterCommand::Send(arguments) => block_on(send(settings, arguments)),
        LetterCommand::Status { file, json } => status(settings, file.as_deref(), json),
        LetterCommand::Recipients(arguments) => {
            with_store(settings, Access::Read, async |store| arguments.run(store).await)
        }
        LetterCommand::Archive { letter, remove } => {
            with_store(settings, Access::Write, async |store| archive(settings, store, &letter, remove).await)
        }
        LetterCommand::List { json } => list(settings, json),
    }
}

fn status(settings: &Settings, file: Option<&Path>, as_json: bool) -> Result<(), Failure> {
    let id = file.map(|file| read(file).map(|letter| letter.id)).transpose()?;
    with_store(settings, Access::Read, async |store| {
        let (letter, missing) = match &id {
            Some(id) => (
                store.letter(id).await?,
                "That letter has not been sent yet. `porchlight letter list` lists those that have.",
            ),
            None => (store.latest_letter().await?, NO_LETTERS),
        };
        let letter = letter.ok_or_else(|| Failure::new(missing))?;
        print_record(as_json, &json!(letter), &outcome(store, &letter).await?);
        Ok(())
    })
}

fn list(settings: &Settings, as_json: bool) -> Result<(), Failure> {
    with_store(settings, Access::Read, async |store| {
        let letters = store.letters().await?;
        let summary =
            |letter: &StartedLetter| short_counts(&letter.counts) + if letter.archived { ", archived" } else { "" };
        let width = letters.iter().map(|letter| summary(letter).len()).max().unwrap_or_default();
        let mut list = ListPrinter::new(as_json, None);
        for letter in &letters {
            let reference = letter.id.chars().take(SHORT_ID_CHARS).collect();
            let cells = [(reference, SHORT_ID_CHARS), (letter.started_at.date(), 10), (summary(letter), width)];
            list.push(&json!(letter), &format_row(&cells, &sanitize_line(&letter.subject), terminal_width()));
        }
        list.finish(NO_LETTERS);
        Ok(())
    })
}

/// The counts, and why recipients were skipped.
async fn outcome(store: &Store, letter: &StartedLetter) -> Result<String, Failure> {
    if letter.counts.skipped == 0 {
        return Ok(counts(letter));
    }
    let reasons = store.skip_reasons(&letter.id).await?;
    let reasons: Vec<_> = reasons.into_iter().map(|(reason, people)| format!("{reason} ({people})")).collect();
    Ok(format!("{}\nSkipped: {}.", counts(letter), reasons.join(", ")))
}

fn counts(letter: &StartedLetter) -> String {
    let counts = &letter.counts;
    let bounced = if counts.bounced > 0 { format!("; {} bounced", counts.bounced) } else { String::new() };
    let archived = if letter.archived { "; archived" } else { "" };
    format!(
        "“{}”: {}, {} sent, {} waiting, {} uncertain, {} refused, {} skipped{bounced}{archived}",
        sanitize_line(&letter.subject),
        quantity(counts.recipients, "recipient", "recipients"),
        counts.sent,
        counts.waiting,
        counts.uncertain,
        counts.refused,
        counts.skipped
    )
}

/// Formats the number of copies sent, and the other counts that are not zero.
fn short_counts(counts: &LetterCounts) -> String {
    let others = [
        (counts.waiting, "waiting"),
        (counts.uncertain, "uncertain"),
        (counts.refused, "refused"),
        (counts.skipped, "skipped"),
        (counts.bounced, "bounced"),
    ];
    let sent = format!("{} of {} sent", counts.sent, counts.recipients);
    let others = others.iter().filter(|(count, _)| *count > 0).map(|(count, state)| format!("{count} {state}"));
    std::iter::once(sent).chain(others).collect::<Vec<_>>().join(", ")
}
