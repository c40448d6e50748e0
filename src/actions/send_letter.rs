//! Sends the monthly letter, to each person at most once.
//!
//! A recipient is claimed, and the claim is committed, before the mail server is spoken to. Then the outcome is
//! recorded. If the process dies or the connection breaks in between, the recipient stays `uncertain` and is never
//! retried automatically: at most one copy arrives.
//!
//! Nobody gets two letters in one calendar month, whatever letters are sent: a claim takes the person's only row in
//! `letter_months` (`TAKE_MONTH` in `store/letters.rs`), in the transaction that reads opt-in and suppression again.
//!
//! [`MAX_CONSECUTIVE_REJECTIONS`] rejections in a row stop the run, because then the mail server rejects the sender and
//! not the recipients.

use std::time::Duration;

use super::{Failure, ensure_unsubscribe_tokens, new_id};
use crate::clock::Clock;
use crate::domain::base_url::BaseUrl;
use crate::domain::consent::Via;
use crate::domain::email::EmailAddress;
use crate::domain::letter::Letter;
use crate::domain::suppression::SuppressionReason;
use crate::domain::time::Timestamp;
use crate::domain::unsubscribe::UnsubscribeToken;
use crate::mail::{
    FailureCause, LetterMail, Mail, MailAddress, Mailer, SendFailure, SmtpConnection, UnsupportedAddress,
};
use crate::site::{LetterRecipient, LetterTemplate, SiteFailure};
use crate::store::{LetterClaim, LetterOutcome, Recipient, Store};

/// Delays after the first, second and third temporary rejection of a recipient.
const DEFERRAL_DELAYS: [Duration; 3] = [Duration::from_secs(5), Duration::from_secs(30), Duration::from_mins(2)];
/// Delay after any further one: no run waits that long, so the recipient is left for the next run.
const LONG_DEFERRAL_DELAY: Duration = Duration::from_hours(24);
const MAX_CONSECUTIVE_REJECTIONS: u32 = 5;

/// Sends one letter, one recipient per [`step`](Self::step).
#[derive(Debug)]
pub struct LetterSender {
    pub store: Store,
    pub mailer: Mailer,
    pub letter_template: LetterTemplate,
    pub base_url: BaseUrl,
    pub letter: Letter,
    pub clock: Clock,
    connection: Option<SmtpConnection>,
    consecutive_rejections: u32,
}

/// The outcome of a step.
#[derive(Debug)]
pub enum LetterStep {
    /// This recipient is finished: sent, skipped, rejected or uncertain.
    Finished,
    /// This recipient was deferred by the mail server.
    Deferred,
    /// The mail server is unavailable. The recipient, if any, was deferred.
    ServerUnavailable(String),
    /// No recipient can be claimed now: the remaining ones are deferred until at least this time, or are being claimed by
    /// another sender.
    WaitUntil(Timestamp),
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
    #[error("The mail server rejected {MAX_CONSECUTIVE_REJECTIONS} letters in a row, the last one with: {0}")]
    TooManyRejections(String),
}

impl LetterSender {
    #[must_use]
    pub fn new(
        store: Store,
        mailer: Mailer,
        letter_template: LetterTemplate,
        base_url: BaseUrl,
        letter: Letter,
        clock: Clock,
    ) -> Self {
        Self { store, mailer, letter_template, base_url, letter, clock, connection: None, consecutive_rejections: 0 }
    }

    /// Records the recipients, unless this letter was started before, and ensures that each has an unsubscribe token.
    ///
    /// # Errors
    /// When the database is unavailable.
    pub async fn start(&self, to: &[Recipient]) -> Result<(), LetterFailure> {
        let now = self.clock.now();
        let people: Vec<EmailAddress> = to.iter().map(|recipient| recipient.email.clone()).collect();
        ensure_unsubscribe_tokens(&self.store, &people, now).await?;
        self.store.start_letter(&self.letter, to, now).await.map_err(Failure::from)?;
        Ok(())
    }

