//! How many writes a batch may hold, and how long writes take. Both are learned from recent batches.
//!
//! A batch takes a fixed time, such as that of a sync, and a time for each write. The fixed time is that of the fastest batch.
//! The last batches tell the rest, but for the one that took longest for each write: it may have waited for a lock. A few writes
//! say little, so [`MIN_WRITES`] are assumed at least.

use std::time::Duration;

use tokio::time::Instant;

use crate::store::connection::MAX_BATCH_DURATION;

/// Most writes in one batch.
const MAX_WRITES: usize = 1024;
/// Fewest writes that a batch may hold. A database that stores fewer in a second is no use.
const MIN_WRITES: usize = 16;
/// The first limit. It doubles quickly if the database is fast.
const FIRST_LIMIT: usize = 64;

/// The pace at which the database stores batches.
#[derive(Debug)]
pub(super) struct Pace {
    limit: usize,
    /// The number of writes of the last batches, and how long they took, newest first.
    recent: [(usize, Duration); 4],
    /// How long the fastest batch took. It grows slowly, so that it follows a database that has become slower.
    fixed: Duration,
    /// When the batch in flight was begun.
    begun: Option<Instant>,
}

impl Default for Pace {
    fn default() -> Self {
        Self { limit: FIRST_LIMIT, recent: [(0, Duration::ZERO); 4], fixed: Duration::MAX, begun: None }
    }
}

impl Pace {
    /// Most writes that the next batch may hold.
    pub(super) const fn limit(&self) -> usize {
        self.limit
    }

    pub(super) const fn begin(&mut self, now: Instant) {
        self.begun = Some(now);
    }

    /// A batch was stored or failed. One that failed late may have been too large.
    pub(super) fn end(&mut self, began: Instant, now: Instant, writes: usize, is_stored: bool) {
        self.begun = None;
        let duration = now - began;
        if is_stored {
            self.recent.rotate_right(1);
            self.recent[0] = (writes, duration);
            self.fixed = duration.min(self.fixed.saturating_add(self.fixed / 100));
        }
        if !is_stored && duration > MAX_BATCH_DURATION {
            self.limit = (self.limit / 4).max(MIN_WRITES);
        } else if self.recent[..2].iter().all(|(_, duration)| *duration > MAX_BATCH_DURATION) {
            self.limit = (self.limit / 2).max(MIN_WRITES);
        } else if writes >= self.limit && duration <= MAX_BATCH_DURATION / 2 {
            self.limit = (self.limit * 2).min(MAX_WRITES);
        }
    }

