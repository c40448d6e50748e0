//! Sends the monthly letter, to each person at most once.
//!
//! A recipient is claimed, and the claim is committed, before the mail server is spoken to. Then the outcome is
//! recorded. If the process dies or the connection breaks in between, the recipient stays `uncertain` and is never
//! retried automatically: at most one copy arrives.
//!
//! A person gets at most one letter per calendar month, even if several are sent: a claim takes the only row of their mailbox in
//! `letter_months` (`TAKE_MONTH` in `store/letters/claims.rs`), in the transaction that reads opt-in and suppression again.
//!
//! What the mail server rejects permanently is judged by [`Refusals`]: it may be the fault of the recipient, or ours.

use std::sync::Arc;
use std::time::Duration;

use super::rejected_mailboxes::Refusals;
use crate::actions::failure::Failure;
use crate::actions::random::{new_id, random_token};
use crate::clock::Clock;
use crate::config::InvalidSettings;
use crate::domain::letters::{BounceTag, Letter, LetterRun, UNSUBSCRIBE_PATH};
use crate::domain::limits::MAX_CONSECUTIVE_REFUSALS;
use crate::domain::mail::EmailAddress;
use crate::domain::network::BaseUrl;
use crate::domain::signups::opt_in_origin;
use crate::domain::time::Timestamp;
use crate::mail::{
    FailureCause, Mail, MailAddress, MailParts, Mailer, SendFailure, SmtpConnection, UnsupportedAddress,
};
use crate::site::{MailRecipient, MailTemplates, RenderedMail, SiteFailure};
use crate::store::{ClaimTerms, ClaimedRecipient, LetterClaim, LetterOutcome, Recipient, Store};

/// Delays after the first, second and third temporary rejection of a recipient.
const DEFERRAL_DELAYS: [Duration; 3] = [Duration::from_secs(5), Duration::from_secs(30), Duration::from_mins(2)];
/// Delay after any further one. A run of the command does not wait that long, so the recipient is left for the next run.
const LONG_DEFERRAL_DELAY: Duration = Duration::from_hours(24);
/// After so many deferrals, the last of them a day apart, the recipient is given up.
const MAX_DEFERRALS: u32 = 8;

/// Sends one letter, one recipient per [`step`](Self::step).
#[derive(Debug)]
pub struct LetterSender {
    pub store: Store,
    pub mailer: Mailer,
    pub templates: Arc<MailTemplates>,
    pub base_url: BaseUrl,
    pub letter: Letter,
    /// As whom it sends, and how often.
    pub terms: ClaimTerms,
    /// Whether the letter is to be read on the site as well.
    pub is_archived: bool,
    /// The makers, who get a mail if the mail server rejects every mailbox.
    pub contact_to: MailAddress,
    pub clock: Clock,
    connection: Option<SmtpConnection>,
    refusals: Refusals,
}

/// The outcome of a step.
#[derive(Debug)]
pub enum LetterStep {
    /// This recipient is finished: sent, skipped, rejected or uncertain.
    Finished,
    /// This recipient was deferred by the mail server.
    Deferred,
    /// The mail server is unavailable. The recipient, if any, was deferred.
    ServerUnavailable(FailureCause),
    /// No recipient can be claimed now: the remaining ones are deferred until at least this time, or are being claimed by
    /// another sender.
    WaitUntil(Timestamp),
    /// Another sender has this turn. The next one is at this time.
    NotYet(Timestamp),
    /// Somebody else may send the letter now, or nobody.
    NotOurs(LetterRun),
    /// No recipient is left.
    Complete,
}

