//! The state of all instances together, for the dashboard and the metrics.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;

use super::Service;
use crate::domain::counts::Totals;
use crate::domain::limits;
use crate::domain::time::Timestamp;
use crate::store::{Backlog, MailKind, StartedLetter, StoreFailure};

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
pub async fn ops_summary(service: &Service) -> Result<OpsSummary, StoreFailure> {
    let backlog = service.ops_pool.backlog(MailKind::Message).await?;
    let now = service.clock.now();
    Ok(OpsSummary {
        backlog,
        outbox_age: backlog.oldest.map(|oldest| oldest.until(now)).unwrap_or_default(),
        letter: service.ops_pool.latest_letter().await?,
        totals: service.ops_pool.total_counts().await?,
    })
}

/// A summary that is read again only after a while, because it counts rows. Cheap to clone; clones share it.
#[derive(Clone, Debug, Default)]
pub struct CachedSummary(Arc<Mutex<Option<(Timestamp, OpsSummary)>>>);

/// Returns a summary of the last seconds for the metrics. Concurrent callers share one query.
pub async fn recent_summary(service: &Service) -> Result<OpsSummary, StoreFailure> {
    let mut cached = service.cached_summary.0.lock().await;
    let now = service.clock.now();
    if let Some((read_at, summary)) = &*cached
        && read_at.until(now) < limits::MAX_SUMMARY_AGE
    {
        service.ops_pool.ping().await?;
        let outbox_age = summary.backlog.oldest.map(|oldest| oldest.until(now)).unwrap_or_default();
        return Ok(OpsSummary { outbox_age, ..summary.clone() });
    }
    let summary = ops_summary(service).await?;
    *cached = Some((now, summary.clone()));
    Ok(summary)
}
