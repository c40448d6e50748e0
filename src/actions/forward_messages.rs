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
//! [`mail_interval`] spaces the emails out. All instances together send no more than [`RecentMails`] allows; when that is
//! reached, one summary says how many messages wait.
//!
//! [`DIGEST_THRESHOLD`]: crate::domain::limits::DIGEST_THRESHOLD

mod bundle;

use std::pin::pin;
use std::time::Duration;

use tokio::time::sleep;
use uuid::Uuid;

use self::bundle::bundle;
use super::{Failure, new_id};
use crate::clock::Clock;
use crate::domain::contact::{mail_interval, retry_delay};
use crate::domain::limits::{FORWARD_RETRY_PERIOD, MAX_DIGEST_MESSAGES};
use crate::domain::maker_mail::{MakerMailKind, RecentMails};
use crate::domain::time::Timestamp;
use crate::mail::{Mail, MailAddress, Mailer, SendFailure, SmtpConnection};
use crate::store::{DeliveryFailure, MessageLease, Store, WaitingMail};

/// How long a lease lasts without being renewed.
const LEASE_DURATION: Duration = Duration::from_mins(1);
const LEASE_RENEWAL_INTERVAL: Duration = Duration::from_secs(20);
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
    /// The limit is reached, and messages wait.
    SendSummary,
    WaitUntil(Option<Timestamp>),
}

/// A mail whose messages are leased to us.
struct LeasedMail {
    lease: Uuid,
    mail: Mail,
    messages: usize,
    /// The fewest failed attempts of any of its messages.
    tries: u32,
    /// Whether an earlier attempt at this mail may have arrived.
    is_repeat: bool,
}

impl Forwarder {
    /// Sends what is due over one connection, at most `MAX_MAILS_PER_STEP` emails.
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
                Next::SendSummary => return self.send_summary(connection).await,
                Next::WaitUntil(due) if sent == 0 => return Ok(ForwardStep::Idle(due)),
                Next::WaitUntil(_) => break,
            };
            match self.send(connection, &leased).await {
                Ok(()) => {
                    let now = self.clock.now();
                    self.store.record_sent(leased.lease, now).await?;
                    // Apart from the record, which must not fail with it: the mail would be sent again.
                    if let Err(failure) = self.store.end_backoff(now).await {
                        tracing::warn!(%failure, "messages that wait were not made due and wait on");
                    }
                }
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
        let recent = self.store.recent_maker_mails(now).await?;
        // A mail that was sent later than now was sent before the clock was set back.
        let earliest = recent.latest.map(|latest| latest.min(now).after(mail_interval(recent.count)));
        if let Some(earliest) = earliest.filter(|earliest| *earliest > now) {
            return Ok(Next::WaitUntil(Some(earliest)));
        }
        let due = self.store.due_messages(now, MAX_DIGEST_MESSAGES).await?;
        let Some((mail, mut messages)) = bundle(&due, new_id(now)) else {
            let is_due = self.store.end_impossible_waits(WaitingMail::Messages, now).await?;
            return Ok(Next::WaitUntil(if is_due { Some(now) } else { self.store.next_due().await? }));
        };
        if !recent.has_room_for(MakerMailKind::Messages, 0) {
            return Ok(limit_reached(&recent));
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
        Ok(limit_reached(&recent))
    }

    /// Tells the makers that messages wait. It is not retried: once there is room, the messages themselves follow.
    async fn send_summary(&self, connection: &mut Option<SmtpConnection>) -> Result<ForwardStep, Failure> {
        let now = self.clock.now();
        let (id, backlog) = (new_id(now), self.store.backlog().await?);
        let mail = self.mailer.compose_summary(id, backlog.waiting + backlog.leased, &self.to, now);
        if !self.store.reserve_maker_mail(id, MakerMailKind::Summary, mail.size(), now).await? {
            return Ok(ForwardStep::Idle(Some(now)));
        }
        match self.send_over(connection, &mail).await {
            Ok(()) => {
                self.store.confirm_maker_mail(id, self.clock.now()).await?;
                Ok(ForwardStep::Sent)
            }
            Err(failure) => {
                if !matches!(failure, SendFailure::Uncertain(_)) {
                    self.store.cancel_maker_mail(id).await?;
                }
                Ok(ForwardStep::Failed(failure))
            }
        }
    }

    /// Sends a mail over the open connection, or a new one.
    async fn send_over(&self, connection: &mut Option<SmtpConnection>, mail: &Mail) -> Result<(), SendFailure> {
        let mut open = match connection.take() {
            Some(open) => open,
            None => self.mailer.connect().await?,
        };
        open.send(mail).await?;
        *connection = Some(open);
        Ok(())
    }

    /// Sends the mail and renews its lease for as long as that takes.
    async fn send(&self, connection: &mut Option<SmtpConnection>, leased: &LeasedMail) -> Result<(), SendFailure> {
        let mut sending = pin!(self.send_over(connection, &leased.mail));
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
        DeliveryFailure {
            at,
            retry_at: at.after(retry_delay(leased.tries.saturating_add(1))),
            give_up_if_first_tried_by: at.before(FORWARD_RETRY_PERIOD),
            may_have_been_sent,
            // A server that rejects this very mail has not accepted it before.
            may_have_arrived: may_have_been_sent || leased.is_repeat && !rejected,
            max_digest: rejected.then(|| (leased.messages / 2).max(1)),
            reason: failure.detail().to_owned(),
        }
    }
}

/// The first instance that reaches the limit sends the summary. Then all instances wait until there is room.
fn limit_reached(recent: &RecentMails) -> Next {
    if recent.has_summary { Next::WaitUntil(recent.room_at()) } else { Next::SendSummary }
}
