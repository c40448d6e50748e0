//! An address is never mailed again, and, if the makers decide so, may be after all.
//!
//! No public request leads here, so nobody who enters an address undoes what its owner wanted.

use super::Failure;
use crate::domain::email::EmailAddress;
use crate::domain::suppression::SuppressionReason;
use crate::domain::time::Timestamp;
use crate::store::Store;

/// # Errors
/// `Unavailable` when it cannot be recorded.
pub async fn suppress(
    store: &Store,
    email: &EmailAddress,
    why: SuppressionReason,
    at: Timestamp,
) -> Result<(), Failure> {
    Ok(store.suppress(email, why, at).await?)
}

/// False when it was not suppressed. Nobody is opted in by this.
///
/// # Errors
/// `Unavailable` when it cannot be recorded.
pub async fn unsuppress(store: &Store, email: &EmailAddress) -> Result<bool, Failure> {
    Ok(store.unsuppress(email).await?)
}
