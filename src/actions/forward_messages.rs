//! Messages to the makers go on to their mailbox, at least once each.
//!
//! A mail is claimed for a short time, and the claim is kept up while the mail server is spoken to.
//! Then what happened is noted:
//!
//! - taken: done;
//! - certainly not taken: its messages wait, and go in whatever mail comes next;
//! - nobody knows, because the connection broke or we died: its messages wait, and go again in the
//!   very same mail, whose Message-ID tells mail readers that it is the same.
//!
//! A mail server that refuses a mail for good may be set up wrongly, so that is no reason to give
//! up earlier. A digest that is refused for good is halved next time, so that a message which the
//! server does not like in the end fails alone.

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

/// How long a claim holds without being kept up, and how often it is.
const LEASE: Duration = Duration::from_mins(1);
const RENEW_EVERY: Duration = Duration::from_secs(20);
/// Over which time the mails are counted that make the next one wait.
const AN_HOUR: Duration = Duration::from_hours(1);

/// Forwards messages, a few mails at a time.
#[derive(Clone, Debug)]
pub struct Forwarder {
    pub store: Store,
    pub mailer: Mailer,
    pub to: MailAddress,
    pub clock: Clock,
}

/// What came of a step.
#[derive(Debug)]
pub enum ForwardStep {
    /// Mails were handed over, and there may be more to do.
    Sent,
    /// A mail was not handed over; it will be tried again.
    Failed(SendFailure),
    /// Nothing is to be done until then, or until a new message comes.
    Idle(Option<Timestamp>),
}

/// What is to be done next.
enum Next {
    HandOver(LeasedMail),
    WaitUntil(Option<Timestamp>),
}

/// A mail that is ours to hand over.
struct LeasedMail {
    lease: Uuid,
    mail: Mail,
    messages: usize,
    /// How often the least tried of its messages was tried before.
    tries: u32,
}

impl Forwarder {
    /// Hands over what is due, a handful of mails at most, over one connection.
    ///
    /// # Errors
    /// `Unavailable` when the database is. A mail that was handed over and could not be noted goes
    /// again, as the same mail.
    pub async fn step(&self) -> Result<ForwardStep, Failure> {
        let mut connection = None;
        let step = self.step_over(&mut connection).await;
        if let Some(connection) = connection {
            connection.close().await;
        }
        step
    }

    async fn step_over(&self, connection: &mut Option<SmtpConnection>) -> Result<ForwardStep, Failure> {
        for sent in 0..DIGEST_THRESHOLD {
            let claimed = match self.next().await? {
                Next::HandOver(claimed) => claimed,
                Next::WaitUntil(then) if sent == 0 => return Ok(ForwardStep::Idle(then)),
                Next::WaitUntil(_) => break,
            };
            match self.hand_over(connection, &claimed).await {
                Ok(()) => self.store.mark_sent(claimed.lease, self.clock.now()).await?,
                Err(trouble) => {
                    self.store.mark_failed(claimed.lease, &self.delivery_failure(&claimed, &trouble)).await?;
                    return Ok(ForwardStep::Failed(trouble));
                }
            }
        }
        Ok(ForwardStep::Sent)
    }

    /// Claims the next mail, unless there is none or it is too early for another.
    async fn next(&self) -> Result<Next, Failure> {
        let now = self.clock.now();
        let (recent, last) = self.store.mails_sent_since(now.before(AN_HOUR)).await?;
        if let Some(open_at) = last.map(|last| last.after(mail_interval(recent))).filter(|then| *then > now) {
            return Ok(Next::WaitUntil(Some(open_at)));
        }
        let due = self.store.due_messages(now, MAX_DIGEST_MESSAGES).await?;
        let Some((mail, messages)) = bundle(&due, new_id(now)) else {
            return Ok(Next::WaitUntil(self.store.next_due().await?));
        };
        let claim = MessageLease {
            lease: new_id(now),
            mail,
            messages: messages.iter().map(|message| message.id).collect(),
            at: now,
            until: now.after(LEASE),
        };
        let Some(received) = self.store.lease_messages(&claim).await? else {
            return Ok(Next::WaitUntil(Some(now)));
        };
        Ok(Next::HandOver(LeasedMail {
            lease: claim.lease,
            mail: match received.as_slice() {
                [alone] if alone.id == mail => self.mailer.compose_contact(alone, &self.to, now),
                together => self.mailer.compose_digest(mail, together, &self.to, now),
            },
            messages: received.len(),
            tries: messages.iter().map(|message| message.tries).min().unwrap_or_default(),
        }))
    }

