//! What the makers see at a glance of all instances together.

use std::time::Duration;

use super::Service;
use crate::domain::counts::CountedEvent;
use crate::store::{Backlog, StartedLetter, StoreFailure};

#[derive(Clone, Debug)]
pub struct OpsSummary {
    pub backlog: Backlog,
    /// How long the oldest message waits that is not given up on.
    pub outbox_age: Duration,
    /// The letter that was started last.
    pub letter: Option<StartedLetter>,
    /// All that was ever counted.
    pub counted: Vec<(CountedEvent, u64)>,
}

/// # Errors
/// When the database does not answer.
pub async fn ops_summary(service: &Service) -> Result<OpsSummary, StoreFailure> {
    let backlog = service.ops_pool.backlog().await?;
    let now = service.clock.now();
    Ok(OpsSummary {
        backlog,
        outbox_age: backlog.oldest.map(|oldest| oldest.until(now)).unwrap_or_default(),
        letter: service.ops_pool.latest_letter().await?,
        counted: service.ops_pool.counted().await?,
    })
}
