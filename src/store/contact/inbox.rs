//! Contact messages with their delivery state, for `porchlight inbox`.

use uuid::Uuid;

use super::message_leases::{MessageRow, parse_message};
use crate::domain::contact::ReceivedMessage;
use crate::domain::parse::word_enum;
use crate::domain::time::Timestamp;
use crate::store::connection::{Store, StoreFailure, from_row_struct, values};

/// A message and its outbox entry.
#[derive(Clone, Debug)]
pub struct InboxEntry {
    pub received: ReceivedMessage,
    pub state: DeliveryState,
    /// Sent, failed: when. Waiting: when the next attempt is due. Leased: when the lease expires.
    pub state_at: Timestamp,
    pub tries: u32,
    /// The reason of the last failed attempt.
    pub last_error: Option<String>,
}

impl InboxEntry {
    /// Whether it is being sent. A lease that has expired was left by a process that died.
    pub fn is_being_sent(&self, now: Timestamp) -> bool {
        self.state == DeliveryState::Leased && self.state_at > now
    }
}

word_enum! {
    pub enum DeliveryState {
        Waiting = "waiting",
        /// Being sent, see [`InboxEntry::is_being_sent`].
        Leased = "leased",
        Sent = "sent",
        Failed = "failed",
    }
}

/// Which messages are to be listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InboxFilter {
    All,
    /// Waiting or leased.
    Waiting,
    Failed,
}

macro_rules! select_inbox {
    ($rest:literal) => {
        concat!(
            "SELECT m.id, m.address, m.email, m.name, m.body, m.at, o.state, o.at AS since, o.tries, o.last_error \
             FROM messages m JOIN outbox o ON o.id = m.id ",
            $rest
        )
    };
}

const SELECT_ALL: &str = select_inbox!("WHERE m.id > $1 ORDER BY m.id LIMIT $2");

const SELECT_WAITING: &str =
    select_inbox!("WHERE m.id > $1 AND o.state IN ('waiting', 'leased') ORDER BY m.id LIMIT $2");

const SELECT_FAILED: &str = select_inbox!("WHERE m.id > $1 AND o.state = 'failed' ORDER BY m.id LIMIT $2");

const SELECT_BY_REFERENCE: &str = select_inbox!("WHERE m.id LIKE '%' || $1 ORDER BY m.id LIMIT 2");

const SELECT_BY_ID: &str = select_inbox!("WHERE m.id = $1");

const SELECT_OF_PERSON: &str = select_inbox!("WHERE m.address = $1 ORDER BY m.id");

from_row_struct! {
    struct InboxRow {
        id: String,
        address: String,
        email: String,
        name: Option<String>,
        body: String,
        at: Timestamp,
        state: String,
        since: Timestamp,
        tries: i64,
        last_error: Option<String>,
    }
}

impl Store {
    /// Returns up to `limit` messages that follow `after`, oldest first.
    pub async fn inbox_page(
        &self,
        filter: InboxFilter,
        after: Option<Uuid>,
        limit: usize,
    ) -> Result<Vec<InboxEntry>, StoreFailure> {
        let page = match filter {
            InboxFilter::All => SELECT_ALL,
            InboxFilter::Waiting => SELECT_WAITING,
            InboxFilter::Failed => SELECT_FAILED,
        };
        let after = after.map(|id| id.to_string()).unwrap_or_default();
        let rows: Vec<InboxRow> = self.run(page, values![after, limit]).await?.all()?;
        rows.into_iter().map(entry).collect()
    }

    /// Returns messages whose id ends with `reference`, at most two: two mean that it is ambiguous.
    pub async fn messages_by_reference(&self, reference: &str) -> Result<Vec<InboxEntry>, StoreFailure> {
        let query = if Uuid::parse_str(reference).is_ok() { SELECT_BY_ID } else { SELECT_BY_REFERENCE };
        let rows: Vec<InboxRow> = self.run(query, values![reference]).await?.all()?;
        rows.into_iter().map(entry).collect()
    }

    /// Returns all messages of a normalized address, oldest first.
    pub(in crate::store) async fn messages_of(&self, address: &str) -> Result<Vec<InboxEntry>, StoreFailure> {
        let rows: Vec<InboxRow> = self.run(SELECT_OF_PERSON, values![address]).await?.all()?;
        rows.into_iter().map(entry).collect()
    }
}

fn entry(row: InboxRow) -> Result<InboxEntry, StoreFailure> {
    let InboxRow { id, address, email, name, body, at, .. } = row;
    Ok(InboxEntry {
        received: parse_message(MessageRow { id, address, email, name, body, at })?,
        state: DeliveryState::parse(&row.state).unwrap_or(DeliveryState::Failed),
        state_at: row.since,
        tries: u32::try_from(row.tries).unwrap_or(u32::MAX),
        last_error: row.last_error,
    })
}
