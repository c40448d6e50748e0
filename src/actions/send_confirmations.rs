//! Asks people by mail to confirm their opt-in.
//!
//! The opt-in and its row in `confirmations` are one transaction with the signup. Then the mail is leased, which checks again
//! that the address may be mailed: a suppressed address is never asked, and nobody is asked twice within
//! [`CONFIRMATION_PERIOD`](crate::domain::limits::CONFIRMATION_PERIOD) (`store/confirmation_mails.rs`). If the outcome of an
//! attempt is unknown, the mail is sent once more with the same Message-ID. Failed attempts are retried like those of contact
//! messages, but a mailbox that does not exist is given up at once.

use std::time::Duration;

use super::Failure;
use super::unsubscribe::random_token;
use crate::clock::Clock;
use crate::domain::base_url::BaseUrl;
use crate::domain::confirmation::CONFIRMATION_PATH;
use crate::domain::contact::retry_delay;
use crate::domain::limits::FORWARD_RETRY_PERIOD;
use crate::domain::time::Timestamp;
use crate::mail::{ConfirmationMail, Mail, MailAddress, Mailer, SendFailure, SmtpConnection, UnsupportedAddress};
use crate::site::{ConfirmationRequest, ConfirmationTemplate, SiteFailure};
use crate::store::{ConfirmationLease, ConfirmationOutcome, LeasedConfirmation, Store, WaitingMail};

/// Longer than it takes to send a mail. If the process dies meanwhile, the mail is sent again after this time.
const LEASE_DURATION: Duration = Duration::from_mins(10);
const MAX_MAILS_PER_STEP: usize = 20;

/// Sends confirmation mails, a few at a time.
#[derive(Debug)]
pub struct ConfirmationSender {
    pub store: Store,
    pub mailer: Mailer,
    pub template: ConfirmationTemplate,
    pub base_url: BaseUrl,
    pub clock: Clock,
}

/// The outcome of a step.
#[derive(Debug)]
pub enum ConfirmationStep {
    /// Mails were sent or skipped, and more may be due.
    Sent,
    /// A mail was not sent. It is retried, or was given up.
    Failed(SendFailure),
    /// Nothing is due until then, or until another opt-in is stored.
    Idle(Option<Timestamp>),
}

/// Why a step failed.
#[derive(Debug, thiserror::Error)]
pub enum ConfirmationFailure {
    #[error(transparent)]
    Store(#[from] Failure),
    #[error(transparent)]
    Site(#[from] SiteFailure),
}

impl ConfirmationSender {
    /// Sends what is due over one connection, at most `MAX_MAILS_PER_STEP` mails.
    pub async fn step(&self) -> Result<ConfirmationStep, ConfirmationFailure> {
        // Without a look first, every step would connect to the mail server.
        let now = self.clock.now();
        let due = self.store.next_confirmation(now).await.map_err(Failure::from)?;
        if due.is_none_or(|due| due > now) {
            if self.store.end_impossible_waits(WaitingMail::Confirmations, now).await.map_err(Failure::from)? {
                return Ok(ConfirmationStep::Idle(Some(now)));
            }
            return Ok(ConfirmationStep::Idle(due));
        }
        // Connects before a mail is leased, so that an unavailable server costs nobody an attempt.
        let mut connection = match self.mailer.connect().await {
            Ok(connection) => connection,
            Err(failure) => return Ok(ConfirmationStep::Failed(failure)),
        };
        for _ in 0..MAX_MAILS_PER_STEP {
            let token = random_token()?;
            let now = self.clock.now();
            let lease = self.store.lease_confirmation(&token, now, now.after(LEASE_DURATION)).await;
            let leased = match lease.map_err(Failure::from)? {
                ConfirmationLease::Leased(leased) => leased,
                ConfirmationLease::Skipped => continue,
                ConfirmationLease::LimitReachedUntil(_) | ConfirmationLease::NoneDue => break,
            };
            if let Err(failure) = self.send(&mut connection, &leased).await? {
                // After a failure the connection must not be used again.
                return Ok(ConfirmationStep::Failed(failure));
            }
        }
        connection.close().await;
        Ok(ConfirmationStep::Sent)
    }

    /// Sends a leased mail and records the outcome.
    async fn send(
        &self,
        connection: &mut SmtpConnection,
        leased: &LeasedConfirmation,
    ) -> Result<Result<(), SendFailure>, ConfirmationFailure> {
        let Some(mail) = self.compose(leased)? else {
            let reason = UnsupportedAddress.to_string();
            self.record(leased, &ConfirmationOutcome::Failed { reason }).await?;
            return Ok(Ok(()));
        };
        let result = connection.send(&mail).await;
        let outcome = match &result {
            Ok(()) => ConfirmationOutcome::Sent,
            Err(failure) => self.outcome_of(leased, failure),
        };
        self.record(leased, &outcome).await?;
        Ok(result)
    }

    async fn record(&self, leased: &LeasedConfirmation, outcome: &ConfirmationOutcome) -> Result<(), Failure> {
        Ok(self.store.record_confirmation_mail(leased, outcome, self.clock.now()).await?)
    }

    fn outcome_of(&self, leased: &LeasedConfirmation, failure: &SendFailure) -> ConfirmationOutcome {
        let now = self.clock.now();
        let reason = failure.detail().to_owned();
        // The mail may have arrived twice.
        if matches!(failure, SendFailure::Uncertain(_)) && leased.tries > 0 {
            return ConfirmationOutcome::Sent;
        }
        if failure.is_mailbox_rejection() || leased.first_tried_at <= now.before(FORWARD_RETRY_PERIOD) {
            return ConfirmationOutcome::Failed { reason };
        }
        ConfirmationOutcome::Retry { at: now.after(retry_delay(leased.tries.saturating_add(1))), reason }
    }

    /// Returns `None` if SMTP cannot transport the address.
    fn compose(&self, leased: &LeasedConfirmation) -> Result<Option<Mail>, SiteFailure> {
        let Ok(to) = MailAddress::from_email(&leased.email) else { return Ok(None) };
        let rendered = self.template.render(&ConfirmationRequest {
            requested: leased.requested_at.date(),
            through: leased.origin.as_str(),
            url: self.base_url.to(&leased.token.path(CONFIRMATION_PATH)),
        })?;
        Ok(Some(self.mailer.compose_confirmation(&ConfirmationMail {
            id: leased.id,
            to: &to,
            subject: &rendered.subject,
            text: &rendered.text,
            html: &rendered.html,
            at: self.clock.now(),
        })))
    }
}
