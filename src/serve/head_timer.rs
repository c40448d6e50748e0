//! The timer of the time that a client has for the head of a request.
//!
//! hyper asks for a new deadline with every request of a connection, and almost none of them is reached. A timer of the runtime
//! takes a lock of all connections when it is set and when it is dropped. So a connection has one, which is left as it is
//! while deadlines move, and set anew only when it fires too early: at most once in the time that a head may take.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use hyper::rt::{Sleep, Timer};

/// The timer of one connection. Deadlines follow one another and never go back.
#[derive(Clone, Debug, Default)]
pub(super) struct HeadTimer(Arc<Mutex<Option<Pin<Box<tokio::time::Sleep>>>>>);

#[derive(Debug)]
struct Deadline {
    at: tokio::time::Instant,
    timer: HeadTimer,
}

impl Timer for HeadTimer {
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Sleep>> {
        self.sleep_until(self.now() + duration)
    }

    fn sleep_until(&self, deadline: Instant) -> Pin<Box<dyn Sleep>> {
        Box::pin(Deadline { at: deadline.into(), timer: self.clone() })
    }

    fn now(&self) -> Instant {
        tokio::time::Instant::now().into()
    }
}

impl Sleep for Deadline {}

impl Future for Deadline {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let mut timer = self.timer.0.lock().unwrap_or_else(PoisonError::into_inner);
        let timer = timer.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(self.at)));
        while timer.as_mut().poll(context).is_ready() {
            if timer.deadline() >= self.at {
                return Poll::Ready(());
            }
            timer.as_mut().reset(self.at);
        }
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::{advance, timeout};

    use super::*;

    const TIMEOUT: Duration = Duration::from_secs(10);

    #[tokio::test(start_paused = true)]
    async fn the_last_deadline_is_kept_however_many_were_given_up_before() {
        let timer = HeadTimer::default();
        for _ in 0..5 {
            let given_up = timer.sleep(TIMEOUT);
            assert!(timeout(TIMEOUT / 2, given_up).await.is_err());
        }
        advance(TIMEOUT * 3).await;
        let begin = tokio::time::Instant::now();
        timer.sleep(TIMEOUT).await;
        let waited = begin.elapsed();
        assert!(waited >= TIMEOUT && waited < TIMEOUT + Duration::from_millis(10), "{waited:?}");
    }
}
