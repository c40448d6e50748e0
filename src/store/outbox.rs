//! The messages on their way to the makers' mailbox: who may hand over which, and how it went.
//!
//! A mail is claimed by a lease that ends by itself, so nothing is open while a mail server speaks,
//! and whatever a worker that died had in hand is free again. What makes a mail, when and how often
//! it is tried is decided elsewhere.

use serde_json::{Value, json};
use uuid::Uuid;

use super::statement::{Statement, in_transaction, on_pool, over_batch, row};
use super::{Store, StoreFailure};
use crate::domain::contact::{ContactMessage, ReceivedMessage};
use crate::domain::email::EmailAddress;
use crate::domain::text::{MessageText, SenderName};
use crate::domain::time::Timestamp;

/// A message that may be handed over now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DueMessage {
    pub id: Uuid,
    /// The mail it was in before, if that may have arrived: it goes again in no other.
    pub mail: Option<Uuid>,
    /// How many may share its mail, if that is known to matter.
    pub max_digest: Option<usize>,
    pub tries: u32,
}

/// What is to be handed over by whom until when.
#[derive(Clone, Debug)]
pub struct MessageLease {
    pub id: Uuid,
    pub mail: Uuid,
    pub messages: Vec<Uuid>,
    pub at: Timestamp,
    pub until: Timestamp,
}

/// How handing over went that did not succeed.
#[derive(Clone, Debug)]
pub struct DeliveryFailure {
    pub at: Timestamp,
    pub retry_at: Timestamp,
    /// What was first tried before this is not tried again.
    pub give_up_if_first_tried_by: Timestamp,
    pub may_have_arrived: bool,
    /// How many may share a mail from now on, if the mail server did not like so many.
    pub max_digest: Option<usize>,
    pub reason: String,
}

/// Those of one mail stand together, and before all that is in none, so that a limit cuts no mail.
const SELECT_DUE: &str = "SELECT message, mail, most_together, tries FROM outbox \
     WHERE state IN ('waiting', 'leased') AND at <= $1 \
     ORDER BY CASE WHEN mail IS NULL THEN 1 ELSE 0 END, mail, message LIMIT $2";

const SELECT_NEXT: &str = "SELECT MIN(at) FROM outbox WHERE state IN ('waiting', 'leased')";

const SELECT_RECENT: &str = "SELECT COUNT(DISTINCT mail), MAX(at) FROM outbox WHERE state = 'sent' AND at > $1";

const CLAIM: Statement = over_batch!(
    "UPDATE outbox SET state = 'leased', lease = $2, mail = $3, at = $5, \
         first_tried_at = COALESCE(first_tried_at, $4) \
     WHERE state IN ('waiting', 'leased') AND at <= $4 AND message IN (SELECT batch.id",
    (id text),
    ")"
);

const SELECT_CLAIMED: &str = "SELECT m.id, m.email, m.name, m.body, m.at FROM messages m \
     JOIN outbox o ON o.message = m.id WHERE o.lease = $1 ORDER BY m.id";

const RENEW: &str = "UPDATE outbox SET at = $2 WHERE lease = $1";

const MARK_SENT: &str = "UPDATE outbox SET state = 'sent', at = $2, tries = tries + 1, lease = NULL, trouble = NULL \
     WHERE lease = $1";

/// Whoever only waits for the mail server to come back need not wait any longer.
const FREE_WAITING: &str = "UPDATE outbox SET at = $1 WHERE state = 'waiting' AND at > $1 AND most_together IS NULL";

const MARK_FAILED: &str = "UPDATE outbox SET \
         state = CASE WHEN first_tried_at <= $3 THEN 'failed' ELSE 'waiting' END, \
         at = CASE WHEN first_tried_at <= $3 THEN $2 ELSE $4 END, \
         mail = CASE WHEN $5 = 1 THEN mail END, \
         most_together = COALESCE($6, most_together), \
         tries = tries + 1, lease = NULL, trouble = $7 \
     WHERE lease = $1";

row! {
    pub(super) struct MessageRow {
        pub id: String,
        pub email: String,
        pub name: Option<String>,
        pub body: String,
        pub at: i64,
    }
}

