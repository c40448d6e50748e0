//! Stores contact messages and enqueues their mails, and deletes messages. The same message from the same sender within a
//! day is stored once.

use std::collections::BTreeMap;

use crate::domain::contact::{ContactMessage, ReceivedMessage};
use crate::domain::limits;
use crate::domain::sha256::Sha256;
use crate::domain::statistics::{CountedEvent, Counts};
use crate::domain::text::SenderName;
use crate::domain::time::{Day, Timestamp};
use crate::store::connection::{BatchStatement, Store, StoreFailure, Transaction, Value, values};
use crate::store::statistics::counts_batch;

const DELETE_EXPIRED_HASHES: BatchStatement = BatchStatement::new(
    "hash text, oldest bigint",
    "DELETE FROM message_hashes WHERE hash IN (SELECT hash FROM batch) AND at <= (SELECT MIN(oldest) FROM batch)",
);

/// Returns the hashes of messages that are no duplicates.
const CLAIM_CONTENT_HASHES: BatchStatement = BatchStatement::new(
    "hash text, id text, at bigint",
    "INSERT INTO message_hashes (hash, message, at) SELECT * FROM batch WHERE true \
     ON CONFLICT (hash) DO NOTHING RETURNING hash",
);

const INSERT_MESSAGES: BatchStatement = BatchStatement::new(
    "id text, address text, email text, name text, body text, at bigint",
    "INSERT INTO messages (id, address, email, name, body, at) SELECT * FROM batch",
);

const ENQUEUE_MESSAGES: BatchStatement = BatchStatement::new(
    "id text, at bigint",
    "INSERT INTO outbox (id, kind, state, at) SELECT id, 'message', 'waiting', at FROM batch",
);

/// Takes the other messages out of mails that may have arrived, so that they go in other mails: without a deleted message,
/// a repeated mail would have different content under the same Message-ID.
const LEAVE_MAILS: BatchStatement = BatchStatement::new(
    "id text",
    "UPDATE outbox SET mail = NULL WHERE state <> 'sent' AND mail IN \
     (SELECT o.mail FROM outbox o WHERE o.id IN (SELECT id FROM batch))",
);

const DELETE_FROM_OUTBOX: BatchStatement =
    BatchStatement::new("id text", "DELETE FROM outbox WHERE id IN (SELECT id FROM batch)");

const DELETE_MESSAGES: BatchStatement = BatchStatement::new(
    "id text",
    "DELETE FROM messages WHERE id IN (SELECT id FROM batch) RETURNING id, address, name, body",
);

/// Only of the deleted messages: a message that arrives concurrently keeps its hash.
const DELETE_CONTENT_HASHES: BatchStatement = BatchStatement::new(
    "hash text, id text",
    "DELETE FROM message_hashes WHERE (hash, message) IN (SELECT hash, id FROM batch)",
);

const DELETE_OLD_HASHES: &str = "DELETE FROM message_hashes WHERE hash IN \
     (SELECT hash FROM message_hashes WHERE at <= $1 LIMIT $2)";

/// No other state follows this one.
const SELECT_FORWARDED: &str =
    "SELECT id FROM outbox WHERE kind = 'message' AND state = 'sent' AND at < $1 ORDER BY at LIMIT $2";

