//! A maker takes a release back.

use crate::domain::time::Timestamp;
use crate::domain::version::Version;
use crate::store::{Store, StoreFailure};

#[derive(Debug, thiserror::Error)]
pub enum WithdrawFailure {
    #[error("There is no release {0} to withdraw. `porchlight release list` shows what there is.")]
    NotOffered(Version),
    #[error("Nothing was withdrawn: {0}.")]
    Store(#[from] StoreFailure),
}

/// From now on nobody is handed this version, and it is never used again. Its file stays where it is.
///
/// # Errors
/// When there is no such release on offer, or the database does not answer.
pub async fn withdraw_release(store: &Store, version: &Version, at: Timestamp) -> Result<(), WithdrawFailure> {
    if store.withdraw_release(version, at).await? { Ok(()) } else { Err(WithdrawFailure::NotOffered(version.clone())) }
}
