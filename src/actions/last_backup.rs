//! When the last complete backup was made, for `check` and for the mail to the makers.

use crate::domain::limits::MAX_BACKUP_AGE;
use crate::domain::plural::quantity;
use crate::domain::time::Timestamp;
use crate::store::{Store, StoreFailure, Task};

/// What to do if it is too long ago.
pub const MAKE_A_BACKUP: &str =
    "`porchlight backup FOLDER` makes one. If a timer or cron job does it, look why it failed.";

#[derive(Clone, Copy, Debug)]
pub struct LastBackup {
    at: Timestamp,
    now: Timestamp,
}

impl LastBackup {
    /// Returns `None` if no backup was ever made: nobody expects one then.
    pub async fn of(store: &Store, now: Timestamp) -> Result<Option<Self>, StoreFailure> {
        Ok(store.last_time(Task::Backup).await?.map(|at| Self { at, now }))
    }

    pub fn is_overdue(&self) -> bool {
        self.at.until(self.now) > MAX_BACKUP_AGE
    }

    /// A sentence without its full stop.
    pub fn in_words(&self) -> String {
        let days = self.at.until(self.now).as_secs() / (24 * 60 * 60);
        format!("The last backup was made on {}, {} ago", self.at.date(), quantity(days, "day", "days"))
    }
}
