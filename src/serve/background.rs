//! Small tasks that run now and then until shutdown starts.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::actions::{Alerts, Pruner, Service};
use crate::store::{MaintenanceFailure, Store};

const FLUSH_INTERVAL: Duration = Duration::from_secs(5);
const MAINTENANCE_INTERVAL: Duration = Duration::from_secs(1);
const PRUNE_INTERVAL: Duration = Duration::from_hours(1);
/// After a start, messages are forwarded that waited for it, and a first certificate is ordered.
const FIRST_LOOK: Duration = Duration::from_mins(5);
const LOOK_INTERVAL: Duration = Duration::from_hours(1);
/// After a mail. Longer than a day, so that the next one comes from another instance, which may see something else.
const PAUSE_AFTER_MAIL: Duration = Duration::from_hours(26);

/// Writes the buffered counts to the database.
pub(super) async fn flush_counts(Service { count_buffer, store, .. }: Service, stop: CancellationToken) {
    while stop.run_until_cancelled(sleep(FLUSH_INTERVAL)).await.is_some() {
        if let Err(failure) = count_buffer.flush(&store).await {
            tracing::warn!(%failure, "failed to flush the counts; they are kept in memory");
        }
    }
}

/// Maintains the database until its file could not be synced, and cancels `unsynced` then.
pub(super) async fn maintain((store, unsynced): (Store, CancellationToken), stop: CancellationToken) {
    let mut is_failing = false;
    while stop.run_until_cancelled(sleep(MAINTENANCE_INTERVAL)).await.is_some() {
        let result = store.maintain().await;
        match &result {
            Err(failure @ MaintenanceFailure::Unsynced(_)) => {
                tracing::error!(%failure, "the database file could not be synced");
                unsynced.cancel();
                return stop.cancelled().await;
            }
            Err(failure) if !is_failing => tracing::warn!(%failure, "maintenance of the database fails"),
            Ok(()) | Err(_) => {}
        }
        is_failing = result.is_err();
    }
}

/// Runs the [`Pruner`] at startup and every hour.
pub(super) async fn prune(pruner: Pruner, stop: CancellationToken) {
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
            sleep(PRUNE_INTERVAL).await;
        }
    };
    stop.run_until_cancelled(prune).await;
}

/// Looks every hour what needs attention.
pub(super) async fn alert(alerts: Alerts, new_mail: Arc<Notify>, stop: CancellationToken) {
    let mut pause = FIRST_LOOK;
    while stop.run_until_cancelled(sleep(pause)).await.is_some() {
        pause = LOOK_INTERVAL;
        match stop.run_until_cancelled(Box::pin(alerts.step())).await {
            None => return,
            Some(Ok(0)) => {}
            Some(Ok(troubles)) => {
                tracing::info!(troubles, "an alert to the makers is sent next");
                new_mail.notify_one();
                pause = PAUSE_AFTER_MAIL;
            }
            Some(Err(failure)) => {
                tracing::warn!(%failure, "failed to look what needs attention; trying again in an hour");
            }
        }
    }
}
