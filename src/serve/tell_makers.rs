//! Runs the [`MakerTeller`] every hour, and after a mail a day later.

use std::time::Duration;

use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::actions::{MakerTeller, TellStep};

/// After a start, messages are forwarded that waited for it, and a first certificate is ordered.
const FIRST_LOOK: Duration = Duration::from_mins(5);
const INTERVAL: Duration = Duration::from_hours(1);
/// After a mail. Longer than a day, so that the next one comes from another instance, which may see something else.
const PAUSE_AFTER_MAIL: Duration = Duration::from_hours(26);

/// Runs until shutdown starts and finishes the current step unless `abort` is cancelled.
pub(super) async fn run(teller: MakerTeller, stop: CancellationToken, abort: CancellationToken) {
    let mut pause = FIRST_LOOK;
    while stop.run_until_cancelled(sleep(pause)).await.is_some() {
        pause = INTERVAL;
        match abort.run_until_cancelled(Box::pin(teller.step())).await {
            None => return,
            Some(Ok(TellStep::NothingWrong | TellStep::AlreadyTold)) => {}
            Some(Ok(TellStep::Told(troubles))) => {
                tracing::info!(troubles, "mailed the makers what needs a hand");
                pause = PAUSE_AFTER_MAIL;
            }
            Some(Ok(TellStep::Failed(failure))) => {
                tracing::warn!(%failure, "the makers were not mailed what needs a hand; trying again in an hour");
            }
            Some(Err(failure)) => tracing::warn!(%failure, "failed to look what needs a hand; trying again in an hour"),
        }
    }
}
