//! The outbox of contact messages: which are due, leases on them, and the outcome of each attempt.
//!
//! A lease expires on its own, so no transaction is open during SMTP, and the messages of a worker that died become due
//! again. `actions/forward_messages.rs` decides what goes in a mail and when to retry.

use serde_json::{Value, json};
use uuid::Uuid;

use super::maker_mails::{CANCEL, CONFIRM};
use super::statement::{Statement, batch_statement, from_row_struct, in_transaction, on_pool};
use super::{Store, StoreFailure};
use crate::domain::contact::{ContactMessage, ReceivedMessage};
use crate::domain::email::EmailAddress;
use crate::domain::limits;
use crate::domain::text::{MessageText, SenderName};
use crate::domain::time::Timestamp;

/// A message that may be sent now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DueMessage {
    pub id: Uuid,
    /// The id of a mail with this message that may have arrived: the message must be sent again in the same mail.
    pub mail: Option<Uuid>,
    /// The largest digest that may contain it, after the mail server rejected a larger one.
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

/// The outcome of a failed attempt.
#[derive(Clone, Debug)]
pub struct DeliveryFailure {
    pub at: Timestamp,
    pub retry_at: Timestamp,
    /// Messages whose first attempt was no later than this are marked as failed.
    pub give_up_if_first_tried_by: Timestamp,
    /// Whether this attempt may have reached the mailbox, so that it counts as a mail to the makers.
    pub may_have_been_sent: bool,
    /// Whether this attempt or an earlier one may have: the messages must be sent again in the same mail.
    pub may_have_arrived: bool,
    /// The largest digest from now on, if the mail server rejected this one.
    pub max_digest: Option<usize>,
    pub reason: String,
}

/// Messages that belong to a mail come first.
const SELECT_DUE: &str = "SELECT message, mail, most_together, tries FROM outbox \
     WHERE state IN ('waiting', 'leased') AND at <= $1 \
     ORDER BY CASE WHEN mail IS NULL THEN 1 ELSE 0 END, mail, message LIMIT $2";

/// All messages of a mail, due or not: they are never sent apart under its Message-ID.
const SELECT_OF_MAIL: &str = "SELECT message, mail, most_together, tries FROM outbox \
     WHERE mail = $1 AND state <> 'sent' ORDER BY message";

const SELECT_NEXT_DUE: &str = "SELECT MIN(at) FROM outbox WHERE state IN ('waiting', 'leased')";

const LEASE: Statement = batch_statement!(
    "UPDATE outbox SET state = 'leased', lease = $2, mail = $3, at = $5, \
         first_tried_at = COALESCE(first_tried_at, $4) \
     WHERE (state IN ('waiting', 'leased') AND at <= $4 OR state IN ('waiting', 'failed') AND mail = $3) \
         AND message IN (SELECT batch.id",
    (id text),
    ")"
);

const SELECT_LEASED: &str = "SELECT m.id, m.address, m.email, m.name, m.body, m.at FROM messages m \
     JOIN outbox o ON o.message = m.id WHERE o.lease = $1 ORDER BY m.id";

const RENEW: &str = "UPDATE outbox SET at = $2 WHERE lease = $1";

const RECORD_SENT: &str = "UPDATE outbox SET state = 'sent', at = $2, tries = tries + 1, lease = NULL, trouble = NULL \
     WHERE lease = $1";

/// Makes messages due that are waiting only because the mail server was unavailable, at most `$2` of them.
const END_BACKOFF: &str = "UPDATE outbox SET at = $1 WHERE message IN (SELECT message FROM outbox \
     WHERE state = 'waiting' AND at > $1 AND most_together IS NULL ORDER BY at LIMIT $2)";

/// The messages were not tried: their retry period has not begun.
const RELEASE: &str = "UPDATE outbox SET state = 'waiting', at = $2, lease = NULL, \
         mail = CASE WHEN $3 = 1 THEN mail END, \
         first_tried_at = CASE WHEN tries > 0 THEN first_tried_at END \
     WHERE lease = $1";