    /// Estimates how long it takes to store these writes. A batch takes at least as long as the one in flight has taken
    /// already.
    pub(super) fn expected_duration(&self, writes: usize, now: Instant) -> Duration {
        let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        let batches = number(writes.div_ceil(self.limit));
        let in_flight = self.begun.map_or(Duration::ZERO, |begun| now - begun);
        let mut recent = self.recent;
        recent.sort_unstable_by_key(|(writes, duration)| *duration / number(*writes).max(1));
        let [usual @ .., _] = recent;
        let fixed = self.fixed.min(usual[2].1);
        let stored: usize = usual.iter().map(|(writes, _)| writes).sum();
        let variable: Duration = usual.iter().map(|(_, duration)| duration.saturating_sub(fixed)).sum();
        let of_writes = variable.saturating_mul(number(writes)) / number(stored.max(MIN_WRITES));
        let learned = fixed.saturating_mul(batches).saturating_add(of_writes);
        learned.max(in_flight.saturating_mul(batches))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Stores batches that are as large as allowed, and returns the limit after the last one.
    fn store_batches(pace: &mut Pace, count: usize, duration: impl Fn(usize) -> Duration) -> usize {
        for _ in 0..count {
            let began = Instant::now();
            pace.end(began, began + duration(pace.limit()), pace.limit(), true);
        }
        pace.limit()
    }

    fn fail(pace: &mut Pace, duration: Duration) {
        let began = Instant::now();
        pace.end(began, began + duration, 1000, false);
    }

    fn millis(millis: usize) -> Duration {
        Duration::from_millis(millis as u64)
    }

    #[test]
    fn a_fast_database_soon_gets_the_largest_batches() {
        assert_eq!(store_batches(&mut Pace::default(), 4, |_| millis(50)), MAX_WRITES);
    }

    #[test]
    fn batches_of_a_database_that_is_slow_with_each_row_take_no_longer_than_allowed() {
        for per_write in [2, 4, 20, 50] {
            let limit = store_batches(&mut Pace::default(), 10, |writes| millis(per_write * writes));
            assert!((400..=1000).contains(&(per_write * limit)), "{limit} writes of {per_write} ms");
        }
    }

    #[test]
    fn a_database_that_is_fast_again_gets_larger_batches_again() {
        let mut pace = Pace::default();
        store_batches(&mut pace, 10, |writes| millis(20 * writes));
        assert_eq!(store_batches(&mut pace, 10, |_| millis(5)), MAX_WRITES);
    }

    #[test]
    fn a_single_slow_batch_changes_nothing() {
        let mut pace = Pace::default();
        store_batches(&mut pace, 10, |_| millis(5));
        let began = Instant::now();
        pace.end(began, began + millis(1500), 3, true);
        assert_eq!((pace.limit(), pace.expected_duration(1024, began)), (MAX_WRITES, millis(5)));
    }

    #[test]
    fn small_batches_tell_how_long_large_ones_take() {
        let mut pace = Pace::default();
        let began = Instant::now();
        for writes in [1, 8, 3, 8] {
            pace.end(began, began + millis(5 + 20 * writes), writes, true);
        }
        let expected = pace.expected_duration(96, began);
        assert!((millis(1000)..millis(2100)).contains(&expected), "{expected:?}");
    }

    #[test]
    fn a_few_slow_writes_at_first_do_not_make_a_burst_an_overload() {
        let mut pace = Pace::default();
        let began = Instant::now();
        for duration in [20, 60, 30] {
            pace.end(began, began + millis(duration), 1, true);
        }
        let expected = pace.expected_duration(128, began);
        assert!(expected < millis(500), "{expected:?}");
    }

    #[test]
    fn a_slow_disk_does_not_make_batches_smaller() {
        assert_eq!(store_batches(&mut Pace::default(), 10, |_| millis(500)), MAX_WRITES);
    }

    #[test]
    fn a_batch_that_failed_late_makes_the_next_ones_smaller_and_one_that_failed_at_once_does_not() {
        let mut pace = Pace::default();
        store_batches(&mut pace, 10, |_| millis(5));
        fail(&mut pace, millis(1));
        assert_eq!(pace.limit(), MAX_WRITES);
        fail(&mut pace, millis(4000));
        assert_eq!(pace.limit(), 256);
        for _ in 0..3 {
            fail(&mut pace, millis(4000));
        }
        assert_eq!(pace.limit(), MIN_WRITES);
    }

    #[test]
    fn the_expected_duration_is_that_of_all_batches() {
        let mut pace = Pace::default();
        store_batches(&mut pace, 10, |_| millis(250));
        let now = Instant::now();
        assert_eq!(pace.expected_duration(0, now), Duration::ZERO);
        assert_eq!(pace.expected_duration(1, now), millis(250));
        assert_eq!(pace.expected_duration(10 * MAX_WRITES, now), millis(2500));
    }

    #[test]
    fn a_batch_in_flight_that_takes_longer_than_the_last_ones_is_noticed_before_its_end() {
        let mut pace = Pace::default();
        store_batches(&mut pace, 10, |_| millis(5));
        let began = Instant::now();
        pace.begin(began);
        assert_eq!(pace.expected_duration(MAX_WRITES, began + millis(700)), millis(700));
        pace.end(began, began + millis(900), 1, true);
        assert_eq!(pace.expected_duration(MAX_WRITES, began + millis(2000)), millis(5));
    }
}
