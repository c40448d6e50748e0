//! What a connection is doing, and when its client is given up on: it requests nothing, or it takes too little of an answer, or
//! sends too little of a body for which a handler waits.
//!
//! The same rules hold for HTTP/1.1, HTTP/2 and the handshake of TLS. A connection has one timer, which looks once a second at a
//! few counters; a request sets no timer of its own. hyper would close neither an HTTP/2 connection on which nothing is
//! requested nor one whose client takes nothing of a response.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::task::Poll;
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use http_body_util::BodyExt as _;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::domain::limits::{
    MAX_CONNECTION_AGE, MAX_REQUESTS_PER_CONNECTION, MIN_READ_BYTES_PER_SECOND, SLOW_READ_PERIOD,
};
use crate::web::ClientSlot;

/// How long after the stop signal a connection without a request may still send its first one.
pub(super) const FIRST_REQUEST_TIMEOUT: Duration = Duration::from_secs(3);
/// How long after the stop signal a connection that had requests may send another one.
pub(super) const LAST_REQUEST_TIMEOUT: Duration = Duration::from_secs(1);
/// How long a client may be silent: before its first request, while the head of a request arrives, and after an answer.
const MAX_SILENCE: Duration = Duration::from_secs(10);
/// How long a proxy may be silent after an answer. It keeps connections for its next requests, and one that it sends while the
/// connection is closed fails. Many proxies close theirs after a minute.
const MAX_PROXY_SILENCE: Duration = Duration::from_secs(75);
/// How often the counters are looked at.
const INTERVAL: Duration = Duration::from_secs(1);

/// The counters of a connection.
#[derive(Debug, Default)]
pub(super) struct ConnectionState {
    requests: AtomicU32,
    /// Requests whose response was not handed over yet.
    in_flight: AtomicU32,
    /// Those of them that have no response yet. They wait for a handler, unless that waits for their body.
    handled: AtomicU32,
    /// Bytes that the client has taken, or has sent to a handler that reads them.
    moved: AtomicU64,
    /// Whether a write waits for the client.
    write_pending: AtomicBool,
    /// Whether a handler waits for more of a body.
    body_pending: AtomicBool,
    unread_body: AtomicBool,
    /// Whether what arrives while no request is being handled is the head of the next one, as over HTTP/1.1.
    between_requests_are_heads: AtomicBool,
    head_begun: AtomicBool,
    /// Cancelled when the connection takes no further request after the next one.
    retired: CancellationToken,
}

impl ConnectionState {
    /// Counts a request. The last one that the connection takes retires it.
    pub(super) fn begin_request(self: &Arc<Self>) -> InFlight {
        if self.requests.fetch_add(1, Ordering::Relaxed) + 1 >= MAX_REQUESTS_PER_CONNECTION {
            self.retire();
        }
        self.head_begun.store(false, Ordering::Relaxed);
        self.handled.fetch_add(1, Ordering::Relaxed);
        let mut in_flight = self.stay_in_use();
        in_flight.is_handled = true;
        in_flight
    }

    /// The connection is in use as long as the returned value exists.
    pub(super) fn stay_in_use(self: &Arc<Self>) -> InFlight {
        self.in_flight.fetch_add(1, Ordering::Relaxed);
        InFlight { state: Arc::clone(self), is_handled: false }
    }

    pub(super) fn had_requests(&self) -> bool {
        self.requests.load(Ordering::Relaxed) > 0
    }

    pub(super) fn retire(&self) {
        self.retired.cancel();
    }

    pub(super) const fn retired(&self) -> &CancellationToken {
        &self.retired
    }

    /// Whether the last request was answered while its body may still be arriving.
    pub(super) fn may_have_unread_body(&self) -> bool {
        self.unread_body.load(Ordering::Relaxed)
    }

    pub(super) fn set_unread_body(&self, unread: bool) {
        self.unread_body.store(unread, Ordering::Relaxed);
    }

