//! The only place that reads the system clock. Everything else receives a `Clock`.

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
    #[must_use]
    pub fn manual(start: Timestamp) -> Self {
        Self::Manual(Arc::new(AtomicI64::new(start.unix_millis())))
    }

    #[must_use]
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
    Timestamp::from_unix_millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}