/// Why sending stopped.
#[derive(Debug, thiserror::Error)]
pub enum LetterFailure {
    #[error("The database could not be used: {0}")]
    Store(#[from] Failure),
    #[error(transparent)]
    Site(#[from] SiteFailure),
    #[error(
        "The mail server rejected {MAX_CONSECUTIVE_REFUSALS} letters in a row, and their recipients wait again; the last reply \
         was: {0}"
    )]
    TooManyRefusals(String),
    #[error(
        "The mail server rejected every recipient as an unknown mailbox and a mail to `contact_to` as well, so the recipients \
         wait again; the last reply was: {0}"
    )]
    EverythingRefused(String),
}

impl LetterSender {
    /// Refuses a `base_url` whose unsubscribe links would not work for the recipients.
    pub fn check_base_url(base_url: &BaseUrl) -> Result<(), InvalidSettings> {
        let problem = match (base_url.is_loopback(), base_url.is_https()) {
            (true, _) => "leads to this machine",
            (false, false) => "is not https",
            (false, true) => return Ok(()),
        };
        let why = "and the unsubscribe links of the letter start with it; set the public https URL";
        Err(InvalidSettings::new("base_url", format!("{base_url} {problem}, {why}")))
    }

    pub fn new(
        store: Store,
        mailer: Mailer,
        templates: Arc<MailTemplates>,
        base_url: BaseUrl,
        letter: Letter,
        contact_to: MailAddress,
        clock: Clock,
    ) -> Self {
        Self {
            store,
            mailer,
            templates,
            base_url,
            letter,
            terms: ClaimTerms { run: LetterRun::Command, interval: None },
            is_archived: false,
            contact_to,
            clock,
            connection: None,
            refusals: Refusals::default(),
        }
    }

    /// Composes a copy that nobody gets, so that what is wrong with the letter shows before the first recipient is claimed. Then
    /// records the recipients, each with an unsubscribe token, unless this letter was started before.
    pub async fn start(&mut self) -> Result<(), LetterFailure> {
        self.compose_sample()?;
        self.record_recipients().await?;
        // One that was started before is where it was put then, or later.
        let started = self.store.letter(&self.letter.id).await.map_err(Failure::from)?;
        self.is_archived &= started.is_some_and(|letter| letter.archived);
        Ok(())
    }

    fn compose_sample(&self) -> Result<(), LetterFailure> {
        let (now, token) = (self.clock.now(), random_token()?);
        let recipient = Recipient {
            email: EmailAddress::from_stored("reader@example.com", "reader@example.com"),
            opted_in_at: now,
            origin: opt_in_origin("", None),
        };
        let bounce_tag = new_bounce_tag(&self.mailer)?;
        let sample = ClaimedRecipient { recipient, token, bounce_tag, tries: 0 };
        self.render(&sample)?.1.check_size()?;
        self.compose(&sample, now)?;
        Ok(())
    }

    async fn record_recipients(&self) -> Result<(), Failure> {
        let (store, letter, now) = (&self.store, &self.letter.id, self.clock.now());
        store.prune_letter_months(now).await?;
        if store.letter(letter).await?.is_none() {
            store.prepare_letter(&self.letter).await?;
            let mut after = String::new();
            while let Some(page) = store.recipients_page(&after).await? {
                let people = page.people.into_iter().map(|email| Ok((email, random_token()?)));
                store.record_recipients(letter, &people.collect::<Result<Vec<_>, Failure>>()?, now).await?;
                after = page.last;
            }
        }
        Ok(store.start_letter(letter, self.is_archived, now).await?)
    }

