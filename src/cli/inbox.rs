//! `porchlight inbox`

mod discard;

use clap::{ArgGroup, Args, Subcommand};
use uuid::Uuid;

use self::discard::DiscardArguments;
use super::message_view::{contact_sender, message_json};
use super::terminal::{ListPrinter, format_row, sanitize, sanitize_line, terminal_width};
use super::{Access, CommandFailure, block_on, eprint_line, open_store, print_json, print_line};
use crate::clock::Clock;
use crate::config::Settings;
use crate::domain::contact::reference;
use crate::domain::plural::quantity;
use crate::store::{DeliveryState, InboxEntry, InboxFilter, Store, StoreFailure};

#[derive(Debug, Subcommand)]
pub(super) enum InboxCommand {
    /// List all contact messages, mailed or not, oldest first
    ///
    /// Messages stay until they are discarded or erased, or for as long as the setting `keep_messages` says after they were
    /// mailed.
    #[command(before_help = "Example:\n  porchlight inbox list --failed")]
    List(ListArguments),
    /// Show one message in full
    #[command(before_help = "Example:\n  porchlight inbox show 5f2c9a01")]
    Show {
        /// Reference of the message, or its full id
        #[arg(value_parser = id)]
        id: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Retry messages that are waiting or have failed
    ///
    /// Messages of a digest that may have arrived are retried together, as the same email.
    #[command(before_help = "Example:\n  porchlight inbox retry --all")]
    #[command(group(ArgGroup::new("which").required(true).args(["id", "all"])))]
    Retry {
        /// Reference of the message, or its full id
        #[arg(value_parser = id)]
        id: Option<String>,
        /// Retry every message that is waiting or has failed
        #[arg(long)]
        all: bool,
    },
    /// Delete messages, mailed or not, such as spam
    ///
    /// They are shown before anything is deleted. A message that is being mailed stays, and statistics too.
    #[command(before_help = discard::EXAMPLES)]
    Discard(DiscardArguments),
}

#[derive(Args, Debug)]
pub(super) struct ListArguments {
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// List only messages that were not mailed yet
    #[arg(long, conflicts_with = "failed")]
    waiting: bool,
    /// List only messages that could not be mailed and are no longer retried
    #[arg(long)]
    failed: bool,
    /// List at most N messages
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
}

/// Parses a full id, or the end of one.
fn id(text: &str) -> Result<String, String> {
    let is_allowed = |byte: u8| byte.is_ascii_hexdigit() || byte == b'-';
    if !(8..=36).contains(&text.len()) || !text.bytes().all(is_allowed) {
        return Err("it is not a reference such as 5f2c9a01".to_owned());
    }
    Ok(Uuid::parse_str(text).map_or_else(|_| text.to_lowercase(), |id| id.to_string()))
}

/// Why an `inbox` command failed, in one sentence.
#[derive(Debug, thiserror::Error)]
pub(super) enum InboxFailure {
    #[error("There is no message {0}. `porchlight inbox list` lists all messages.")]
    Unknown(String),
    #[error("More than one message has the reference {0}. `porchlight inbox list --json` shows their full ids.")]
    Ambiguous(String),
    #[error("Message {0} was already mailed on {1}. `porchlight inbox show {0}` shows it.")]
    Sent(String, String),
    #[error(
        "There is no such message, or it is being mailed, so nothing was deleted. `porchlight inbox list` lists all messages."
    )]
    NothingToDiscard,
    #[error("Perhaps not all messages were deleted: {0}. `porchlight inbox list` lists those that are left.")]
    DiscardIncomplete(StoreFailure),
    #[error("Perhaps not all messages will be retried now: {0}. Run the same command again.")]
    RetryIncomplete(StoreFailure),
}

impl InboxCommand {
    const fn access(&self) -> Access {
        match self {
            Self::List(_) | Self::Show { .. } => Access::Read,
            Self::Retry { .. } | Self::Discard(_) => Access::Write,
        }
    }
}

pub(super) fn run(command: InboxCommand, settings: &Settings) -> Result<(), CommandFailure> {
    block_on(async {
        let store = open_store(settings, command.access()).await?;
        let result = match command {
            InboxCommand::List(arguments) => arguments.run(&store).await,
            InboxCommand::Show { id, json } => show(&store, &id, json).await,
            InboxCommand::Retry { id, .. } => retry(&store, settings, id.as_deref()).await,
            InboxCommand::Discard(arguments) => arguments.run(&store).await,
        };
        store.close().await;
        result
    })
}

