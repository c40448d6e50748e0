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
use crate::actions::{Alerts, ConfirmationTexts, LetterSender, LettersOfService, OutboxSender, SendStep};
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

/// Returns what sends letters that were begun at the desk, unless a setting is missing that every letter needs.
pub(super) fn letters(settings: &Settings, app: &App) -> Result<Option<LettersOfService>, ServeFailure> {
    let (Some(mail), Some(_)) = (&settings.mail, &settings.postal_address) else { return Ok(None) };
    if LetterSender::check_base_url(&app.base_url).is_err() {
        return Ok(None);
    }
    let contact_to = MailAddress::from_mailbox(&mail.contact_to);
    Ok(Some(LettersOfService {
        store: app.service.store.clone(),
        mailer: Mailer::from_settings(mail)?,
        templates: app.mail_templates.clone(),
        base_url: app.base_url.clone(),
        contact_to: contact_to.map_err(|why| InvalidSettings::new("contact_to", why))?,
        interval: Duration::from_secs(1) / settings.letter_rate,
        letters_archive: settings.letters_archive,
        clock: app.service.clock.clone(),
    }))
}

/// How often the database is asked for a letter to send.
const LETTERS_INTERVAL: Duration = Duration::from_secs(1);

/// Sends letters until shutdown starts, and finishes the current copy unless `abort` is cancelled.
async fn send_letters(letters: LettersOfService, stop: CancellationToken, abort: CancellationToken) {
    while !stop.is_cancelled() {
        let Some(outcome) = abort.run_until_cancelled(Box::pin(letters.step(&stop))).await else { return };
        let pause = match outcome {
            Ok(true) => continue,
            Ok(false) => LETTERS_INTERVAL,
            Err(failure) => {
                tracing::warn!(%failure, "letters wait until the database is available");
                FAILURE_DELAY
            }
        };
        stop.run_until_cancelled(sleep(pause)).await;
    }
}

/// Starts to send the outbox and letters, and to look for what the makers are alerted to.
pub(super) fn spawn(
    supervisor: &Supervisor,
    (sender, letters): (OutboxSender, Option<LettersOfService>),
    alerts: Alerts,
    new_mail: &Arc<Notify>,
    abort: &CancellationToken,
) {
    if let Some(letters) = letters {
        let abort = abort.clone();
        supervisor.spawn_restarting("letters", move |stop| send_letters(letters.clone(), stop, abort.clone()));
    }
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
