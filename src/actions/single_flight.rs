//! Shares one run of a query between concurrent callers.

use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::Mutex;

/// Runs an operation at most once at a time. A caller gets the result of a run that began after the call, never of one
/// that was under way: so it sees every change that was committed before it called.
#[derive(Debug)]
pub(super) struct SingleFlight<T> {
    /// The number of runs that have begun.
    begun: AtomicU64,
    last: Mutex<Option<FinishedRun<T>>>,
}

#[derive(Debug)]
struct FinishedRun<T> {
    /// The first run has number 1.
    number: u64,
    result: T,
}

impl<T> Default for SingleFlight<T> {
    fn default() -> Self {
        Self { begun: AtomicU64::default(), last: Mutex::default() }
    }
}

impl<T: Clone> SingleFlight<T> {
    /// Cancel safety: if the caller whose operation runs is cancelled, the next one runs its own.
    pub(super) async fn run(&self, operation: impl Future<Output = T>) -> T {
        let begun_before = self.begun.load(Ordering::SeqCst);
        let mut last = self.last.lock().await;
        if let Some(run) = last.as_ref().filter(|run| run.number > begun_before) {
            return run.result.clone();
        }
        let number = self.begun.fetch_add(1, Ordering::SeqCst) + 1;
        let result = operation.await;
        *last = Some(FinishedRun { number, result: result.clone() });
        result
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use futures_util::future::join_all;

    use super::*;

    /// Reads `value` when it begins, as a query does, and takes a while.
    async fn read(value: &Cell<u32>, runs: &Cell<u32>) -> u32 {
        runs.set(runs.get() + 1);
        let read = value.get();
        tokio::task::yield_now().await;
        read
    }

    #[tokio::test]
    async fn callers_at_the_same_time_share_the_next_run() {
        let (flight, value, runs) = (SingleFlight::default(), Cell::new(7), Cell::new(0));
        let results = join_all((0..100).map(|_| flight.run(read(&value, &runs)))).await;
        assert_eq!(results, [7; 100]);
        assert_eq!(runs.get(), 2, "the first caller's, and one for all who came while it ran");
    }

    #[tokio::test]
    async fn a_change_before_the_call_is_seen_even_if_a_run_is_under_way() {
        let (flight, value, runs) = (SingleFlight::default(), Cell::new(1), Cell::new(0));
        let change_then_call = async {
            value.set(2);
            flight.run(read(&value, &runs)).await
        };
        assert_eq!(tokio::join!(flight.run(read(&value, &runs)), change_then_call), (1, 2));
    }

    #[tokio::test]
    async fn a_later_call_reads_again_and_a_cancelled_one_blocks_no_other() {
        let (flight, value, runs) = (SingleFlight::default(), Cell::new(1), Cell::new(0));
        assert_eq!(flight.run(read(&value, &runs)).await, 1);
        value.set(2);
        assert_eq!(flight.run(read(&value, &runs)).await, 2);
        let cancelled = futures_util::future::poll_immediate(flight.run(std::future::pending())).await;
        assert_eq!((cancelled, flight.run(read(&value, &runs)).await), (None, 2));
    }
}
