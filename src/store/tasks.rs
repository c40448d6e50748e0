//! When something was done last that all instances together do once in a period, or that a command did.

use std::time::Duration;

use super::connection::{Store, StoreFailure, Transaction, values};
use crate::domain::parse::word_enum;
use crate::domain::time::Timestamp;

word_enum! {
    pub enum Task {
        /// Expired rows are deleted.
        Prune = "prune",
        /// Sources are deleted that are beyond the largest ones of a day.
        PruneSources = "prune_sources",
        /// Messages are deleted that were forwarded long ago.
        DeleteMessages = "delete_messages",
        /// The makers are told by mail what needs attention.
        Alert = "alert",
        /// A complete backup was made.
        Backup = "backup",
        /// There was a backup in the bucket, and what was wrong with it.
        BucketBackup = "bucket_backup",
        /// When an instance was last at work on that backup, and why the last attempt failed.
        BucketBackupClaim = "bucket_backup_claim",
        /// A link to sign in to the desk was mailed.
        SignInMail = "sign_in_mail",
        /// A copy of a letter may be sent, by one of all senders.
        LetterTurn = "letter_turn",
    }
}

/// How long nobody else begins a task that somebody has begun.
const CLAIM_PERIOD: Duration = Duration::from_mins(10);

/// A turn that is further ahead was taken with a wrong clock. The longest interval is a second.
const MAX_TURN_WAIT: Duration = Duration::from_mins(1);

/// A time that is far ahead was written with a wrong clock. One that is a little ahead was written by another instance.
const TRY_CLAIM: &str = "INSERT INTO tasks (name, at) VALUES ($1, $2) \
     ON CONFLICT (name) DO UPDATE SET at = excluded.at WHERE tasks.at <= $3 OR tasks.at > $4";

const RECORD: &str = "INSERT INTO tasks (name, at) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET at = excluded.at";

const RECORD_OUTCOME: &str = "INSERT INTO tasks (name, at, failure) VALUES ($1, $2, $3) \
     ON CONFLICT (name) DO UPDATE SET at = excluded.at, failure = excluded.failure";

const SELECT_FAILURE: &str = "SELECT failure FROM tasks WHERE name = $1 AND failure IS NOT NULL";

const SELECT: &str = "SELECT at FROM tasks WHERE name = $1";

impl Transaction {
    /// Returns whether the task is due, and if so records that it was done now, in a transaction with what the task does.
    pub(in crate::store) async fn claim_done(
        &mut self,
        task: Task,
        now: Timestamp,
        period: Duration,
    ) -> Result<bool, StoreFailure> {
        let values = values![task.as_str(), now, now.before(period), now.after(period)];
        Ok(self.run(TRY_CLAIM, values).await?.affected > 0)
    }

    /// Takes the one turn there is in each `interval`. Returns when the next one is if somebody else has taken it.
    pub(in crate::store) async fn try_claim_interval(
        &mut self,
        task: Task,
        now: Timestamp,
        interval: Duration,
    ) -> Result<Option<Timestamp>, StoreFailure> {
        let values = values![task.as_str(), now.after(interval), now, now.after(MAX_TURN_WAIT)];
        if self.run(TRY_CLAIM, values).await?.affected > 0 {
            return Ok(None);
        }
        Ok(self.run(SELECT, values![task.as_str()]).await?.column()?.pop())
    }

    /// As [`Store::record_task`]. Other transactions that record the same task wait for the end of this one.
    pub(in crate::store) async fn record_task(&mut self, task: Task, at: Timestamp) -> Result<(), StoreFailure> {
        self.run(RECORD, values![task.as_str(), at]).await.map(drop)
    }
}

impl Store {
    /// Returns whether the task is due, and if so claims it for ten minutes. Whoever has done it records that with
    /// [`Self::record_task`]; otherwise it is due again afterwards.
    pub async fn try_claim(&self, task: Task, now: Timestamp, period: Duration) -> Result<bool, StoreFailure> {
        let due_again = now.before(period).after(CLAIM_PERIOD);
        let values = values![task.as_str(), due_again, now.before(period), now.after(period)];
        Ok(self.run(TRY_CLAIM, values).await?.affected > 0)
    }

    /// Records that a task was done, or that a command did something.
    pub async fn record_task(&self, task: Task, at: Timestamp) -> Result<(), StoreFailure> {
        self.run(RECORD, values![task.as_str(), at]).await.map(drop)
    }

    /// Returns when it was done last, if it ever was.
    pub async fn last_time(&self, task: Task) -> Result<Option<Timestamp>, StoreFailure> {
        Ok(self.run(SELECT, values![task.as_str()]).await?.column()?.pop())
    }

    /// As [`Self::record_task`], with what went wrong.
    pub async fn record_outcome(&self, task: Task, at: Timestamp, failure: Option<&str>) -> Result<(), StoreFailure> {
        self.run(RECORD_OUTCOME, values![task.as_str(), at, failure]).await.map(drop)
    }

    /// Returns what went wrong, if anything did.
    pub async fn task_failure(&self, task: Task) -> Result<Option<String>, StoreFailure> {
        Ok(self.run(SELECT_FAILURE, values![task.as_str()]).await?.column()?.pop())
    }
}
