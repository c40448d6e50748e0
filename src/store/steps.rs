//! Changes many rows in several short transactions, so that no other write waits for long.

use super::StoreFailure;
use super::failure::MAX_ATTEMPTS;
use crate::domain::limits;

/// Repeats a step until it changes fewer rows than it may, so that no transaction is long.
#[derive(Debug, Default)]
pub(super) struct Steps {
    conflicts: usize,
}

impl Steps {
    /// Returns whether the step has to be repeated, given the number of rows that it changed.
    pub(super) fn should_repeat(&mut self, changed: Result<u64, StepFailure>) -> Result<bool, StoreFailure> {
        match changed {
            Ok(rows) => {
                self.conflicts = 0;
                Ok(rows >= limits::MAX_ROWS_PER_STEP.unsigned_abs())
            }
            Err(StepFailure::Database(error))
                if StoreFailure::is_conflict(&error) && self.conflicts + 1 < MAX_ATTEMPTS =>
            {
                self.conflicts += 1;
                Ok(true)
            }
            Err(failure) => Err(failure.into()),
        }
    }
}

/// Keeps the error of sqlx, which tells whether the transaction may be repeated.
#[derive(Debug)]
pub(super) enum StepFailure {
    Database(sqlx::Error),
    Store(StoreFailure),
}

impl From<sqlx::Error> for StepFailure {
    fn from(error: sqlx::Error) -> Self {
        Self::Database(error)
    }
}

impl From<StoreFailure> for StepFailure {
    fn from(failure: StoreFailure) -> Self {
        Self::Store(failure)
    }
}

impl From<StepFailure> for StoreFailure {
    fn from(failure: StepFailure) -> Self {
        match failure {
            StepFailure::Database(error) => error.into(),
            StepFailure::Store(failure) => failure,
        }
    }
}
