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
        if !self.has_conflict(&changed) && changed? < MAX_ROWS_PER_STEP.unsigned_abs() {
            return Ok(false);
        }
        sleep(self.pause).await;
        Ok(true)
    }

    /// For steps that are known in advance: returns whether this one has to be repeated, because it conflicted with another
    /// transaction. Pauses before the next one in any case.
    pub(in crate::store) async fn should_repeat_this<T>(&mut self, changed: &Result<T, StoreFailure>) -> bool {
        let has_conflict = self.has_conflict(changed);
        sleep(self.pause).await;
        has_conflict
    }

    fn has_conflict<T>(&mut self, changed: &Result<T, StoreFailure>) -> bool {
        let conflict = matches!(changed, Err(StoreFailure::Conflict(_)));
        self.conflicts = if conflict { self.conflicts + 1 } else { 0 };
        conflict && self.conflicts < MAX_ATTEMPTS
    }
}
