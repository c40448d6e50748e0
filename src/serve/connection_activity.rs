//! Whether an HTTP/2 connection is used. hyper closes neither one on which nothing is requested nor one whose client takes
//! nothing of a response.

use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use hyper::body::{Frame, SizeHint};
use tokio::time::{Instant, sleep, sleep_until};

use super::connections::READ_RATE;
use crate::web::ClientSlot;

/// How long a client may request nothing. The connection then has [`LAST_ANSWER_TIMEOUT`] to end in order; both together are
/// ten seconds.
const IDLE_TIMEOUT: Duration = Duration::from_secs(7);
/// How long a client that is told to end the connection may take nothing.
const LAST_ANSWER_TIMEOUT: Duration = Duration::from_secs(3);

#[derive(Debug)]
pub(super) struct Activity {
    state: Mutex<State>,
    /// How many bytes the client has taken.
    taken: Arc<AtomicU64>,
}

#[derive(Clone, Copy, Debug)]
struct State {
    in_flight: usize,
    /// Since when there are requests in flight, or none.
    since: Instant,
}

/// How a connection is not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Silence {
    RequestsNothing,
    TakesNothing,
}

impl Activity {
    pub(super) fn new(taken: Arc<AtomicU64>) -> Self {
        Self { state: Mutex::new(State { in_flight: 0, since: Instant::now() }), taken }
    }

    pub(super) fn begin_request(self: &Arc<Self>) -> InFlight {
        self.change(|in_flight| in_flight + 1);
        InFlight(Arc::clone(self))
    }

    /// Waits until the client requests nothing for too long, or takes too little of its responses.
    pub(super) async fn until_silent(&self) -> Silence {
        loop {
            let state = self.state();
            if state.in_flight == 0 {
                sleep_until(state.since + IDLE_TIMEOUT).await;
                let now = self.state();
                if now.in_flight == 0 && now.since == state.since {
                    return Silence::RequestsNothing;
                }
            } else {
                let taken = self.taken.load(Ordering::Relaxed);
                sleep(READ_RATE.period).await;
                if self.state().since == state.since && !self.took_enough_since(taken) {
                    return Silence::TakesNothing;
                }
            }
        }
    }

    /// Waits until the client takes nothing of what is left to send. As long as it does, it may go on.
    pub(super) async fn until_stalled(&self) {
        let mut taken = self.taken.load(Ordering::Relaxed);
        sleep(LAST_ANSWER_TIMEOUT).await;
        while self.state().in_flight > 0 || self.taken.load(Ordering::Relaxed) > taken {
            taken = self.taken.load(Ordering::Relaxed);
            sleep(READ_RATE.period).await;
            if !self.took_enough_since(taken) {
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
        if (state.in_flight == 0) != (in_flight == 0) {
            state.since = Instant::now();
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
        InFlightBody { body, _guards: (self, slot) }
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.change(|in_flight| in_flight - 1);
    }
}

pub(super) struct InFlightBody {
    body: Body,
    /// Dropped with the body.
    _guards: (InFlight, Option<ClientSlot>),
}

impl HttpBody for InFlightBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
