//! Deletes what is kept for a limited time: hashes of old messages, hashes of the recipients of letters of earlier months,
//! and messages that were forwarded long ago.

use super::delete_messages::delete_messages;
use super::statement::{in_transaction, on_pool};
use super::steps::{StepFailure, Steps};
use super::{Store, StoreFailure};
use crate::domain::limits;
use crate::domain::time::Timestamp;

const DELETE_OLD_DIGESTS: &str = "DELETE FROM message_digests WHERE digest IN \
     (SELECT digest FROM message_digests WHERE at <= $1 LIMIT $2)";

const DELETE_OLD_MONTHS: &str = "DELETE FROM letter_months WHERE (hash, month) IN \
     (SELECT hash, month FROM letter_months WHERE month < $1 LIMIT $2)";

/// No other state follows this one.
const SELECT_FORWARDED: &str = "SELECT message FROM outbox WHERE state = 'sent' AND at < $1 ORDER BY at LIMIT $2";

impl Store {
    /// Deletes the hashes of messages that are older than [`limits::DUPLICATE_MESSAGE_WINDOW`], and the hashes of the
    /// recipients of earlier months. Each transaction deletes a bounded number of rows.
    pub async fn prune(&self, at: Timestamp) -> Result<(), StoreFailure> {
        let (oldest, month) = (at.before(limits::DUPLICATE_MESSAGE_WINDOW).unix_millis(), at.month());
        let mut steps = Steps::default();
        while steps.should_repeat(self.delete_old_digests(oldest).await)? {}
        while steps.should_repeat(self.delete_old_months(&month).await)? {}
        Ok(())
    }

    /// Deletes the messages that were forwarded before `oldest`, as if each was discarded. Returns their number. Messages
    /// that wait or failed stay. Each transaction deletes a bounded number of messages.
    pub async fn delete_forwarded_messages(&self, oldest: Timestamp) -> Result<u64, StoreFailure> {
        let (mut deleted, mut steps) = (0, Steps::default());
        while steps.should_repeat(self.delete_some_forwarded(oldest, &mut deleted).await)? {}
        Ok(deleted)
    }

    async fn delete_some_forwarded(&self, oldest: Timestamp, deleted: &mut u64) -> Result<u64, StepFailure> {
        let messages = in_transaction!(self, |tx, sql| {
            let ids: Vec<String> = sqlx::query_scalar(SELECT_FORWARDED)
                .bind(oldest.unix_millis())
                .bind(limits::MAX_ROWS_PER_STEP)
                .fetch_all(&mut *tx)
                .await?;
            delete_messages!(tx, sql, ids).len() as u64
        });
        *deleted += messages;
        Ok(messages)
    }

    async fn delete_old_digests(&self, oldest: i64) -> Result<u64, StepFailure> {
        Ok(on_pool!(self, |pool| sqlx::query(DELETE_OLD_DIGESTS)
            .bind(oldest)
            .bind(limits::MAX_ROWS_PER_STEP)
            .execute(pool)
            .await?
            .rows_affected()))
    }

    async fn delete_old_months(&self, month: &str) -> Result<u64, StepFailure> {
        Ok(on_pool!(self, |pool| sqlx::query(DELETE_OLD_MONTHS)
            .bind(month)
            .bind(limits::MAX_ROWS_PER_STEP)
            .execute(pool)
            .await?
            .rows_affected()))
    }
}
