//! What the task of the writer shares with its handles.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use prometheus_client::metrics::histogram::Histogram;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::pace::Pace;
use crate::store::connection::StoreFailure;

#[derive(Debug)]
pub(super) struct WriterState {
    /// Writes that are queued or being written.
    pub(super) waiting: AtomicUsize,
    /// Writes that were refused because too many were queued.
    pub(super) refused: AtomicU64,
    pace: Mutex<Pace>,
    pub(super) batch_sizes: Histogram,
    pub(super) last_error: Mutex<Option<StoreFailure>>,
    pub(super) new_mail: Arc<Notify>,
}

impl Default for WriterState {
    fn default() -> Self {
        Self {
            waiting: AtomicUsize::default(),
            refused: AtomicU64::default(),
            pace: Mutex::default(),
            batch_sizes: Histogram::new((0..=10).map(|power| f64::from(1 << power))),
            last_error: Mutex::default(),
            new_mail: Arc::default(),
        }
    }
}

impl WriterState {
    /// Estimates how long a new write would wait.
    pub(super) fn expected_wait(&self) -> Duration {
        self.pace().expected_duration(self.waiting.load(Ordering::Relaxed), Instant::now())
    }

    pub(super) fn pace(&self) -> MutexGuard<'_, Pace> {
        self.pace.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The error of the last attempt to write, or `None` if it succeeded.
    pub(super) fn last_error(&self) -> MutexGuard<'_, Option<StoreFailure>> {
        self.last_error.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
