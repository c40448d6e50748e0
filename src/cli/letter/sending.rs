//! Sending a letter: the pace, the bar, patience with the mail server, and stopping.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::{Interval, MissedTickBehavior, interval, sleep};

use crate::actions::{LetterSender, LetterStep};
use crate::cli::CommandFailure;
use crate::clock::Clock;

/// Everything around the steps.
#[derive(Debug)]
pub(super) struct Sending {
    pace: Interval,
    bar: ProgressBar,
    interrupt: Signal,
    terminate: Signal,
}

/// How long to wait for a mail server that is away, one time after the other.
const PATIENCE: [Duration; 3] = [Duration::from_secs(1), Duration::from_secs(2), Duration::from_secs(4)];
/// Longest wait for somebody who was put off; whoever has to wait longer is left for another run.
const LONGEST_WAIT: Duration = Duration::from_mins(5);

impl Sending {
    pub(super) fn new(rate: u32, count: u64) -> Result<Self, CommandFailure> {
        let mut pace = interval(Duration::from_secs(1) / rate);
        pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let style = ProgressStyle::with_template("  sending {bar:32} {pos} of {len}, {per_sec}, {eta} left")
            .unwrap_or_else(|_| ProgressStyle::default_bar());
        Ok(Self {
            pace,
            bar: ProgressBar::new(count).with_style(style),
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    /// Sends until nobody is left, or says why it stops. Whoever was claimed is settled first.
    pub(super) async fn run(mut self, sender: &mut LetterSender) -> Result<(), String> {
        let mut patience = PATIENCE.iter();
        loop {
            self.wait_for_pace().await?;
            match sender.step().await.map_err(|failure| failure.to_string())? {
                LetterStep::Settled => {
                    patience = PATIENCE.iter();
                    self.bar.inc(1);
                }
                LetterStep::Deferred => patience = PATIENCE.iter(),
                LetterStep::Away(said) => match patience.next() {
                    Some(pause) => self.wait(*pause).await?,
                    None => return Err(format!("The mail server cannot be used: {said}")),
                },
                LetterStep::WaitUntil(then) => {
                    sender.close().await;
                    let pause = Clock::System.now().until(then);
                    if pause > LONGEST_WAIT {
                        return Err("The mail server did not take some letters now".to_owned());
                    }
                    self.wait(pause.max(Duration::from_millis(100))).await?;
                }
                LetterStep::Done => {
                    self.bar.finish_and_clear();
                    return Ok(());
                }
            }
        }
    }

    async fn wait_for_pace(&mut self) -> Result<(), String> {
        tokio::select! {
            biased;
            _ = self.interrupt.recv() => Err("Stopped".to_owned()),
            _ = self.terminate.recv() => Err("Stopped".to_owned()),
            _ = self.pace.tick() => Ok(()),
        }
    }

    async fn wait(&mut self, pause: Duration) -> Result<(), String> {
        tokio::select! {
            biased;
            _ = self.interrupt.recv() => Err("Stopped".to_owned()),
            _ = self.terminate.recv() => Err("Stopped".to_owned()),
            () = sleep(pause) => Ok(()),
        }
    }
}
