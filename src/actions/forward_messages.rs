//! Forwards contact messages to the makers' mailbox. Each is retried for a week; it may arrive twice, but only with
//! the same Message-ID.
//!
//! The messages of one mail are leased for a short time, and the lease is renewed while the mail server is being spoken
//! to, so no transaction is open meanwhile. Then the outcome is recorded:
//!
//! - accepted: done;
//! - certainly not accepted: its messages wait, and may go in any later mail;
//! - uncertain, because the connection broke or the process died: its messages wait, and go again in the same mail, by
//!   whose Message-ID mail clients recognize it.
//!
//! Retries follow [`retry_delay`] for [`FORWARD_RETRY_PERIOD`]. A permanent rejection does not end them, because the
//! mail server may be misconfigured; but a digest that was rejected permanently is halved, so that a message that the
//! server rejects in the end fails alone.
//!
//! Under a flood, more than [`DIGEST_THRESHOLD`] waiting messages share a digest of up to [`MAX_DIGEST_MESSAGES`], and
//! [`mail_interval`] spaces the emails out.

use std::pin::pin;
use std::time::Duration;

use tokio::time::sleep;
use uuid::Uuid;

use super::{Failure, new_id};
use crate::clock::Clock;
use crate::domain::contact::{mail_interval, retry_delay};
use crate::domain::limits::{DIGEST_THRESHOLD, FORWARD_RETRY_PERIOD, MAX_DIGEST_MESSAGES};
use crate::domain::time::Timestamp;
use crate::mail::{Mail, MailAddress, Mailer, SendFailure, SmtpConnection};
use crate::store::{DeliveryFailure, DueMessage, MessageLease, Store};

/// How long a lease lasts without being renewed.
const LEASE_DURATION: Duration = Duration::from_mins(1);
const LEASE_RENEWAL_INTERVAL: Duration = Duration::from_secs(20);
/// The period over which [`mail_interval`] counts emails.
const RATE_WINDOW: Duration = Duration::from_hours(1);
const MAX_MAILS_PER_STEP: usize = 5;

/// Forwards messages, a few emails at a time.
#[derive(Clone, Debug)]
pub struct Forwarder {
    pub store: Store,
    pub mailer: Mailer,
    pub to: MailAddress,
    pub clock: Clock,
}

/// The outcome of a step.
#[derive(Debug)]
pub enum ForwardStep {
    /// Emails were sent, and more may be due.
    Sent,
    /// The attempt failed or its outcome is unknown. Its messages wait for a retry, or were given up.
    Failed(SendFailure),
    /// Nothing is due until then, or until a new message is stored.
    Idle(Option<Timestamp>),
}

enum Next {
    Send(LeasedMail),
    WaitUntil(Option<Timestamp>),
}

/// A mail whose messages are leased to us.
struct LeasedMail {
    lease: Uuid,
    mail: Mail,
    messages: usize,
    /// The fewest failed attempts of any of its messages.
    tries: u32,
}

impl Forwarder {
    /// Sends what is due over one connection, at most `MAX_MAILS_PER_STEP` emails.
    ///
    /// # Errors
    /// `Unavailable` when the database is. If a mail was sent and that could not be recorded, the same mail is sent
    /// again.
    pub async fn step(&self) -> Result<ForwardStep, Failure> {
        let mut connection = None;
        let step = self.send_due(&mut connection).await;
        if let Some(connection) = connection {
            connection.close().await;
        }
        step
    }

    async fn send_due(&self, connection: &mut Option<SmtpConnection>) -> Result<ForwardStep, Failure> {
        for sent in 0..MAX_MAILS_PER_STEP {
            let leased = match self.next().await? {
                Next::Send(leased) => leased,
                Next::WaitUntil(due) if sent == 0 => return Ok(ForwardStep::Idle(due)),
                Next::WaitUntil(_) => break,
            };
            match self.send(connection, &leased).await {
                Ok(()) => self.store.record_sent(leased.lease, self.clock.now()).await?,
                Err(failure) => {
                    self.store.record_failed_attempt(leased.lease, &self.delivery_failure(&leased, &failure)).await?;
                    return Ok(ForwardStep::Failed(failure));
                }
            }
        }
        Ok(ForwardStep::Sent)
    }

    /// Leases the messages of the next mail, unless nothing is due or it is too early for another mail.
    async fn next(&self) -> Result<Next, Failure> {
        let now = self.clock.now();
        let (recent, last) = self.store.emails_sent_since(now.before(RATE_WINDOW)).await?;
        if let Some(earliest) = last.map(|last| last.after(mail_interval(recent))).filter(|earliest| *earliest > now) {
            return Ok(Next::WaitUntil(Some(earliest)));
        }
        let due = self.store.due_messages(now, MAX_DIGEST_MESSAGES).await?;
        let Some((mail, messages)) = bundle(&due, new_id(now)) else {
            return Ok(Next::WaitUntil(self.store.next_due().await?));
        };
        let lease = MessageLease {
            id: new_id(now),
            mail,
            messages: messages.iter().map(|message| message.id).collect(),
            at: now,
            until: now.after(LEASE_DURATION),
        };
        let Some(received) = self.store.lease_messages(&lease).await? else {
            return Ok(Next::WaitUntil(Some(now)));
        };
        Ok(Next::Send(LeasedMail {
            lease: lease.id,
            mail: match received.as_slice() {
                [single] if single.id == mail => self.mailer.compose_contact(single, &self.to, now),
                many => self.mailer.compose_digest(mail, many, &self.to, now),
            },
            messages: received.len(),
            tries: messages.iter().map(|message| message.tries).min().unwrap_or_default(),
        }))
    }

    /// Sends the mail and renews its lease for as long as that takes.
    async fn send(&self, connection: &mut Option<SmtpConnection>, leased: &LeasedMail) -> Result<(), SendFailure> {
        let mut sending = pin!(async {
            let mut open = match connection.take() {
                Some(open) => open,
                None => self.mailer.connect().await?,
            };
            open.send(&leased.mail).await?;
            *connection = Some(open);
            Ok(())
        });
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
        DeliveryFailure {
            at,
            retry_at: at.after(retry_delay(leased.tries.saturating_add(1))),
            give_up_if_first_tried_by: at.before(FORWARD_RETRY_PERIOD),
            may_have_arrived: matches!(failure, SendFailure::Uncertain(_)),
            max_digest: rejected.then(|| (leased.messages / 2).max(1)),
            reason: failure.detail().to_owned(),
        }
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
