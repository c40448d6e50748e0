//! Somebody joins the older list.

use super::{Failure, Service, new_id};
use crate::domain::signup::WaitlistOrder;
use crate::store::{SignupKind, SignupRecord};

/// Puts the address on the list and says whether it was there already. A download alone puts nobody
/// on the list.
///
/// # Errors
/// `Unavailable` when it cannot be recorded.
pub async fn join_waitlist(service: &Service, order: WaitlistOrder) -> Result<bool, Failure> {
    let at = service.clock.now();
    let before = service
        .writer
        .record_signup(SignupRecord {
            id: new_id(at),
            kind: SignupKind::Join,
            email: order.email,
            source: order.source,
            via: order.via,
            at,
        })
        .await?;
    Ok(before.unwrap_or_default().joined)
}