    /// Claims the next recipient and sends the letter to them.
    ///
    /// # Errors
    /// When sending has to stop. The outcome for the claimed recipient is recorded, or they are uncertain.
    pub async fn step(&mut self) -> Result<LetterStep, LetterFailure> {
        let claimed_at = self.clock.now();
        // Connects before claiming, so that an unavailable server leaves nobody uncertain.
        let mut connection = match self.connection().await {
            Ok(connection) => connection,
            Err(failure) => return Ok(LetterStep::ServerUnavailable(failure.detail().to_owned())),
        };
        let claim = self.store.claim_recipient(&self.letter.id, claimed_at).await.map_err(Failure::from)?;
        let claimed = match claim {
            LetterClaim::Claimed(claimed) => claimed,
            other => {
                self.connection = Some(connection);
                return Ok(match other {
                    LetterClaim::NotDueUntil(time) => LetterStep::WaitUntil(time),
                    LetterClaim::NoneLeft => LetterStep::Complete,
                    LetterClaim::Claimed(_) | LetterClaim::Skipped => LetterStep::Finished,
                });
            }
        };
        let email = &claimed.recipient.email;
        let result = if let Some(mail) = self.compose(&claimed.recipient, &claimed.token, claimed_at)? {
            connection.send(&mail).await
        } else {
            let cause = FailureCause::new(&UnsupportedAddress.to_string());
            Err(SendFailure::RecipientRejected { permanent: true, cause })
        };
        if result.is_ok() {
            self.connection = Some(connection);
        }
        let now = self.clock.now();
        let (outcome, step) = match result {
            Ok(()) => {
                self.consecutive_rejections = 0;
                (LetterOutcome::Sent, Ok(LetterStep::Finished))
            }
            // The claim has marked the recipient as uncertain.
            Err(SendFailure::Uncertain(_)) => return Ok(LetterStep::Finished),
            Err(SendFailure::Unavailable(cause)) => (
                LetterOutcome::Deferred { until: now, reason: cause.detail.clone() },
                Ok(LetterStep::ServerUnavailable(cause.detail)),
            ),
            Err(
                failure @ (SendFailure::RecipientRejected { permanent: true, .. }
                | SendFailure::MessageRejected { permanent: true, .. }),
            ) => {
                if failure.is_unknown_mailbox() {
                    let suppressed = self.store.suppress(email, SuppressionReason::NoMailbox, now).await;
                    suppressed.map_err(Failure::from)?;
                }
                self.consecutive_rejections += 1;
                let reason = failure.detail().to_owned();
                let step = if self.consecutive_rejections < MAX_CONSECUTIVE_REJECTIONS {
                    Ok(LetterStep::Finished)
                } else {
                    Err(LetterFailure::TooManyRejections(reason.clone()))
                };
                (LetterOutcome::Rejected { reason }, step)
            }
            Err(failure) => {
                let delay = DEFERRAL_DELAYS.get(claimed.tries as usize).copied().unwrap_or(LONG_DEFERRAL_DELAY);
                let reason = failure.detail().to_owned();
                (LetterOutcome::Deferred { until: now.after(delay), reason }, Ok(LetterStep::Deferred))
            }
        };
        let recorded = self.store.record_letter_outcome(&self.letter.id, email, claimed_at, &outcome, now).await;
        recorded.map_err(Failure::from)?;
        step
    }

    /// Closes the connection to the mail server, if one is open.
    pub async fn close(&mut self) {
        if let Some(connection) = self.connection.take() {
            connection.close().await;
        }
    }

    async fn connection(&mut self) -> Result<SmtpConnection, SendFailure> {
        match self.connection.take() {
            Some(connection) => Ok(connection),
            None => self.mailer.connect().await,
        }
    }

    fn compose(&self, to: &Recipient, token: &UnsubscribeToken, at: Timestamp) -> Result<Option<Mail>, SiteFailure> {
        let recipient = LetterRecipient {
            opted_in: to.opted_in_at.date(),
            through: opt_in_origin(&to.via, to.source.as_deref()),
            unsubscribe_url: self.base_url.to(&token.path()),
        };
        self.compose_copy(&to.email, &recipient, at)
    }

    /// Composes one recipient's copy of the letter. Returns `None` if SMTP cannot transport the address.
    ///
    /// # Errors
    /// When a template cannot be rendered.
    pub fn compose_copy(
        &self,
        email: &EmailAddress,
        recipient: &LetterRecipient,
        at: Timestamp,
    ) -> Result<Option<Mail>, SiteFailure> {
        let rendered = self.letter_template.render(&self.letter, recipient)?;
        let Ok(to) = MailAddress::from_email(email) else { return Ok(None) };
        Ok(Some(self.mailer.compose_letter(&LetterMail {
            id: new_id(at),
            to: &to,
            subject: &self.letter.subject,
            text: &rendered.text,
            html: &rendered.html,
            unsubscribe_url: &recipient.unsubscribe_url,
            at,
        })))
    }
}

/// Describes where an opt-in came from, for the footer of the letter. The site's script sends the source `site`. The
/// source of another client is quoted, without characters that could forge text of the letter.
fn opt_in_origin(via: &str, source: Option<&str>) -> String {
    if via == Via::Site.as_str() || source == Some(Via::Site.as_str()) {
        return "the site".to_owned();
    }
    let client = match via {
        via if via == Via::Mcp.as_str() => "an assistant",
        via if via == Via::Import.as_str() => "an earlier list",
        _ => "a program",
    };
    match source.map(|source| source.replace(['<', '>', '"', '\n'], " ")) {
        Some(source) if !source.trim().is_empty() => format!("{client} (“{}”)", source.trim()),
        _ => client.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::opt_in_origin;

    #[test]
    fn the_origin_of_an_opt_in_is_described() {
        assert_eq!(opt_in_origin("site", None), "the site");
        assert_eq!(opt_in_origin("api", Some("site")), "the site");
        assert_eq!(opt_in_origin("api", Some("my <agent>")), "a program (“my  agent”)");
        assert_eq!(opt_in_origin("api", Some(" ")), "a program");
        assert_eq!(opt_in_origin("mcp", None), "an assistant");
    }
}
