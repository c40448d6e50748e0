//! Contact messages with their delivery state, for `porchlight inbox` and the desk.
//!
//! A page is chosen over one index before anything is joined to it. A search walks the newest messages page by page, because no
//! index and neither database would compare texts of every language in the same way.

use uuid::Uuid;

use super::message_leases::{MessageRow, parse_message};
use crate::domain::contact::{MessageSearch, ReceivedMessage};
use crate::domain::limits::{MAX_COUNTED_MAILS, MAX_ROWS_PER_STEP, MAX_SEARCHED_MESSAGES};
use crate::domain::paging::PageStart;
use crate::domain::parse::word_enum;
use crate::domain::time::Timestamp;
use crate::store::connection::{BatchStatement, Store, StoreFailure, count, from_row_struct, values};

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
    /// When the makers marked it as answered.
    pub answered_at: Option<Timestamp>,
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

word_enum! {
    /// Which messages are to be listed.
    pub enum InboxFilter {
        All = "all",
        Unanswered = "unanswered",
        /// Waiting or leased.
        Waiting = "waiting",
        Failed = "failed",
    }
}

/// Which messages are to be listed, and what is looked for in them.
#[derive(Clone, Debug)]
pub struct InboxQuery {
    pub filter: InboxFilter,
    /// Looks at the newest [`MAX_SEARCHED_MESSAGES`] alone.
    pub search: Option<MessageSearch>,
}

/// How many messages a search reads at a time: four megabytes if all are as long as possible.
const SEARCH_BATCH: usize = 250;

macro_rules! select_inbox {
    ($messages:expr, $rest:expr) => {
        concat!(
            "SELECT m.id, m.address, m.email, m.name, m.body, m.at, m.answered_at, o.state, o.at AS since, o.tries, o.last_error \
             FROM ",
            $messages,
            " JOIN outbox o ON o.id = m.id ",
            $rest
        )
    };
}

/// The messages whose ids are on this page.
macro_rules! select_page {
    ($page:expr, $order:literal) => {
        select_inbox!(
            concat!("(", $page, ") AS page JOIN messages m ON m.id = page.id"),
            concat!("ORDER BY page.id", $order)
        )
    };
}

/// The ids on one side of `$1`, all of them newer than `$2`, and at most `$3`.
macro_rules! ids {
    ($rows:expr, $side:literal, $order:literal) => {
        concat!("SELECT id FROM ", $rows, " AND id ", $side, " $1 AND id > $2 ORDER BY id", $order, " LIMIT $3")
    };
}

/// Mails in one state. The conditions are those of the index `outbox_unsent`.
macro_rules! unsent {
    ($state:literal) => {
        concat!("outbox WHERE kind = 'message' AND state = '", $state, "' AND state <> 'sent'")
    };
}

/// The page of a filter on one side of a message.
macro_rules! page_of {
    ($filter:expr, $side:literal, $order:literal) => {
        match $filter {
            InboxFilter::All => select_page!(ids!("messages WHERE true", $side, $order), $order),
            InboxFilter::Unanswered => select_page!(ids!("messages WHERE answered_at IS NULL", $side, $order), $order),
            InboxFilter::Failed => select_page!(ids!(unsent!("failed"), $side, $order), $order),
            InboxFilter::Waiting => {
                select_page!(
                    concat!(
                        "SELECT id FROM (SELECT id FROM (",
                        ids!(unsent!("waiting"), $side, $order),
                        ") AS waiting UNION ALL \
                         SELECT id FROM (",
                        ids!(unsent!("leased"), $side, $order),
                        ") AS leased) AS either \
                         ORDER BY id",
                        $order,
                        " LIMIT $3"
                    ),
                    $order
                )
            }
        }
    };
}

const fn older(filter: InboxFilter) -> &'static str {
    page_of!(filter, "<", " DESC")
}

const fn newer(filter: InboxFilter) -> &'static str {
    page_of!(filter, ">", "")
}

/// Sorts after every id.
const AFTER_ALL: &str = "g";

/// The newest message that a search does not look at.
const SELECT_NOT_SEARCHED: &str = "SELECT id FROM messages ORDER BY id DESC LIMIT 1 OFFSET $1";

const COUNT_UNANSWERED: &str =
    "SELECT COUNT(*) FROM (SELECT id FROM messages WHERE answered_at IS NULL LIMIT $1) AS unanswered";

/// A message that is marked again keeps its time.
const MARK_ANSWERED: BatchStatement = BatchStatement::new(
    "id text, at bigint",
    "UPDATE messages SET answered_at = batch.at FROM batch \
     WHERE messages.id = batch.id AND (messages.answered_at IS NULL OR batch.at IS NULL)",
);

