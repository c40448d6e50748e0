//! Why an action did not do what it was asked.

use crate::store::StoreFailure;

#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// 503: nothing wrong with the request; it may be sent again shortly.
    #[error("{0}")]
    Unavailable(String),
    /// 503: there is nothing to hand out yet.
    #[error("no disk image has been published yet")]
    NothingPublished,
    /// 500: our fault, and trying again at once is unlikely to help.
    #[error("{0}")]
    Broken(String),
}

impl From<StoreFailure> for Failure {
    fn from(failure: StoreFailure) -> Self {
        match failure {
            StoreFailure::Unavailable(_) | StoreFailure::Unusable(_) => Self::Unavailable(failure.to_string()),
            StoreFailure::Refused(_) | StoreFailure::Damaged(_) => Self::Broken(failure.to_string()),
        }
    }
}
