//! How long a connection lives: for a number of requests, and for some time.
//!
//! A client that is balanced to one instance, or to an address that is going away, then connects anew.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use tokio::time::Instant;

use crate::domain::limits::{MAX_CONNECTION_AGE, MAX_REQUESTS_PER_CONNECTION};

#[derive(Debug)]
pub(super) struct ConnectionLife {
    opened: Instant,
    requests: AtomicU32,
    unread_body: AtomicBool,
    ending: AtomicBool,
}

impl ConnectionLife {
    pub(super) fn begin() -> Self {
        Self {
            opened: Instant::now(),
            requests: AtomicU32::new(0),
            unread_body: AtomicBool::new(false),
            ending: AtomicBool::new(false),
        }
    }

    pub(super) fn had_requests(&self) -> bool {
        self.requests.load(Ordering::Relaxed) > 0
    }

    /// Whether the last request was answered while its body may still be arriving.
    pub(super) fn may_have_unread_body(&self) -> bool {
        self.unread_body.load(Ordering::Relaxed)
    }

    pub(super) fn set_unread_body(&self, unread: bool) {
        self.unread_body.store(unread, Ordering::Relaxed);
    }

    /// The next response is the last one.
    pub(super) fn end(&self) {
        self.ending.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_ending(&self) -> bool {
        self.ending.load(Ordering::Relaxed)
    }

    /// Counts a request, and returns whether it has to be the last one.
    pub(super) fn is_last_request(&self) -> bool {
        let requests = self.requests.fetch_add(1, Ordering::Relaxed) + 1;
        requests >= MAX_REQUESTS_PER_CONNECTION || self.opened.elapsed() >= MAX_CONNECTION_AGE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_request_after_an_hour_is_the_last_one() {
        let life = ConnectionLife::begin();
        assert!(!life.is_last_request());
        tokio::time::advance(MAX_CONNECTION_AGE).await;
        assert!(life.is_last_request());
    }
}