/// When the first attempt at a message was. If its mail may have arrived, the last of all its messages counts: they are
/// given up together.
macro_rules! first_tried_at {
    () => {
        "CASE WHEN $5 = 1 THEN (SELECT MAX(o.first_tried_at) FROM outbox o WHERE o.lease = $1) \
             ELSE first_tried_at END"
    };
}

const RECORD_FAILED_ATTEMPT: &str = concat!(
    "UPDATE outbox SET state = CASE WHEN ",
    first_tried_at!(),
    " <= $3 THEN 'failed' ELSE 'waiting' END, at = CASE WHEN ",
    first_tried_at!(),
    " <= $3 THEN $2 ELSE $4 END, \
         mail = CASE WHEN $5 = 1 THEN mail END, \
         most_together = COALESCE($6, most_together), \
         tries = tries + 1, lease = NULL, trouble = $7 \
     WHERE lease = $1"
);

from_row_struct! {
    pub(super) struct MessageRow {
        pub id: String,
        pub address: String,
        pub email: String,
        pub name: Option<String>,
        pub body: String,
        pub at: i64,
    }
}

impl Store {
    /// Returns messages that may be sent now, first those that must be repeated in the same mail.
    pub async fn due_messages(&self, now: Timestamp, limit: usize) -> Result<Vec<DueMessage>, StoreFailure> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let rows: Vec<DueRow> = on_pool!(self, |pool| {
            sqlx::query_as(SELECT_DUE).bind(now.unix_millis()).bind(limit).fetch_all(pool).await?
        });
        rows.into_iter().map(due_message).collect()
    }

    /// Returns all messages of a mail that may have arrived, due or not.
    pub async fn messages_of_mail(&self, mail: Uuid) -> Result<Vec<DueMessage>, StoreFailure> {
        let mail = mail.to_string();
        let rows: Vec<DueRow> =
            on_pool!(self, |pool| sqlx::query_as(SELECT_OF_MAIL).bind(&mail).fetch_all(pool).await?);
        rows.into_iter().map(due_message).collect()
    }

    /// Returns when the next message becomes due.
    pub async fn next_due(&self) -> Result<Option<Timestamp>, StoreFailure> {
        let (at,): (Option<i64>,) = on_pool!(self, |pool| sqlx::query_as(SELECT_NEXT_DUE).fetch_one(pool).await?);
        Ok(at.map(Timestamp::from_unix_millis))
    }

    /// Leases the messages, all or none. Returns `None` if another instance has leased one of them.
    pub async fn lease_messages(&self, lease: &MessageLease) -> Result<Option<Vec<ReceivedMessage>>, StoreFailure> {
        let batch = lease.messages.iter().map(|id| json!({ "id": id })).collect::<Value>().to_string();
        let (lease_id, mail) = (lease.id.to_string(), lease.mail.to_string());
        let rows: Vec<MessageRow> = in_transaction!(self, |tx, sql| {
            let leased = sqlx::query(sql(LEASE))
                .bind(&batch)
                .bind(&lease_id)
                .bind(&mail)
                .bind(lease.at.unix_millis())
                .bind(lease.until.unix_millis())
                .execute(&mut *tx)
                .await?;
            if usize::try_from(leased.rows_affected()) != Ok(lease.messages.len()) {
                return Ok(None);
            }
            sqlx::query_as(SELECT_LEASED).bind(&lease_id).fetch_all(&mut *tx).await?
        });
        rows.into_iter().map(parse_message).collect::<Result<_, _>>().map(Some)
    }

    /// Extends the lease.
    pub async fn renew_lease(&self, lease: Uuid, until: Timestamp) -> Result<(), StoreFailure> {
        let lease = lease.to_string();
        on_pool!(self, |pool| {
            sqlx::query(RENEW).bind(&lease).bind(until.unix_millis()).execute(pool).await?;
        });
        Ok(())
    }

    /// Ends a lease whose messages were not tried. `mail` is kept only if it may have arrived before.
    pub async fn release_lease(&self, lease: Uuid, may_have_arrived: bool, due: Timestamp) -> Result<(), StoreFailure> {
        let lease = lease.to_string();
        on_pool!(self, |pool| {
            let release = sqlx::query(RELEASE).bind(&lease).bind(due.unix_millis()).bind(i64::from(may_have_arrived));
            release.execute(pool).await?;
        });
        Ok(())
    }

    /// Records that the mail server accepted the mail.
    pub async fn record_sent(&self, lease: Uuid, at: Timestamp) -> Result<(), StoreFailure> {
        let (lease, at) = (lease.to_string(), at.unix_millis());
        in_transaction!(self, |tx, _sql| {
            sqlx::query(RECORD_SENT).bind(&lease).bind(at).execute(&mut *tx).await?;
            sqlx::query(CONFIRM).bind(&lease).bind(at).execute(&mut *tx).await?;
        });
        Ok(())
    }

    /// Ends the backoff of other messages, because the mail server is available: of as many as one digest can hold, so
    /// that a huge backlog is worked off in short transactions.
    pub async fn end_backoff(&self, now: Timestamp) -> Result<(), StoreFailure> {
        on_pool!(self, |pool| {
            sqlx::query(END_BACKOFF).bind(now.unix_millis()).bind(limits::MAX_ROWS_PER_STEP).execute(pool).await?;
        });
        Ok(())
    }

    /// Records a failed or uncertain attempt.
    pub async fn record_failed_attempt(&self, lease: Uuid, failure: &DeliveryFailure) -> Result<(), StoreFailure> {
        let lease = lease.to_string();
        let max_digest = failure.max_digest.and_then(|size| i64::try_from(size).ok());
        in_transaction!(self, |tx, _sql| {
            sqlx::query(RECORD_FAILED_ATTEMPT)
                .bind(&lease)
                .bind(failure.at.unix_millis())
                .bind(failure.give_up_if_first_tried_by.unix_millis())
                .bind(failure.retry_at.unix_millis())
                .bind(i64::from(failure.may_have_arrived))
                .bind(max_digest)
                .bind(&failure.reason)
                .execute(&mut *tx)
                .await?;
            if !failure.may_have_been_sent {
                sqlx::query(CANCEL).bind(&lease).execute(&mut *tx).await?;
            }
        });
        Ok(())
    }
}

