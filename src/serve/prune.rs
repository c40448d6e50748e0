//! Deletes expired rows at startup and every hour.

use std::time::Duration;

use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::web::App;

const PRUNE_INTERVAL: Duration = Duration::from_hours(1);

pub(super) async fn run(app: App, stop: CancellationToken) {
    let service = app.service();
    let prune = async {
        loop {
            if let Err(failure) = service.store.prune(service.clock.now()).await {
                tracing::warn!(%failure, "failed to delete expired hashes; trying again in an hour");
            }
            if let Err(failure) = service.store.prune_confirmations(service.clock.now()).await {
                tracing::warn!(%failure, "failed to delete expired opt-ins; trying again in an hour");
            }
            sleep(PRUNE_INTERVAL).await;
        }
    };
    stop.run_until_cancelled(prune).await;
}
