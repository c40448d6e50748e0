//! Runs the [`Alerts`] every hour.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::actions::Alerts;

/// After a start, messages are forwarded that waited for it, and a first certificate is ordered.
const FIRST_LOOK: Duration = Duration::from_mins(5);
const INTERVAL: Duration = Duration::from_hours(1);
/// After an alert. Longer than a day, so that the next one comes from another instance, which may see something else.
const PAUSE_AFTER_ALERT: Duration = Duration::from_hours(26);

pub(super) async fn run(alerts: Alerts, new_mail: Arc<Notify>, stop: CancellationToken) {
    let mut pause = FIRST_LOOK;
    while stop.run_until_cancelled(sleep(pause)).await.is_some() {
        pause = INTERVAL;
        match stop.run_until_cancelled(Box::pin(alerts.step())).await {
            None => return,
            Some(Ok(0)) => {}
            Some(Ok(troubles)) => {
                tracing::info!(troubles, "an alert to the makers is sent next");
                new_mail.notify_one();
                pause = PAUSE_AFTER_ALERT;
            }
            Some(Err(failure)) => {
                tracing::warn!(%failure, "failed to look what needs attention; trying again in an hour")
            }
        }
    }
}
