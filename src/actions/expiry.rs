//! Deletes what is kept for a limited time. All instances together do each part once in its period.

use std::time::Duration;

use crate::clock::Clock;
use crate::domain::contact::Retention;
use crate::store::{Store, StoreFailure, Task};

/// How often expired rows are deleted, which are kept for a day, a month or so.
const PRUNE_PERIOD: Duration = Duration::from_hours(1);
/// How often messages are deleted that were forwarded long ago, and sources beyond the largest ones of a day.
const DAILY: Duration = Duration::from_hours(24);

#[derive(Clone, Debug)]
pub struct Pruner {
    pub store: Store,
    pub clock: Clock,
    /// How long messages are kept after they were forwarded. `None`: forever.
    pub keep_messages: Option<Retention>,
}

impl Pruner {
    /// Deletes expired rows, whatever other instances did: the hashes of letters of earlier months are gone after the first
    /// start of a month.
    pub async fn start(&self) -> Result<(), StoreFailure> {
        let now = self.clock.now();
        self.store.prune_message_hashes(now).await?;
        self.store.prune_letter_months(now).await
    }

    /// Deletes what has expired, unless an instance did within the period. A part that fails leaves the others. Returns the number
    /// of deleted messages.
    pub async fn step(&self) -> Result<u64, StoreFailure> {
        let now = self.clock.now();
        let expired = self.once(Task::Prune, PRUNE_PERIOD, async {
            self.start().await?;
            self.store.prune_confirmations(now).await?;
            self.store.prune_desk(now).await
        });
        let expired = expired.await;
        let sources = self.once(Task::PruneSources, DAILY, self.store.prune_sources()).await;
        let messages = match self.keep_messages {
            None => Ok(None),
            Some(keep) => {
                let delete = self.store.delete_forwarded_messages(keep.oldest_kept(now));
                self.once(Task::DeleteMessages, DAILY, delete).await
            }
        };
        expired.and(sources)?;
        Ok(messages?.unwrap_or_default())
    }

    /// Does a part, unless an instance did within the period. A part that fails is due again in a few minutes.
    async fn once<T>(
        &self,
        task: Task,
        period: Duration,
        part: impl Future<Output = Result<T, StoreFailure>>,
    ) -> Result<Option<T>, StoreFailure> {
        let now = self.clock.now();
        if !self.store.try_claim(task, now, period).await? {
            return Ok(None);
        }
        let done = part.await?;
        self.store.record_task(task, now).await?;
        Ok(Some(done))
    }
}