    /// From now on, bytes that arrive while no request is being handled begin the next one.
    pub(super) fn expect_heads(&self) {
        self.between_requests_are_heads.store(true, Ordering::Relaxed);
    }

    pub(super) fn record_read(&self) {
        if self.between_requests_are_heads.load(Ordering::Relaxed) && self.in_flight.load(Ordering::Relaxed) == 0 {
            self.head_begun.store(true, Ordering::Relaxed);
        }
    }

    pub(super) fn record_write<E>(&self, result: &Poll<Result<usize, E>>) {
        self.write_pending.store(result.is_pending(), Ordering::Relaxed);
        if let Poll::Ready(Ok(count)) = result {
            self.moved.fetch_add(*count as u64, Ordering::Relaxed);
        }
    }

    /// A handler has read so much of a body, or has to wait for it.
    pub(super) fn record_body(&self, read: Poll<u64>) {
        self.body_pending.store(read.is_pending(), Ordering::Relaxed);
        if let Poll::Ready(count) = read {
            self.moved.fetch_add(count, Ordering::Relaxed);
        }
    }
}

/// One request, until its response was handed over.
#[derive(Debug)]
pub(super) struct InFlight {
    state: Arc<ConnectionState>,
    /// Whether there is no response yet.
    is_handled: bool,
}

