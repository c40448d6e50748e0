//! Why an action failed.

use crate::store::StoreFailure;

#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The request is valid and may be repeated shortly.
    #[error("{0}")]
    Unavailable(String),
    /// There is no release to download.
    #[error("no disk image has been published yet")]
    NothingPublished,
    /// A bug; repeating the request is unlikely to help.
    #[error("{0}")]
    Internal(String),
}

impl From<StoreFailure> for Failure {
    fn from(failure: StoreFailure) -> Self {
        match failure {
            StoreFailure::InvalidData(_) => Self::Internal(failure.to_string()),
            // Whatever the database refuses, it may accept once the makers have corrected it.
            _ => Self::Unavailable(failure.to_string()),
        }
    }
}
