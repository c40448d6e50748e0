//! Runs what sends mail while the service runs: as soon as something is stored that needs a mail, and again when a retry is
//! due.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::actions::{ConfirmationSender, ConfirmationStep, ForwardStep, Forwarder};
use crate::clock::Clock;
use crate::config::{InvalidSettings, MailSettings, Settings};
use crate::domain::base_url::BaseUrl;
use crate::domain::time::Timestamp;
use crate::mail::{MailAddress, Mailer};
use crate::site::{ConfirmationTemplate, Content, SiteFailure};
use crate::store::{Store, Writer};

/// Longest wait between two steps. Another instance may have stored something, or left an expired lease.
const POLL_INTERVAL: Duration = Duration::from_secs(30);
/// Shortest wait when nothing is due.
const MIN_IDLE: Duration = Duration::from_secs(1);
/// Wait after the mail server or the database failed.
const FAILURE_DELAY: Duration = Duration::from_secs(5);

/// Something that sends mail, and what wakes it.
#[derive(Clone)]
pub(super) struct MailTask {
    sender: Sender,
    stored: Arc<Notify>,
}

#[derive(Clone)]
enum Sender {
    Forwarder(Arc<Forwarder>),
    Confirmations(Arc<ConfirmationSender>),
}

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

    pub(super) fn tasks(
        &self,
        settings: &Settings,
        content: &Content,
        base_url: &BaseUrl,
        store: &Store,
        writer: &Writer,
        clock: &Clock,
    ) -> Result<Vec<MailTask>, SiteFailure> {
        let Self { mailer, to } = self.clone();
        let (store, clock) = (store.clone(), clock.clone());
        let forwarder = Forwarder { store: store.clone(), mailer: mailer.clone(), to, clock: clock.clone() };
        let forwarder = Sender::Forwarder(Arc::new(forwarder));
        let mut tasks = vec![MailTask { sender: forwarder, stored: writer.new_messages() }];
        if settings.confirm_updates {
            let (template, base_url) = (ConfirmationTemplate::read(content, base_url.clone())?, base_url.clone());
            let sender = ConfirmationSender { store, mailer, template, base_url, clock };
            let sender = Sender::Confirmations(Arc::new(sender));
            tasks.push(MailTask { sender, stored: writer.new_confirmations() });
        }
        Ok(tasks)
    }
}

impl MailTask {
    pub(super) const fn name(&self) -> &'static str {
        match self.sender {
            Sender::Forwarder(_) => "forwarder",
            Sender::Confirmations(_) => "confirmations",
        }
    }

    async fn step(&self) -> Wait {
        match &self.sender {
            Sender::Forwarder(forwarder) => forward(forwarder).await,
            Sender::Confirmations(sender) => confirm(sender).await,
        }
    }
}

/// Runs until shutdown starts and finishes the current step unless `abort` is cancelled.
pub(super) async fn run(task: MailTask, stop: CancellationToken, abort: CancellationToken) {
    while !stop.is_cancelled() {
        let Some(wait) = abort.run_until_cancelled(task.step()).await else { return };
        let wait = async {
            match wait {
                Wait::None => {}
                Wait::Notified(at_most) => {
                    let _ = timeout(at_most, task.stored.notified()).await;
                }
                Wait::Fixed(delay) => sleep(delay).await,
            }
        };
        stop.run_until_cancelled(wait).await;
    }
}

/// How long to wait before the next step.
enum Wait {
    None,
    /// Until something is stored, at most this long.
    Notified(Duration),
    Fixed(Duration),
}

impl Wait {
    /// Nothing is due until this time.
    fn until(due: Option<Timestamp>, now: Timestamp) -> Self {
        let wait = due.map_or(POLL_INTERVAL, |due| now.until(due));
        Self::Notified(wait.clamp(MIN_IDLE, POLL_INTERVAL))
    }
}

async fn forward(forwarder: &Forwarder) -> Wait {
    match Box::pin(forwarder.step()).await {
        Ok(ForwardStep::Sent) => Wait::None,
        Ok(ForwardStep::Idle(due)) => Wait::until(due, forwarder.clock.now()),
        Ok(ForwardStep::Failed(failure)) => {
            tracing::warn!(%failure, "forwarding contact messages failed");
            Wait::Fixed(FAILURE_DELAY)
        }
        Err(failure) => {
            tracing::warn!(%failure, "messages were not forwarded and will be retried");
            Wait::Fixed(FAILURE_DELAY)
        }
    }
}

async fn confirm(sender: &ConfirmationSender) -> Wait {
    match Box::pin(sender.step()).await {
        Ok(ConfirmationStep::Sent) => Wait::None,
        Ok(ConfirmationStep::Idle(due)) => Wait::until(due, sender.clock.now()),
        Ok(ConfirmationStep::Failed(failure)) => {
            tracing::warn!(%failure, "sending a confirmation mail failed");
            Wait::Fixed(FAILURE_DELAY)
        }
        Err(failure) => {
            tracing::warn!(%failure, "confirmation mails were not sent and will be retried");
            Wait::Fixed(FAILURE_DELAY)
        }
    }
}