fn parse_id(text: &str) -> Result<Uuid, StoreFailure> {
    Uuid::parse_str(text).map_err(|_| invalid("the id of a message"))
}

/// Message, mail, largest digest, tries.
type DueRow = (String, Option<String>, Option<i64>, i64);

fn due_message((message, mail, max_digest, tries): DueRow) -> Result<DueMessage, StoreFailure> {
    Ok(DueMessage {
        id: parse_id(&message)?,
        mail: mail.as_deref().map(parse_id).transpose()?,
        max_digest: max_digest.and_then(|size| usize::try_from(size).ok()),
        tries: u32::try_from(tries).unwrap_or(u32::MAX),
    })
}

pub(super) fn parse_message(row: MessageRow) -> Result<ReceivedMessage, StoreFailure> {
    Ok(ReceivedMessage {
        id: parse_id(&row.id)?,
        contact: ContactMessage {
            name: row.name.map(SenderName::from_stored),
            email: EmailAddress::from_stored(row.email, row.address),
            text: MessageText::from_stored(row.body),
        },
        at: Timestamp::from_unix_millis(row.at),
    })
}

/// A stored value that no version of this program has written.
pub(super) fn invalid(what: &str) -> StoreFailure {
    StoreFailure::InvalidData(format!("{what} is invalid"))
}
