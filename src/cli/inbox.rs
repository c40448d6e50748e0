//! `porchlight inbox`

use clap::{ArgGroup, Args, Subcommand};
use uuid::Uuid;

use super::people::show::{message, sender};
use super::terminal::{List, row, visible, visible_line, width};
use super::{Access, CommandFailure, at_work, open_store, say, say_json, tell};
use crate::clock::Clock;
use crate::config::Settings;
use crate::domain::contact::reference;
use crate::domain::plural::quantity;
use crate::store::{DeliveryState, InboxEntry, InboxFilter, Store};

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
            (true, _) => InboxFilter::Waiting,
            (_, true) => InboxFilter::Failed,
            _ => InboxFilter::All,
        };
        let limit = self.limit.unwrap_or(usize::MAX);
        let width = width();
        let mut list = List::new(self.json, None);
        let mut after = None;
        while list.length < limit {
            let page = store.inbox_page(which, after, PAGE.min(limit - list.length)).await?;
            let Some(entry) = page.last() else { break };
            after = Some(entry.received.id);
            for entry in &page {
                if !list.add(|| message(entry), || line(entry, width)) {
                    return Ok(());
                }
            }
        }
        list.end();
        if list.length == 0 && limit > 0 {
            tell("No message is there.");
        }
        Ok(())
    }
}

fn line(entry: &InboxEntry, width: Option<usize>) -> String {
    let received = &entry.received;
    let (email, words) = (received.message.email.as_typed(), received.message.message.as_str());
    let cells = [(reference(received.id), 8), (received.at.date(), 10), (entry.progress.as_str().to_owned(), 7)];
    row(&cells, &format!("{}  {}", visible_line(email), visible_line(words)), width)
}

async fn show(store: &Store, id: &str, as_json: bool) -> Result<(), CommandFailure> {
    let entry = find(store, id).await?;
    if as_json {
        say_json(&message(&entry));
        return Ok(());
    }
    let received = &entry.received;
    let tries = |one, many| quantity(entry.tries, one, many);
    let progress = match (entry.progress, entry.tries) {
        (DeliveryState::Sent, _) => format!("mailed on {}", entry.at.rfc3339()),
        (DeliveryState::Failed, _) => format!("given up on {} after {}", entry.at.rfc3339(), tries("try", "tries")),
        (DeliveryState::Leased, _) => "being mailed now".to_owned(),
        (DeliveryState::Waiting, 0) => "waits to be mailed".to_owned(),
        (DeliveryState::Waiting, _) => format!("tried {}, next after {}", tries("time", "times"), entry.at.rfc3339()),
    };
    say(&format!("reference  {}", reference(received.id)));
    say(&format!("from       {}", sender(&received.message)));
    say(&format!("received   {}", received.at.rfc3339()));
    say(&format!("mail       {progress}"));
    if let Some(trouble) = &entry.trouble {
        say(&format!("trouble    {}", visible_line(trouble)));
    }
    say(&format!("\n{}", visible(received.message.message.as_str())));
    Ok(())
}

async fn retry(store: &Store, settings: &Settings, id: Option<&str>) -> Result<(), CommandFailure> {
    let only = match id {
        None => None,
        Some(id) => {
            let entry = find(store, id).await?;
            if entry.progress == DeliveryState::Sent {
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
