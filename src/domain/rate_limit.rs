//! Limits on how often something may happen: token buckets, kept as the one time at which the bucket is full again, and
//! log messages at most once an hour.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use crate::domain::time::Timestamp;

/// A bucket holds `burst` tokens and gains `count` in every period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateLimit {
    pub burst: u32,
    pub count: u32,
    pub period: Period,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Period {
    Second,
    Minute,
    Hour,
    Day,
}

impl Period {
    const fn parts(self) -> (Duration, &'static str) {
        match self {
            Self::Second => (Duration::from_secs(1), "a second"),
            Self::Minute => (Duration::from_mins(1), "a minute"),
            Self::Hour => (Duration::from_hours(1), "an hour"),
            Self::Day => (Duration::from_hours(24), "a day"),
        }
    }
}

impl RateLimit {
    pub const fn new(burst: u32, count: u32, period: Period) -> Self {
        Self { burst, count, period }
    }

    /// The limit of several clients together.
    pub const fn times(self, share: u32) -> Self {
        Self { burst: self.burst * share, count: self.count * share, period: self.period }
    }

    /// After how long the bucket has gained a token. Timestamps have whole milliseconds, so the time is rounded up to one.
    pub fn interval(self) -> Duration {
        let period = self.period.parts().0.as_millis();
        Duration::from_millis(u64::try_from(period.div_ceil(self.count.into())).unwrap_or(u64::MAX))
    }

    /// The rate in words, such as `10 a second`.
    pub fn per_period(self) -> String {
        format!("{} {}", self.count, self.period.parts().1)
    }

    /// Takes a token from a bucket that is full again at `full_at`, and returns when it is full again after that.
    /// `None` is a full bucket.
    pub fn take(self, full_at: Option<Timestamp>, now: Timestamp) -> Result<Timestamp, Duration> {
        let time_to_fill = self.interval() * self.burst;
        // Later than an empty bucket takes to fill is possible only if the clock was set back. When it would be full is not
        // known then, and it must not stay empty until the clock shows that time again.
        let full_at = full_at.filter(|full_at| *full_at <= now.after(time_to_fill));
        let full_at = full_at.map_or(now, |full_at| full_at.max(now)).after(self.interval());
        match now.until(full_at).saturating_sub(time_to_fill) {
            Duration::ZERO => Ok(full_at),
            wait => Err(wait),
        }
    }
}

/// Returns a time to wait for `Retry-After`: in whole seconds, rounded up.
pub fn retry_after_seconds(wait: Duration) -> u64 {
    wait.as_secs() + u64::from(wait.subsec_nanos() > 0)
}

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

    const LIMIT: RateLimit = RateLimit::new(3, 6, Period::Minute);
    const NOW: Timestamp = Timestamp::from_unix_millis(1_000_000);

    /// Takes `times` tokens, which has to succeed.
    fn take(times: u32, mut bucket: Option<Timestamp>, now: Timestamp) -> Option<Timestamp> {
        for _ in 0..times {
            bucket = Some(LIMIT.take(bucket, now).unwrap());
        }
        bucket
    }

    #[test]
    fn the_rate_is_written_as_people_say_it() {
        assert_eq!(LIMIT.per_period(), "6 a minute");
        assert_eq!(RateLimit::new(1, 10, Period::Hour).per_period(), "10 an hour");
    }

    #[test]
    fn a_full_bucket_holds_the_burst() {
        let bucket = take(3, None, NOW);
        assert_eq!(LIMIT.take(bucket, NOW), Err(Duration::from_secs(10)));
    }

    #[test]
    fn the_wait_is_true_and_a_refusal_does_not_lengthen_it() {
        let bucket = take(3, None, NOW);
        let later = NOW.after(Duration::from_millis(9_999));
        assert_eq!(LIMIT.take(bucket, later), Err(Duration::from_millis(1)));
        let bucket = take(1, bucket, NOW.after(Duration::from_secs(10)));
        assert_eq!(LIMIT.take(bucket, NOW.after(Duration::from_secs(10))), Err(Duration::from_secs(10)));
    }

    #[test]
    fn a_bucket_never_holds_more_than_the_burst() {
        let later = NOW.after(Duration::from_hours(24));
        let bucket = take(3, take(1, None, NOW), later);
        assert!(LIMIT.take(bucket, later).is_err());
    }

    #[test]
    fn a_clock_that_is_set_back_delays_nobody_for_longer_than_one_interval() {
        for ahead in [Duration::from_secs(1), Duration::from_hours(1), Duration::from_hours(24 * 365)] {
            let bucket = take(3, None, NOW.after(ahead));
            let mut waits = (0..=10).map(|seconds| LIMIT.take(bucket, NOW.after(Duration::from_secs(seconds))));
            assert!(waits.any(|wait| wait.is_ok()), "{ahead:?}");
        }
    }

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
