//! Withdraws a release.

use crate::domain::time::Timestamp;
use crate::domain::version::Version;
use crate::store::{Store, StoreFailure};

#[derive(Debug, thiserror::Error)]
pub enum WithdrawFailure {
    #[error("There is no release {0} to withdraw. `porchlight release list` shows all releases.")]
    NotPublished(Version),
    #[error("{}", .0.sentence("Nothing was withdrawn"))]
    Store(#[from] StoreFailure),
}

/// Withdraws a release: it is no longer offered, and the next highest version becomes the newest. Its row and its file
/// stay, so that the version is never reused.
pub async fn withdraw_release(store: &Store, version: &Version, at: Timestamp) -> Result<(), WithdrawFailure> {
    if store.withdraw_release(version, at).await? {
        Ok(())
    } else {
        Err(WithdrawFailure::NotPublished(version.clone()))
    }
}
