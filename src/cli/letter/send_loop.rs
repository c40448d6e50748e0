//! The loop around [`LetterSender::step`]: rate limit, progress bar, retries and interruption.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::{Interval, MissedTickBehavior, interval, sleep};

use crate::actions::{LetterSender, LetterStep};
use crate::cli::CommandFailure;
use crate::clock::Clock;

#[derive(Debug)]
pub(super) struct SendLoop {
    rate_limit: Interval,
    bar: ProgressBar,
    interrupt: Signal,
    terminate: Signal,
}

/// Delays before consecutive retries while the mail server is unavailable. After the last one, the command stops.
const RECONNECT_DELAYS: [Duration; 3] = [Duration::from_secs(1), Duration::from_secs(2), Duration::from_secs(4)];
/// The longest wait for a deferred recipient. Recipients deferred for longer are left for another run.
const MAX_DEFERRAL: Duration = Duration::from_mins(5);

impl SendLoop {
    pub(super) fn new(rate: u32, count: u64) -> Result<Self, CommandFailure> {
        let mut rate_limit = interval(Duration::from_secs(1) / rate);
        rate_limit.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let style = ProgressStyle::with_template("  sending {bar:32} {pos} of {len}, {per_sec}, {eta} left")
            .unwrap_or_else(|_| ProgressStyle::default_bar());
        Ok(Self {
            rate_limit,
            bar: ProgressBar::new(count).with_style(style),
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    /// Sends until no recipient is left, or returns the reason why it stopped. A step that has begun always finishes.
    pub(super) async fn run(mut self, sender: &mut LetterSender) -> Result<(), String> {
        let mut reconnect_delays = RECONNECT_DELAYS.iter();
        loop {
            self.wait_for_rate_limit().await?;
            match sender.step().await.map_err(|failure| failure.to_string())? {
                LetterStep::Finished => {
                    reconnect_delays = RECONNECT_DELAYS.iter();
                    self.bar.inc(1);
                }
                LetterStep::Deferred => reconnect_delays = RECONNECT_DELAYS.iter(),
                LetterStep::ServerUnavailable(reason) => match reconnect_delays.next() {
                    Some(delay) => self.wait(*delay).await?,
                    None => return Err(format!("The mail server is unavailable: {reason}")),
                },
                LetterStep::WaitUntil(time) => {
                    sender.close().await;
                    let delay = Clock::System.now().until(time);
                    if delay > MAX_DEFERRAL {
                        return Err("The mail server deferred some letters".to_owned());
                    }
                    self.wait(delay.max(Duration::from_millis(100))).await?;
                }
                LetterStep::Complete => {
                    self.bar.finish_and_clear();
                    return Ok(());
                }
            }
        }
    }

    async fn wait_for_rate_limit(&mut self) -> Result<(), String> {
        tokio::select! {
            biased;
            _ = self.interrupt.recv() => Err("Interrupted".to_owned()),
            _ = self.terminate.recv() => Err("Interrupted".to_owned()),
            _ = self.rate_limit.tick() => Ok(()),
        }
    }

    async fn wait(&mut self, delay: Duration) -> Result<(), String> {
        tokio::select! {
            biased;
            _ = self.interrupt.recv() => Err("Interrupted".to_owned()),
            _ = self.terminate.recv() => Err("Interrupted".to_owned()),
            () = sleep(delay) => Ok(()),
        }
    }
}
