//! What makers change in the outbox: they retry messages at once, and discard messages. Many rows are changed in several
//! short transactions, so that visitors never wait for a command.

use uuid::Uuid;

use super::delete_messages::{delete_messages, ids_batch};
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

/// Locks those of the messages that are not being sent, so that none of them is leased before it is deleted.
const LOCK_UNLEASED: Statement = batch_statement!(
    "UPDATE outbox SET state = state WHERE state <> 'leased' AND message IN (SELECT batch.id",
    (id text),
    ") RETURNING message"
);

impl Store {
    /// Makes a message due that is waiting or has failed, and all others of the same mail if that may have arrived.
    /// Returns their number: zero if it is being sent.
    pub async fn retry_message(&self, message: Uuid, now: Timestamp) -> Result<u64, StoreFailure> {
        let message = message.to_string();
        Ok(on_pool!(self, |pool| {
            sqlx::query(RETRY_ONE).bind(now.unix_millis()).bind(&message).execute(pool).await?.rows_affected()
        }))
    }

    /// Makes all messages due that are waiting or have failed. Returns their number.
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
    pub async fn discard_messages(&self, messages: &[Uuid]) -> Result<u64, StoreFailure> {
        let chunk_size = usize::try_from(limits::MAX_ROWS_PER_STEP).unwrap_or(1);
        let mut discarded = 0;
        for chunk in messages.chunks(chunk_size) {
            let batch = ids_batch(chunk.iter().map(Uuid::to_string));
            discarded += in_transaction!(self, |tx, sql| {
                let unleased: Vec<String> =
                    sqlx::query_scalar(sql(LOCK_UNLEASED)).bind(&batch).fetch_all(&mut *tx).await?;
                delete_messages!(tx, sql, unleased).len() as u64
            });
        }
        Ok(discarded)
    }
}
