//! The monthly letter goes out, to each person at most once.
//!
//! Somebody is claimed, and the claim is on disk, before the mail server hears of it. Then what
//! happened is noted: taken, put off, refused. If nobody knows, or we die, the claim stays as it is,
//! and that person is never tried again by itself.

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
use crate::mail::{FailureCause, LetterMail, Mail, MailAddress, Mailer, SendFailure, SmtpConnection};
use crate::site::{LetterRecipient, LetterTemplate, SiteFailure};
use crate::store::{LetterClaim, LetterOutcome, Recipient, Store};

/// How long somebody is put off whom the mail server does not take now, by how often it was so.
const PAUSES: [Duration; 3] = [Duration::from_secs(5), Duration::from_secs(30), Duration::from_mins(2)];
/// For those who were put off too often: until the command is run again.
const ANOTHER_DAY: Duration = Duration::from_hours(24);
/// So many refusals one after the other are the mail server's own trouble.
const REFUSALS_IN_A_ROW: u32 = 5;

/// A letter on its way.
#[derive(Debug)]
pub struct LetterSender {
    pub store: Store,
    pub mailer: Mailer,
    pub letter_template: LetterTemplate,
    pub base_url: BaseUrl,
    pub letter: Letter,
    pub clock: Clock,
    connection: Option<SmtpConnection>,
    refused_in_a_row: u32,
}

/// What came of a step.
#[derive(Debug)]
pub enum LetterStep {
    /// One person has it, or is out of the question: whom nobody has to think of any more.
    Finished,
    /// One person is tried again later.
    Deferred,
    /// The mail server is away, or wants nothing from us now. Nobody was lost by that.
    ServerUnavailable(String),
    /// Nobody is due before then.
    WaitUntil(Timestamp),
    Complete,
}

/// Why a letter does not go on.
#[derive(Debug, thiserror::Error)]
pub enum LetterFailure {
    #[error("The database does not answer: {0}")]
    Store(#[from] Failure),
    #[error(transparent)]
    Site(#[from] SiteFailure),
    #[error("The mail server refused {REFUSALS_IN_A_ROW} letters one after the other, lastly with: {0}")]
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
        Self { store, mailer, letter_template, base_url, letter, clock, connection: None, refused_in_a_row: 0 }
    }

    /// Writes down whom the letter goes to, if that has not been done, and gives everybody a way out.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn start(&self, to: &[Recipient]) -> Result<(), LetterFailure> {
        let now = self.clock.now();
        let people: Vec<EmailAddress> = to.iter().map(|recipient| recipient.email.clone()).collect();
        ensure_unsubscribe_tokens(&self.store, &people, now).await?;
        self.store.start_letter(&self.letter, to, now).await.map_err(Failure::from)?;
        Ok(())
    }

