//! What is known of the last backup, for `check`, the dashboard, the metrics and the mail to the makers.

use std::time::Duration;

use crate::domain::limits::{BUCKET_BACKUP_NOTICE, MAX_BACKUP_AGE, MAX_BUCKET_BACKUP_AGE};
use crate::domain::text::quantity;
use crate::domain::time::Timestamp;
use crate::store::{Store, StoreFailure, Task};

#[derive(Clone, Debug)]
pub struct BackupState {
    is_in_bucket: bool,
    /// When the last one was made.
    last: Option<Timestamp>,
    /// What is wrong with it.
    flaw: Option<String>,
    /// Why there is no newer one.
    failure: Option<String>,
    now: Timestamp,
}

impl BackupState {
    /// `is_in_bucket`: whether the service makes one in a bucket every day. Then those of the command do not count.
    pub async fn of(store: &Store, is_in_bucket: bool, now: Timestamp) -> Result<Self, StoreFailure> {
        let task = if is_in_bucket { Task::BucketBackup } else { Task::Backup };
        let failure = if is_in_bucket { store.task_failure(Task::BucketBackupClaim).await? } else { None };
        let (last, flaw) = (store.last_time(task).await?, store.task_failure(task).await?);
        Ok(Self { is_in_bucket, last, flaw, failure, now })
    }

    /// `None`: none was ever made.
    pub fn age(&self) -> Option<Duration> {
        self.last.map(|last| last.until(self.now))
    }

    /// What is wrong, as sentences without the last full stop. Nobody expects a backup by a command if none was ever made.
    pub fn problem(&self) -> Option<String> {
        let max_age = if self.is_in_bucket { MAX_BUCKET_BACKUP_AGE } else { MAX_BACKUP_AGE };
        match (self.failure.as_ref().or(self.flaw.as_ref()), self.in_words()) {
            (Some(why), words) => Some(format!("The backup in the bucket fails: {why}. {}", words?)),
            (None, words) => words.filter(|_| self.age().is_some_and(|age| age > max_age)),
        }
    }

    /// What is wrong and does not mend itself.
    pub fn lasting_problem(&self) -> Option<String> {
        let is_new = self.failure.is_some() && self.age().is_some_and(|age| age < BUCKET_BACKUP_NOTICE);
        self.problem().filter(|_| !is_new)
    }

    /// What to do about it.
    pub fn to_do(&self) -> &'static str {
        if self.is_in_bucket && self.failure.is_none() && self.flaw.is_some() {
            "Remove the cause. The next backup is made tomorrow."
        } else if self.is_in_bucket {
            "The service tries again every half hour. Remove what keeps it from making one."
        } else {
            "`porchlight backup FOLDER` makes one. If a timer or cron job does it, look why it failed."
        }
    }

    /// A sentence without its full stop.
    pub fn in_words(&self) -> Option<String> {
        let place = if self.is_in_bucket { " in the bucket" } else { "" };
        let Some(last) = self.last else {
            return self.is_in_bucket.then(|| "There is no backup in the bucket yet".to_owned());
        };
        let days = last.until(self.now).as_secs() / (24 * 60 * 60);
        let ago = quantity(days, "day", "days");
        Some(format!("The last backup{place} was made on {}, {ago} ago", last.date()))
    }
}
