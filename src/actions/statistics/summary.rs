//! The state of all instances together, for the dashboard and the metrics.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;

use crate::domain::limits;
use crate::domain::statistics::Totals;
use crate::domain::time::Timestamp;
use crate::store::{Backlog, MailKind, StartedLetter, Store, StoreFailure};

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

/// Reads the summary. It counts rows, so `ops_pool` is not the pool of requests.
pub async fn ops_summary(ops_pool: &Store, now: Timestamp) -> Result<OpsSummary, StoreFailure> {
    let backlog = ops_pool.backlog(MailKind::Message).await?;
    Ok(OpsSummary {
        backlog,
        outbox_age: backlog.oldest.map(|oldest| oldest.until(now)).unwrap_or_default(),
        letter: ops_pool.latest_letter().await?,
        totals: ops_pool.total_counts().await?,
    })
}

/// A summary that is read again only after a while, because it counts rows. Cheap to clone; clones share it.
#[derive(Clone, Debug, Default)]
pub struct CachedSummary(Arc<Mutex<Option<(Timestamp, OpsSummary)>>>);

impl CachedSummary {
    /// Returns a summary of the last seconds for the metrics. Concurrent callers share one query.
    pub async fn recent(&self, ops_pool: &Store, now: Timestamp) -> Result<OpsSummary, StoreFailure> {
        let mut cached = self.0.lock().await;
        if let Some((read_at, summary)) = &*cached
            && read_at.until(now) < limits::MAX_SUMMARY_AGE
        {
            ops_pool.ping().await?;
            let outbox_age = summary.backlog.oldest.map(|oldest| oldest.until(now)).unwrap_or_default();
            return Ok(OpsSummary { outbox_age, ..summary.clone() });
        }
        let summary = ops_summary(ops_pool, now).await?;
        *cached = Some((now, summary.clone()));
        Ok(summary)
    }
}
