//! Sends what waits in the outbox while the service runs: as soon as something is stored that needs a mail, and again when a
//! retry is due.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::background;
use super::failure::ServeFailure;
use super::task_supervisor::Supervisor;
use crate::actions::{Alerts, ConfirmationTexts, OutboxSender, SendStep};
use crate::config::{InvalidSettings, Settings};
use crate::domain::time::Timestamp;
use crate::mail::{MailAddress, Mailer};
use crate::web::App;

/// Longest wait between two steps. Another instance may have stored something, or left an expired lease.
const POLL_INTERVAL: Duration = Duration::from_secs(30);
/// Shortest wait when nothing is due.
const MIN_IDLE: Duration = Duration::from_secs(1);
/// Wait after the mail server or the database failed.
const FAILURE_DELAY: Duration = Duration::from_secs(5);

/// Returns what sends the outbox, unless no mail server is configured.
pub(super) fn outbox_sender(settings: &Settings, app: &App) -> Result<Option<OutboxSender>, ServeFailure> {
    let Some(mail) = &settings.mail else { return Ok(None) };
    let to = MailAddress::from_mailbox(&mail.contact_to);
    let to = to.map_err(|why| InvalidSettings::new("contact_to", why))?;
    let desk_email = mail.desk_email.as_ref().map(MailAddress::from_mailbox).transpose();
    let desk_email = desk_email.map_err(|why| InvalidSettings::new("desk_email", why))?;
    let (templates, base_url) = (app.mail_templates.clone(), app.base_url.clone());
    Ok(Some(OutboxSender {
        store: app.service.store.clone(),
        mailer: Mailer::from_settings(mail)?,
        to,
        desk_email,
        // Some may wait from a time when `confirm_updates` was on.
        confirmations: ConfirmationTexts { templates, base_url },
        clock: app.service.clock.clone(),
    }))
}

/// Starts to send the outbox, and to look for what the makers are alerted to.
pub(super) fn spawn(
    supervisor: &Supervisor,
    sender: OutboxSender,
    alerts: Alerts,
    new_mail: &Arc<Notify>,
    abort: &CancellationToken,
) {
    let (sender, abort) = (Arc::new(sender), abort.clone());
    let [new, stored] = [Arc::clone(new_mail), Arc::clone(new_mail)];
    supervisor.spawn_restarting("alerts", move |stop| background::alert(alerts.clone(), Arc::clone(&new), stop));
    supervisor
        .spawn_restarting("outbox", move |stop| run(Arc::clone(&sender), Arc::clone(&stored), stop, abort.clone()));
}

/// Runs until shutdown starts and finishes the current step unless `abort` is cancelled. `stored` is notified when something
/// is stored that needs a mail.
async fn run(sender: Arc<OutboxSender>, stored: Arc<Notify>, stop: CancellationToken, abort: CancellationToken) {
    while !stop.is_cancelled() {
        let Some(outcome) = abort.run_until_cancelled(sender.step()).await else { return };
        let wait = async {
            match outcome {
                Ok(SendStep::Sent) => {}
                Ok(SendStep::Idle(due)) => {
                    let _ = timeout(until(due, sender.clock.now()), stored.notified()).await;
                }
                Ok(SendStep::Failed(failure)) => {
                    tracing::warn!(%failure, "failed to send a queued mail");
                    sleep(FAILURE_DELAY).await;
                }
                Err(failure) => {
                    tracing::warn!(%failure, "failed to read the outbox; retrying");
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
