//! Deletes what is kept for a limited time: hashes of messages, and of the recipients of earlier months.

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
    /// Deletes the hashes of messages that are no longer compared with new ones, and those that remember who got the
    /// letter of an earlier month. Each step is a transaction of its own and deletes a bounded number of rows.
    ///
    /// # Errors
    /// When the database is unavailable. What was deleted until then stays deleted.
    pub async fn prune(&self, at: Timestamp) -> Result<(), StoreFailure> {
        let (oldest, month) = (at.before(limits::DUPLICATE_MESSAGE_WINDOW).unix_millis(), at.month());
        let mut steps = Steps::default();
        while steps.go_on(self.delete_old_digests(oldest).await)? {}
        while steps.go_on(self.delete_old_months(&month).await)? {}
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
