//! Sends the mail that waits in the outbox: contact messages and alerts to the makers' mailbox, and mails that ask people to
//! confirm their opt-in. Each is retried for a week; it may arrive twice, but only with the same Message-ID.
//!
//! What goes in one mail is leased for a short time, and the lease is renewed while the mail server is being spoken to, so no
//! transaction is open meanwhile. Then the outcome is recorded:
//!
//! - accepted: done;
//! - certainly not accepted: its messages wait, and may go in any later mail;
//! - uncertain, because the connection broke or the process died: its messages wait, and go again in the same mail, by
//!   whose Message-ID mail clients recognize it.
//!
//! Retries follow [`retry_delay`] for [`FORWARD_RETRY_PERIOD`]. A permanent rejection does not end them, because the
//! mail server may be misconfigured; but a digest that was rejected permanently is halved, so that a message that the
//! server rejects in the end fails alone. A person's mailbox that does not exist is given up at once.
//!
//! Under a flood, more than [`DIGEST_THRESHOLD`] waiting messages share a digest of up to [`MAX_DIGEST_MESSAGES`], and
//! [`mail_interval`] spaces the emails out. All instances together send no more than [`RecentMails`] allows; when that is
//! reached, one summary says how many messages wait. Alerts do not count, so that a flood cannot hold them back.

use std::pin::pin;
use std::time::Duration;

use tokio::time::sleep;
use uuid::Uuid;

use super::mail_links::random_token;
use super::{Failure, Service, new_id};
use crate::clock::Clock;
use crate::domain::base_url::BaseUrl;
use crate::domain::confirmation::CONFIRMATION_PATH;
use crate::domain::contact::{ContactMessage, ReceivedMessage, mail_interval, retry_delay};
use crate::domain::limits::{DIGEST_THRESHOLD, FORWARD_RETRY_PERIOD, MAX_DIGEST_MESSAGES};
use crate::domain::maker_mail::{MakerMailKind, RecentMails};
use crate::domain::time::Timestamp;
use crate::mail::{Mail, MailAddress, MailParts, Mailer, SendFailure, SmtpConnection, UnsupportedAddress};
use crate::site::{MailRecipient, MailTemplates};
use crate::store::{ConfirmationLease, DeliveryFailure, DueMessage, LeasedConfirmation, MailKind, MessageLease, Store};

/// How long a lease lasts without being renewed.
const LEASE_DURATION: Duration = Duration::from_mins(1);
const LEASE_RENEWAL_INTERVAL: Duration = Duration::from_secs(20);
const MAX_MAILS_PER_STEP: usize = 20;

/// Stores the message and its outbox entry in one transaction; [`OutboxSender`] mails it.
///
/// The same message from the same sender within 24 hours is stored once, so a client
/// that got no response may repeat the request. `CLAIM_DIGESTS` in `store/messages.rs` enforces it.
pub async fn send_contact(service: &Service, contact: ContactMessage) -> Result<(), Failure> {
    let at = service.clock.now();
    Ok(service.writer.record_message(ReceivedMessage { id: new_id(at), contact, at }).await?)
}

/// Sends what waits, a few emails at a time.
#[derive(Debug)]
pub struct OutboxSender {
    pub store: Store,
    pub mailer: Mailer,
    /// The makers' mailbox.
    pub to: MailAddress,
    /// `None`: opt-ins need no confirmation.
    pub confirmations: Option<ConfirmationTexts>,
    pub clock: Clock,
}

/// What a mail is made of that asks for a confirmation.
#[derive(Debug)]
pub struct ConfirmationTexts {
    pub templates: MailTemplates,
    pub base_url: BaseUrl,
}

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

enum Next {
    Send(LeasedMail),
    Unavailable(SendFailure),
    WaitUntil(Option<Timestamp>),
}

