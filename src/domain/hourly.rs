//! Limits a repeated log message to one an hour.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use super::time::Timestamp;

const INTERVAL: Duration = Duration::from_hours(1);
const NEVER: i64 = i64::MIN;

/// When the message was logged last.
#[derive(Debug)]
pub struct Hourly(AtomicI64);

impl Default for Hourly {
    fn default() -> Self {
        Self(AtomicI64::new(NEVER))
    }
}

impl Hourly {
    /// Returns `true` the first time and then once an hour. Of several threads, one gets `true`.
    pub fn is_due(&self, now: Timestamp) -> bool {
        let last = self.0.load(Ordering::Relaxed);
        let elapsed = u128::from(now.unix_millis().abs_diff(last));
        if last != NEVER && elapsed < INTERVAL.as_millis() {
            return false;
        }
        self.0.compare_exchange(last, now.unix_millis(), Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_due_at_first_and_then_once_an_hour() {
        let hourly = Hourly::default();
        let now = Timestamp::from_unix_millis(1_794_744_000_000);
        assert!(hourly.is_due(now));
        assert!(!hourly.is_due(now));
        assert!(!hourly.is_due(now.after(Duration::from_mins(59))));
        assert!(hourly.is_due(now.after(Duration::from_hours(1))));
        assert!(!hourly.is_due(now.after(Duration::from_mins(119))));
        // A clock that was set back does not silence it for good.
        assert!(hourly.is_due(now.before(Duration::from_hours(24))));
    }
}
