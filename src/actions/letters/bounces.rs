//! Records a mail that came back to the address in the envelope of a letter.
//!
//! A mailbox that does not exist is suppressed, as when the mail server rejects it at sending. A failure that may pass is
//! counted. Everything else changes nothing: [`Bounce::from_reports`] judges what the mail reports, and the tag shows
//! that it is about a letter of ours.

use serde::Serialize;

use crate::actions::failure::Failure;
use crate::domain::letters::{Bounce, BounceTag};
use crate::domain::mail::EmailAddress;
use crate::domain::time::Timestamp;
use crate::mail::ReturnedMail;
use crate::store::{RecordedBounce, Store};

/// What a returned mail led to.
#[derive(Clone, Debug)]
pub enum BounceOutcome {
    /// Recorded for this recipient, who is suppressed if the mailbox does not exist.
    Recorded(EmailAddress, Bounce),
    Unchanged(UnchangedReason),
}

/// Why a mail changes nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, thiserror::Error)]
#[serde(rename_all = "kebab-case")]
pub enum UnchangedReason {
    #[error("it has no address with a tag")]
    NoTag,
    #[error("it reports no failure that counts")]
    NoFailure,
    #[error("its tag belongs to no letter that was sent")]
    UnknownTag,
    #[error("the failure was recorded before")]
    Repeated,
}

/// Records a returned mail. `recipient` is the address that it was sent to, if the mail server names it.
pub async fn record_bounce(
    store: &Store,
    mail: &ReturnedMail,
    recipient: Option<&str>,
    at: Timestamp,
) -> Result<BounceOutcome, Failure> {
    let Some(tag) = recipient.and_then(BounceTag::find_in).or_else(|| mail.tag.clone()) else {
        return Ok(BounceOutcome::Unchanged(UnchangedReason::NoTag));
    };
    let Some(bounce) = Bounce::from_reports(&mail.reports) else {
        return Ok(BounceOutcome::Unchanged(UnchangedReason::NoFailure));
    };
    Ok(match store.record_bounce(&tag, &bounce, at).await? {
        RecordedBounce::Recorded(email) => BounceOutcome::Recorded(email, bounce),
        RecordedBounce::Repeated => BounceOutcome::Unchanged(UnchangedReason::Repeated),
        RecordedBounce::UnknownTag => BounceOutcome::Unchanged(UnchangedReason::UnknownTag),
    })
}
