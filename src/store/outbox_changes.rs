//! What makers change in the outbox: they retry messages at once, and discard messages. Many rows are changed in several
//! short transactions, so that visitors never wait for a command.

use serde_json::{Value, json};
use uuid::Uuid;

use super::messages::{DELETE_CONTENT_HASHES, DeletedMessage, deleted_hashes_batch};
use super::statement::{Statement, batch_statement, in_transaction, on_pool};
use super::{Store, StoreFailure};
use crate::domain::limits;
use crate::domain::time::Timestamp;

/// One message, and all others of a mail that may have arrived with it: they stay together under its Message-ID.
const RETRY_ONE: &str = "UPDATE outbox SET at = $1, state = 'waiting', \
         tries = CASE state WHEN 'failed' THEN 0 ELSE tries END, \
         first_tried_at = CASE state WHEN 'failed' THEN NULL ELSE first_tried_at END \
     WHERE state IN ('waiting', 'failed') \
         AND (message = $2 OR mail = (SELECT o.mail FROM outbox o WHERE o.message = $2))";

const RETRY_FAILED: &str = "UPDATE outbox SET state = 'waiting', at = $1, tries = 0, first_tried_at = NULL \
     WHERE message IN (SELECT message FROM outbox WHERE state = 'failed' ORDER BY at LIMIT $2)";

const RETRY_WAITING: &str = "UPDATE outbox SET at = $1 \
     WHERE message IN (SELECT message FROM outbox WHERE state = 'waiting' AND at > $1 ORDER BY at LIMIT $2)";

/// Locks the rows: a message that is being sent stays.
const DISCARD: Statement = batch_statement!(
    "DELETE FROM outbox WHERE state <> 'leased' AND message IN (SELECT batch.id",
    (id text),
    ") RETURNING message, mail"
);

/// Takes messages out of mails that may have arrived, so that they go in other mails: without a deleted message, a
/// repeated mail would have different content under the same Message-ID.
const LEAVE_MAILS: Statement = batch_statement!(
    "UPDATE outbox SET mail = NULL WHERE state <> 'sent' AND mail IN (SELECT batch.mail",
    (mail text),
    ")"
);

/// As [`LEAVE_MAILS`], for all mails with a message from an address.
pub(super) const LEAVE_MAILS_WITH: &str = "UPDATE outbox SET mail = NULL WHERE state <> 'sent' AND mail IN \
     (SELECT o.mail FROM messages m JOIN outbox o ON o.message = m.id WHERE m.address = $1)";

const DELETE_MESSAGES: Statement = batch_statement!(
    "DELETE FROM messages WHERE id IN (SELECT batch.id",
    (id text),
    ") RETURNING id, address, email, name, body"
);

impl Store {
    /// Makes a message due that is waiting or has failed, and all others of the same mail if that may have arrived.
    /// Returns their number: zero if it is being sent.
    ///
    /// # Errors
    /// When the database is unavailable.
    pub async fn retry_message(&self, message: Uuid, now: Timestamp) -> Result<u64, StoreFailure> {
        let message = message.to_string();
        Ok(on_pool!(self, |pool| {
            sqlx::query(RETRY_ONE).bind(now.unix_millis()).bind(&message).execute(pool).await?.rows_affected()
        }))
    }

    /// Makes all messages due that are waiting or have failed. Returns their number.
    ///
    /// # Errors
    /// When the database is unavailable.
    pub async fn retry_all_messages(&self, now: Timestamp) -> Result<u64, StoreFailure> {
        let mut retried = 0;
        for statement in [RETRY_WAITING, RETRY_FAILED] {
            loop {
                let rows = on_pool!(self, |pool| {
                    sqlx::query(statement)
                        .bind(now.unix_millis())
                        .bind(limits::MAX_ROWS_PER_STEP)
                        .execute(pool)
                        .await?
                        .rows_affected()
                });
                retried += rows;
                if rows == 0 {
                    break;
                }
            }
        }
        Ok(retried)
    }

    /// Deletes messages, whether they were mailed or not. Counts stay. Returns the number of deleted messages: one that is
    /// being mailed stays.
    ///
    /// # Errors
    /// When the database is unavailable: some may have been deleted.
    pub async fn discard_messages(&self, messages: &[Uuid]) -> Result<u64, StoreFailure> {
        let chunk_size = usize::try_from(limits::MAX_ROWS_PER_STEP).unwrap_or(1);
        let mut discarded = 0;
        for chunk in messages.chunks(chunk_size) {
            let batch = ids_batch(chunk.iter().map(Uuid::to_string));
            discarded += in_transaction!(self, |tx, sql| {
                let rows: Vec<(String, Option<String>)> =
                    sqlx::query_as(sql(DISCARD)).bind(&batch).fetch_all(&mut *tx).await?;
                let count = rows.len() as u64;
                let mails: Value = rows.iter().map(|(_, mail)| json!({ "mail": mail })).collect();
                sqlx::query(sql(LEAVE_MAILS)).bind(mails.to_string()).execute(&mut *tx).await?;
                let batch = ids_batch(rows.into_iter().map(|(id, _)| id));
                let deleted: Vec<DeletedMessage> =
                    sqlx::query_as(sql(DELETE_MESSAGES)).bind(&batch).fetch_all(&mut *tx).await?;
                // So that the same message can be sent again.
                let hashes = deleted_hashes_batch(&deleted);
                sqlx::query(sql(DELETE_CONTENT_HASHES)).bind(&hashes).execute(&mut *tx).await?;
                count
            });
        }
        Ok(discarded)
    }
}

fn ids_batch(ids: impl Iterator<Item = String>) -> String {
    ids.map(|id| json!({ "id": id })).collect::<Value>().to_string()
}
