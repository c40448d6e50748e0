//! The failure type of the actions.

use crate::store::StoreFailure;

#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The request is valid and may be repeated shortly.
    #[error("{0}")]
    Unavailable(String),
    /// There is no release to download.
    #[error("no disk image has been published yet")]
    NothingPublished,
    /// A bug or a damaged database; repeating the request is unlikely to help.
    #[error("{0}")]
    Internal(String),
}

impl From<StoreFailure> for Failure {
    fn from(failure: StoreFailure) -> Self {
        match failure {
            StoreFailure::Unavailable(_) | StoreFailure::Unusable(_) => Self::Unavailable(failure.to_string()),
            StoreFailure::Rejected(_) | StoreFailure::InvalidData(_) | StoreFailure::Damaged(_) => {
                Self::Internal(failure.to_string())
            }
        }
    }
}
