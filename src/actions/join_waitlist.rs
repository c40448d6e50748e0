//! Joins the deprecated waitlist.

use super::{Failure, Service, new_id};
use crate::domain::signup::WaitlistOrder;
use crate::store::{SignupKind, SignupRecord};

/// Adds the address to the list and returns `already`: whether it was on the list before. A download alone does not
/// count as joining.
///
/// `already` is exact even across instances, because the row of a person keeps the id of the first join; see
/// `store/signups.rs`.
pub async fn join_waitlist(service: &Service, order: WaitlistOrder) -> Result<bool, Failure> {
    let at = service.clock.now();
    let known = service
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
    Ok(known.joined)
}