    /// Claims the next recipient and sends the letter to them.
    pub async fn step(&mut self) -> Result<LetterStep, LetterFailure> {
        let claimed_at = self.clock.now();
        // Connects before claiming, so that an unavailable server leaves no recipient uncertain.
        if let Err(SendFailure::Unavailable(cause)) = self.mailer.ensure_connected(&mut self.connection).await {
            return Ok(LetterStep::ServerUnavailable(cause));
        }
        let new_tag = new_bounce_tag(&self.mailer)?;
        let claim = self.store.claim_recipient(&self.letter.id, new_tag.as_ref(), self.terms, claimed_at).await;
        let claimed = match claim.map_err(Failure::from)? {
            LetterClaim::Claimed(claimed) => claimed,
            LetterClaim::NotDueUntil(time) => return Ok(LetterStep::WaitUntil(time)),
            LetterClaim::NoneLeft => return Ok(LetterStep::Complete),
            LetterClaim::NotYet(time) => return Ok(LetterStep::NotYet(time)),
            LetterClaim::NotOurs(run) => return Ok(LetterStep::NotOurs(run)),
            LetterClaim::Skipped => return Ok(LetterStep::Finished),
        };
        let email = &claimed.recipient.email;
        let composed = match self.compose(&claimed, claimed_at) {
            Ok(composed) => composed,
            Err(failure) => {
                self.take_back(std::slice::from_ref(email), claimed_at).await?;
                return Err(failure.into());
            }
        };
        let Some(mail) = composed else {
            let outcome = LetterOutcome::Rejected { reason: UnsupportedAddress.to_string(), suppress: false };
            return self.record(email, claimed_at, &outcome, LetterStep::Finished).await;
        };
        let result = self.mailer.send_over(&mut self.connection, &mail).await;
        let now = self.clock.now();
        match result {
            Ok(()) => {
                let outcome = LetterOutcome::Sent { suppress: self.refusals.to_suppress_if_accepted() };
                self.refusals.accepted();
                self.record(email, claimed_at, &outcome, LetterStep::Finished).await
            }
            // The claim has marked the recipient as uncertain.
            Err(SendFailure::Uncertain(_)) => Ok(LetterStep::Finished),
            Err(SendFailure::Unavailable(cause)) => {
                let outcome = LetterOutcome::NotTried { reason: cause.detail.clone() };
                self.record(email, claimed_at, &outcome, LetterStep::ServerUnavailable(cause)).await
            }
            Err(failure) if failure.permanent_rejection().is_some() => self.refused(email, claimed_at, &failure).await,
            Err(failure) => {
                let reason = failure.detail().to_owned();
                if claimed.tries >= MAX_DEFERRALS {
                    let outcome = LetterOutcome::Rejected { reason, suppress: false };
                    return self.record(email, claimed_at, &outcome, LetterStep::Finished).await;
                }
                let delay = DEFERRAL_DELAYS.get(claimed.tries as usize).copied().unwrap_or(LONG_DEFERRAL_DELAY);
                let outcome = LetterOutcome::Deferred { until: now.after(delay), reason };
                self.record(email, claimed_at, &outcome, LetterStep::Deferred).await
            }
        }
    }

    async fn record(
        &self,
        email: &EmailAddress,
        claimed_at: Timestamp,
        outcome: &LetterOutcome,
        step: LetterStep,
    ) -> Result<LetterStep, LetterFailure> {
        let now = self.clock.now();
        let recorded = self.store.record_letter_outcome(&self.letter.id, email, claimed_at, outcome, now).await;
        recorded.map_err(Failure::from)?;
        Ok(step)
    }

    async fn refused(
        &mut self,
        email: &EmailAddress,
        claimed_at: Timestamp,
        failure: &SendFailure,
    ) -> Result<LetterStep, LetterFailure> {
        let reason = failure.detail().to_owned();
        if failure.is_mailbox_rejection() {
            let suppress = self.refusals.mailbox_rejected(email);
            let outcome = LetterOutcome::Rejected { reason, suppress };
            let step = self.record(email, claimed_at, &outcome, LetterStep::Finished).await?;
            return if self.refusals.need_mail_to_makers() { self.mail_makers().await } else { Ok(step) };
        }
        if self.refusals.refused(email) {
            let refused = self.refusals.take_others();
            self.take_back(&refused, claimed_at).await?;
            return Err(LetterFailure::TooManyRefusals(reason));
        }
        let outcome = LetterOutcome::Rejected { reason, suppress: false };
        self.record(email, claimed_at, &outcome, LetterStep::Finished).await
    }

