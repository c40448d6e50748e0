//! `porchlight inbox`

mod discard;
mod message;

use clap::{ArgGroup, Args, Subcommand};

use crate::cli::failure::{Failure, OrFail};
use crate::cli::run::{Access, with_store};
use crate::cli::terminal::{ListPrinter, eprint_line, print_record, sanitize_line, terminal_width};
use crate::clock::Clock;
use crate::config::Settings;
use crate::domain::contact::reference;
use crate::domain::text::quantity;
use crate::store::{DeliveryState, InboxFilter, Store};
use discard::DiscardArguments;
use message::{find, id, line};

pub(super) use message::{contact_sender, message_json};

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

pub(super) fn run(command: InboxCommand, settings: &Settings) -> Result<(), Failure> {
    let access = match command {
        InboxCommand::List(_) | InboxCommand::Show { .. } => Access::Read,
        InboxCommand::Retry { .. } | InboxCommand::Discard(_) => Access::Write,
    };
    with_store(settings, access, async |store| match command {
        InboxCommand::List(arguments) => arguments.run(store).await,
        InboxCommand::Show { id, json } => show(store, &id, json).await,
        InboxCommand::Retry { id, .. } => retry(store, settings, id.as_deref()).await,
        InboxCommand::Discard(arguments) => arguments.run(store).await,
    })
}

/// How many messages are read from the database at a time.
const BATCH_SIZE: usize = 200;

impl ListArguments {
    async fn run(self, store: &Store) -> Result<(), Failure> {
        let filter = match (self.waiting, self.failed) {
            (true, _) => InboxFilter::Waiting,
            (_, true) => InboxFilter::Failed,
            _ => InboxFilter::All,
        };
        let width = terminal_width();
        let mut list = ListPrinter::new(self.json, self.limit);
        let mut after = None;
        while list.remaining() > 0 {
            let page = store.inbox_page(filter, after, BATCH_SIZE.min(list.remaining())).await?;
            let Some(entry) = page.last() else { break };
            after = Some(entry.received.id);
            for entry in &page {
                if !list.push(&message_json(entry), &line(entry, width)) {
                    return Ok(());
                }
            }
        }
        list.finish("No messages found.");
        Ok(())
    }
}

async fn show(store: &Store, id: &str, as_json: bool) -> Result<(), Failure> {
    let entry = find(store, id).await?;
    let received = &entry.received;
    let (at, attempts) = (entry.state_at.rfc3339(), quantity(entry.tries, "attempt", "attempts"));
    let delivery = match (entry.state, entry.tries) {
        (DeliveryState::Sent, _) => format!("mailed on {at}"),
        (DeliveryState::Failed, _) => format!("failed on {at} after {attempts}"),
        (DeliveryState::Leased, _) => "being mailed now".to_owned(),
        (DeliveryState::Waiting, 0) => "waiting to be mailed".to_owned(),
        (DeliveryState::Waiting, tries) => {
            format!("waiting; {}, next attempt at {at}", quantity(tries, "failed attempt", "failed attempts"))
        }
    };
    let error = entry.last_error.as_ref().map(|error| format!("error      {}\n", sanitize_line(error)));
    let text = format!(
        "reference  {}\nfrom       {}\nreceived   {}\nmail       {delivery}\n{}\n{}",
        reference(received.id),
        contact_sender(&received.contact),
        received.at.rfc3339(),
        error.unwrap_or_default(),
        received.contact.text.as_str(),
    );
    print_record(as_json, &message_json(&entry), &text);
    Ok(())
}

async fn retry(store: &Store, settings: &Settings, id: Option<&str>) -> Result<(), Failure> {
    let only = match id {
        None => None,
        Some(id) => {
            let entry = find(store, id).await?;
            if entry.state == DeliveryState::Sent {
                let (name, date) = (reference(entry.received.id), entry.state_at.date());
                return Err(Failure::new(format!(
                    "Message {name} was already mailed on {date}. `porchlight inbox show {name}` shows it."
                )));
            }
            Some(entry.received.id)
        }
    };
    let now = Clock::System.now();
    let retried = match only {
        Some(message) => store.retry_message(message, now).await?,
        None => store.retry_all_messages(now).await.or_fail(|failure| {
            format!("Perhaps not all messages will be retried now: {failure}. Run the same command again.")
        })?,
    };
    eprint_line(&match (retried, only) {
        (0, None) => "No messages are waiting.".to_owned(),
        (0, Some(_)) => return Err(Failure::new("That message is being mailed now. Look again in a minute.")),
        (number, _) => format!("{} will be mailed within half a minute.", quantity(number, "message", "messages")),
    });
    if settings.mail.is_none() {
        eprint_line("`smtp_url` is not set here. The service needs it to mail messages.");
    }
    Ok(())
}
