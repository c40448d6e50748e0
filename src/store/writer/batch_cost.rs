//! What a batch costs: a time for itself, and a time for each of its writes. Both are learned from recent batches.

use std::time::Duration;

/// How much a batch counts compared with the next one.
const DECAY: f64 = 7.0 / 8.0;
/// Smaller batches say little about large ones, since most of their time is the disk's: it takes some of them, of weight
/// [`MIN_TELLING_WEIGHT`], to tell what a write costs.
const MIN_TELLING_SIZE: f64 = 8.0;
const MIN_TELLING_WEIGHT: f64 = 4.0;
/// The part of the variation in time that the sizes have to explain before writes are taken to cost something.
const MIN_EXPLAINED: f64 = 0.25;

/// A weighted linear regression of durations on sizes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct BatchCost {
    weight: f64,
    size: f64,
    seconds: f64,
    size_squared: f64,
    seconds_squared: f64,
    size_times_seconds: f64,
    per_batch: f64,
    per_write: f64,
}

impl BatchCost {
    pub(super) fn record(&mut self, size: u32, duration: Duration) {
        let (size, seconds) = (f64::from(size), duration.as_secs_f64());
        for (sum, value) in [
            (&mut self.weight, 1.0),
            (&mut self.size, size),
            (&mut self.seconds, seconds),
            (&mut self.size_squared, size * size),
            (&mut self.seconds_squared, seconds * seconds),
            (&mut self.size_times_seconds, size * seconds),
        ] {
            *sum = sum.mul_add(DECAY, value);
        }
        let (mean_size, mean_seconds) = (self.size / self.weight, self.seconds / self.weight);
        let variance = mean_size.mul_add(-mean_size, self.size_squared / self.weight);
        // Batches of about the same size do not tell what a write costs, so what is known of it stays.
        if variance > (mean_size / 4.0).powi(2) {
            let covariance = mean_size.mul_add(-mean_seconds, self.size_times_seconds / self.weight);
            let seconds_variance = mean_seconds.mul_add(-mean_seconds, self.seconds_squared / self.weight);
            let is_telling = (self.size_squared / self.size >= MIN_TELLING_SIZE || self.weight >= MIN_TELLING_WEIGHT)
                && covariance > 0.0
                && covariance * covariance >= MIN_EXPLAINED * variance * seconds_variance;
            // What is not confirmed fades, since a disk or a CPU that others use makes single batches slower or faster.
            self.per_write = if is_telling { covariance / variance } else { self.per_write * DECAY };
        }
        self.per_write = self.per_write.min(mean_seconds / mean_size);
        self.per_batch = self.per_write.mul_add(-mean_size, mean_seconds).max(0.0);
    }

    /// Whether a batch of this size takes no longer than that, as far as is known.
    pub(super) fn fits(&self, size: u32, duration: Duration) -> bool {
        self.estimate(1, size) <= duration
    }

    /// Estimates the time for so many writes in so many batches.
    pub(super) fn estimate(&self, batches: u32, writes: u32) -> Duration {
        let seconds = self.per_batch.mul_add(f64::from(batches), self.per_write * f64::from(writes));
        Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The cost after batches of these sizes, whose durations are in milliseconds.
    fn cost(batches: impl IntoIterator<Item = (u32, u64)>) -> BatchCost {
        let mut cost = BatchCost::default();
        batches.into_iter().for_each(|(size, millis)| cost.record(size, Duration::from_millis(millis)));
        cost
    }

    #[test]
    fn a_database_that_is_slow_with_each_row_is_known_after_two_batches() {
        let wait = cost([(1, 5), (10, 50)]).estimate(1, 1000);
        assert!((4900..=5100).contains(&wait.as_millis()), "{wait:?}");
    }

    #[test]
    fn small_batches_tell_it_too_if_there_are_some_of_them() {
        let wait = cost([(3, 300), (7, 700)].repeat(3)).estimate(1, 100);
        assert!((9900..=10_100).contains(&wait.as_millis()), "{wait:?}");
    }

    #[test]
    fn equal_batches_do_not_make_it_forget_that() {
        let wait = cost([(1, 5), (10, 50)].into_iter().chain([(200, 1000); 100])).estimate(1, 1000);
        assert!((4900..=5100).contains(&wait.as_millis()), "{wait:?}");
    }

    #[test]
    fn small_batches_on_a_slow_disk_say_nothing_about_large_ones() {
        let wait = cost([(1, 30), (2, 70)]).estimate(1, 1000);
        assert!(wait < Duration::from_millis(100), "{wait:?}");
        let wait = cost([(1, 70), (2, 30), (1, 40), (3, 60)].repeat(5)).estimate(1, 1000);
        assert!(wait < Duration::from_millis(100), "{wait:?}");
    }

    #[test]
    fn a_disk_whose_time_varies_does_not_make_writes_expensive() {
        let wait = cost([(10, 30), (300, 70), (500, 40), (20, 80), (1000, 30)].repeat(5)).estimate(1, 1000);
        assert!(wait < Duration::from_millis(100), "{wait:?}");
    }

    #[test]
    fn batches_that_took_too_long_make_the_next_ones_smaller() {
        let mut cost = cost([(1, 5), (10, 50)].into_iter().chain([(200, 1000); 20]));
        (0..3).for_each(|_| cost.record(400, Duration::from_secs(4)));
        assert!(cost.estimate(1, 400) > Duration::from_secs(2), "{cost:?}");
        cost.record(1, Duration::from_millis(20));
        assert!(cost.estimate(1, 20) < Duration::from_secs(2), "{cost:?}");
    }

    #[test]
    fn a_database_that_is_fast_again_is_noticed() {
        let wait = cost([(1, 5), (10, 50), (400, 2000)].into_iter().chain([(1, 1); 50])).estimate(1, 1000);
        assert!(wait < Duration::from_secs(2), "{wait:?}");
    }
}
