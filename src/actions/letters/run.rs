//! The loop around [`LetterSender::step`], of the command and of the service: turns, outages of the mail server, and deferrals.

use std::time::Duration;

use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::send::{LetterFailure, LetterSender, LetterStep};
use crate::domain::letters::LetterRun;
use crate::domain::time::Timestamp;

/// How long the mail server is waited for while it is unavailable, unless it says that waiting does not help.
const MAX_OUTAGE: Duration = Duration::from_hours(1);
/// The first and the longest pause before it is tried again; each is twice the one before.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_mins(5);
/// The longest wait for a deferred recipient.
const MAX_DEFERRAL: Duration = Duration::from_mins(5);
/// The shortest pause if another sender is claiming the last recipients.
const MIN_PAUSE: Duration = Duration::from_millis(100);

/// What happens meanwhile.
#[derive(Debug)]
pub enum LetterEvent<'a> {
    /// A recipient is finished.
    Finished,
    /// The mail server is unavailable for this reason, and is tried again after the pause.
    Unavailable(&'a str, Duration),
}

/// Why sending ended before every recipient was finished.
#[derive(Debug, thiserror::Error)]
pub enum LetterEnd {
    #[error("Interrupted")]
    Interrupted,
    #[error("{}", .0.in_words())]
    NotOurs(LetterRun),
    #[error("The mail server deferred some letters")]
    Deferred(Timestamp),
    #[error("The mail server is unavailable: {0}")]
    Unavailable(String),
    #[error("The mail server has been unavailable for an hour: {0}")]
    Outage(String),
    #[error(transparent)]
    Failed(#[from] LetterFailure),
}

/// Sends until no recipient is left. A step that has begun always finishes. Recipients whom the mail server refused wait again if it
/// accepted no letter.
pub async fn run_letter(
    sender: &mut LetterSender,
    interrupt: &CancellationToken,
    mut tell: impl FnMut(LetterEvent<'_>),
) -> Result<(), LetterEnd> {
    let result = send_all(sender, interrupt, &mut tell).await;
    sender.close().await;
    if result.is_err() {
        sender.stop().await?;
    }
    result
}

async fn send_all(
    sender: &mut LetterSender,
    interrupt: &CancellationToken,
    tell: &mut impl FnMut(LetterEvent<'_>),
) -> Result<(), LetterEnd> {
    let mut outage = Outage::default();
    while !interrupt.is_cancelled() {
        let pause = match sender.step().await? {
            LetterStep::Complete => return Ok(()),
            LetterStep::NotOurs(run) => return Err(LetterEnd::NotOurs(run)),
            LetterStep::Finished => {
                outage = Outage::default();
                tell(LetterEvent::Finished);
                continue;
            }
            LetterStep::Deferred => {
                outage = Outage::default();
                continue;
            }
            LetterStep::NotYet(time) => sender.clock.now().until(time).max(Duration::from_millis(1)),
            LetterStep::ServerUnavailable(cause) if cause.is_permanent => {
                return Err(LetterEnd::Unavailable(cause.detail));
            }
            LetterStep::ServerUnavailable(cause) => {
                let Some(pause) = outage.next_pause() else { return Err(LetterEnd::Outage(cause.detail)) };
                tell(LetterEvent::Unavailable(&cause.detail, pause));
                pause
            }
            LetterStep::WaitUntil(time) => {
                sender.close().await;
                let delay = sender.clock.now().until(time);
                if delay > MAX_DEFERRAL {
                    return Err(LetterEnd::Deferred(time));
                }
                delay.max(MIN_PAUSE)
            }
        };
        interrupt.run_until_cancelled(sleep(pause)).await;
    }
    Err(LetterEnd::Interrupted)
}

/// A time in which the mail server was not available.
#[derive(Debug, Default)]
struct Outage {
    waited: Duration,
    last: Duration,
}

impl Outage {
    /// Returns the next pause, or `None` if it was waited for long enough.
    fn next_pause(&mut self) -> Option<Duration> {
        self.last = (self.last * 2).clamp(FIRST_PAUSE, LONGEST_PAUSE).min(MAX_OUTAGE.saturating_sub(self.waited));
        self.waited += self.last;
        Some(self.last).filter(|pause| !pause.is_zero())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mail_server_is_waited_for_an_hour_with_growing_pauses() {
        let mut outage = Outage::default();
        let pauses: Vec<_> = std::iter::from_fn(|| outage.next_pause()).map(|pause| pause.as_secs()).collect();
        assert_eq!(pauses[..10], [1, 2, 4, 8, 16, 32, 64, 128, 256, 300]);
        assert_eq!(pauses.iter().sum::<u64>(), 3600);
        assert!(pauses.len() < 25, "{pauses:?}");
    }
}