    /// Speaks to the mail server, and keeps the claim up for as long as that takes.
    async fn hand_over(
        &self,
        connection: &mut Option<SmtpConnection>,
        claimed: &LeasedMail,
    ) -> Result<(), SendFailure> {
        let mut talk = pin!(async {
            let mut open = match connection.take() {
                Some(open) => open,
                None => self.mailer.connect().await?,
            };
            open.send(&claimed.mail).await?;
            *connection = Some(open);
            Ok(())
        });
        loop {
            tokio::select! {
                biased;
                outcome = &mut talk => return outcome,
                () = sleep(RENEW_EVERY) => {}
            }
            if let Err(failure) = self.store.renew_lease(claimed.lease, self.clock.now().after(LEASE)).await {
                tracing::warn!(%failure, "a mail that is under way may be sent again by somebody else");
            }
        }
    }

    fn delivery_failure(&self, claimed: &LeasedMail, trouble: &SendFailure) -> DeliveryFailure {
        let at = self.clock.now();
        let disliked = matches!(trouble, SendFailure::MessageRejected { permanent: true, .. });
        DeliveryFailure {
            at,
            again_at: at.after(retry_delay(claimed.tries.saturating_add(1))),
            given_up_since: at.before(FORWARD_RETRY_PERIOD),
            may_have_arrived: matches!(trouble, SendFailure::Uncertain(_)),
            most_together: disliked.then(|| (claimed.messages / 2).max(1)),
            trouble: trouble.detail().to_owned(),
        }
    }
}

/// Chooses what goes in the next mail, and the mail's name. A message by itself gives its own name to
/// the mail; `name` is for a digest.
fn bundle(due: &[DueMessage], name: Uuid) -> Option<(Uuid, Vec<DueMessage>)> {
    let first = due.first()?;
    if let Some(mail) = first.mail {
        return Some((mail, due.iter().filter(|message| message.mail == Some(mail)).copied().collect()));
    }
    let mut alike: Vec<_> =
        due.iter().filter(|message| message.most_together == first.most_together).copied().collect();
    let together = if alike.len() > DIGEST_THRESHOLD { first.most_together.unwrap_or(MAX_DIGEST_MESSAGES) } else { 1 };
    alike.truncate(together);
    Some((if alike.len() == 1 { first.id } else { name }, alike))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waiting(count: usize) -> Vec<DueMessage> {
        let at = Timestamp::from_unix_millis(0);
        (0..count).map(|_| DueMessage { id: new_id(at), mail: None, most_together: None, tries: 0 }).collect()
    }

    fn sizes(due: &[DueMessage]) -> (usize, bool) {
        let name = Uuid::nil();
        bundle(due, name).map_or((0, false), |(mail, messages)| (messages.len(), mail == name))
    }

    #[test]
    fn more_than_a_handful_become_a_digest() {
        assert_eq!(sizes(&[]), (0, false));
        assert_eq!(sizes(&waiting(1)), (1, false));
        assert_eq!(sizes(&waiting(5)), (1, false));
        assert_eq!(sizes(&waiting(6)), (6, true));
        assert_eq!(sizes(&waiting(MAX_DIGEST_MESSAGES + 1)), (MAX_DIGEST_MESSAGES, true));
    }

    #[test]
    fn what_may_have_arrived_goes_again_in_the_same_mail_and_in_no_other() {
        let mail = Uuid::max();
        let mut due = waiting(9);
        due[..2].iter_mut().for_each(|message| message.mail = Some(mail));
        let (again, messages) = bundle(&due, Uuid::nil()).unwrap();
        assert_eq!((again, messages.as_slice()), (mail, &due[..2]));
    }

    #[test]
    fn what_was_refused_goes_in_smaller_company_and_apart_from_the_rest() {
        let mut due = waiting(20);
        due[..8].iter_mut().for_each(|message| message.most_together = Some(4));
        assert_eq!(bundle(&due, Uuid::nil()).unwrap().1, &due[..4]);
        due[..8].iter_mut().for_each(|message| message.most_together = Some(1));
        assert_eq!(bundle(&due, Uuid::nil()).unwrap(), (due[0].id, vec![due[0]]));
    }
}
