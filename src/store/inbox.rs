//! Messages as the makers read them, each with how far it has come on its way to their mailbox.

use uuid::Uuid;

use super::outbox::{MessageRow, received};
use super::statement::{in_transaction, on_pool, row};
use super::{Store, StoreFailure};
use crate::domain::contact::ReceivedMessage;
use crate::domain::time::Timestamp;

/// A message with how far it has come.
#[derive(Clone, Debug)]
pub struct InboxEntry {
    pub received: ReceivedMessage,
    pub state: DeliveryState,
    /// Since when that is so; for one that waits, until when it does.
    pub at: Timestamp,
    pub tries: u32,
    /// What the mail server said last, if it did not take the message.
    pub last_error: Option<String>,
}

/// How far a message has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeliveryState {
    Waiting,
    /// Somebody is handing it over.
    Leased,
    Sent,
    Failed,
}

impl DeliveryState {
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Leased => "leased",
            Self::Sent => "sent",
            Self::Failed => "failed",
        }
    }

    fn stored(state: &str) -> Self {
        let all = [Self::Waiting, Self::Leased, Self::Sent];
        all.into_iter().find(|progress| progress.as_str() == state).unwrap_or(Self::Failed)
    }
}

/// Which messages are to be listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InboxFilter {
    All,
    /// On their way.
    Waiting,
    /// Given up on.
    Failed,
}

macro_rules! select_inbox {
    ($rest:literal) => {
        concat!(
            "SELECT m.id, m.email, m.name, m.body, m.at, o.state, o.at AS since, o.tries, o.trouble \
             FROM messages m JOIN outbox o ON o.message = m.id ",
            $rest
        )
    };
}

const PAGE_OF_ALL: &str = select_inbox!("WHERE m.id > $1 ORDER BY m.id LIMIT $2");

const PAGE_OF_WAITING: &str =
    select_inbox!("WHERE m.id > $1 AND o.state IN ('waiting', 'leased') ORDER BY m.id LIMIT $2");

const PAGE_OF_FAILED: &str = select_inbox!("WHERE m.id > $1 AND o.state = 'failed' ORDER BY m.id LIMIT $2");

const SELECT_NAMED: &str = select_inbox!("WHERE m.id LIKE '%' || $1 ORDER BY m.id LIMIT 2");

const SELECT_OF_PERSON: &str = select_inbox!("WHERE m.address = $1 ORDER BY m.id");

const RETRY_FAILED: &str = "UPDATE outbox SET state = 'waiting', at = $1, tries = 0, first_tried_at = NULL, mail = NULL \
     WHERE state = 'failed' AND message = COALESCE($2, message)";

const HURRY_WAITING: &str =
    "UPDATE outbox SET at = $1 WHERE state = 'waiting' AND at > $1 AND message = COALESCE($2, message)";

row! {
    struct InboxRow {
        id: String,
        email: String,
        name: Option<String>,
        body: String,
        at: i64,
        state: String,
        since: i64,
        tries: i64,
        trouble: Option<String>,
    }
}

impl Store {
    /// At most so many messages after that one, the oldest first.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn inbox_page(
        &self,
        which: InboxFilter,
        after: Option<Uuid>,
        most: usize,
    ) -> Result<Vec<InboxEntry>, StoreFailure> {
        let page = match which {
            InboxFilter::All => PAGE_OF_ALL,
            InboxFilter::Waiting => PAGE_OF_WAITING,
            InboxFilter::Failed => PAGE_OF_FAILED,
        };
        let after = after.map(|id| id.to_string()).unwrap_or_default();
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        let rows: Vec<InboxRow> =
            on_pool!(self, |pool| sqlx::query_as(page).bind(&after).bind(most).fetch_all(pool).await?);
        rows.into_iter().map(entry).collect()
    }

    /// The messages whose name ends so, two at most: more than one and the name was too short.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn messages_by_reference(&self, end_of_name: &str) -> Result<Vec<InboxEntry>, StoreFailure> {
        let rows: Vec<InboxRow> =
            on_pool!(self, |pool| sqlx::query_as(SELECT_NAMED).bind(end_of_name).fetch_all(pool).await?);
        rows.into_iter().map(entry).collect()
    }

    /// All messages of one address in its compared form, the oldest first.
    pub(super) async fn messages_of(&self, address: &str) -> Result<Vec<InboxEntry>, StoreFailure> {
        let rows: Vec<InboxRow> =
            on_pool!(self, |pool| sqlx::query_as(SELECT_OF_PERSON).bind(address).fetch_all(pool).await?);
        rows.into_iter().map(entry).collect()
    }

    /// Has what was given up on tried again, as if it were new, and what waits tried now: one
    /// message, or all.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn retry_messages(&self, only: Option<Uuid>, now: Timestamp) -> Result<u64, StoreFailure> {
        let (only, now) = (only.map(|id| id.to_string()), now.unix_millis());
        Ok(in_transaction!(self, |tx, _words| {
            let hurried = sqlx::query(HURRY_WAITING).bind(now).bind(&only).execute(&mut *tx).await?;
            let failed = sqlx::query(RETRY_FAILED).bind(now).bind(&only).execute(&mut *tx).await?;
            hurried.rows_affected() + failed.rows_affected()
        }))
    }
}

fn entry(row: InboxRow) -> Result<InboxEntry, StoreFailure> {
    let message = MessageRow { id: row.id, email: row.email, name: row.name, body: row.body, at: row.at };
    Ok(InboxEntry {
        received: received(&message)?,
        state: DeliveryState::stored(&row.state),
        at: Timestamp::from_unix_millis(row.since),
        tries: u32::try_from(row.tries).unwrap_or(u32::MAX),
        last_error: row.trouble,
    })
}
