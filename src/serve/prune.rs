//! Runs the [`Pruner`] at startup and every hour.

use std::time::Duration;

use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::actions::Pruner;

const INTERVAL: Duration = Duration::from_hours(1);

pub(super) async fn run(pruner: Pruner, stop: CancellationToken) {
    let prune = async {
        if let Err(failure) = pruner.start().await {
            tracing::warn!(%failure, "failed to delete expired hashes; trying again in an hour");
        }
        loop {
            match pruner.step().await {
                Ok(0) => {}
                Ok(deleted) => tracing::info!(deleted, "deleted messages that were forwarded long ago"),
                Err(failure) => tracing::warn!(%failure, "failed to delete what has expired; trying again in an hour"),
            }
            sleep(INTERVAL).await;
        }
    };
    stop.run_until_cancelled(prune).await;
}
