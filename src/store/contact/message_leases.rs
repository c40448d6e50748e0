//! The delivery of contact messages: which are due, leases on those that go in one mail, and what makers decide about those that
//! were not mailed.
//!
//! `actions/outbox/next_mail.rs` decides what goes in a mail, and `domain/outbox.rs` when to retry.

use uuid::Uuid;

use crate::domain::contact::{ContactMessage, ReceivedMessage};
use crate::domain::limits::MAX_ROWS_PER_STEP;
use crate::domain::mail::EmailAddress;
use crate::domain::text::{MessageText, SenderName};
use crate::domain::time::Timestamp;
use crate::store::connection::{BatchStatement, Store, StoreFailure, from_row_struct, parse_id, values};

/// A message that may be sent now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DueMessage {
    pub id: Uuid,
    /// The id of a mail with this message that may have arrived: the message must be sent again in the same mail.
    pub mail: Option<Uuid>,
    /// The largest digest that may contain it, after the mail server did not accept one.
    pub max_digest: Option<usize>,
    pub tries: u32,
}

/// A lease on a set of messages, which go in one mail.
#[derive(Clone, Debug)]
pub struct MessageLease {
    pub id: Uuid,
    pub mail: Uuid,
    pub messages: Vec<Uuid>,
    pub at: Timestamp,
    pub until: Timestamp,
}

/// Messages that belong to a mail come first.
const SELECT_DUE: &str = "SELECT id, mail, max_digest, tries FROM outbox \
     WHERE kind = 'message' AND state IN ('waiting', 'leased') AND at <= $1 \
     ORDER BY CASE WHEN mail IS NULL THEN 1 ELSE 0 END, mail, id LIMIT $2";

/// All messages of a mail, due or not: they are never sent apart under its Message-ID.
const SELECT_OF_MAIL: &str =
    "SELECT id, mail, max_digest, tries FROM outbox WHERE mail = $1 AND state <> 'sent' ORDER BY id";

const LEASE: BatchStatement = BatchStatement::new(
    "id text, lease text, mail text, now bigint, until bigint",
    "UPDATE outbox SET state = 'leased', lease = batch.lease, mail = batch.mail, at = batch.until, \
         first_tried_at = COALESCE(first_tried_at, batch.now) \
     FROM batch WHERE outbox.id = batch.id AND (state IN ('waiting', 'leased') AND outbox.at <= batch.now \
         OR state IN ('waiting', 'failed') AND outbox.mail = batch.mail)",
);

const SELECT_LEASED: &str = "SELECT m.id, m.address, m.email, m.name, m.body, m.at FROM messages m \
     JOIN outbox o ON o.id = m.id WHERE o.lease = $1 ORDER BY m.id";

/// One message, and all others of a mail that may have arrived with it: they stay together under its Message-ID. A lease that has
/// expired was left by a process that died.
const RETRY_ONE: &str = "UPDATE outbox SET at = $1, state = 'waiting', lease = NULL, \
         tries = CASE state WHEN 'failed' THEN 0 ELSE tries END, \
         first_tried_at = CASE state WHEN 'failed' THEN NULL ELSE first_tried_at END \
     WHERE (state IN ('waiting', 'failed') OR state = 'leased' AND at <= $1) \
         AND (id = $2 OR mail = (SELECT o.mail FROM outbox o WHERE o.id = $2))";

const RETRY_FAILED: &str = "UPDATE outbox SET state = 'waiting', at = $1, tries = 0, first_tried_at = NULL \
     WHERE id IN (SELECT id FROM outbox WHERE kind = 'message' AND state = 'failed' ORDER BY at LIMIT $2)";

const RETRY_WAITING: &str = "UPDATE outbox SET at = $1 WHERE id IN (SELECT id FROM outbox \
     WHERE kind = 'message' AND state = 'waiting' AND at > $1 ORDER BY at LIMIT $2)";

/// Locks those of the messages that are not being sent, so that none of them is leased before it is deleted.
const LOCK_UNLEASED: BatchStatement = BatchStatement::new(
    "id text, now bigint",
    "UPDATE outbox SET state = state WHERE id IN (SELECT id FROM batch) \
         AND (state <> 'leased' OR at <= (SELECT MIN(now) FROM batch)) RETURNING id",
);

