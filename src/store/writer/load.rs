//! How the writer is doing: what waits, how fast it goes, and what keeps it from writing.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use prometheus_client::metrics::histogram::Histogram;

use super::{BATCH, StoreFailure};

/// How much is waiting, and how fast it has gone lately.
#[derive(Debug)]
pub(super) struct Load {
    pub waiting: AtomicUsize,
    nanos_a_batch: AtomicU64,
    pub batch_sizes: Histogram,
    trouble: Mutex<Option<StoreFailure>>,
}

impl Default for Load {
    fn default() -> Self {
        let batch_sizes = Histogram::new([1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0]);
        Self {
            waiting: AtomicUsize::default(),
            nanos_a_batch: AtomicU64::default(),
            batch_sizes,
            trouble: Mutex::default(),
        }
    }
}

impl Load {
    /// Counted in batches: most of the time of a small one goes to the disk, so what a single write
    /// took says nothing of many.
    pub fn expected_wait(&self) -> Duration {
        let batches = self.waiting.load(Ordering::Relaxed).div_ceil(BATCH);
        let batches = u64::try_from(batches).unwrap_or(u64::MAX);
        Duration::from_nanos(batches.saturating_mul(self.nanos_a_batch.load(Ordering::Relaxed)))
    }

    /// Why nothing could be written the last time that it was tried, to be read or set.
    pub fn trouble(&self) -> MutexGuard<'_, Option<StoreFailure>> {
        self.trouble.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn learn(&self, took: Duration) {
        let nanos = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        let before = self.nanos_a_batch.load(Ordering::Relaxed);
        self.nanos_a_batch.store(before - before / 8 + nanos / 8, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::super::LONGEST_WAIT;
    use super::*;

    fn load(batch_takes: Duration, waiting: usize) -> Load {
        let load = Load::default();
        (0..100).for_each(|_| load.learn(batch_takes));
        load.waiting.store(waiting, Ordering::Relaxed);
        load
    }

    #[test]
    fn a_burst_after_quiet_times_on_a_slow_disk_is_no_overload() {
        assert!(load(Duration::from_millis(50), BATCH).expected_wait() < LONGEST_WAIT);
    }

    #[test]
    fn more_than_can_be_written_soon_is_overload() {
        assert!(load(Duration::from_millis(250), 10 * BATCH).expected_wait() > LONGEST_WAIT);
        assert!(load(Duration::from_secs(3), 1).expected_wait() > LONGEST_WAIT);
    }
}
