//! Writes the buffered counts to the database while the service runs.

use std::time::Duration;

use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::actions::Service;
use crate::web::App;

const FLUSH_INTERVAL: Duration = Duration::from_secs(5);

pub(super) async fn run(app: App, stop: CancellationToken) {
    let Service { count_buffer, store, .. } = app.service();
    while stop.run_until_cancelled(sleep(FLUSH_INTERVAL)).await.is_some() {
        if let Err(failure) = count_buffer.flush(store).await {
            tracing::warn!(%failure, "failed to flush the counts; they are kept in memory");
        }
    }
}