    /// Sends the letter to one person, or finds that it must not.
    ///
    /// # Errors
    /// When it makes no sense to go on: whoever was claimed is either noted or uncertain.
    pub async fn step(&mut self) -> Result<LetterStep, LetterFailure> {
        let claimed_at = self.clock.now();
        // Reached before anybody is claimed, so that a server that is away leaves nobody uncertain.
        let mut connection = match self.connection().await {
            Ok(connection) => connection,
            Err(trouble) => return Ok(LetterStep::ServerUnavailable(trouble.detail().to_owned())),
        };
        let claim = self.store.claim_recipient(&self.letter.id, claimed_at).await.map_err(Failure::from)?;
        let claimed = match claim {
            LetterClaim::Claimed(claimed) => claimed,
            other => {
                self.connection = Some(connection);
                return Ok(match other {
                    LetterClaim::NotDueUntil(then) => LetterStep::WaitUntil(then),
                    LetterClaim::NoneLeft => LetterStep::Complete,
                    LetterClaim::Claimed(_) | LetterClaim::Skipped => LetterStep::Finished,
                });
            }
        };
        let email = &claimed.recipient.email;
        let mail = self.write(&claimed.recipient, &claimed.token, claimed_at)?;
        let handed_over = match mail {
            Some(mail) => connection.send(&mail).await,
            None => Err(SendFailure::RecipientRejected {
                permanent: true,
                cause: FailureCause::new("no mail server would take this address"),
            }),
        };
        if handed_over.is_ok() {
            self.connection = Some(connection);
        }
        let now = self.clock.now();
        let (outcome, step) = match handed_over {
            Ok(()) => {
                self.refused_in_a_row = 0;
                (LetterOutcome::Sent, Ok(LetterStep::Finished))
            }
            // It stays uncertain: nobody knows.
            Err(SendFailure::Uncertain(_)) => return Ok(LetterStep::Finished),
            Err(SendFailure::Unavailable(cause)) => (
                LetterOutcome::Deferred { at: now, trouble: cause.detail.clone() },
                Ok(LetterStep::ServerUnavailable(cause.detail)),
            ),
            Err(
                trouble @ (SendFailure::RecipientRejected { permanent: true, .. }
                | SendFailure::MessageRejected { permanent: true, .. }),
            ) => {
                if trouble.is_unknown_mailbox() {
                    let kept = self.store.suppress(email, SuppressionReason::NoMailbox, now).await;
                    kept.map_err(Failure::from)?;
                }
                self.refused_in_a_row += 1;
                let refused = LetterOutcome::Refused { trouble: trouble.detail().to_owned() };
                if self.refused_in_a_row < REFUSALS_IN_A_ROW {
                    (refused, Ok(LetterStep::Finished))
                } else {
                    (refused, Err(LetterFailure::TooManyRejections(trouble.detail().to_owned())))
                }
            }
            Err(trouble) => {
                let pause = PAUSES.get(claimed.tries as usize).copied().unwrap_or(ANOTHER_DAY);
                (
                    LetterOutcome::Deferred { at: now.after(pause), trouble: trouble.detail().to_owned() },
                    Ok(LetterStep::Deferred),
                )
            }
        };
        let noted = self.store.settle_recipient(&self.letter.id, email, claimed_at, &outcome, now).await;
        noted.map_err(Failure::from)?;
        step
    }

    /// Says goodbye to the mail server.
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

    /// `None`: nobody can be mailed there.
    fn write(&self, to: &Recipient, token: &UnsubscribeToken, at: Timestamp) -> Result<Option<Mail>, SiteFailure> {
        let addressee = LetterRecipient {
            opted_in: to.opted_in_at.date(),
            through: through(&to.via, to.source.as_deref()),
            unsubscribe_url: self.base_url.to(&token.path()),
        };
        self.copy_for(&to.email, &addressee, at)
    }

    /// The letter as one person gets it.
    ///
    /// # Errors
    /// When a template cannot be filled in.
    pub fn copy_for(
        &self,
        email: &EmailAddress,
        to: &LetterRecipient,
        at: Timestamp,
    ) -> Result<Option<Mail>, SiteFailure> {
        let written = self.letter_template.render(&self.letter, to)?;
        let Ok(correspondent) = MailAddress::from_email(email) else { return Ok(None) };
        Ok(Some(self.mailer.compose_letter(&LetterMail {
            id: new_id(at),
            to: &correspondent,
            subject: &self.letter.subject,
            text: &written.text,
            html: &written.html,
            unsubscribe_url: &to.unsubscribe_url,
            at,
        })))
    }
}

/// Where an opt-in came from, in words. The site's script calls itself `site`. What another caller
/// says of itself is quoted, without what could pass for words of ours.
fn through(via: &str, source: Option<&str>) -> String {
    if via == Via::Site.as_str() || source == Some(Via::Site.as_str()) {
        return "the site".to_owned();
    }
    let face = match via {
        via if via == Via::Mcp.as_str() => "an assistant",
        via if via == Via::Import.as_str() => "an earlier list",
        _ => "a program",
    };
    match source.map(|source| source.replace(['<', '>', '"', '\n'], " ")) {
        Some(source) if !source.trim().is_empty() => format!("{face} (“{}”)", source.trim()),
        _ => face.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::through;

    #[test]
    fn where_an_opt_in_came_from_is_told_in_words() {
        assert_eq!(through("site", None), "the site");
        assert_eq!(through("api", Some("site")), "the site");
        assert_eq!(through("api", Some("my <agent>")), "a program (“my  agent”)");
        assert_eq!(through("api", Some(" ")), "a program");
        assert_eq!(through("mcp", None), "an assistant");
    }
}
