//! Writes the buffered counts to the database while the service runs.

use std::time::Duration;

use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::actions::CountBuffer;
use crate::store::Store;

const FLUSH_INTERVAL: Duration = Duration::from_secs(5);

pub(super) async fn run(count_buffer: CountBuffer, store: Store, stop: CancellationToken) {
    while stop.run_until_cancelled(sleep(FLUSH_INTERVAL)).await.is_some() {
        if let Err(failure) = count_buffer.flush(&store).await {
            tracing::warn!(%failure, "failed to flush the counts; they are kept in memory");
        }
    }
}
