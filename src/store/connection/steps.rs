//! Changes many rows in several short transactions, so that no other write waits for long.

use std::time::Duration;

use tokio::time::sleep;

use super::failure::StoreFailure;
use super::pools_and_durability::Store;
use crate::domain::limits::MAX_ROWS_PER_STEP;

/// Attempts at a transaction that conflicts with another one, see [`StoreFailure::Conflict`].
pub(in crate::store) const MAX_ATTEMPTS: usize = 5;

/// The pause between two steps. The other writers of SQLite wait for the lock by asking again after growing pauses, and would hardly
/// ever find it free; those of PostgreSQL need the processor.
const SQLITE_PAUSE: Duration = Duration::from_millis(25);
const POSTGRES_PAUSE: Duration = Duration::from_millis(5);

/// Repeats a step until it changes fewer rows than [`MAX_ROWS_PER_STEP`].
#[derive(Debug)]
pub(in crate::store) struct Steps {
    conflicts: usize,
    pause: Duration,
}

impl Store {
    pub(in crate::store) const fn steps(&self) -> Steps {
        let pause = match self {
            Self::Sqlite(_) => SQLITE_PAUSE,
            Self::Postgres(_) => POSTGRES_PAUSE,
        };
        Steps { conflicts: 0, pause }
    }
}

impl Steps {
    /// Returns whether the step has to be repeated, given the number of rows that it changed.
    pub(in crate::store) async fn should_repeat(
        &mut self,
        changed: Result<u64, StoreFailure>,
    ) -> Result<bool, StoreFailure> {
        let has_conflict = self.has_conflict(&changed);
        if !has_conflict && changed? < MAX_ROWS_PER_STEP.unsigned_abs() {
            return Ok(false);
        }
        self.rest().await;
        Ok(true)
    }

    /// Returns whether a step conflicted with another transaction and may be tried again.
    pub(in crate::store) fn has_conflict<T>(&mut self, changed: &Result<T, StoreFailure>) -> bool {
        let conflict = matches!(changed, Err(StoreFailure::Conflict(_)));
        self.conflicts = if conflict { self.conflicts + 1 } else { 0 };
        conflict && self.conflicts < MAX_ATTEMPTS
    }

    /// Lets other writers go first.
    pub(in crate::store) async fn rest(&self) {
        sleep(self.pause).await;
    }
}
