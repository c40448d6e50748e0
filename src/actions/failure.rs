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
            // Whatever the database refuses, it may accept once the makers have corrected it.
            StoreFailure::Unavailable(_)
            | StoreFailure::Conflict(_)
            | StoreFailure::Unusable(_)
            | StoreFailure::Rejected(_)
            | StoreFailure::Damaged(_) => Self::Unavailable(failure.to_string()),
            StoreFailure::InvalidData(_) => Self::Internal(failure.to_string()),
        }
    }
}
