//! `porchlight letter`

mod sending;

use std::path::{Path, PathBuf};

use clap::Subcommand;
use serde_json::{Value, json};

use self::sending::Sending;
use super::terminal::{row, visible_line, width};
use super::{Access, CommandFailure, at_work, base_url, confirm, open_store, say, say_json, tell};
use crate::actions::{LetterFailure, LetterSender};
use crate::clock::Clock;
use crate::config::{InvalidSettings, Settings};
use crate::domain::email::EmailAddress;
use crate::domain::letter::{Letter, LetterCounts};
use crate::domain::plural::quantity;
use crate::mail::Mailer;
use crate::site::{Content, LetterRecipient, LetterTemplate};
use crate::store::{Database, StartedLetter, Store};

#[derive(Debug, Subcommand)]
pub(super) enum LetterCommand {
    /// Write the letter as it will arrive beside the file; nothing is sent
    ///
    /// november.md becomes november.preview.html and november.preview.txt. No other file is written to.
    #[command(before_help = "Example:\n  porchlight letter preview november.md")]
    Preview { file: PathBuf },
    /// Send the letter to one address, to see it arrive; nobody else gets it, and nothing is noted
    #[command(before_help = "Example:\n  porchlight letter test november.md --to me@troupe.example")]
    Test {
        file: PathBuf,
        /// Where to
        #[arg(long, value_name = "ADDRESS", value_parser = address)]
        to: EmailAddress,
    },
    /// Send the letter to everybody who asked for it, at most once a month each
    ///
    /// Stop it whenever you like: the same command with the same file goes on where it was.
    #[command(before_help = "Example:\n  porchlight letter send november.md")]
    Send {
        file: PathBuf,
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
    /// Say how a letter goes: the one in the file, or the latest
    #[command(before_help = "Example:\n  porchlight letter status --json")]
    Status {
        file: Option<PathBuf>,
        /// As JSON, for programs
        #[arg(long)]
        json: bool,
    },
    /// List the letters, the latest first
    #[command(before_help = "Example:\n  porchlight letter list")]
    List {
        /// As JSON, for programs
        #[arg(long)]
        json: bool,
    },
}

fn address(text: &str) -> Result<EmailAddress, String> {
    EmailAddress::parse(text).map_err(|why| why.to_string())
}

/// What a command about letters could not do, in one sentence.
#[derive(Debug, thiserror::Error)]
pub(super) enum LetterCommandFailure {
    #[error("The letter in {0} cannot be sent: {1}.")]
    Letter(String, String),
    #[error("The preview cannot be written to {0}: {1}.")]
    Preview(String, std::io::Error),
    #[error("The test was not sent: {0}.")]
    Test(String),
    #[error("{0}. {1} The same command goes on with those who wait.")]
    Stopped(String, String),
    #[error("No letter has been sent yet. `porchlight letter send --help` shows how.")]
    None,
    #[error("That letter has not been sent yet. `porchlight letter list` shows what there is.")]
    Unknown,
}

pub(super) fn run(command: LetterCommand, settings: &Settings) -> Result<(), CommandFailure> {
    at_work(async {
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
    let unusable = |why: String| LetterCommandFailure::Letter(file.display().to_string(), why);
    let text = std::fs::read_to_string(file).map_err(|error| unusable(error.to_string()))?;
    Letter::parse(&text).map_err(|why| unusable(why.to_string()))
}

fn letter_template(settings: &Settings, postal_address: &str) -> Result<LetterTemplate, CommandFailure> {
    let content = Content::from_settings(settings)?;
    Ok(LetterTemplate::read(&content, base_url(settings), postal_address)?)
}

/// Somebody who looks at a letter before others get it.
fn proofreader(settings: &Settings) -> LetterRecipient {
    LetterRecipient {
        opted_in: Clock::System.now().date(),
        through: "a look at it before it goes out".to_owned(),
        unsubscribe_url: base_url(settings).to("/unsubscribe/nobody"),
    }
}

fn preview(settings: &Settings, file: &Path) -> Result<(), CommandFailure> {
    let letter = read(file)?;
    let postal_address = settings.postal_address.as_deref().unwrap_or("(The setting `postal_address` goes here.)");
    let written = letter_template(settings, postal_address)?.render(&letter, &proofreader(settings))?;
    tell(&format!("Subject: {}", letter.subject));
    for (kind, text) in [("preview.html", written.html), ("preview.txt", written.text)] {
        let path = file.with_extension(kind);
        std::fs::write(&path, text)
            .map_err(|error| LetterCommandFailure::Preview(path.display().to_string(), error))?;
        say(&path.display().to_string());
    }
    Ok(())
}

fn sender(settings: &Settings, store: Store, letter: Letter) -> Result<LetterSender, CommandFailure> {
    let missing = |name, why: &str| InvalidSettings::of(name, why);
    let postal_address = settings
        .postal_address
        .as_deref()
        .ok_or_else(|| missing("postal_address", "it is missing, and every letter has to name it"))?;
    let mail = settings.mail.as_ref().ok_or_else(|| missing("smtp_url", "it is missing, and letters go by mail"))?;
    let mailer = Mailer::new(mail.relay.clone(), &mail.from).map_err(|why| InvalidSettings::of("mail_from", why))?;
    let letter_template = letter_template(settings, postal_address)?;
    Ok(LetterSender::new(store, mailer, letter_template, base_url(settings), letter, Clock::System))
}

async fn test(settings: &Settings, file: &Path, to: &EmailAddress) -> Result<(), CommandFailure> {
    let mut letter = read(file)?;
    letter.subject = format!("[Test] {}", letter.subject);
    let store = Store::open_existing(&Database::of(settings)?)?;
    let sender = sender(settings, store, letter)?;
    let not_sent = |why: String| LetterCommandFailure::Test(why);
    let mail = sender.copy_for(to, &proofreader(settings), Clock::System.now())?;
    let mail = mail.ok_or_else(|| not_sent("no mail server would take this address".to_owned()))?;
    let mut connection = sender.mailer.connect().await.map_err(|trouble| not_sent(trouble.in_full().to_owned()))?;
    connection.send(&mail).await.map_err(|trouble| not_sent(trouble.in_full().to_owned()))?;
    connection.close().await;
    tell(&format!("The letter is on its way to {}. Nobody else got it.", to.as_typed()));
    Ok(())
}

async fn send(settings: &Settings, file: &Path, yes: bool) -> Result<(), CommandFailure> {
    let letter = read(file)?;
    let id = letter.id.hex();
    let store = open_store(settings, Access::Begin).await?;
    let mut sender = sender(settings, store.clone(), letter)?;
    let started = find(&store, &id).await?;
    let to = if started.is_some() { Vec::new() } else { store.recipients().await? };
    if started.is_none() && to.is_empty() {
        tell("Nobody has asked for the monthly email yet, so nothing was sent.");
        return Ok(());
    }
    if let Some(letter) = started.as_ref().filter(|letter| letter.counts.waiting == 0) {
        tell(&format!("Nobody is left to send it to. {}", counts(letter)));
        return Ok(());
    }
    let left = started.as_ref().map_or(to.len() as u64, |letter| letter.counts.waiting);
    let people = quantity(left, "person", "people");
    if !confirm(&format!("Send “{}” to {people}?", sender.letter.subject), yes)? {
        tell("Nothing was sent.");
        return Ok(());
    }
    sender.start(&to).await.map_err(|failure| stopped(&failure, started.as_ref()))?;
    let outcome = Sending::new(settings.letter_rate, left)?.run(&mut sender).await;
    sender.close().await;
    let now = find(&store, &id).await?;
    if let Some(letter) = &now {
        tell(&counts(letter));
    }
    outcome.map_err(|why| LetterCommandFailure::Stopped(why, waiting(now.as_ref())).into())
}

fn stopped(failure: &LetterFailure, letter: Option<&StartedLetter>) -> LetterCommandFailure {
    LetterCommandFailure::Stopped(failure.to_string(), waiting(letter))
}

fn waiting(letter: Option<&StartedLetter>) -> String {
    quantity(letter.map_or(0, |letter| letter.counts.waiting), "waits.", "wait.")
}

async fn find(store: &Store, id: &str) -> Result<Option<StartedLetter>, CommandFailure> {
    Ok(store.letters().await?.into_iter().find(|letter| letter.id == id))
}

async fn letters(settings: &Settings) -> Result<Vec<StartedLetter>, CommandFailure> {
    let store = open_store(settings, Access::Read).await?;
    let letters = store.letters().await;
    store.close().await;
    Ok(letters?)
}

async fn status(settings: &Settings, file: Option<&Path>, as_json: bool) -> Result<(), CommandFailure> {
    let id = file.map(|file| read(file).map(|letter| letter.id.hex())).transpose()?;
    let letters = letters(settings).await?;
    let letter = match &id {
        Some(id) => letters.iter().find(|letter| letter.id == *id).ok_or(LetterCommandFailure::Unknown)?,
        None => letters.first().ok_or(LetterCommandFailure::None)?,
    };
    if as_json {
        say_json(&described(letter));
    } else {
        say(&counts(letter));
    }
    Ok(())
}

async fn list(settings: &Settings, as_json: bool) -> Result<(), CommandFailure> {
    let letters = letters(settings).await?;
    if as_json {
        say_json(&letters.iter().map(described).collect());
        return Ok(());
    }
    if letters.is_empty() {
        tell(&LetterCommandFailure::None.to_string());
    }
    let short = |letter: &StartedLetter| in_short(&letter.counts);
    let widest = letters.iter().map(|letter| short(letter).len()).max().unwrap_or_default();
    for letter in &letters {
        let cells = [(letter.started_at.date(), 10), (short(letter), widest)];
        say(&row(&cells, &visible_line(&letter.subject), width()));
    }
    Ok(())
}

fn counts(letter: &StartedLetter) -> String {
    let counts = &letter.counts;
    format!(
        "“{}”: {}, {} sent, {} waiting, {} uncertain, {} refused, {} skipped",
        visible_line(&letter.subject),
        quantity(counts.recipients, "recipient", "recipients"),
        counts.sent,
        counts.waiting,
        counts.uncertain,
        counts.refused,
        counts.skipped
    )
}

/// How many were sent, and what else became of any.
fn in_short(counts: &LetterCounts) -> String {
    let others = [
        (counts.waiting, "waiting"),
        (counts.uncertain, "uncertain"),
        (counts.refused, "refused"),
        (counts.skipped, "skipped"),
    ];
    let sent = format!("{} of {} sent", counts.sent, counts.recipients);
    let others = others.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}"));
    std::iter::once(sent).chain(others).collect::<Vec<_>>().join(", ")
}

fn described(letter: &StartedLetter) -> Value {
    let counts = &letter.counts;
    json!({
        "id": letter.id,
        "subject": letter.subject,
        "started": letter.started_at.rfc3339(),
        "recipients": counts.recipients,
        "sent": counts.sent,
        "waiting": counts.waiting,
        "uncertain": counts.uncertain,
        "refused": counts.refused,
        "skipped": counts.skipped,
    })
}
