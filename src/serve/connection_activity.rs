//! Whether an HTTP/2 connection is used. hyper closes neither one on which nothing is requested nor one whose client takes
//! nothing of a response.

use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use hyper::body::{Frame, SizeHint};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, sleep_until};

use super::connections::READ_RATE;
use crate::web::ClientSlot;

/// How long a client may request and take nothing. The connection then has [`IDLE_END_TIMEOUT`] to end in order; both together
/// are ten seconds.
const IDLE_TIMEOUT: Duration = Duration::from_secs(7);
/// How long a client that was idle may take to end the connection.
pub(super) const IDLE_END_TIMEOUT: Duration = Duration::from_secs(3);
/// How long a client without requests may take what is left to send.
const MAX_TAIL: Duration = Duration::from_mins(5);
/// Fewer bytes within [`IDLE_TIMEOUT`] are not the end of a response. They answer frames that a client sends to hold the connection:
/// settings, pings, or data of requests that were answered.
const MIN_TAIL_BYTES: u64 = 1024;
/// How often it is seen whether a client without requests still takes something.
const TAIL_INTERVAL: Duration = Duration::from_secs(1);
/// How long a body may go without handing over a part of it. A part has at most 64 KiB.
const MAX_BODY_PAUSE: Duration = Duration::from_mins(2);

#[derive(Debug)]
pub(super) struct Activity {
    state: Mutex<State>,
    /// There are requests in flight again, or none any more.
    changed: Notify,
    /// How many bytes the client has taken.
    taken: Arc<AtomicU64>,
}

#[derive(Clone, Copy, Debug)]
struct State {
    in_flight: usize,
    /// Since when there are requests in flight, or none.
    since: Instant,
    /// When a part of a response was last handed over, or the last request arrived.
    handed_over: Instant,
}

/// How a connection is not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Silence {
    RequestsNothing,
    TakesNothing,
}

impl Activity {
    pub(super) fn new(taken: Arc<AtomicU64>) -> Self {
        let now = Instant::now();
        Self { state: Mutex::new(State { in_flight: 0, since: now, handed_over: now }), changed: Notify::new(), taken }
    }

    pub(super) fn begin_request(self: &Arc<Self>) -> InFlight {
        self.change(|in_flight| in_flight + 1);
        InFlight(Arc::clone(self))
    }

    /// Waits until the client requests nothing for too long, or takes too little of its responses.
    pub(super) async fn until_silent(&self) -> Silence {
        loop {
            if self.state().in_flight == 0 {
                if self.requests_nothing().await {
                    return Silence::RequestsNothing;
                }
            } else if self.takes_nothing().await {
                return Silence::TakesNothing;
            }
        }
    }

    /// Waits until there are requests in flight, or there were none for too long.
    async fn requests_nothing(&self) -> bool {
        let (begin, mut taken) = (self.state().since, self.taken.load(Ordering::Relaxed));
        let mut last_taking = begin;
        loop {
            tokio::select! {
                () = self.changed.notified() => return false,
                () = sleep_until((last_taking + IDLE_TIMEOUT).min(Instant::now() + TAIL_INTERVAL)) => {}
            }
            // The end of the last response may still be on its way.
            let taken_now = self.taken.load(Ordering::Relaxed);
            if taken_now >= taken + MIN_TAIL_BYTES && begin.elapsed() <= MAX_TAIL {
                (taken, last_taking) = (taken_now, Instant::now());
            } else if last_taking.elapsed() >= IDLE_TIMEOUT {
                return true;
            }
        }
    }

    /// Waits until no requests are in flight, or the time to take enough of the responses is up.
    async fn takes_nothing(&self) -> bool {
        let taken = self.taken.load(Ordering::Relaxed);
        tokio::select! {
            () = self.changed.notified() => false,
            () = sleep(READ_RATE.period) => {
                !self.took_enough_since(taken) || self.state().handed_over.elapsed() > MAX_BODY_PAUSE
            }
        }
    }