const SELECT_BY_REFERENCE: &str = select_inbox!("messages m", "WHERE m.id LIKE '%' || $1 ORDER BY m.id LIMIT 2");

const SELECT_BY_ID: &str = select_inbox!("messages m", "WHERE m.id = $1");

const SELECT_OF_PERSON: &str = select_inbox!("messages m", "WHERE m.address = $1 ORDER BY m.id");

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
        answered_at: Option<Timestamp>,
    }
}

impl Store {
    /// Returns up to `limit` messages, in the order in which they follow the start.
    pub async fn inbox_page(
        &self,
        query: &InboxQuery,
        start: &PageStart<Uuid>,
        limit: usize,
    ) -> Result<Vec<InboxEntry>, StoreFailure> {
        let (page, mut place) = match start {
            PageStart::Newest => (older(query.filter), AFTER_ALL.to_owned()),
            PageStart::OlderThan(id) => (older(query.filter), id.to_string()),
            PageStart::NewerThan(id) => (newer(query.filter), id.to_string()),
        };
        let (batch, newer_than) = match query.search {
            Some(_) => (SEARCH_BATCH, self.newest_message_not_searched().await?.unwrap_or_default()),
            None => (limit, String::new()),
        };
        let (mut found, mut is_last) = (Vec::new(), false);
        while found.len() < limit && !is_last {
            let rows: Vec<InboxRow> = self.run(page, values![&place, &newer_than, batch]).await?.all()?;
            is_last = rows.len() < batch;
            if let Some(row) = rows.last() {
                place.clone_from(&row.id);
            }
            for entry in rows.into_iter().map(entry) {
                let entry = entry?;
                if query.search.as_ref().is_none_or(|search| search.finds(&entry.received.contact)) {
                    found.push(entry);
                }
            }
        }
        found.truncate(limit);
        Ok(found)
    }

    /// Whether there are more messages than a search looks at.
    pub async fn has_unsearched_messages(&self) -> Result<bool, StoreFailure> {
        Ok(self.newest_message_not_searched().await?.is_some())
    }

    async fn newest_message_not_searched(&self) -> Result<Option<String>, StoreFailure> {
        Ok(self.run(SELECT_NOT_SEARCHED, values![MAX_SEARCHED_MESSAGES]).await?.column()?.pop())
    }

    /// Returns how many messages are not marked as answered. [`MAX_COUNTED_MAILS`] stands for as many or more.
    pub async fn unanswered_messages(&self) -> Result<u64, StoreFailure> {
        let (unanswered,) = self.run(COUNT_UNANSWERED, values![MAX_COUNTED_MAILS]).await?.one()?;
        Ok(count(unanswered))
    }

    /// Marks messages as answered, or with `None` as not answered.
    pub async fn mark_answered(&self, messages: &[Uuid], at: Option<Timestamp>) -> Result<(), StoreFailure> {
        for chunk in messages.chunks(usize::try_from(MAX_ROWS_PER_STEP).unwrap_or(1)) {
            self.run_batch(MARK_ANSWERED, chunk.iter().map(|id| [(*id).into(), at.into()]).collect()).await?;
        }
        Ok(())
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
        answered_at: row.answered_at,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::connection::tests::{empty_store, plan};

    #[tokio::test]
    async fn no_page_of_the_inbox_reads_a_whole_table() {
        let (_folder, store) = empty_store().await;
        for (page_of, range) in [(older as fn(_) -> _, "id>? AND id<?"), (newer, "id>?")] {
            for (filter, search) in [
                (InboxFilter::All, "messages USING PRIMARY KEY (".to_owned()),
                (
                    InboxFilter::Unanswered,
                    "messages USING COVERING INDEX messages_unanswered (answered_at=? AND ".to_owned(),
                ),
                (InboxFilter::Waiting, "outbox USING COVERING INDEX outbox_unsent (kind=? AND state=? AND ".to_owned()),
                (InboxFilter::Failed, "outbox USING COVERING INDEX outbox_unsent (kind=? AND state=? AND ".to_owned()),
            ] {
                let plan = plan(&store, page_of(filter)).await;
                let expected = if filter == InboxFilter::Waiting { 2 } else { 1 };
                assert_eq!(plan.matches(&format!("SEARCH {search}{range})\n")).count(), expected, "{plan}");
                // The pages, of which the waiting ones have two parts, are scanned.
                for line in plan.lines().filter(|line| line.starts_with("SCAN ")) {
                    assert!(["SCAN page", "SCAN waiting", "SCAN leased"].contains(&line), "{plan}");
                }
            }
        }
        let plan = plan(&store, COUNT_UNANSWERED).await;
        assert!(plan.contains("SEARCH messages USING COVERING INDEX messages_unanswered"), "{plan}");
    }
}
