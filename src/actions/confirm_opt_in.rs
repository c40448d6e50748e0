//! Confirming an opt-in by the link in a mail, or declining it.

use super::{Failure, Service};
use crate::domain::confirmation::{ConfirmationToken, LinkState};

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

/// Forgets the opt-in and suppresses the address, because its owner did not ask for the letter. No later signup undoes that.
/// Repeating it is harmless. Returns `false` if the token is unknown or has expired.
pub async fn decline_opt_in(service: &Service, token: &ConfirmationToken) -> Result<bool, Failure> {
    Ok(service.store.decline_opt_in(token, service.clock.now()).await?)
}
