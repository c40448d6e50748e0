//! Runs the [`Forwarder`] while the service runs: as soon as a message is stored, and again when a retry is due.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::actions::{ForwardStep, Forwarder};

/// Longest wait between two steps. Another instance may have stored messages, or left an expired lease.
const POLL_INTERVAL: Duration = Duration::from_secs(30);
/// Shortest wait when nothing is due.
const MIN_IDLE: Duration = Duration::from_secs(1);
/// Wait after the mail server or the database failed.
const FAILURE_DELAY: Duration = Duration::from_secs(5);

/// Runs until shutdown starts and finishes the current step unless `abort` is cancelled.
pub(super) async fn run(
    forwarder: Forwarder,
    new_messages: Arc<Notify>,
    stop: CancellationToken,
    abort: CancellationToken,
) {
    while !stop.is_cancelled() {
        let Some(wait) = abort.run_until_cancelled(step(&forwarder)).await else { return };
        let wait = async {
            match wait {
                Wait::None => {}
                Wait::ForMessage(at_most) => {
                    let _ = timeout(at_most, new_messages.notified()).await;
                }
                Wait::Fixed(delay) => sleep(delay).await,
            }
        };
        stop.run_until_cancelled(wait).await;
    }
}

/// How long to wait before the next step.
enum Wait {
    None,
    /// Until a message is stored, at most this long.
    ForMessage(Duration),
    Fixed(Duration),
}

async fn step(forwarder: &Forwarder) -> Wait {
    match Box::pin(forwarder.step()).await {
        Ok(ForwardStep::Sent) => Wait::None,
        Ok(ForwardStep::Idle(due)) => {
            let wait = due.map_or(POLL_INTERVAL, |due| forwarder.clock.now().until(due));
            Wait::ForMessage(wait.clamp(MIN_IDLE, POLL_INTERVAL))
        }
        Ok(ForwardStep::Failed(failure)) => {
            tracing::warn!(%failure, "forwarding contact messages failed");
            Wait::Fixed(FAILURE_DELAY)
        }
        Err(failure) => {
            tracing::warn!(%failure, "messages were not forwarded and will be retried");
            Wait::Fixed(FAILURE_DELAY)
        }
    }
}
