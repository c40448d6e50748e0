//! Has what was gathered added to the counts for as long as the service runs.

use std::time::Duration;

use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::actions::CountBuffer;
use crate::store::Store;

const EVERY: Duration = Duration::from_secs(5);

pub(super) async fn run(count_buffer: CountBuffer, store: Store, stop: CancellationToken) {
    while stop.run_until_cancelled(sleep(EVERY)).await.is_some() {
        if let Err(failure) = count_buffer.flush(&store).await {
            tracing::warn!(%failure, "calls and images are counted later");
        }
    }
}
