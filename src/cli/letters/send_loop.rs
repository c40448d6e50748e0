//! The loop around [`LetterSender::step`]: rate limit, progress bar, retries and interruption.

use std::time::Duration;

use indicatif::ProgressBar;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::{MissedTickBehavior, interval, sleep};

use crate::actions::{LetterSender, LetterStep};
use crate::cli::failure::Failure;
use crate::cli::terminal::{eprint_line, progress_style, sanitize_line};
use crate::clock::Clock;
use crate::domain::text::quantity;

#[derive(Debug)]
pub(super) struct SendLoop {
    /// The time between two mails.
    interval: Duration,
    bar: ProgressBar,
    interrupt: Signal,
    terminate: Signal,
}

/// How long the mail server is waited for while it is unavailable, unless it says that waiting does not help.
const MAX_OUTAGE: Duration = Duration::from_hours(1);
/// The first and the longest pause before it is tried again; each is twice the one before.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_mins(5);
/// The longest wait for a deferred recipient. Recipients deferred for longer are left for another run.
const MAX_DEFERRAL: Duration = Duration::from_mins(5);

impl SendLoop {
    pub(super) fn new(rate: u32, count: u64) -> Result<Self, Failure> {
        let style = progress_style("  sending {bar:32} {pos} of {len}, {per_sec}, {eta} left");
        Ok(Self {
            interval: Duration::from_secs(1) / rate,
            bar: ProgressBar::new(count).with_style(style),
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    /// Sends until no recipient is left, or returns the reason why it stopped. A step that has begun always finishes.
    pub(super) async fn run(mut self, sender: &mut LetterSender) -> Result<(), String> {
        let mut outage = Outage::default();
        let mut rate_limit = interval(self.interval);
        rate_limit.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            self.wait(rate_limit.tick()).await?;
            match sender.step().await.map_err(|failure| failure.to_string())? {
                LetterStep::Finished => {
                    outage = Outage::default();
                    self.bar.inc(1);
                }
                LetterStep::Deferred => outage = Outage::default(),
                LetterStep::ServerUnavailable(cause) if cause.is_permanent => {
                    return Err(format!("The mail server is unavailable: {}", cause.detail));
                }
                LetterStep::ServerUnavailable(cause) => match outage.next_pause() {
                    Some(pause) => {
                        self.bar.suspend(|| eprint_line(&unavailable(&cause.detail, pause)));
                        self.wait(sleep(pause)).await?;
                    }
                    None => return Err(format!("The mail server has been unavailable for an hour: {}", cause.detail)),
                },
                LetterStep::WaitUntil(time) => {
                    sender.close().await;
                    let delay = Clock::System.now().until(time);
                    if delay > MAX_DEFERRAL {
                        return Err("The mail server deferred some letters".to_owned());
                    }
                    self.wait(sleep(delay.max(Duration::from_millis(100)))).await?;
                }
                LetterStep::Complete => {
                    self.bar.finish_and_clear();
                    return Ok(());
                }
            }
        }
    }

    /// Waits, or returns early with an error if the command is interrupted.
    async fn wait<T>(&mut self, done: impl Future<Output = T>) -> Result<(), String> {
        tokio::select! {
            biased;
            _ = self.interrupt.recv() => Err("Interrupted".to_owned()),
            _ = self.terminate.recv() => Err("Interrupted".to_owned()),
            _ = done => Ok(()),
        }
    }
}

fn unavailable(reason: &str, pause: Duration) -> String {
    let seconds = quantity(pause.as_secs(), "second", "seconds");
    let reason = sanitize_line(reason);
    format!("The mail server is unavailable: {reason}. Trying again in {seconds}, for up to an hour. Ctrl-C stops.")
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