impl InFlight {
    fn end_handling(&mut self) {
        if std::mem::take(&mut self.is_handled) {
            self.state.handled.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Returns the body, during which the request counts, and which keeps the slot.
    pub(super) fn until_end_of(
        mut self,
        body: Body,
        slot: Option<ClientSlot>,
    ) -> impl HttpBody<Data = Bytes, Error = axum::Error> + Send + 'static {
        self.end_handling();
        // The closure is dropped with the body, and both guards with it.
        body.map_err(move |error| {
            let _guards = (&self, &slot);
            error
        })
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.end_handling();
        self.state.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Why a client is given up on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ConnectionTimeout {
    /// It requests nothing, and takes nothing that is left of an answer.
    Silent,
    /// The same for a shorter time, and others need its place.
    MakesRoom,
    TooSlow,
}

/// The timer of a connection.
#[derive(Debug)]
pub(super) struct Watch {
    pub state: Arc<ConnectionState>,
    slot: ClientSlot,
    is_near: bool,
    opened: Instant,
    /// When the counters were last looked at, and what they were.
    seen: Instant,
    requests: u32,
    moved: u64,
    silent_for: Duration,
    /// For how long the client may still take or send nothing. Waiting for it uses this up, and what it takes or sends adds to
    /// it, at the rate that is required.
    allowance: Duration,
}

impl Watch {
    /// `is_near` says that the client is a proxy or a colleague.
    pub(super) fn begin(slot: ClientSlot, is_near: bool) -> Self {
        let now = Instant::now();
        Self {
            state: Arc::default(),
            slot,
            is_near,
            opened: now,
            seen: now,
            requests: 0,
            moved: 0,
            silent_for: Duration::ZERO,
            allowance: SLOW_READ_PERIOD,
        }
    }

    /// Waits until the client has been silent or too slow for too long, or until `notice` before it has been silent for that long.
    /// Retires the connection when it is old.
    pub(super) async fn timed_out(&mut self, notice: Duration) -> ConnectionTimeout {
        loop {
            sleep_until(self.seen + INTERVAL).await;
            if self.opened.elapsed() >= MAX_CONNECTION_AGE {
                self.state.retire();
            }
            self.look();
            if self.allowance.is_zero() {
                return ConnectionTimeout::TooSlow;
            }
            if self.silent_for >= self.max_silence().saturating_sub(notice) {
                return ConnectionTimeout::Silent;
            }
            if self.silent_for >= INTERVAL && self.slot.has_to_make_room() {
                return ConnectionTimeout::MakesRoom;
            }
        }
    }

    fn max_silence(&self) -> Duration {
        let is_between_requests = self.state.had_requests() && !self.state.head_begun.load(Ordering::Relaxed);
        if self.is_near && is_between_requests { MAX_PROXY_SILENCE } else { MAX_SILENCE }
    }

    fn look(&mut self) {
        let ConnectionState { requests, in_flight, handled, moved, write_pending, body_pending, .. } = &*self.state;
        let (elapsed, now) = (self.seen.elapsed(), Instant::now());
        let (requests, moved) = (requests.load(Ordering::Relaxed), moved.load(Ordering::Relaxed));
        let (in_flight, handled) = (in_flight.load(Ordering::Relaxed), handled.load(Ordering::Relaxed));
        let paid = Duration::from_millis((moved - self.moved) * 1000 / MIN_READ_BYTES_PER_SECOND);
        let waits_for_client =
            in_flight > handled || write_pending.load(Ordering::Relaxed) || body_pending.load(Ordering::Relaxed);
        if waits_for_client {
            self.allowance = (self.allowance + paid).saturating_sub(elapsed).min(SLOW_READ_PERIOD);
            self.silent_for = Duration::ZERO;
        } else if in_flight > 0 || requests != self.requests || paid >= elapsed {
            // A handler may work for longer, such as on an image that was uploaded. The end of the last answer may still be on
            // its way. Less than this answers frames that a client sends to hold an HTTP/2 connection, such as pings.
            self.silent_for = Duration::ZERO;
        } else {
            self.silent_for += elapsed;
        }
        (self.seen, self.requests, self.moved) = (now, requests, moved);
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::{advance, sleep, timeout};

    use super::*;

    const KIB: u64 = MIN_READ_BYTES_PER_SECOND;

    /// That of a distant client.
    fn watch() -> Watch {
        Watch::begin(ClientSlot::UNLIMITED, false)
    }

    /// A request that has a response, which the client takes.
    fn answered(watch: &Watch) -> InFlight {
        let mut request = watch.state.begin_request();
        request.end_handling();
        request
    }

    /// Lets a client take `bytes` at each interval, until it is given up on or an hour has passed.
    async fn given_up_after(watch: &mut Watch, bytes: u64, interval: u64) -> Option<(ConnectionTimeout, u64)> {
        let (state, start) = (Arc::clone(&watch.state), Instant::now());
        let taking = async {
            loop {
                sleep(Duration::from_secs(interval)).await;
                state.moved.fetch_add(bytes, Ordering::Relaxed);
            }
        };
        tokio::select! {
            () = taking => None,
            why = timeout(Duration::from_hours(1), watch.timed_out(Duration::ZERO)) => Some((why.ok()?, start.elapsed().as_secs())),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_without_requests_is_silent_though_single_frames_are_answered() {
        for bytes in [0, 13, 60] {
            let timed_out = given_up_after(&mut watch(), bytes, 1).await;
            assert_eq!(timed_out, Some((ConnectionTimeout::Silent, 10)), "{bytes} bytes a second");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_end_of_a_response_may_take_some_time() {
        assert_eq!(given_up_after(&mut watch(), 2 * KIB, 1).await, None);
        assert_eq!(given_up_after(&mut watch(), 16 * KIB, 8).await, None);
    }

    #[tokio::test(start_paused = true)]
    async fn silence_begins_after_the_last_request() {
        let mut watch = watch();
        for _ in 0..5 {
            assert!(timeout(Duration::from_secs(8), watch.timed_out(Duration::ZERO)).await.is_err());
            drop(watch.state.begin_request());
        }
        let request = answered(&watch);
        assert!(timeout(SLOW_READ_PERIOD * 9 / 10, watch.timed_out(Duration::ZERO)).await.is_err());
        drop(request);
        let (start, why) = (Instant::now(), watch.timed_out(Duration::ZERO).await);
        assert_eq!(why, ConnectionTimeout::Silent);
        assert!(start.elapsed() >= MAX_SILENCE && start.elapsed() <= MAX_SILENCE + 2 * INTERVAL);
    }

    /// For how long this client may be silent now.
    async fn silence_of(watch: &mut Watch) -> u64 {
        watch.silent_for = Duration::ZERO;
        let start = Instant::now();
        assert_eq!(watch.timed_out(Duration::ZERO).await, ConnectionTimeout::Silent);
        start.elapsed().as_secs()
    }

    #[tokio::test(start_paused = true)]
    async fn a_proxy_keeps_its_connection_for_over_a_minute_between_requests_alone() {
        let mut watch = Watch::begin(ClientSlot::UNLIMITED, true);
        let state = Arc::clone(&watch.state);
        assert_eq!(silence_of(&mut watch).await, 10, "before the first request");
        state.expect_heads();
        let request = state.begin_request();
        state.record_read();
        drop(request);
        assert!((75..=76).contains(&silence_of(&mut watch).await), "after the answer");
        state.record_read();
        assert_eq!(silence_of(&mut watch).await, 10, "while a head arrives");
        drop(state.begin_request());
        assert!((75..=76).contains(&silence_of(&mut watch).await), "after the next answer");
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_takes_too_little_of_an_answer_is_given_up_on() {
        for (bytes, interval, seconds) in
            [(0, 1, 30..=30), (1, 1, 30..=31), (900, 1, 200..=300), (20 * KIB, 29, 45..=60)]
        {
            let mut watch = watch();
            let _request = answered(&watch);
            let (why, after) = given_up_after(&mut watch, bytes, interval).await.unwrap();
            assert_eq!(why, ConnectionTimeout::TooSlow);
            assert!(seconds.contains(&after), "{bytes} bytes every {interval} s: {after} s");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_is_fast_enough_may_take_any_time_and_pause() {
        for (bytes, interval) in [(KIB, 1), (32 * KIB, 28)] {
            let mut watch = watch();
            watch.state.record_write::<()>(&Poll::Pending);
            assert_eq!(given_up_after(&mut watch, bytes, interval).await, None, "{bytes} bytes every {interval} s");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_sends_too_little_of_a_body_is_given_up_on_and_one_that_is_fast_enough_may_send_for_hours() {
        for (bytes, interval, seconds) in
            [(0, 1, Some(30..=30)), (900, 1, Some(200..=300)), (KIB, 1, None), (32 * KIB, 28, None)]
        {
            let mut watch = watch();
            let _request = watch.state.begin_request();
            watch.state.record_body(Poll::Pending);
            let given_up = given_up_after(&mut watch, bytes, interval).await;
            assert_eq!(given_up.is_some(), seconds.is_some(), "{bytes} bytes every {interval} s");
            if let (Some((why, after)), Some(seconds)) = (given_up, seconds) {
                assert_eq!(why, ConnectionTimeout::TooSlow);
                assert!(seconds.contains(&after), "{bytes} bytes every {interval} s: {after} s");
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_may_wait_for_any_time_until_its_request_is_handled() {
        let mut watch = watch();
        let mut request = watch.state.begin_request();
        watch.state.record_body(Poll::Pending);
        watch.state.record_body(Poll::Ready(KIB));
        assert_eq!(given_up_after(&mut watch, 0, 1).await, None);
        request.end_handling();
        assert_eq!(given_up_after(&mut watch, 0, 1).await.unwrap().0, ConnectionTimeout::TooSlow);
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_is_retired_after_an_hour_or_many_requests() {
        let mut watch = watch();
        let _request = watch.state.stay_in_use();
        advance(MAX_CONNECTION_AGE).await;
        let _ = timeout(INTERVAL, watch.timed_out(Duration::ZERO)).await;
        assert!(watch.state.retired().is_cancelled());

        let state = Arc::new(ConnectionState::default());
        for _ in 1..MAX_REQUESTS_PER_CONNECTION {
            drop(state.begin_request());
        }
        assert!(!state.retired().is_cancelled());
        drop(state.begin_request());
        assert!(state.retired().is_cancelled());
    }
}
