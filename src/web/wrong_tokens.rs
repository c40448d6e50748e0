//! Slows down whoever guesses tokens of the makers, on either listener.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::sleep;

use crate::domain::limits::{MAX_LATE_OPS_ANSWERS, WRONG_OPS_TOKEN_DELAY, WRONG_OPS_TOKENS};
use crate::domain::time::Timestamp;

/// Beyond [`WRONG_OPS_TOKENS`], a wrong token is answered late, so that each connection tries one token in
/// [`WRONG_OPS_TOKEN_DELAY`]. All peers are counted together, so that it takes no memory. The right token is never refused or
/// delayed. At most [`MAX_LATE_OPS_ANSWERS`] wait at once: whoever guesses through the makers' own proxy leaves connections for
/// them.
#[derive(Clone, Debug)]
pub(crate) struct WrongTokens {
    /// When the bucket of wrong tokens is full again.
    full_at: Arc<Mutex<Option<Timestamp>>>,
    late_answers: Arc<Semaphore>,
}

/// Held while an answer is delayed. `None`: it is sent at once.
#[derive(Debug)]
pub(crate) struct Delay(Option<OwnedSemaphorePermit>);

impl WrongTokens {
    pub(crate) fn new() -> Self {
        Self { full_at: Arc::default(), late_answers: Arc::new(Semaphore::new(MAX_LATE_OPS_ANSWERS)) }
    }

    /// Counts a wrong token, and returns how its answer is delayed.
    pub(crate) fn count(&self, now: Timestamp) -> Delay {
        let mut full_at = self.full_at.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = WRONG_OPS_TOKENS.take(*full_at, now);
        *full_at = taken.ok().or(*full_at);
        let late = taken.is_err().then(|| Arc::clone(&self.late_answers).try_acquire_owned().ok());
        Delay(late.flatten())
    }
}

impl Delay {
    pub(crate) const NONE: Self = Self(None);

    #[cfg(test)]
    pub(crate) const fn is_late(&self) -> bool {
        self.0.is_some()
    }

    /// Waits until it is time to send the answer.
    pub(crate) async fn wait(self) {
        if self.0.is_some() {
            sleep(WRONG_OPS_TOKEN_DELAY).await;
        }
    }
}