/// A mail that is leased to us.
struct LeasedMail {
    kind: MailKind,
    lease: Uuid,
    mail: Mail,
    messages: usize,
    /// The fewest failed attempts of any of its messages.
    tries: u32,
    /// Whether an earlier attempt at this mail may have arrived.
    is_repeat: bool,
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
        for sent in 0..MAX_MAILS_PER_STEP {
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
                Next::WaitUntil(due) if sent == 0 => return Ok(SendStep::Idle(due)),
                Next::WaitUntil(_) => break,
            };
            if let Err(failure) = self.send(connection, &leased).await? {
                return Ok(SendStep::Failed(failure));
            }
        }
        Ok(SendStep::Sent)
    }

    async fn next_for_makers(&self) -> Result<Next, Failure> {
        let now = self.clock.now();
        let alert_due = self.store.next_due(MailKind::Alert, now).await?;
        if alert_due.is_some_and(|due| due <= now) {
            let lease = new_id(now);
            if let Some(alert) = self.store.lease_alert(lease, now, now.after(LEASE_DURATION)).await? {
                let mail =
                    self.mailer.compose(&MailParts::new(alert.id, &self.to, &alert.subject, &alert.text, alert.at));
                let (kind, tries) = (MailKind::Alert, alert.tries);
                return Ok(Next::Send(LeasedMail { kind, lease, mail, messages: 1, tries, is_repeat: tries > 0 }));
            }
        }
        match self.next_messages(now).await? {
            Next::WaitUntil(due) => Ok(Next::WaitUntil(due.into_iter().chain(alert_due).min())),
            next => Ok(next),
        }
    }

    /// Leases the messages of the next mail, unless nothing is due or it is too early for another mail.
    async fn next_messages(&self, now: Timestamp) -> Result<Next, Failure> {
        let recent = self.store.recent_maker_mails(now).await?;
        // A mail that was sent later than now was sent before the clock was set back.
        let earliest = recent.latest.map(|latest| latest.min(now).after(mail_interval(recent.count)));
        if let Some(earliest) = earliest.filter(|earliest| *earliest > now) {
            return Ok(Next::WaitUntil(Some(earliest)));
        }
        let due = self.store.due_messages(now, MAX_DIGEST_MESSAGES).await?;
        let Some((mail, mut messages)) = bundle(&due, new_id(now)) else {
            return Ok(Next::WaitUntil(self.store.next_due(MailKind::Message, now).await?));
        };
        if !recent.has_room_for(MakerMailKind::Messages, 0) {
            return self.limit_reached(&recent, now).await;
        }
        let is_repeat = messages.iter().any(|message| message.mail.is_some());
        if is_repeat {
            messages = self.store.messages_of_mail(mail).await?;
        }
        let lease = MessageLease {
            id: new_id(now),
            mail,
            messages: messages.iter().map(|message| message.id).collect(),
            at: now,
            until: now.after(LEASE_DURATION),
        };
        let Some(received) = self.store.lease_messages(&lease).await?.filter(|received| !received.is_empty()) else {
            return Ok(Next::WaitUntil(Some(now)));
        };
        let leased = LeasedMail {
            kind: MailKind::Message,
            lease: lease.id,
            mail: match received.as_slice() {
                [single] if single.id == mail => self.mailer.compose_contact(single, &self.to),
                many => self.mailer.compose_digest(mail, many, &self.to),
            },
            messages: received.len(),
            tries: messages.iter().map(|message| message.tries).min().unwrap_or_default(),
            is_repeat,
        };
        if self.store.reserve_maker_mail(lease.id, MakerMailKind::Messages, leased.mail.size(), now).await? {
            return Ok(Next::Send(leased));
        }
        self.store.release_lease(lease.id, is_repeat, now).await?;
        self.limit_reached(&recent, now).await
    }

    /// The first instance that reaches the limit tells the makers that messages wait. Then all instances wait until there is
    /// room. The summary is not retried: once there is room, the messages themselves follow.
    async fn limit_reached(&self, recent: &RecentMails, now: Timestamp) -> Result<Next, Failure> {
        if recent.has_summary {
            return Ok(Next::WaitUntil(recent.room_at()));
        }
        let (lease, backlog) = (new_id(now), self.store.backlog(MailKind::Message).await?);
        let mail = self.mailer.compose_summary(lease, backlog.waiting + backlog.leased, &self.to, now);
        if !self.store.reserve_maker_mail(lease, MakerMailKind::Summary, mail.size(), now).await? {
            return Ok(Next::WaitUntil(Some(now)));
        }
        Ok(Next::Send(LeasedMail { kind: MailKind::Message, lease, mail, messages: 0, tries: 0, is_repeat: false }))
    }

    /// Leases the next mail that asks for a confirmation. Connects first, so that an unavailable server costs nobody an
    /// attempt.
    async fn next_confirmation(&self, connection: &mut Option<SmtpConnection>) -> Result<Next, Failure> {
        let Some(texts) = &self.confirmations else { return Ok(Next::WaitUntil(None)) };
        let now = self.clock.now();
        let due = self.store.next_confirmation(now).await?;
        if due.is_none_or(|due| due > now) {
            return Ok(Next::WaitUntil(due));
        }
        if let Err(failure) = self.mailer.ensure_connected(connection).await {
            return Ok(Next::Unavailable(failure));
        }
        let (lease, token) = (new_id(now), random_token()?);
        let leased = match self.store.lease_confirmation(lease, &token, now, now.after(LEASE_DURATION)).await? {
            ConfirmationLease::Leased(leased) => leased,
            ConfirmationLease::Skipped | ConfirmationLease::NoneDue => return Ok(Next::WaitUntil(Some(now))),
        };
        let LeasedConfirmation { tries, is_repeat, .. } = *leased;
        let Ok(to) = MailAddress::from_email(&leased.email) else {
            let failure = failed_attempt(now, now, tries, UnsupportedAddress.to_string());
            self.store.record_failed_attempt(lease, &failure).await?;
            return Ok(Next::WaitUntil(Some(now)));
        };
        let mail = self.compose_confirmation(texts, &leased, &to)?;
        Ok(Next::Send(LeasedMail { kind: MailKind::Confirmation, lease, mail, messages: 1, tries, is_repeat }))
    }

    fn compose_confirmation(
        &self,
        texts: &ConfirmationTexts,
        leased: &LeasedConfirmation,
        to: &MailAddress,
    ) -> Result<Mail, Failure> {
        let rendered = texts.templates.confirmation(&MailRecipient {
            opted_in: leased.requested_at.date(),
            through: leased.origin,
            url: texts.base_url.to(&leased.token.path(CONFIRMATION_PATH)),
        });
        let rendered = rendered.map_err(|failure| Failure::Internal(failure.to_string()))?;
        let parts = MailParts::new(leased.id, to, &rendered.subject, &rendered.text, self.clock.now());
        Ok(self.mailer.compose(&MailParts { html: Some(&rendered.html), ..parts }))
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
                if leased.kind == MailKind::Message
                    && let Err(failure) = self.store.end_backoff(leased.kind, now).await
                {
                    tracing::warn!(%failure, "messages that wait were not made due and wait on");
                }
            }
        }
        Ok(result)
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
        let has_no_mailbox = leased.kind == MailKind::Confirmation && failure.is_mailbox_rejection();
        let give_up = if has_no_mailbox { at } else { at.before(FORWARD_RETRY_PERIOD) };
        DeliveryFailure {
            may_have_been_sent,
            // A server that rejects this very mail has not accepted it before.
            may_have_arrived: may_have_been_sent || leased.is_repeat && !rejected,
            max_digest: (rejected && leased.kind == MailKind::Message).then(|| (leased.messages / 2).max(1)),
            ..failed_attempt(at, give_up, leased.tries, failure.detail().to_owned())
        }
    }
}