    /// Waits until the client takes nothing of what is left to send for this long. As long as it does, it may go on.
    pub(super) async fn until_stalled(&self, timeout: Duration) {
        let begin = Instant::now();
        loop {
            let taken = self.taken.load(Ordering::Relaxed);
            sleep(timeout).await;
            let is_taking = self.taken.load(Ordering::Relaxed) >= taken + MIN_TAIL_BYTES;
            if !is_taking || (self.state().in_flight == 0 && begin.elapsed() > MAX_TAIL) {
                return;
            }
        }
    }

    fn took_enough_since(&self, taken: u64) -> bool {
        let required = u64::from(READ_RATE.bytes_per_second) * READ_RATE.period.as_secs();
        self.taken.load(Ordering::Relaxed) - taken >= required
    }

    fn state(&self) -> State {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(usize) -> usize) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let in_flight = change(state.in_flight);
        let now = Instant::now();
        if (state.in_flight == 0) != (in_flight == 0) {
            state.since = now;
            self.changed.notify_one();
        }
        if in_flight > state.in_flight {
            state.handed_over = now;
        }
        state.in_flight = in_flight;
    }
}

/// One request, until its response was handed over.
#[derive(Debug)]
pub(super) struct InFlight(Arc<Activity>);

impl InFlight {
    /// Returns the body, during which the request counts.
    pub(super) fn until_end_of(self, body: Body, slot: Option<ClientSlot>) -> InFlightBody {
        InFlightBody { body, in_flight: self, _slot: slot }
    }
}

impl InFlight {
    fn handed_over(&self) {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner).handed_over = Instant::now();
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.change(|in_flight| in_flight - 1);
    }
}

pub(super) struct InFlightBody {
    body: Body,
    in_flight: InFlight,
    /// Dropped with the body.
    _slot: Option<ClientSlot>,
}

impl HttpBody for InFlightBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let frame = Pin::new(&mut self.body).poll_frame(context);
        if frame.is_ready() {
            self.in_flight.handed_over();
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts this many bytes as taken every second, until the connection is silent, and returns how long that was.
    async fn silent_after(bytes_per_second: u64) -> Duration {
        let (taken, begin) = (Arc::new(AtomicU64::new(0)), Instant::now());
        let activity = Activity::new(Arc::clone(&taken));
        let taking = async {
            loop {
                taken.fetch_add(bytes_per_second, Ordering::Relaxed);
                sleep(Duration::from_secs(1)).await;
            }
        };
        tokio::select! {
            silence = activity.until_silent() => assert_eq!(silence, Silence::RequestsNothing),
            () = taking => {}
        }
        begin.elapsed()
    }

    #[tokio::test(start_paused = true)]
    async fn answers_to_single_frames_do_not_hold_an_idle_connection() {
        for bytes in [0, 13, 60] {
            assert_eq!(silent_after(bytes).await, IDLE_TIMEOUT, "{bytes} bytes a second");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_end_of_a_response_may_take_some_time() {
        let silent_after = silent_after(2 * MIN_TAIL_BYTES).await;
        assert!(silent_after > MAX_TAIL && silent_after < MAX_TAIL + 2 * IDLE_TIMEOUT, "{silent_after:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_taken_at_the_beginning_delays_the_end_by_a_moment_only() {
        let (taken, begin) = (Arc::new(AtomicU64::new(0)), Instant::now());
        let activity = Activity::new(Arc::clone(&taken));
        let taking = async {
            sleep(Duration::from_millis(100)).await;
            taken.fetch_add(10 * MIN_TAIL_BYTES, Ordering::Relaxed);
            std::future::pending::<()>().await;
        };
        tokio::select! {
            _ = activity.until_silent() => {}
            () = taking => {}
        }
        assert!(begin.elapsed() <= IDLE_TIMEOUT + TAIL_INTERVAL, "{:?}", begin.elapsed());
    }
}
