//! Has messages forwarded for as long as the service runs: at once when one comes, and again when it
//! is time to.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::actions::{ForwardStep, Forwarder};

/// How often another instance's leftovers are looked for.
const LOOK_EVERY: Duration = Duration::from_secs(30);
/// Shortest pause when there was nothing to do, and when something went wrong.
const BREATH: Duration = Duration::from_secs(1);
const AFTER_TROUBLE: Duration = Duration::from_secs(5);

/// Runs until the stop, and ends what is under way unless that is given up on.
pub(super) async fn run(
    forwarder: Forwarder,
    new_messages: Arc<Notify>,
    stop: CancellationToken,
    abort: CancellationToken,
) {
    while !stop.is_cancelled() {
        let Some(pause) = abort.run_until_cancelled(work(&forwarder)).await else { return };
        let wait = async {
            sleep(pause.at_least).await;
            let _ = timeout(pause.at_most, new_messages.notified()).await;
        };
        stop.run_until_cancelled(wait).await;
    }
}

/// How long to wait before the next step: so long in any case, and then for a message to come.
struct Pause {
    at_least: Duration,
    at_most: Duration,
}

async fn work(forwarder: &Forwarder) -> Pause {
    match Box::pin(forwarder.step()).await {
        Ok(ForwardStep::Sent) => Pause { at_least: Duration::ZERO, at_most: Duration::ZERO },
        Ok(ForwardStep::Idle(then)) => {
            let until = then.map_or(LOOK_EVERY, |then| forwarder.clock.now().until(then));
            Pause { at_least: Duration::ZERO, at_most: until.clamp(BREATH, LOOK_EVERY) }
        }
        Ok(ForwardStep::Failed(trouble)) => {
            tracing::warn!(%trouble, "mail waits, and is tried again");
            Pause { at_least: AFTER_TROUBLE, at_most: Duration::ZERO }
        }
        Err(failure) => {
            tracing::warn!(%failure, "messages could not be forwarded; they wait");
            Pause { at_least: AFTER_TROUBLE, at_most: Duration::ZERO }
        }
    }
}