/// How many messages are read from the database at a time.
const BATCH_SIZE: usize = 200;

impl ListArguments {
    async fn run(self, store: &Store) -> Result<(), CommandFailure> {
        let filter = match (self.waiting, self.failed) {
            (true, _) => InboxFilter::Waiting,
            (_, true) => InboxFilter::Failed,
            _ => InboxFilter::All,
        };
        let limit = self.limit.unwrap_or(usize::MAX);
        let width = terminal_width();
        let mut list = ListPrinter::new(self.json, None);
        let mut after = None;
        while list.len < limit {
            let page = store.inbox_page(filter, after, BATCH_SIZE.min(limit - list.len)).await?;
            let Some(entry) = page.last() else { break };
            after = Some(entry.received.id);
            for entry in &page {
                if !list.push(|| message_json(entry), || line(entry, width)) {
                    return Ok(());
                }
            }
        }
        list.finish();
        if list.len == 0 && limit > 0 {
            eprint_line("No messages found.");
        }
        Ok(())
    }
}

fn line(entry: &InboxEntry, width: Option<usize>) -> String {
    let received = &entry.received;
    let (email, text) = (received.contact.email.as_typed(), received.contact.text.as_str());
    let cells = [(reference(received.id), 8), (received.at.date(), 10), (entry.state.as_str().to_owned(), 7)];
    format_row(&cells, &format!("{}  {}", sanitize_line(email), sanitize_line(text)), width)
}

async fn show(store: &Store, id: &str, as_json: bool) -> Result<(), CommandFailure> {
    let entry = find(store, id).await?;
    if as_json {
        print_json(&message_json(&entry));
        return Ok(());
    }
    let received = &entry.received;
    let attempts = quantity(entry.tries, "attempt", "attempts");
    let delivery = match (entry.state, entry.tries) {
        (DeliveryState::Sent, _) => format!("mailed on {}", entry.state_at.rfc3339()),
        (DeliveryState::Failed, _) => format!("failed on {} after {attempts}", entry.state_at.rfc3339()),
        (DeliveryState::Leased, _) => "being mailed now".to_owned(),
        (DeliveryState::Waiting, 0) => "waiting to be mailed".to_owned(),
        (DeliveryState::Waiting, _) => {
            let failed = quantity(entry.tries, "failed attempt", "failed attempts");
            format!("waiting; {failed}, next attempt at {}", entry.state_at.rfc3339())
        }
    };
    print_line(&format!("reference  {}", reference(received.id)));
    print_line(&format!("from       {}", contact_sender(&received.contact)));
    print_line(&format!("received   {}", received.at.rfc3339()));
    print_line(&format!("mail       {delivery}"));
    if let Some(error) = &entry.last_error {
        print_line(&format!("error      {}", sanitize_line(error)));
    }
    print_line(&format!("\n{}", sanitize(received.contact.text.as_str())));
    Ok(())
}

async fn retry(store: &Store, settings: &Settings, id: Option<&str>) -> Result<(), CommandFailure> {
    let only = match id {
        None => None,
        Some(id) => {
            let entry = find(store, id).await?;
            if entry.state == DeliveryState::Sent {
                return Err(InboxFailure::Sent(reference(entry.received.id), entry.state_at.date()).into());
            }
            Some(entry.received.id)
        }
    };
    let now = Clock::System.now();
    let retried = match only {
        Some(message) => store.retry_message(message, now).await?,
        None => store.retry_all_messages(now).await.map_err(InboxFailure::RetryIncomplete)?,
    };
    eprint_line(&match (retried, only) {
        (0, None) => "No messages are waiting.".to_owned(),
        (0, Some(_)) => "That message is being sent right now.".to_owned(),
        (number, _) => format!("{} will be mailed within half a minute.", quantity(number, "message", "messages")),
    });
    if settings.mail.is_none() {
        eprint_line("`smtp_url` is not set here. The service needs it to mail messages.");
    }
    Ok(())
}

async fn find(store: &Store, id: &str) -> Result<InboxEntry, CommandFailure> {
    let mut found = store.messages_by_reference(id).await?;
    match (found.pop(), found.is_empty()) {
        (Some(entry), true) => Ok(entry),
        (Some(_), false) => Err(InboxFailure::Ambiguous(id.to_owned()).into()),
        (None, _) => Err(InboxFailure::Unknown(id.to_owned()).into()),
    }
}
