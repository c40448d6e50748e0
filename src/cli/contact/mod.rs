//! `porchlight inbox`

mod discard;
mod message;

use clap::{ArgGroup, Args, Subcommand};

use uuid::Uuid;

use crate::actions::{delivery_in_words, message_json, retried_in_words, retry_message};
use crate::cli::activity::record;
use crate::cli::failure::{Failure, OrFail};
use crate::cli::run::{Access, with_store};
use crate::cli::terminal::{ListPrinter, eprint_line, print_record, sanitize_line, terminal_width};
use crate::clock::Clock;
use crate::config::Settings;
use crate::domain::contact::reference;
use crate::domain::desk::Change;
use crate::domain::paging::PageStart;
use crate::domain::text::quantity;
use crate::domain::time::Timestamp;
use crate::store::{InboxFilter, InboxQuery, Store};
use discard::DiscardArguments;
use message::{find, find_all, id, id_or_dash, line};

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
    /// Mark messages as answered
    ///
    /// `inbox list --unanswered` lists the others. Nothing is mailed.
    #[command(
        before_help = "Examples:\n  porchlight inbox answered 5f2c9a01 77ab03c9\n  porchlight inbox answered 5f2c9a01 --undo"
    )]
    Answered {
        /// References of messages, or full ids; - reads them from standard input
        #[arg(value_name = "ID", value_parser = id_or_dash, required = true)]
        ids: Vec<String>,
        /// Mark them as not answered
        #[arg(long)]
        undo: bool,
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
#[expect(clippy::struct_excessive_bools, reason = "each one is a flag")]
#[command(group(ArgGroup::new("which").args(["unanswered", "waiting", "failed"])))]
pub(super) struct ListArguments {
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// List only messages that are not marked as answered
    #[arg(long)]
    unanswered: bool,
    /// List only messages that were not mailed yet
    #[arg(long)]
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
        InboxCommand::Answered { .. } | InboxCommand::Retry { .. } | InboxCommand::Discard(_) => Access::Write,
    };
    with_store(settings, access, async |store| match command {
        InboxCommand::List(arguments) => arguments.run(store).await,
        InboxCommand::Show { id, json } => show(store, &id, json).await,
        InboxCommand::Answered { ids, undo } => answered(store, &ids, undo).await,
        InboxCommand::Retry { id, .. } => retry(store, settings, id.as_deref()).await,
        InboxCommand::Discard(arguments) => arguments.run(store).await,
    })
}

/// How many messages are read from the database at a time.
const BATCH_SIZE: usize = 200;

impl ListArguments {
    async fn run(self, store: &Store) -> Result<(), Failure> {
        let filter = match (self.unanswered, self.waiting, self.failed) {
            (true, ..) => InboxFilter::Unanswered,
            (_, true, _) => InboxFilter::Waiting,
            (.., true) => InboxFilter::Failed,
            _ => InboxFilter::All,
        };
        let query = InboxQuery { filter, search: None };
        let width = terminal_width();
        let mut list = ListPrinter::new(self.json, self.limit);
        let mut start = PageStart::NewerThan(Uuid::nil());
        while list.remaining() > 0 {
            let page = store.inbox_page(&query, &start, BATCH_SIZE.min(list.remaining())).await?;
            let Some(entry) = page.last() else { break };
            start = PageStart::NewerThan(entry.received.id);
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
    let error = entry.last_error.as_ref().map(|error| format!("error      {}\n", sanitize_line(error)));
    let text = format!(
        "reference  {}\nfrom       {}\nreceived   {}\nmail       {}\nanswered   {}\n{}\n{}",
        reference(received.id),
        received.contact.sender(),
        received.at.rfc3339(),
        delivery_in_words(&entry, Timestamp::rfc3339),
        entry.answered_at.map_or_else(|| "no".to_owned(), Timestamp::rfc3339),
        error.unwrap_or_default(),
        received.contact.text.as_str(),
    );
    print_record(as_json, &message_json(&entry), &text);
    Ok(())
}

async fn answered(store: &Store, ids: &[String], undo: bool) -> Result<(), Failure> {
    let found: Vec<_> = find_all(store, ids).await?.iter().map(|entry| entry.received.id).collect();
    store.mark_answered(&found, (!undo).then(|| Clock::System.now())).await?;
    let number = found.len() as u64;
    record(store, if undo { Change::MarkedUnanswered(number) } else { Change::MarkedAnswered(number) }).await;
    let messages = quantity(number, "message is", "messages are");
    eprint_line(&format!("{messages} marked as {}.", if undo { "not answered" } else { "answered" }));
    Ok(())
}

async fn retry(store: &Store, settings: &Settings, id: Option<&str>) -> Result<(), Failure> {
    let now = Clock::System.now();
    let retried = match id {
        Some(id) => retry_message(store, &find(store, id).await?, now).await?,
        None => store.retry_all_messages(now).await.or_fail(|failure| {
            format!("Perhaps not all messages will be retried now: {failure}. Run the same command again.")
        })?,
    };
    if retried == 0 {
        eprint_line("No messages are waiting.");
    } else {
        record(store, Change::RetriedMessages(retried)).await;
        eprint_line(&retried_in_words(retried));
    }
    if settings.mail.is_none() {
        eprint_line("`smtp_url` is not set here. The service needs it to mail messages.");
    }
    Ok(())
}
