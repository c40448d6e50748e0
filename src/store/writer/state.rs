//! State that the writer task shares with its handles: queue length, batch durations and the last error.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use prometheus_client::metrics::histogram::Histogram;
use tokio_util::sync::CancellationToken;

use super::batch_cost::BatchCost;
use super::{MAX_BATCH, StoreFailure};

/// How long a batch is expected to take at most, if it has more than one write. It may then take four times as long as expected
/// and still end in time.
const MAX_EXPECTED_DURATION: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(super) struct WriterState {
    /// Writes that are queued or being written.
    pub waiting: AtomicUsize,
    /// Writes that were refused because too many were queued.
    pub refused: AtomicU64,
    cost: Mutex<BatchCost>,
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
            cost: Mutex::default(),
            batch_sizes: Histogram::new([1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0]),
            last_error: Mutex::default(),
            unsynced: CancellationToken::new(),
        }
    }
}

impl WriterState {
    /// Estimates how long a new write would wait.
    pub fn expected_wait(&self) -> Duration {
        let waiting = self.waiting.load(Ordering::Relaxed);
        let [batches, writes] = [waiting.div_ceil(MAX_BATCH), waiting].map(saturated);
        self.cost.lock().unwrap_or_else(PoisonError::into_inner).estimate(batches, writes)
    }

    /// The most writes that the next batch may have, so that it ends in time. A batch that does not is lost for all its callers.
    pub fn max_batch(&self) -> usize {
        let cost = *self.cost.lock().unwrap_or_else(PoisonError::into_inner);
        let halves = std::iter::successors(Some(MAX_BATCH), |size| Some(size / 2)).take_while(|size| *size > 1);
        halves.into_iter().find(|size| cost.fits(saturated(*size), MAX_EXPECTED_DURATION)).unwrap_or(1)
    }

    /// The error of the last attempt to write, or `None` if it succeeded.
    pub fn last_error(&self) -> MutexGuard<'_, Option<StoreFailure>> {
        self.last_error.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn record_batch(&self, size: usize, duration: Duration) {
        self.cost.lock().unwrap_or_else(PoisonError::into_inner).record(saturated(size), duration);
    }
}

fn saturated(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::MAX_EXPECTED_WAIT;
    use super::*;

    pub(in crate::store::writer) fn state(batch_duration: Duration, waiting: usize) -> WriterState {
        let state = WriterState::default();
        (0..100).for_each(|_| state.record_batch(1, batch_duration));
        state.waiting.store(waiting, Ordering::Relaxed);
        state
    }

    #[test]
    fn a_burst_on_a_slow_disk_is_no_overload() {
        assert_eq!(state(Duration::from_millis(50), MAX_BATCH).max_batch(), MAX_BATCH);
        assert!(state(Duration::from_millis(50), MAX_BATCH).expected_wait() < MAX_EXPECTED_WAIT);
    }

    #[test]
    fn more_than_can_be_written_in_time_is_overload() {
        assert!(state(Duration::from_millis(250), 10 * MAX_BATCH).expected_wait() > MAX_EXPECTED_WAIT);
        assert!(state(Duration::from_secs(3), 1).expected_wait() > MAX_EXPECTED_WAIT);
    }

    #[test]
    fn a_batch_that_would_take_too_long_is_overload() {
        let state = WriterState::default();
        for size in [1, 10, 100] {
            state.record_batch(size, Duration::from_millis(5) * saturated(size));
        }
        for (waiting, is_overload) in [(300, false), (MAX_BATCH, true)] {
            state.waiting.store(waiting, Ordering::Relaxed);
            assert_eq!(state.expected_wait() > MAX_EXPECTED_WAIT, is_overload, "{waiting}");
        }
        assert_eq!(state.max_batch(), 128);
    }
}