impl Store {
    /// Stores messages in one transaction, and enqueues the mails of those that are no duplicates.
    pub(in crate::store) async fn insert_messages(
        &self,
        messages: &[ReceivedMessage],
    ) -> Result<Vec<()>, StoreFailure> {
        let mut by_content_hash = BTreeMap::new();
        for message in messages {
            let ContactMessage { email, name, text } = &message.contact;
            let hash = content_hash(email.key(), name.as_ref().map(SenderName::as_str), text.as_str());
            by_content_hash.entry(hash).or_insert(message);
        }
        let mut tx = self.begin().await?;
        let expired = by_content_hash
            .iter()
            .map(|(hash, message)| [hash.into(), message.at.before(limits::DUPLICATE_MESSAGE_WINDOW).into()]);
        tx.run_batch(DELETE_EXPIRED_HASHES, expired.collect()).await?;
        let hashes = by_content_hash.iter().map(|(hash, message)| [hash.into(), message.id.into(), message.at.into()]);
        let new = tx.run_batch(CLAIM_CONTENT_HASHES, hashes.collect()).await?.column::<String>()?;
        let new: Vec<_> = new.iter().filter_map(|hash| by_content_hash.get(hash).copied()).collect();
        let mut counts = Counts::default();
        for message in &new {
            counts.add_unnamed(Day::of(message.at), CountedEvent::Message, None);
        }
        tx.run_batches(vec![
            INSERT_MESSAGES.of(new.iter().map(|message| row(message))),
            ENQUEUE_MESSAGES.of(new.iter().map(|message| [message.id.into(), message.at.into()])),
            counts_batch(&counts),
        ])
        .await?;
        tx.commit().await?;
        Ok(vec![(); messages.len()])
    }

    /// Deletes the hashes of messages that are older than [`limits::DUPLICATE_MESSAGE_WINDOW`].
    pub async fn prune_message_hashes(&self, now: Timestamp) -> Result<(), StoreFailure> {
        let values = values![now.before(limits::DUPLICATE_MESSAGE_WINDOW), limits::MAX_ROWS_PER_STEP];
        let mut steps = self.steps();
        while steps.should_repeat(self.run(DELETE_OLD_HASHES, values).await.map(|rows| rows.affected)).await? {}
        Ok(())
    }

    /// Deletes the messages that were forwarded before `oldest`, as if each was discarded. Returns their number. Messages
    /// that wait or failed stay.
    pub async fn delete_forwarded_messages(&self, oldest: Timestamp) -> Result<u64, StoreFailure> {
        let (mut deleted, mut steps) = (0, self.steps());
        while steps.should_repeat(self.delete_some_forwarded(oldest, &mut deleted).await).await? {}
        Ok(deleted)
    }

    async fn delete_some_forwarded(&self, oldest: Timestamp, deleted: &mut u64) -> Result<u64, StoreFailure> {
        let mut tx = self.begin().await?;
        let ids = tx.run(SELECT_FORWARDED, values![oldest, limits::MAX_ROWS_PER_STEP]).await?.column()?;
        let messages = tx.delete_messages(&ids).await?;
        tx.commit().await?;
        *deleted += messages;
        Ok(messages)
    }
}

impl Transaction {
    /// Deletes the messages with these ids and everything about their mails, and returns their number. The same messages can
    /// then be sent again.
    pub(in crate::store) async fn delete_messages(&mut self, ids: &[String]) -> Result<u64, StoreFailure> {
        type Deleted = (String, String, Option<String>, String);
        let ids = || ids.iter().map(|id| [id.into()]).collect();
        self.run_batch(LEAVE_MAILS, ids()).await?;
        self.run_batch(DELETE_FROM_OUTBOX, ids()).await?;
        let deleted: Vec<Deleted> = self.run_batch(DELETE_MESSAGES, ids()).await?.all()?;
        let hashes = deleted
            .iter()
            .map(|(id, address, name, text)| [content_hash(address, name.as_deref(), text).into(), id.into()]);
        self.run_batch(DELETE_CONTENT_HASHES, hashes.collect()).await?;
        Ok(deleted.len() as u64)
    }
}

/// A hash of sender, name and text, as they are stored. None of them contains a zero byte, so it is an unambiguous
/// separator.
fn content_hash(address: &str, name: Option<&str>, text: &str) -> String {
    let name = name.map_or_else(String::new, |name| format!("{name}\0"));
    Sha256::of(format!("{address}\0{name}\0{text}").as_bytes()).hex()
}

fn row(message: &ReceivedMessage) -> [Value<'_>; 6] {
    let ContactMessage { email, name, text } = &message.contact;
    let name = name.as_ref().map(SenderName::as_str);
    let (id, at) = (message.id, message.at);
    [id.into(), email.key().into(), email.as_typed().into(), name.into(), text.as_str().into(), at.into()]
}