fn failed_attempt(at: Timestamp, give_up_if_first_tried_by: Timestamp, tries: u32, reason: String) -> DeliveryFailure {
    DeliveryFailure {
        at,
        retry_at: at.after(retry_delay(tries.saturating_add(1))),
        give_up_if_first_tried_by,
        may_have_been_sent: false,
        may_have_arrived: false,
        max_digest: None,
        reason,
    }
}

/// Chooses the messages of the next mail, and its id: that of a single message, or `digest_id`.
fn bundle(due: &[DueMessage], digest_id: Uuid) -> Option<(Uuid, Vec<DueMessage>)> {
    let first = due.first()?;
    if let Some(mail) = first.mail {
        return Some((mail, due.iter().filter(|message| message.mail == Some(mail)).copied().collect()));
    }
    let mut alike: Vec<_> = due.iter().filter(|message| message.max_digest == first.max_digest).copied().collect();
    let size = if alike.len() > DIGEST_THRESHOLD { first.max_digest.unwrap_or(MAX_DIGEST_MESSAGES) } else { 1 };
    alike.truncate(size);
    Some((if alike.len() == 1 { first.id } else { digest_id }, alike))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::actions::new_id;
    use crate::domain::time::Timestamp;

    fn waiting(count: usize) -> Vec<DueMessage> {
        let at = Timestamp::from_unix_millis(0);
        (0..count).map(|_| DueMessage { id: new_id(at), mail: None, max_digest: None, tries: 0 }).collect()
    }

    /// The number of messages in the next mail, and whether it is a digest.
    fn next_mail(due: &[DueMessage]) -> (usize, bool) {
        let digest_id = Uuid::nil();
        bundle(due, digest_id).map_or((0, false), |(mail, messages)| (messages.len(), mail == digest_id))
    }

    #[test]
    fn more_than_five_messages_become_a_digest() {
        assert_eq!(next_mail(&[]), (0, false));
        assert_eq!(next_mail(&waiting(1)), (1, false));
        assert_eq!(next_mail(&waiting(5)), (1, false));
        assert_eq!(next_mail(&waiting(6)), (6, true));
        assert_eq!(next_mail(&waiting(MAX_DIGEST_MESSAGES + 1)), (MAX_DIGEST_MESSAGES, true));
    }

    #[test]
    fn a_mail_that_may_have_arrived_is_repeated_with_the_same_messages() {
        let mail = Uuid::max();
        let mut due = waiting(9);
        due[..2].iter_mut().for_each(|message| message.mail = Some(mail));
        let (repeated, messages) = bundle(&due, Uuid::nil()).unwrap();
        assert_eq!((repeated, messages.as_slice()), (mail, &due[..2]));
    }

    #[test]
    fn rejected_messages_go_in_smaller_digests_of_their_own() {
        let mut due = waiting(20);
        due[..8].iter_mut().for_each(|message| message.max_digest = Some(4));
        assert_eq!(bundle(&due, Uuid::nil()).unwrap().1, &due[..4]);
        due[..8].iter_mut().for_each(|message| message.max_digest = Some(1));
        assert_eq!(bundle(&due, Uuid::nil()).unwrap(), (due[0].id, vec![due[0]]));
    }
}
