//! Changes many rows in several short transactions, so that no other write waits for long.

use super::failure::{MAX_ATTEMPTS, StoreFailure};
use crate::domain::limits;

/// Repeats a step until it changes fewer rows than it may.
#[derive(Debug, Default)]
pub(in crate::store) struct Steps {
    conflicts: usize,
}

impl Steps {
    /// Returns whether the step has to be repeated, given the number of rows that it changed.
    pub(in crate::store) fn should_repeat(&mut self, changed: Result<u64, StoreFailure>) -> Result<bool, StoreFailure> {
        match changed {
            Ok(rows) => {
                self.conflicts = 0;
                Ok(rows >= limits::MAX_ROWS_PER_STEP.unsigned_abs())
            }
            Err(StoreFailure::Conflict(_)) if self.conflicts + 1 < MAX_ATTEMPTS => {
                self.conflicts += 1;
                Ok(true)
            }
            Err(failure) => Err(failure),
        }
    }
}
