//! Sends what waits in the outbox while the service runs: as soon as something is stored that needs a mail, and again when a
//! retry is due.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::ServeFailure;
use crate::actions::{ConfirmationTexts, OutboxSender, SendStep};
use crate::clock::Clock;
use crate::config::{InvalidSettings, Settings};
use crate::domain::base_url::BaseUrl;
use crate::domain::time::Timestamp;
use crate::mail::{MailAddress, Mailer};
use crate::site::{ConfirmationTemplate, Content};
use crate::store::Store;

/// Longest wait between two steps. Another instance may have stored something, or left an expired lease.
const POLL_INTERVAL: Duration = Duration::from_secs(30);
/// Shortest wait when nothing is due.
const MIN_IDLE: Duration = Duration::from_secs(1);
/// Wait after the mail server or the database failed.
const FAILURE_DELAY: Duration = Duration::from_secs(5);

/// Returns what sends the mail that waits, or `None` without a mail server.
pub(super) fn outbox_sender(
    settings: &Settings,
    content: &Content,
    base_url: &BaseUrl,
    store: &Store,
    clock: &Clock,
) -> Result<Option<Arc<OutboxSender>>, ServeFailure> {
    let Some(mail) = &settings.mail else { return Ok(None) };
    let to = MailAddress::from_mailbox(&mail.contact_to).map_err(|why| InvalidSettings::new("contact_to", why))?;
    let confirmations = if settings.confirm_updates {
        let template = ConfirmationTemplate::read(content, base_url.clone())?;
        Some(ConfirmationTexts { template, base_url: base_url.clone() })
    } else {
        None
    };
    let (mailer, store, clock) = (Mailer::from_settings(mail)?, store.clone(), clock.clone());
    Ok(Some(Arc::new(OutboxSender { store, mailer, to, confirmations, clock })))
}

/// Runs until shutdown starts and finishes the current step unless `abort` is cancelled. `stored` is notified when something
/// is stored that needs a mail.
pub(super) async fn run(
    sender: Arc<OutboxSender>,
    stored: Arc<Notify>,
    stop: CancellationToken,
    abort: CancellationToken,
) {
    while !stop.is_cancelled() {
        let Some(outcome) = abort.run_until_cancelled(Box::pin(sender.step())).await else { return };
        let wait = async {
            match outcome {
                Ok(SendStep::Sent) => {}
                Ok(SendStep::Idle(due)) => {
                    let _ = timeout(until(due, sender.clock.now()), stored.notified()).await;
                }
                Ok(SendStep::Failed(failure)) => {
                    tracing::warn!(%failure, "sending a mail of the outbox failed");
                    sleep(FAILURE_DELAY).await;
                }
                Err(failure) => {
                    tracing::warn!(%failure, "the outbox was not sent and will be retried");
                    sleep(FAILURE_DELAY).await;
                }
            }
        };
        stop.run_until_cancelled(wait).await;
    }
}

fn until(due: Option<Timestamp>, now: Timestamp) -> Duration {
    due.map_or(POLL_INTERVAL, |due| now.until(due)).clamp(MIN_IDLE, POLL_INTERVAL)
}
