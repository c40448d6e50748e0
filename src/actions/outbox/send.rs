//! Sends the mail that waits in the outbox: contact messages and alerts to the makers' mailbox, and mails that ask people to
//! confirm their opt-in. Each is retried for a week; it may arrive twice, with the same Message-ID unless its digest was halved
//! in between.
//!
//! What goes in one mail is leased for a short time, and the lease is renewed while the mail server is being spoken to, so no
//! transaction is open meanwhile. Then the outcome is recorded:
//!
//! - accepted: done;
//! - certainly not accepted: its messages wait, and may go in any later mail;
//! - uncertain, because the connection broke or the process died: its messages wait, and go again in the same mail, by
//!   whose Message-ID mail clients recognize it.
//!
//! Retries follow [`retry_delay`](crate::domain::outbox::retry_delay) for [`FORWARD_RETRY_PERIOD`]. A permanent rejection does
//! not end them, because the mail server may be misconfigured. But a digest is halved if the server rejected it permanently, or
//! if it rejected it for now, or hung up on it, for the second time. The halves are tried at once if the server accepts other
//! mail. So a message that it does not accept is alone within minutes, and holds up no other. A person's mailbox that does not
//! exist is given up at once.

use std::pin::pin;
use std::time::Duration;

use tokio::time::sleep;

use super::next_mail::{LEASE_DURATION, LeasedMail, Next, OutboxSender, failed_attempt};
use crate::actions::failure::Failure;
use crate::domain::limits::FORWARD_RETRY_PERIOD;
use crate::domain::time::Timestamp;
use crate::mail::{SendFailure, SmtpConnection};
use crate::store::{DeliveryFailure, MailKind};

const LEASE_RENEWAL_INTERVAL: Duration = Duration::from_secs(20);
const MAX_MAILS_PER_STEP: usize = 20;

/// The outcome of a step.
#[derive(Debug)]
pub enum SendStep {
    /// Emails were sent, and more may be due.
    Sent,
    /// The attempt failed or its outcome is unknown. It is retried, or was given up.
    Failed(SendFailure),
    /// Nothing is due until then, or until something new is stored.
    Idle(Option<Timestamp>),
}

impl OutboxSender {
    /// Sends what is due over one connection, at most `MAX_MAILS_PER_STEP` emails.
    pub async fn step(&self) -> Result<SendStep, Failure> {
        let mut connection = None;
        // Boxed, because it is large.
        let step = Box::pin(self.send_due(&mut connection)).await;
        if let Some(connection) = connection {
            connection.close().await;
        }
        step
    }

    async fn send_due(&self, connection: &mut Option<SmtpConnection>) -> Result<SendStep, Failure> {
        let (mut sent, mut rejection) = (false, None);
        for tried in 0..MAX_MAILS_PER_STEP {
            let next = match self.next_for_makers().await? {
                Next::WaitUntil(due) => match self.next_confirmation(connection).await? {
                    Next::WaitUntil(also_due) => Next::WaitUntil(due.into_iter().chain(also_due).min()),
                    next => next,
                },
                next => next,
            };
            let leased = match next {
                Next::Send(leased) => leased,
                Next::Unavailable(failure) => return Ok(SendStep::Failed(failure)),
                Next::Skipped => continue,
                Next::WaitUntil(due) if tried == 0 => return Ok(SendStep::Idle(due)),
                Next::WaitUntil(_) => break,
            };
            match self.send(connection, &leased).await? {
                Ok(()) => sent = true,
                // Says nothing about the mails to other people.
                Err(failure)
                    if leased.kind == MailKind::Confirmation && !matches!(failure, SendFailure::Unavailable(_)) =>
                {
                    rejection = Some(failure);
                }
                Err(failure) => {
                    if sent {
                        self.end_backoff(leased.kind).await;
                    }
                    return Ok(SendStep::Failed(failure));
                }
            }
        }
        Ok(rejection.filter(|_| !sent).map_or(SendStep::Sent, SendStep::Failed))
    }

    /// Sends a leased mail, renews its lease for as long as that takes, and records the outcome.
    async fn send(
        &self,
        connection: &mut Option<SmtpConnection>,
        leased: &LeasedMail,
    ) -> Result<Result<(), SendFailure>, Failure> {
        let result = self.send_while_renewing(connection, leased).await;
        let now = self.clock.now();
        match &result {
            // Nobody is asked a third time, if the mail may have arrived twice.
            Err(SendFailure::Uncertain(_)) if leased.kind == MailKind::Confirmation && leased.is_repeat => {
                self.store.record_sent(leased.lease, now).await?;
            }
            Err(failure) => {
                self.store.record_failed_attempt(leased.lease, &self.delivery_failure(leased, failure)).await?;
            }
            Ok(()) => {
                self.store.record_sent(leased.lease, now).await?;
                // Apart from the record, which must not fail with it: the mail would be sent again.
                self.end_backoff(leased.kind).await;
            }
        }
        Ok(result)
    }

    /// Makes messages due that wait, because the mail server accepts mail.
    async fn end_backoff(&self, kind: MailKind) {
        if kind == MailKind::Message
            && let Err(failure) = self.store.end_backoff(kind, self.clock.now()).await
        {
            tracing::warn!(%failure, "failed to end the backoff of queued messages");
        }
    }

    async fn send_while_renewing(
        &self,
        connection: &mut Option<SmtpConnection>,
        leased: &LeasedMail,
    ) -> Result<(), SendFailure> {
        let mut sending = pin!(self.mailer.send_over(connection, &leased.mail));
        loop {
            tokio::select! {
                biased;
                result = &mut sending => return result,
                () = sleep(LEASE_RENEWAL_INTERVAL) => {}
            }
            if let Err(failure) = self.store.renew_lease(leased.lease, self.clock.now().after(LEASE_DURATION)).await {
                tracing::warn!(%failure, "failed to renew a lease; another instance may send the same mail again");
            }
        }
    }

    fn delivery_failure(&self, leased: &LeasedMail, failure: &SendFailure) -> DeliveryFailure {
        let at = self.clock.now();
        let rejected = matches!(failure, SendFailure::MessageRejected { permanent: true, .. });
        let may_have_been_sent = matches!(failure, SendFailure::Uncertain(_));
        // What the server makes of a mail shows once it has the content. Everything before is the same for every mail.
        let was_offered = matches!(failure, SendFailure::MessageRejected { .. } | SendFailure::Uncertain(_));
        let has_failed_again = rejected || leased.was_not_accepted || leased.is_repeat;
        let is_halved = was_offered && leased.messages > 1 && has_failed_again;
        let max_digest = match leased.messages {
            _ if leased.kind != MailKind::Message || !was_offered => None,
            1 => has_failed_again.then_some(1),
            // No message is marked as the one that is not accepted before it was sent alone.
            messages if has_failed_again => Some((messages / 2).max(2)),
            messages => Some(messages),
        };
        let has_no_mailbox = leased.kind == MailKind::Confirmation && failure.is_mailbox_rejection();
        let give_up = if has_no_mailbox { at } else { at.before(FORWARD_RETRY_PERIOD) };
        DeliveryFailure {
            may_have_been_sent,
            // A server that rejects this very mail has not accepted it before.
            may_have_arrived: !is_halved && (may_have_been_sent || leased.is_repeat && !rejected),
            max_digest,
            ..failed_attempt(at, give_up, leased.tries, failure.detail().to_owned())
        }
    }
}
