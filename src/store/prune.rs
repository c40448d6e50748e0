//! Deletes what is kept for a limited time: hashes of old messages, hashes of the recipients of letters of earlier months,
//! and messages that were forwarded long ago. Each transaction deletes a bounded number of rows.

use super::connection::{Steps, Store, StoreFailure, values};
use crate::domain::limits;
use crate::domain::time::Timestamp;

const DELETE_OLD_HASHES: &str = "DELETE FROM message_hashes WHERE hash IN \
     (SELECT hash FROM message_hashes WHERE at <= $1 LIMIT $2)";

const DELETE_OLD_MONTHS: &str = "DELETE FROM letter_months WHERE (hash, month) IN \
     (SELECT hash, month FROM letter_months WHERE month < $1 LIMIT $2)";

/// No other state follows this one.
const SELECT_FORWARDED: &str =
    "SELECT id FROM outbox WHERE kind = 'message' AND state = 'sent' AND at < $1 ORDER BY at LIMIT $2";

impl Store {
    /// Deletes the hashes of messages that are older than [`limits::DUPLICATE_MESSAGE_WINDOW`], and the hashes of the
    /// recipients of earlier months.
    pub async fn prune(&self, at: Timestamp) -> Result<(), StoreFailure> {
        let (oldest, month) = (at.before(limits::DUPLICATE_MESSAGE_WINDOW), at.month());
        let (hashes, months) = (values![oldest, limits::MAX_ROWS_PER_STEP], values![&month, limits::MAX_ROWS_PER_STEP]);
        let mut steps = Steps::default();
        while steps.should_repeat(self.run(DELETE_OLD_HASHES, hashes).await.map(|rows| rows.affected))? {}
        while steps.should_repeat(self.run(DELETE_OLD_MONTHS, months).await.map(|rows| rows.affected))? {}
        Ok(())
    }

    /// Deletes the messages that were forwarded before `oldest`, as if each was discarded. Returns their number. Messages
    /// that wait or failed stay.
    pub async fn delete_forwarded_messages(&self, oldest: Timestamp) -> Result<u64, StoreFailure> {
        let (mut deleted, mut steps) = (0, Steps::default());
        while steps.should_repeat(self.delete_some_forwarded(oldest, &mut deleted).await)? {}
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
