//! Confirming an opt-in by the link in a mail, or declining it.

use super::{Failure, Service};
use crate::domain::confirmation::ConfirmationToken;

/// Returns whether the link's opt-in is confirmed, or `None` if the token is unknown or has expired.
///
/// The page calls this on `GET`, so it changes nothing: mail scanners follow links.
///
/// # Errors
/// `Unavailable` when the database is.
pub async fn is_opt_in_confirmed(service: &Service, token: &ConfirmationToken) -> Result<Option<bool>, Failure> {
    Ok(service.store.is_confirmed(token, service.clock.now()).await?)
}

/// Makes the opt-in count and returns `false` if the token is unknown or has expired. Repeating it is harmless.
///
/// # Errors
/// `Unavailable` when it cannot be recorded.
pub async fn confirm_opt_in(service: &Service, token: &ConfirmationToken) -> Result<bool, Failure> {
    Ok(service.store.confirm_opt_in(token, service.clock.now()).await?)
}

/// Forgets the opt-in and suppresses the address, because its owner did not ask for the letter. No later signup undoes that.
/// Returns `false` if the token is unknown or has expired.
///
/// # Errors
/// `Unavailable` when it cannot be recorded.
pub async fn decline_opt_in(service: &Service, token: &ConfirmationToken) -> Result<bool, Failure> {
    Ok(service.store.decline_opt_in(token, service.clock.now()).await?)
}
