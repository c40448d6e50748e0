//! `porchlight inbox`

use std::io::Write;

use clap::{ArgGroup, Args, Subcommand};
use uuid::Uuid;

use super::people::show::message;
use super::{Access, CommandFailure, at_work, open_store, say, tell};
use crate::clock::Clock;
use crate::config::Settings;
use crate::domain::contact::reference;
use crate::domain::text::SenderName;
use crate::store::{InboxEntry, Progress, Store, Which};

#[derive(Debug, Subcommand)]
pub(super) enum InboxCommand {
    /// List the messages people wrote to you, mailed or not, the oldest first
    #[command(before_help = "Example:\n  porchlight inbox list --failed")]
    List(Listing),
    /// Show one message, whole
    #[command(before_help = "Example:\n  porchlight inbox show 5f2c9a01")]
    Show {
        /// The reference of the message, or its whole id
        #[arg(value_parser = id)]
        id: String,
        /// As JSON, for programs
        #[arg(long)]
        json: bool,
    },
    /// Have messages mailed now that wait or were given up on
    #[command(before_help = "Example:\n  porchlight inbox retry --all")]
    #[command(group(ArgGroup::new("which").required(true).args(["id", "all"])))]
    Retry {
        /// The reference of the message, or its whole id
        #[arg(value_parser = id)]
        id: Option<String>,
        /// All that wait or were given up on
        #[arg(long)]
        all: bool,
    },
}

#[derive(Args, Debug)]
pub(super) struct Listing {
    /// As JSON, for programs
    #[arg(long)]
    json: bool,
    /// Only those on their way to your mailbox
    #[arg(long, conflicts_with = "failed")]
    waiting: bool,
    /// Only those that were given up on
    #[arg(long)]
    failed: bool,
    /// So many at most
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
}

/// A whole id, or what it ends in.
fn id(text: &str) -> Result<String, String> {
    let is_part = |byte: u8| byte.is_ascii_hexdigit() || byte == b'-';
    if !(8..=36).contains(&text.len()) || !text.bytes().all(is_part) {
        return Err("it is no reference such as 5f2c9a01".to_owned());
    }
    Ok(Uuid::parse_str(text).map_or_else(|_| text.to_lowercase(), |id| id.to_string()))
}

/// What a command about messages could not do, in one sentence.
#[derive(Debug, thiserror::Error)]
pub(super) enum InboxFailure {
    #[error("There is no message {0}. `porchlight inbox list` shows what there is.")]
    Unknown(String),
    #[error("More than one message is called {0}. `porchlight inbox list --json` shows their whole ids.")]
    Ambiguous(String),
    #[error("Message {0} was mailed on {1}. `porchlight inbox show {0}` shows it.")]
    Sent(String, String),
}

impl InboxCommand {
    const fn access(&self) -> Access {
        match self {
            Self::List(_) | Self::Show { .. } => Access::Read,
            Self::Retry { .. } => Access::Amend,
        }
    }
}

pub(super) fn run(command: InboxCommand, settings: &Settings) -> Result<(), CommandFailure> {
    at_work(async {
        let store = open_store(settings, command.access()).await?;
        let done = match command {
            InboxCommand::List(listing) => listing.run(&store).await,
            InboxCommand::Show { id, json } => show(&store, &id, json).await,
            InboxCommand::Retry { id, .. } => retry(&store, settings, id.as_deref()).await,
        };
        store.close().await;
        done
    })
}

/// So many are asked for at once.
const PAGE: usize = 200;

impl Listing {
    async fn run(self, store: &Store) -> Result<(), CommandFailure> {
        let which = match (self.waiting, self.failed) {
            (true, _) => Which::Waiting,
            (_, true) => Which::Failed,
            _ => Which::All,
        };
        let limit = self.limit.unwrap_or(usize::MAX);
        let width = width();
        let mut out = std::io::stdout().lock();
        let (mut listed, mut last) = (0, None);
        while listed < limit {
            let page = store.inbox_page(which, last, PAGE.min(limit - listed)).await?;
            let Some(entry) = page.last() else { break };
            last = Some(entry.received.id);
            for entry in &page {
                let line = match (self.json, listed) {
                    (true, 0) => format!("[\n  {}", message(entry)),
                    (true, _) => format!(",\n  {}", message(entry)),
                    (false, _) => format!("{}\n", cut(&line(entry), width)),
                };
                if out.write_all(line.as_bytes()).is_err() {
                    return Ok(());
                }
                listed += 1;
            }
        }
        let _ = match (self.json, listed) {
            (true, 0) => writeln!(out, "[]"),
            (true, _) => writeln!(out, "\n]"),
            (false, _) => Ok(()),
        };
        if listed == 0 {
            tell("No message is there.");
        }
        Ok(())
    }
}

