//! The one place that asks what time it is. Everybody else is handed a `Clock`.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::domain::time::Timestamp;

#[derive(Clone, Debug)]
pub enum Clock {
    System,
    /// Stands still until it is moved: for tests of what takes days.
    Held(Arc<AtomicI64>),
}

impl Clock {
    #[must_use]
    pub fn held_at(moment: Timestamp) -> Self {
        Self::Held(Arc::new(AtomicI64::new(moment.unix_millis())))
    }

    #[must_use]
    pub fn now(&self) -> Timestamp {
        match self {
            Self::System => system_now(),
            Self::Held(millis) => Timestamp::from_unix_millis(millis.load(Ordering::SeqCst)),
        }
    }

    /// Moves a held clock on; the system's goes by itself.
    pub fn advance(&self, span: Duration) {
        if let Self::Held(millis) = self {
            millis.store(self.now().after(span).unix_millis(), Ordering::SeqCst);
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "this is the place that the lint leads to")]
fn system_now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_unix_millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}