from_row_struct! {
    pub(in crate::store) struct MessageRow {
        pub id: String,
        pub address: String,
        pub email: String,
        pub name: Option<String>,
        pub body: String,
        pub at: Timestamp,
    }
}

/// Message, mail, largest digest, tries.
type DueRow = (String, Option<String>, Option<i64>, i64);

impl Store {
    /// Returns messages that may be sent now, first those that must be repeated in the same mail.
    pub async fn due_messages(&self, now: Timestamp, limit: usize) -> Result<Vec<DueMessage>, StoreFailure> {
        self.run(SELECT_DUE, values![now, limit]).await?.all()?.into_iter().map(due_message).collect()
    }

    /// Returns all messages of a mail that may have arrived, due or not.
    pub async fn messages_of_mail(&self, mail: Uuid) -> Result<Vec<DueMessage>, StoreFailure> {
        self.run(SELECT_OF_MAIL, values![mail]).await?.all()?.into_iter().map(due_message).collect()
    }

    /// Leases the messages, all or none. Returns `None` if another instance has leased one of them.
    pub async fn lease_messages(&self, lease: &MessageLease) -> Result<Option<Vec<ReceivedMessage>>, StoreFailure> {
        let MessageLease { id: lease_id, mail, at, until, .. } = *lease;
        let row = |id: &Uuid| [(*id).into(), lease_id.into(), mail.into(), at.into(), until.into()];
        let rows = lease.messages.iter().map(row).collect();
        let mut tx = self.begin().await?;
        let leased = tx.run_batch(LEASE, rows).await?;
        if usize::try_from(leased.affected) != Ok(lease.messages.len()) {
            return Ok(None);
        }
        let rows = tx.run(SELECT_LEASED, values![lease.id]).await?.all()?;
        tx.commit().await?;
        rows.into_iter().map(parse_message).collect::<Result<_, _>>().map(Some)
    }

    /// Makes a message due that is waiting or has failed, and all others of the same mail if that may have arrived.
    /// Returns their number: zero if it is being sent.
    pub async fn retry_message(&self, message: Uuid, now: Timestamp) -> Result<u64, StoreFailure> {
        Ok(self.run(RETRY_ONE, values![now, message]).await?.affected)
    }

    /// Makes all messages due that are waiting or have failed, in bounded steps. Returns their number.
    pub async fn retry_all_messages(&self, now: Timestamp) -> Result<u64, StoreFailure> {
        let (mut retried, mut steps) = (0, self.steps());
        for statement in [RETRY_WAITING, RETRY_FAILED] {
            loop {
                let rows = self.run(statement, values![now, MAX_ROWS_PER_STEP]).await.map(|rows| rows.affected);
                retried += rows.as_ref().copied().unwrap_or_default();
                if !steps.should_repeat(rows).await? {
                    break;
                }
            }
        }
        Ok(retried)
    }

    /// Deletes messages, whether they were mailed or not, in bounded steps. Counts stay. Returns the number of deleted
    /// messages: one that is being mailed stays.
    pub async fn discard_messages(&self, messages: &[Uuid], now: Timestamp) -> Result<u64, StoreFailure> {
        let mut discarded = 0;
        for chunk in messages.chunks(usize::try_from(MAX_ROWS_PER_STEP).unwrap_or(1)) {
            let mut tx = self.begin().await?;
            let ids = chunk.iter().map(|id| [(*id).into(), now.into()]).collect();
            let unleased = tx.run_batch(LOCK_UNLEASED, ids).await?.column()?;
            discarded += tx.delete_messages(&unleased).await?;
            tx.commit().await?;
        }
        Ok(discarded)
    }
}

fn due_message((id, mail, max_digest, tries): DueRow) -> Result<DueMessage, StoreFailure> {
    Ok(DueMessage {
        id: parse_id(&id)?,
        mail: mail.as_deref().map(parse_id).transpose()?,
        max_digest: max_digest.and_then(|size| usize::try_from(size).ok()),
        tries: u32::try_from(tries).unwrap_or(u32::MAX),
    })
}

pub(in crate::store) fn parse_message(row: MessageRow) -> Result<ReceivedMessage, StoreFailure> {
    Ok(ReceivedMessage {
        id: parse_id(&row.id)?,
        contact: ContactMessage {
            name: row.name.map(SenderName::from_stored),
            email: EmailAddress::from_stored(row.email, row.address),
            text: MessageText::from_stored(row.body),
        },
        at: row.at,
    })
}