impl Store {
    /// The messages that may be handed over, those first that must go in the mail they were in.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn due_messages(&self, now: Timestamp, most: usize) -> Result<Vec<DueMessage>, StoreFailure> {
        type Row = (String, Option<String>, Option<i64>, i64);
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        let rows: Vec<Row> = on_pool!(self, |pool| {
            sqlx::query_as(SELECT_DUE).bind(now.unix_millis()).bind(most).fetch_all(pool).await?
        });
        rows.into_iter()
            .map(|(message, mail, most_together, tries)| {
                Ok(DueMessage {
                    id: name(&message)?,
                    mail: mail.as_deref().map(name).transpose()?,
                    max_digest: most_together.and_then(|most| usize::try_from(most).ok()),
                    tries: u32::try_from(tries).unwrap_or(u32::MAX),
                })
            })
            .collect()
    }

    /// When the next message may be handed over, if any is left.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn next_due(&self) -> Result<Option<Timestamp>, StoreFailure> {
        let (at,): (Option<i64>,) = on_pool!(self, |pool| sqlx::query_as(SELECT_NEXT).fetch_one(pool).await?);
        Ok(at.map(Timestamp::from_unix_millis))
    }

    /// How many mails were handed over since then, and when the last one was.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn mails_sent_since(&self, then: Timestamp) -> Result<(u32, Option<Timestamp>), StoreFailure> {
        let (count, last): (i64, Option<i64>) =
            on_pool!(self, |pool| sqlx::query_as(SELECT_RECENT).bind(then.unix_millis()).fetch_one(pool).await?);
        Ok((u32::try_from(count).unwrap_or(u32::MAX), last.map(Timestamp::from_unix_millis)))
    }

    /// Takes the messages for this lease, all of them or none: `None` when somebody else was faster.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn lease_messages(&self, claim: &MessageLease) -> Result<Option<Vec<ReceivedMessage>>, StoreFailure> {
        let batch = claim.messages.iter().map(|id| json!({ "id": id })).collect::<Value>().to_string();
        let (lease, mail) = (claim.id.to_string(), claim.mail.to_string());
        let rows: Vec<MessageRow> = in_transaction!(self, |tx, words| {
            let claimed = sqlx::query(words(CLAIM))
                .bind(&batch)
                .bind(&lease)
                .bind(&mail)
                .bind(claim.at.unix_millis())
                .bind(claim.until.unix_millis())
                .execute(&mut *tx)
                .await?;
            if usize::try_from(claimed.rows_affected()) != Ok(claim.messages.len()) {
                return Ok(None);
            }
            sqlx::query_as(SELECT_CLAIMED).bind(&lease).fetch_all(&mut *tx).await?
        });
        rows.iter().map(received).collect::<Result<_, _>>().map(Some)
    }

    /// Keeps the lease until then.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn renew_lease(&self, lease: Uuid, until: Timestamp) -> Result<(), StoreFailure> {
        let lease = lease.to_string();
        on_pool!(self, |pool| {
            sqlx::query(RENEW).bind(&lease).bind(until.unix_millis()).execute(pool).await?;
        });
        Ok(())
    }

    /// Notes that the mail server took the mail, and lets those go that waited for it to be back.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn mark_sent(&self, lease: Uuid, at: Timestamp) -> Result<(), StoreFailure> {
        let (lease, at) = (lease.to_string(), at.unix_millis());
        in_transaction!(self, |tx, _words| {
            sqlx::query(MARK_SENT).bind(&lease).bind(at).execute(&mut *tx).await?;
            sqlx::query(FREE_WAITING).bind(at).execute(&mut *tx).await?;
        });
        Ok(())
    }

    /// Notes that the mail was not handed over, or not for certain.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn mark_failed(&self, lease: Uuid, delivery_failure: &DeliveryFailure) -> Result<(), StoreFailure> {
        let lease = lease.to_string();
        let most_together = delivery_failure.max_digest.and_then(|most| i64::try_from(most).ok());
        on_pool!(self, |pool| {
            sqlx::query(MARK_FAILED)
                .bind(&lease)
                .bind(delivery_failure.at.unix_millis())
                .bind(delivery_failure.give_up_if_first_tried_by.unix_millis())
                .bind(delivery_failure.retry_at.unix_millis())
                .bind(i64::from(delivery_failure.may_have_arrived))
                .bind(most_together)
                .bind(&delivery_failure.reason)
                .execute(pool)
                .await?;
        });
        Ok(())
    }
}

fn name(text: &str) -> Result<Uuid, StoreFailure> {
    Uuid::parse_str(text).map_err(|_| unreadable("the name of a message"))
}

pub(super) fn received(row: &MessageRow) -> Result<ReceivedMessage, StoreFailure> {
    let name_of_sender = row.name.as_deref().map(SenderName::parse).transpose();
    Ok(ReceivedMessage {
        id: name(&row.id)?,
        message: ContactMessage {
            name: name_of_sender.map_err(|_| unreadable("the sender of a message"))?,
            email: EmailAddress::parse(&row.email).map_err(|_| unreadable("the address of a message"))?,
            message: MessageText::parse(&row.body).map_err(|_| unreadable("the words of a message"))?,
        },
        at: Timestamp::from_unix_millis(row.at),
    })
}

pub(super) fn unreadable(what: &str) -> StoreFailure {
    StoreFailure::Refused(format!("{what} is not of a form that was ever stored"))
}
