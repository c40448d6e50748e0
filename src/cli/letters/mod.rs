//! `porchlight letter`

mod archive;
mod bounces;
mod copies;
mod letter_file;
mod recipients;
mod send_loop;

use std::path::{Path, PathBuf};

use clap::Subcommand;
use serde_json::json;

use super::activity::record;
use super::failure::Failure;
use super::run::{Access, block_on, open_store, with_store};
use super::terminal::{ListPrinter, confirm, eprint_line, format_row, print_record, sanitize_line, terminal_width};
use crate::actions::{LetterSender, opt_in_sentences};
use crate::clock::Clock;
use crate::config::Settings;
use crate::domain::desk::Change;
use crate::domain::letters::{Letter, LetterCounts, LetterForecast, LetterReference, letter_path};
use crate::domain::mail::EmailAddress;
use crate::domain::sha256::Sha256;
use crate::domain::text::quantity;
use crate::store::{StartedLetter, Store};
use archive::archive;
use copies::{check_size, mailer_and_templates, preview, test};
use letter_file::read;
use recipients::RecipientsArguments;
use send_loop::SendLoop;

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
    #[command(before_help = "Example:\n  porchlight letter send november.md")]
    Send {
        /// Markdown file with the letter [default: the letter that was started last, as it is stored]
        file: Option<PathBuf>,
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
        LetterCommand::Send { file, yes } => block_on(send(settings, file.as_deref(), yes)),
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

async fn send(settings: &Settings, file: Option<&Path>, yes: bool) -> Result<(), Failure> {
    let letter = file.map(read).transpose()?;
    LetterSender::check_base_url(&settings.public_url())?;
    let store = open_store(settings, Access::Create).await?;
    let letter = match letter {
        Some(letter) => letter,
        None => latest(&store).await?,
    };
    let id = letter.id;
    let (mailer, templates, contact_to) = mailer_and_templates(settings)?;
    check_size(settings, &templates, &letter)?;
    let (base_url, clock) = (settings.public_url(), Clock::System);
    let mut sender = LetterSender::new(store.clone(), mailer, templates, base_url, letter, contact_to, clock);
    sender.is_archived = settings.letters_archive;
    let started = store.letter(&id).await?;
    if let Some(letter) = started.as_ref().filter(|letter| letter.counts.waiting == 0) {
        eprint_line(&format!("This letter has already been sent. {}", counts(letter)));
        return Ok(());
    }
    for sentence in opt_in_sentences(store.opt_in_counts().await?, settings.confirm_updates) {
        eprint_line(&sentence);
    }
    let forecast = store.letter_forecast(started.as_ref().map(|_| &id), Clock::System.now()).await?;
    let was_sent = started.as_ref().is_some_and(|letter| letter.counts.sent + letter.counts.uncertain > 0);
    match forecast {
        // Those who wait must not get it any more. Sending notes that, and asks nobody.
        LetterForecast { recipients: 0, .. } if was_sent => {}
        LetterForecast { recipients: 0, .. } => return Err(nobody_gets_it(&forecast)),
        LetterForecast { recipients, .. } => {
            if forecast.others() > 0 {
                let others = quantity(forecast.others(), "person does not get it", "people do not get it");
                eprint_line(&format!("{others}: {}.", forecast.reasons()));
            }
            if settings.letters_archive && started.as_ref().is_none_or(|letter| letter.archived) {
                let page = letter_path(&id, &sender.letter.subject);
                eprint_line(&format!("Everybody can read it at {} (`letters_archive`).", sender.base_url.to(&page)));
            }
            let people = quantity(recipients, "person", "people");
            confirm(&format!("Send “{}” to {people}?", sender.letter.subject), yes, "Nothing was sent.")?;
        }
    }
    let remaining = started.as_ref().map_or(forecast.recipients + forecast.others(), |letter| letter.counts.waiting);
    sender.start().await.map_err(|failure| stopped(&failure.to_string(), started.as_ref()))?;
    // If nobody gets it any more, sending only notes that.
    if forecast.recipients > 0 {
        let change = if started.is_some() { Change::ContinuedLetter } else { Change::StartedLetter };
        record(&store, change(sender.letter.subject.clone())).await;
    }
    let result = SendLoop::new(settings.letter_rate, remaining)?.run(&mut sender).await;
    sender.close().await;
    if result.is_err() {
        sender.stop().await.map_err(|failure| stopped(&failure.to_string(), started.as_ref()))?;
    }
    let letter = store.letter(&id).await?;
    if let Some(letter) = &letter {
        eprint_line(&outcome(&store, letter).await?);
    }
    result.map_err(|reason| stopped(&sanitize_line(&reason), letter.as_ref()))
}

/// The letter that was started last, as it is stored.
async fn latest(store: &Store) -> Result<Letter, Failure> {
    let latest = store.latest_letter().await?.and_then(|letter| Sha256::from_hex(&letter.id));
    let id = latest.ok_or_else(|| Failure::new(NO_LETTERS))?;
    store.stored_letter(&id).await?.ok_or_else(|| Failure::new(NO_LETTERS))
}

fn nobody_gets_it(forecast: &LetterForecast) -> Failure {
    if forecast.others() == 0 {
        return Failure::new("Nobody has opted in to the monthly letter yet, so nothing was sent.");
    }
    let wait = if forecast.had_letter > 0 {
        " The next letter can go out next month; what cannot wait can stand on the site as `notice` in site.toml."
    } else {
        ""
    };
    Failure::new(format!("Nobody would get this letter, so nothing was sent: {}.{wait}", forecast.reasons()))
}

fn stopped(reason: &str, letter: Option<&StartedLetter>) -> Failure {
    let waiting = quantity(
        letter.map_or(0, |letter| letter.counts.waiting),
        "recipient has not been sent to yet.",
        "recipients have not been sent to yet.",
    );
    Failure::new(format!("{reason}. {waiting} Run the same command to continue."))
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
