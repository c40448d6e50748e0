//! What the links in mails do: unsubscribing by the link in each copy of the letter, confirming an opt-in, or declining it.

use crate::actions::failure::Failure;
use crate::actions::service::Service;
use crate::domain::letters::{ConfirmationToken, LinkState, UnsubscribeKind, UnsubscribeToken};

/// Returns whether the token belongs to a person.
///
/// The confirmation page calls this on `GET`, so it changes nothing: mail scanners follow links.
pub async fn can_unsubscribe(service: &Service, token: &UnsubscribeToken) -> Result<bool, Failure> {
    Ok(service.store.token_exists(token).await?)
}

/// Turns the letter off for the mailbox and returns `false` if the token is unknown. Repeating it is harmless.
///
/// [`UnsubscribeKind::NotMe`] also suppresses the mailbox, which no later signup undoes. After any other kind the next download
/// with `updates` turns the letter on again. Both are one transaction, in `store/letters/unsubscribe.rs`.
pub async fn unsubscribe(service: &Service, token: &UnsubscribeToken, kind: UnsubscribeKind) -> Result<bool, Failure> {
    Ok(service.store.unsubscribe(token, kind, service.clock.now()).await?)
}

/// Returns what the link leads to, or `None` if the token is unknown or has expired.
///
/// The page calls this on `GET`, so it changes nothing: mail scanners follow links.
pub async fn confirmation_link(service: &Service, token: &ConfirmationToken) -> Result<Option<LinkState>, Failure> {
    Ok(service.store.confirmation_link(token, service.clock.now()).await?)
}

/// Makes the opt-in count, unless the owner of the address declined it. Repeating it is harmless. Returns what the link leads to
/// then, or `None` if the token is unknown or has expired.
pub async fn confirm_opt_in(service: &Service, token: &ConfirmationToken) -> Result<Option<LinkState>, Failure> {
    Ok(service.store.confirm_opt_in(token, service.clock.now()).await?)
}

/// Forgets the opt-in and suppresses the mailbox, because its owner did not ask for the letter. No later signup undoes that.
/// Repeating it is harmless. Returns `false` if the token is unknown or has expired.
pub async fn decline_opt_in(service: &Service, token: &ConfirmationToken) -> Result<bool, Failure> {
    Ok(service.store.decline_opt_in(token, service.clock.now()).await?)
}
