//! `porchlight inbox discard`

use std::collections::BTreeSet;
use std::io::BufRead;

use clap::{ArgGroup, Args};
use uuid::Uuid;

use super::{BATCH_SIZE, find, id, line, unknown};
use crate::cli::terminal::terminal_width;
use crate::cli::{Failure, OrFail, TimeRange, confirm, eprint_line};
use crate::domain::email::EmailAddress;
use crate::domain::plural::quantity;
use crate::store::{DeliveryState, InboxEntry, InboxFilter, Store};

pub(super) const EXAMPLES: &str = "\
Examples:
  porchlight inbox discard 5f2c9a01 77ab03c9
  porchlight inbox discard --containing casino --since 2026-11-15
  porchlight inbox list --json | jq -r '.[] | select(.name == \"Casino\") | .id' |
    porchlight inbox discard - --yes";

/// How many of the messages are shown before the question.
const SHOWN: usize = 10;

#[derive(Args, Debug)]
#[command(group(ArgGroup::new("which").required(true).multiple(true)
    .args(["ids", "email", "containing", "since", "until"])))]
#[command(mut_arg("since", |since| since.help("Discard messages received at this time or later")))]
#[command(mut_arg("until", |until| until.help("Discard messages received before this time; a day counts to its end")))]
pub(in crate::cli) struct DiscardArguments {
    /// References of messages, or full ids; - reads them from standard input
    #[arg(value_name = "ID", value_parser = id_or_dash, conflicts_with_all = ["email", "containing", "since", "until"])]
    ids: Vec<String>,
    /// Discard messages from this address
    #[arg(long, value_name = "ADDRESS")]
    email: Option<String>,
    /// Discard messages with this text in them, in any case
    #[arg(long, value_name = "TEXT")]
    containing: Option<String>,
    #[command(flatten)]
    received: TimeRange,
    /// Do not ask for confirmation
    #[arg(long)]
    yes: bool,
}

fn id_or_dash(text: &str) -> Result<String, String> {
    if text == "-" { Ok(text.to_owned()) } else { id(text) }
}

impl DiscardArguments {
    pub(super) async fn run(self, store: &Store) -> Result<(), Failure> {
        let found = if self.ids.is_empty() { self.matching(store).await? } else { self.named(store).await? };
        if found.ids.is_empty() {
            return Err(Failure::new(
                "There is no such message, or it is being mailed, so nothing was deleted. `porchlight inbox list` lists all \
                 messages.",
            ));
        }
        for line in &found.shown {
            eprint_line(line);
        }
        let (count, shown) = (found.ids.len() as u64, found.shown.len() as u64);
        if count > shown {
            eprint_line(&format!("… and {} more", count - shown));
        }
        if found.being_mailed > 0 {
            let (one, many) = ("message is being mailed and stays.", "messages are being mailed and stay.");
            eprint_line(&quantity(found.being_mailed, one, many));
        }
        let messages = quantity(count, "message", "messages");
        let unmailed = match found.unmailed {
            0 => String::new(),
            unmailed => format!(", {unmailed} of them without mailing"),
        };
        confirm(&format!("Delete {messages} for good{unmailed}?"), self.yes, "Nothing was deleted.")?;
        let discarded = store.discard_messages(&found.ids).await.or_fail(|failure| {
            format!(
                "Perhaps not all messages were deleted: {failure}. `porchlight inbox list` lists those that are left."
            )
        })?;
        let messages = quantity(discarded, "message was deleted.", "messages were deleted.");
        eprint_line(&match count - discarded {
            0 => messages,
            staying => format!("{messages} {staying} stayed, because they are being mailed."),
        });
        Ok(())
    }

    /// Finds messages by their ids. An unknown one is an error, so that nothing else is deleted by mistake.
    async fn named(&self, store: &Store) -> Result<Found, Failure> {
        let mut ids = BTreeSet::new();
        for given in &self.ids {
            if given != "-" {
                ids.insert(given.clone());
                continue;
            }
            for line in std::io::stdin().lock().lines() {
                let line = line?;
                let given = line.trim();
                if !given.is_empty() {
                    ids.insert(id(given).map_err(|_| unknown(given))?);
                }
            }
        }
        let mut found = Found::default();
        for id in ids {
            found.add(&find(store, &id).await?);
        }
        Ok(found)
    }

    /// Finds messages by their contents.
    async fn matching(&self, store: &Store) -> Result<Found, Failure> {
        let (mut found, mut after) = (Found::default(), None);
        loop {
            let page = store.inbox_page(InboxFilter::All, after, BATCH_SIZE).await?;
            let Some(last) = page.last() else { return Ok(found) };
            after = Some(last.received.id);
            page.iter().filter(|entry| self.matches(entry)).for_each(|entry| found.add(entry));
        }
    }

    fn matches(&self, entry: &InboxEntry) -> bool {
        let (at, contact) = (entry.received.at, &entry.received.contact);
        let has_address = |given: &String| match EmailAddress::parse(given) {
            Ok(email) => email.key() == contact.email.key(),
            Err(_) => given == contact.email.as_typed(),
        };
        let contains = |text: &String| contact.text.as_str().to_lowercase().contains(&text.to_lowercase());
        self.email.as_ref().is_none_or(has_address)
            && self.containing.as_ref().is_none_or(contains)
            && self.received.contains(at)
    }
}

/// The messages that are to be deleted.
#[derive(Default)]
struct Found {
    ids: Vec<Uuid>,
    /// The first of them, as `inbox list` shows them.
    shown: Vec<String>,
    /// How many of them were not mailed.
    unmailed: u64,
    /// How many others are being mailed.
    being_mailed: u64,
}

impl Found {
    fn add(&mut self, entry: &InboxEntry) {
        match entry.state {
            DeliveryState::Leased => {
                self.being_mailed += 1;
                return;
            }
            DeliveryState::Waiting | DeliveryState::Failed => self.unmailed += 1,
            DeliveryState::Sent => {}
        }
        if self.shown.len() < SHOWN {
            self.shown.push(line(entry, terminal_width()));
        }
        self.ids.push(entry.received.id);
    }
}
