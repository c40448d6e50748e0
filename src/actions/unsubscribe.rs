//! Somebody leaves the monthly email.

use super::{Failure, Service};
use crate::domain::unsubscribe::{UnsubscribeKind, UnsubscribeToken};

/// Whether somebody could leave by this token. Nothing changes.
///
/// # Errors
/// `Unavailable` when nobody can tell.
pub async fn can_unsubscribe(service: &Service, token: &UnsubscribeToken) -> Result<bool, Failure> {
    Ok(service.store.knows_token(token).await?)
}

/// Turns the monthly email off: until the next opt-in, or for good. Twice is as good as once. False
/// when nobody has this token.
///
/// # Errors
/// `Unavailable` when it cannot be recorded.
pub async fn unsubscribe(service: &Service, token: &UnsubscribeToken, how: UnsubscribeKind) -> Result<bool, Failure> {
    Ok(service.store.leave(token, how, service.clock.now()).await?)
}