    /// Sends a mail to the makers, to see whether the mail server rejects all recipients or only those so far.
    async fn mail_makers(&mut self) -> Result<LetterStep, LetterFailure> {
        let now = self.clock.now();
        let (id, letter) = (new_id(now), &self.letter.subject);
        let mail = self.mailer.compose_rejected_mailboxes(id, letter, &self.contact_to, now);
        match self.mailer.send_over(&mut self.connection, &mail).await {
            Ok(()) => {
                self.refusals.mail_to_makers_accepted();
                Ok(LetterStep::Finished)
            }
            Err(SendFailure::Unavailable(cause)) => Ok(LetterStep::ServerUnavailable(cause)),
            Err(failure) if failure.permanent_rejection().is_some() => {
                Err(LetterFailure::EverythingRefused(failure.detail().to_owned()))
            }
            Err(_) => {
                self.refusals.mail_to_makers_unknown();
                Ok(LetterStep::Finished)
            }
        }
    }

    /// Marks recipients that were refused as waiting again.
    async fn take_back(&self, refused: &[EmailAddress], at: Timestamp) -> Result<(), LetterFailure> {
        Ok(self.store.take_back_refusals(&self.letter.id, refused, at).await.map_err(Failure::from)?)
    }

    /// Ends a run that stops before all recipients are finished. If the mail server accepted no letter in it, the
    /// recipients that it refused wait again.
    pub async fn stop(&mut self) -> Result<(), LetterFailure> {
        let refused = self.refusals.take_unconfirmed();
        if refused.is_empty() { Ok(()) } else { self.take_back(&refused, self.clock.now()).await }
    }

    /// Closes the connection to the mail server, if one is open.
    pub async fn close(&mut self) {
        if let Some(connection) = self.connection.take() {
            connection.close().await;
        }
    }

    fn compose(&self, claimed: &ClaimedRecipient, at: Timestamp) -> Result<Option<Mail>, SiteFailure> {
        let (recipient, rendered) = self.render(claimed)?;
        let ClaimedRecipient { recipient: to, bounce_tag, .. } = claimed;
        Ok(compose_copy(&self.mailer, &rendered, &to.email, &recipient, bounce_tag.as_ref(), at))
    }

    fn render(&self, claimed: &ClaimedRecipient) -> Result<(MailRecipient, RenderedMail), SiteFailure> {
        let ClaimedRecipient { recipient: to, token, .. } = claimed;
        let recipient = MailRecipient {
            opted_in: to.opted_in_at.date(),
            through: to.origin,
            url: self.base_url.to(&token.path(UNSUBSCRIBE_PATH)),
        };
        let rendered = self.templates.letter(&self.letter, &recipient, self.is_archived)?;
        Ok((recipient, rendered))
    }
}

/// Returns a tag for a copy that has none yet, or `None` if letters have no tags.
pub fn new_bounce_tag(mailer: &Mailer) -> Result<Option<BounceTag>, Failure> {
    mailer.tags_letters().then(random_token).transpose()
}

/// Composes one copy of a letter, whether it is for a recipient, a test or a preview. Returns `None` if SMTP cannot
/// transport the address.
pub fn compose_copy(
    mailer: &Mailer,
    rendered: &RenderedMail,
    email: &EmailAddress,
    recipient: &MailRecipient,
    bounce_tag: Option<&BounceTag>,
    at: Timestamp,
) -> Option<Mail> {
    let to = MailAddress::from_email(email).ok()?;
    Some(mailer.compose(&MailParts {
        html: Some(&rendered.html),
        images: &rendered.images,
        list_id: rendered.list_id.as_ref(),
        unsubscribe_url: Some(&recipient.url),
        bounce_tag,
        ..MailParts::new(new_id(at), &to, &rendered.subject, &rendered.text, at)
    }))
}
