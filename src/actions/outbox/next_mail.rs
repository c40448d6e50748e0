//! Leases the next mail of the outbox and composes it.
//!
//! Under a flood, more than [`DIGEST_THRESHOLD`] waiting messages share a digest of up to [`MAX_DIGEST_MESSAGES`], and
//! [`mail_interval`] spaces the emails out. All instances together send no more than [`RecentMails`] allows; when that is
//! reached, one summary says how many messages wait. Alerts do not count, so that a flood cannot hold them back.

use std::time::Duration;

use uuid::Uuid;

use crate::actions::failure::Failure;
use crate::actions::random::{new_id, random_token};
use crate::clock::Clock;
use crate::domain::letters::CONFIRMATION_PATH;
use crate::domain::limits::{DIGEST_THRESHOLD, MAX_DIGEST_MESSAGES, SIGN_IN_LINK_LIFE};
use crate::domain::network::BaseUrl;
use crate::domain::outbox::{MakerMailKind, RecentMails, mail_interval, retry_delay};
use crate::domain::time::Timestamp;
use crate::mail::{Mail, MailAddress, MailParts, Mailer, SendFailure, SmtpConnection, UnsupportedAddress};
use crate::site::{CurrentMailTemplates, MailRecipient};
use crate::store::{ConfirmationLease, DeliveryFailure, DueMessage, LeasedConfirmation, MailKind, MessageLease, Store};

/// How long a lease lasts without being renewed.
pub(super) const LEASE_DURATION: Duration = Duration::from_mins(1);

/// Sends what waits, a few emails at a time.
#[derive(Debug)]
pub struct OutboxSender {
    pub store: Store,
    pub mailer: Mailer,
    /// The makers' mailbox.
    pub to: MailAddress,
    /// Where links to sign in to the desk are mailed. `None`: nowhere.
    pub desk_email: Option<MailAddress>,
    pub confirmations: ConfirmationTexts,
    pub clock: Clock,
}

/// What a mail is made of that asks for a confirmation.
#[derive(Debug)]
pub struct ConfirmationTexts {
    pub templates: CurrentMailTemplates,
    pub base_url: BaseUrl,
}

pub(super) enum Next {
    Send(LeasedMail),
    Unavailable(SendFailure),
    /// This one must not be sent. Another one may be due.
    Skipped,
    WaitUntil(Option<Timestamp>),
}

/// A mail that is leased to us.
pub(super) struct LeasedMail {
    pub(super) kind: MailKind,
    pub(super) lease: Uuid,
    pub(super) mail: Mail,
    pub(super) messages: usize,
    /// The fewest failed attempts of any of its messages.
    pub(super) tries: u32,
    /// Whether the mail server did not accept a digest with its messages before.
    pub(super) was_not_accepted: bool,
    /// Whether an earlier attempt at this mail may have arrived.
    pub(super) is_repeat: bool,
}

impl OutboxSender {
    pub(super) async fn next_for_makers(&self) -> Result<Next, Failure> {
        let now = self.clock.now();
        let mut texts_due = None;
        for kind in [MailKind::SignIn, MailKind::Alert] {
            let due = self.store.next_due(kind, now).await?;
            if due.is_some_and(|due| due <= now)
                && let Some(next) = self.next_text(kind, now).await?
            {
                return Ok(next);
            }
            texts_due = texts_due.into_iter().chain(due).min();
        }
        match self.next_messages(now).await? {
            Next::WaitUntil(due) => Ok(Next::WaitUntil(due.into_iter().chain(texts_due).min())),
            next => Ok(next),
        }
    }

    /// Leases an alert or a link to sign in.
    async fn next_text(&self, kind: MailKind, now: Timestamp) -> Result<Option<Next>, Failure> {
        let lease = new_id(now);
        let Some(text) = self.store.lease_text(kind, lease, now, now.after(LEASE_DURATION)).await? else {
            return Ok(None);
        };
        let to = match kind {
            MailKind::SignIn => self.desk_email.as_ref().filter(|_| text.at.after(SIGN_IN_LINK_LIFE) > now),
            _ => Some(&self.to),
        };
        let Some(to) = to else {
            self.store.drop_leased(lease).await?;
            return Ok(Some(Next::Skipped));
        };
        let mail = self.mailer.compose(&MailParts::new(text.id, to, &text.subject, &text.text, text.at));
        let (tries, is_repeat, was_not_accepted) = (text.tries, text.tries > 0, false);
        Ok(Some(Next::Send(LeasedMail { kind, lease, mail, messages: 1, tries, was_not_accepted, is_repeat })))
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
            was_not_accepted: messages.iter().any(|message| message.max_digest.is_some()),
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
        let (kind, messages) = (MailKind::Message, 0);
        Ok(Next::Send(LeasedMail { kind, lease, mail, messages, tries: 0, was_not_accepted: false, is_repeat: false }))
    }

    /// Leases the next mail that asks for a confirmation. Connects first, so that an unavailable server costs nobody an
    /// attempt.
    pub(super) async fn next_confirmation(&self, connection: &mut Option<SmtpConnection>) -> Result<Next, Failure> {
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
            ConfirmationLease::Skipped => return Ok(Next::Skipped),
            ConfirmationLease::NoneDue => return Ok(Next::WaitUntil(Some(now))),
        };
        let LeasedConfirmation { tries, is_repeat, .. } = *leased;
        let Ok(to) = MailAddress::from_email(&leased.email) else {
            let failure = failed_attempt(now, now, tries, UnsupportedAddress.to_string());
            self.store.record_failed_attempt(lease, &failure).await?;
            return Ok(Next::Skipped);
        };
        let mail = self.compose_confirmation(&leased, &to)?;
        let (kind, was_not_accepted) = (MailKind::Confirmation, false);
        Ok(Next::Send(LeasedMail { kind, lease, mail, messages: 1, tries, was_not_accepted, is_repeat }))
    }

    fn compose_confirmation(&self, leased: &LeasedConfirmation, to: &MailAddress) -> Result<Mail, Failure> {
        let ConfirmationTexts { templates, base_url } = &self.confirmations;
        let rendered = templates.get().confirmation(&MailRecipient {
            opted_in: leased.requested_at.date(),
            through: leased.origin,
            url: base_url.to(&leased.token.path(CONFIRMATION_PATH)),
        });
        let rendered = rendered.map_err(|failure| Failure::Internal(failure.to_string()))?;
        let parts = MailParts::new(leased.id, to, &rendered.subject, &rendered.text, self.clock.now());
        Ok(self.mailer.compose(&MailParts { html: Some(&rendered.html), ..parts }))
    }
}

pub(super) fn failed_attempt(
    at: Timestamp,
    give_up_if_first_tried_by: Timestamp,
    tries: u32,
    reason: String,
) -> DeliveryFailure {
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
    use crate::actions::random::new_id;
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
