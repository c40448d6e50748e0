//! Sends what waits in the outbox while the service runs: as soon as something is stored that needs a mail, and again when a
//! retry is due.

use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::actions::{OutboxSender, SendStep};
use crate::config::{InvalidSettings, MailSettings};
use crate::domain::time::Timestamp;
use crate::mail::{MailAddress, Mailer};

/// Longest wait between two steps. Another instance may have stored something, or left an expired lease.
const POLL_INTERVAL: Duration = Duration::from_secs(30);
/// Shortest wait when nothing is due.
const MIN_IDLE: Duration = Duration::from_secs(1);
/// Wait after the mail server or the database failed.
const FAILURE_DELAY: Duration = Duration::from_secs(5);

/// How mail is sent, and who gets what is for the makers.
#[derive(Clone)]
pub(super) struct OutgoingMail {
    pub mailer: Mailer,
    pub to: MailAddress,
}

impl OutgoingMail {
    pub(super) fn from_settings(mail: &MailSettings) -> Result<Self, InvalidSettings> {
        let to = MailAddress::from_mailbox(&mail.contact_to);
        let to = to.map_err(|why| InvalidSettings::new("contact_to", why))?;
        Ok(Self { mailer: Mailer::from_settings(mail)?, to })
    }
}

/// Runs until shutdown starts and finishes the current step unless `abort` is cancelled. `stored` is notified when something
/// is stored that needs a mail.
pub(super) async fn run(sender: &OutboxSender, stored: &Notify, stop: CancellationToken, abort: CancellationToken) {
    while !stop.is_cancelled() {
        let Some(step) = abort.run_until_cancelled(Box::pin(sender.step())).await else { return };
        let wait = async {
            match step {
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
