//! The loop around [`LetterSender::step`]: rate limit, progress bar, retries and interruption.

use std::time::Duration;

use indicatif::ProgressBar;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::{MissedTickBehavior, interval, sleep};

use crate::actions::{LetterSender, LetterStep};
use crate::cli::failure::Failure;
use crate::cli::terminal::progress_style;
use crate::clock::Clock;

#[derive(Debug)]
pub(super) struct SendLoop {
    /// The time between two mails.
    interval: Duration,
    bar: ProgressBar,
    interrupt: Signal,
    terminate: Signal,
}

/// Delays before consecutive retries while the mail server is unavailable. After the last one, the command stops.
const RECONNECT_DELAYS: [Duration; 3] = [Duration::from_secs(1), Duration::from_secs(2), Duration::from_secs(4)];
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
        let mut reconnect_delays = RECONNECT_DELAYS.iter();
        let mut rate_limit = interval(self.interval);
        rate_limit.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            self.wait(rate_limit.tick()).await?;
            match sender.step().await.map_err(|failure| failure.to_string())? {
                LetterStep::Finished => {
                    reconnect_delays = RECONNECT_DELAYS.iter();
                    self.bar.inc(1);
                }
                LetterStep::Deferred => reconnect_delays = RECONNECT_DELAYS.iter(),
                LetterStep::ServerUnavailable(reason) => match reconnect_delays.next() {
                    Some(delay) => self.wait(sleep(*delay)).await?,
                    None => return Err(format!("The mail server is unavailable: {reason}")),
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
