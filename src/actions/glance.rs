//! What the makers see at a glance of all instances together.

use std::time::Duration;

use super::Service;
use crate::domain::counts::Counted;
use crate::store::{Backlog, StartedLetter, StoreFailure};

#[derive(Clone, Debug)]
pub struct Glance {
    pub backlog: Backlog,
    /// How long the oldest message waits that is not given up on.
    pub outbox_age: Duration,
    /// The letter that was started last.
    pub letter: Option<StartedLetter>,
    /// All that was ever counted.
    pub counted: Vec<(Counted, u64)>,
}

/// # Errors
/// When the database does not answer.
pub async fn glance(service: &Service) -> Result<Glance, StoreFailure> {
    let backlog = service.desk.backlog().await?;
    let now = service.clock.now();
    Ok(Glance {
        backlog,
        outbox_age: backlog.oldest.map(|oldest| oldest.until(now)).unwrap_or_default(),
        letter: service.desk.latest_letter().await?,
        counted: service.desk.counted().await?,
    })
}