fn line(entry: &InboxEntry) -> String {
    let received = &entry.received;
    let words: String = received.message.message.as_str().split_whitespace().collect::<Vec<_>>().join(" ");
    format!(
        "{}  {}  {:<7}  {}  {}",
        reference(received.id),
        received.at.date(),
        entry.progress.as_str(),
        received.message.email.as_typed(),
        printable(&words)
    )
}

async fn show(store: &Store, id: &str, as_json: bool) -> Result<(), CommandFailure> {
    let entry = find(store, id).await?;
    if as_json {
        say(&format!("{:#}", message(&entry)));
        return Ok(());
    }
    let received = &entry.received;
    let name = received.message.name.as_ref().map(SenderName::as_str).unwrap_or_default();
    let progress = match (entry.progress, entry.tries) {
        (Progress::Sent, _) => format!("mailed on {}", entry.at.rfc3339()),
        (Progress::Failed, tries) => format!("given up on {} after {tries} tries", entry.at.rfc3339()),
        (Progress::Leased, _) => "being mailed now".to_owned(),
        (Progress::Waiting, 0) => "waits to be mailed".to_owned(),
        (Progress::Waiting, tries) => format!("tried {tries} times, next after {}", entry.at.rfc3339()),
    };
    say(&format!("reference  {}", reference(received.id)));
    say(&format!("from       {}", printable(format!("{name} <{}>", received.message.email.as_typed()).trim_start())));
    say(&format!("received   {}", received.at.rfc3339()));
    say(&format!("mail       {progress}"));
    if let Some(trouble) = &entry.trouble {
        say(&format!("trouble    {}", printable(trouble)));
    }
    say(&format!("\n{}", printable(received.message.message.as_str())));
    Ok(())
}

async fn retry(store: &Store, settings: &Settings, id: Option<&str>) -> Result<(), CommandFailure> {
    let only = match id {
        None => None,
        Some(id) => {
            let entry = find(store, id).await?;
            if entry.progress == Progress::Sent {
                return Err(InboxFailure::Sent(reference(entry.received.id), entry.at.date()).into());
            }
            Some(entry.received.id)
        }
    };
    let count = store.retry_messages(only, Clock::System.now()).await?;
    tell(&match (count, only) {
        (0, None) => "No message had to wait.".to_owned(),
        (0, Some(_)) => "It is on its way already.".to_owned(),
        (1, _) => "1 message goes within half a minute.".to_owned(),
        (count, _) => format!("{count} messages go within half a minute."),
    });
    if settings.mail.is_none() {
        tell("No mail server is set up here (`smtp_url`): it has to be where the service runs.");
    }
    Ok(())
}

async fn find(store: &Store, id: &str) -> Result<InboxEntry, CommandFailure> {
    let mut found = store.messages_named(id).await?;
    match (found.pop(), found.is_empty()) {
        (Some(entry), true) => Ok(entry),
        (Some(_), false) => Err(InboxFailure::Ambiguous(id.to_owned()).into()),
        (None, _) => Err(InboxFailure::Unknown(id.to_owned()).into()),
    }
}

/// Without what would steer the terminal instead of being shown on it.
fn printable(text: &str) -> String {
    let shown = |c: char| if c.is_control() && !['\n', '\t'].contains(&c) { char::REPLACEMENT_CHARACTER } else { c };
    text.chars().map(shown).collect()
}

/// How wide the terminal is, if data goes to one.
fn width() -> Option<usize> {
    let terminal = console::Term::stdout();
    terminal.features().is_attended().then(|| usize::from(terminal.size().1))
}

fn cut(line: &str, width: Option<usize>) -> String {
    width.map_or_else(|| line.to_owned(), |width| console::truncate_str(line, width, "…").into_owned())
}
