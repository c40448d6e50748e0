//! Records in the database what this instance noticed, while the service runs.

use tokio_util::sync::CancellationToken;

use crate::actions::{Service, UnconfiguredProxy};

pub(super) async fn run(service: Service, stop: CancellationToken) {
    while stop.run_until_cancelled(service.unconfigured_proxy.to_record()).await.is_some() {
        if let Err(failure) = UnconfiguredProxy::record(&service.store, service.clock.now()).await {
            tracing::warn!(%failure, "failed to record a proxy that no setting names; it is recorded in an hour");
        }
    }
}
