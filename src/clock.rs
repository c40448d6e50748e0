//! The only place that reads the system clock. Layers below `cli` receive a `Clock`.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::domain::time::Timestamp;

#[derive(Clone, Debug)]
pub enum Clock {
    System,
    /// Does not move until it is advanced, for tests.
    Manual(Arc<AtomicI64>),
}

impl Clock {
    pub fn manual(start: Timestamp) -> Self {
        Self::Manual(Arc::new(AtomicI64::new(start.unix_millis())))
    }

    pub fn now(&self) -> Timestamp {
        match self {
            Self::System => system_now(),
            Self::Manual(millis) => Timestamp::from_unix_millis(millis.load(Ordering::SeqCst)),
        }
    }

    /// Advances a manual clock. Does nothing to the system clock.
    pub fn advance(&self, duration: Duration) {
        if let Self::Manual(millis) = self {
            millis.store(self.now().after(duration).unix_millis(), Ordering::SeqCst);
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "the only place that may read the clock")]
fn system_now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let millis = i64::try_from(since.as_millis()).unwrap_or(i64::MAX);
    #[cfg(debug_assertions)]
    let millis = millis.saturating_add(test_offset(millis));
    Timestamp::from_unix_millis(millis)
}

/// How far the tests set the clock of this process ahead, in milliseconds, so that a command runs at the time of the
/// service beside it. A release build has no such clock.
#[cfg(debug_assertions)]
fn test_offset(millis: i64) -> i64 {
    static OFFSET: std::sync::OnceLock<i64> = std::sync::OnceLock::new();
    *OFFSET.get_or_init(|| crate::config::test_now().map_or(0, |now| now.saturating_sub(millis)))
}
