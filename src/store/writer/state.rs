//! State that the writer task shares with its handles: queue length, pace of the database and the last error.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use prometheus_client::metrics::histogram::Histogram;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::StoreFailure;
use super::pace::Pace;

#[derive(Debug)]
pub(super) struct WriterState {
    /// Writes that are queued or being written.
    pub waiting: AtomicUsize,
    /// Writes that were refused because too many were queued.
    pub refused: AtomicU64,
    pace: Mutex<Pace>,
    pub batch_sizes: Histogram,
    last_error: Mutex<Option<StoreFailure>>,
    /// Is cancelled when the database file could not be synced, see [`MaintenanceFailure::Unsynced`].
    ///
    /// [`MaintenanceFailure::Unsynced`]: crate::store::connect::MaintenanceFailure::Unsynced
    pub unsynced: CancellationToken,
}

impl Default for WriterState {
    fn default() -> Self {
        Self {
            waiting: AtomicUsize::default(),
            refused: AtomicU64::default(),
            pace: Mutex::default(),
            batch_sizes: Histogram::new([1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0]),
            last_error: Mutex::default(),
            unsynced: CancellationToken::new(),
        }
    }
}

impl WriterState {
    /// Estimates how long a new write would wait.
    pub fn expected_wait(&self) -> Duration {
        self.pace().expected_duration(self.waiting.load(Ordering::Relaxed), Instant::now())
    }

    pub fn pace(&self) -> MutexGuard<'_, Pace> {
        self.pace.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The error of the last attempt to write, or `None` if it succeeded.
    pub fn last_error(&self) -> MutexGuard<'_, Option<StoreFailure>> {
        self.last_error.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::MAX_EXPECTED_WAIT;
    use super::*;

    pub(in crate::store::writer) fn state(batch_duration: Duration, waiting: usize) -> WriterState {
        let state = WriterState::default();
        for _ in 0..100 {
            let began = Instant::now();
            state.pace().end(began, began + batch_duration, 1024, true);
        }
        state.waiting.store(waiting, Ordering::Relaxed);
        state
    }

    #[test]
    fn a_burst_on_a_slow_disk_is_no_overload() {
        assert!(state(Duration::from_millis(50), 1024).expected_wait() < MAX_EXPECTED_WAIT);
    }

    #[test]
    fn more_than_can_be_written_in_time_is_overload() {
        assert!(state(Duration::from_millis(250), 10 * 1024).expected_wait() > MAX_EXPECTED_WAIT);
        assert!(state(Duration::from_secs(3), 1).expected_wait() > MAX_EXPECTED_WAIT);
    }
}
