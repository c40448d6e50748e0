//! Deletes expired rows: hashes of old messages, and of the recipients of letters of earlier months.

use super::statement::on_pool;
use super::steps::{StepFailure, Steps};
use super::{Store, StoreFailure};
use crate::domain::limits;
use crate::domain::time::Timestamp;

const DELETE_OLD_DIGESTS: &str = "DELETE FROM message_digests WHERE digest IN \
     (SELECT digest FROM message_digests WHERE at <= $1 LIMIT $2)";

const DELETE_OLD_MONTHS: &str = "DELETE FROM letter_months WHERE (hash, month) IN \
     (SELECT hash, month FROM letter_months WHERE month < $1 LIMIT $2)";

impl Store {
    /// Deletes the hashes of messages that are older than [`limits::DUPLICATE_MESSAGE_WINDOW`], and the hashes of the
    /// recipients of earlier months. Each transaction deletes a bounded number of rows.
    ///
    /// # Errors
    /// When the database is unavailable. Rows that were deleted before stay deleted.
    pub async fn prune(&self, at: Timestamp) -> Result<(), StoreFailure> {
        let (oldest, month) = (at.before(limits::DUPLICATE_MESSAGE_WINDOW).unix_millis(), at.month());
        let mut steps = Steps::default();
        while steps.should_repeat(self.delete_old_digests(oldest).await)? {}
        while steps.should_repeat(self.delete_old_months(&month).await)? {}
        Ok(())
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
