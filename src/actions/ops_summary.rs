//! The state of all instances together, for the dashboard and the metrics.

use std::time::Duration;

use super::Service;
use crate::domain::counts::Totals;
use crate::store::{Backlog, StartedLetter, StoreFailure};

#[derive(Clone, Debug)]
pub struct OpsSummary {
    pub backlog: Backlog,
    /// Age of the oldest message that is still to be forwarded.
    pub outbox_age: Duration,
    /// The letter that was started last.
    pub letter: Option<StartedLetter>,
    /// All counts since the first day.
    pub totals: Totals,
}

/// Reads the summary through the ops pool.
///
/// # Errors
/// When the database is unavailable.
pub async fn ops_summary(service: &Service) -> Result<OpsSummary, StoreFailure> {
    let backlog = service.ops_pool.backlog().await?;
    let now = service.clock.now();
    Ok(OpsSummary {
        backlog,
        outbox_age: backlog.oldest.map(|oldest| oldest.until(now)).unwrap_or_default(),
        letter: service.ops_pool.latest_letter().await?,
        totals: service.ops_pool.total_counts().await?,
    })
}
