//! Totals for the dashboard and the metrics.

use super::pending_counts::all_counts;
use super::statement::on_pool;
use super::{Store, StoreFailure};
use crate::domain::counts::{CountedEvent, Totals};
use crate::domain::time::Timestamp;

/// The number of messages that were not forwarded yet, by state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backlog {
    pub waiting: u64,
    pub leased: u64,
    /// Not retried automatically any more.
    pub failed: u64,
    /// When the oldest waiting or leased message was received.
    pub oldest: Option<Timestamp>,
}

const COUNT_UNSENT: &str =
    "SELECT state, COUNT(*) FROM outbox WHERE state IN ('waiting', 'leased', 'failed') GROUP BY state";

/// Ids sort by time: the smallest is the oldest.
const SELECT_OLDEST: &str = "SELECT m.at FROM messages m WHERE m.id = \
     (SELECT MIN(message) FROM outbox WHERE state IN ('waiting', 'leased'))";

/// Sums up by day first, which is the order of the primary key and needs no sort.
const SUM_COUNTS: &str = concat!(
    "SELECT kind, CAST(SUM(times) AS BIGINT) FROM \
         (SELECT day, kind, SUM(times) AS times FROM ",
    all_counts!(),
    " GROUP BY day, kind) AS days GROUP BY kind ORDER BY kind"
);

type StateRow = (String, i64);

impl Store {
    pub async fn backlog(&self) -> Result<Backlog, StoreFailure> {
        let rows: Vec<StateRow> = on_pool!(self, |pool| sqlx::query_as(COUNT_UNSENT).fetch_all(pool).await?);
        let oldest: Option<(i64,)> = on_pool!(self, |pool| sqlx::query_as(SELECT_OLDEST).fetch_optional(pool).await?);
        let oldest = oldest.map(|(at,)| Timestamp::from_unix_millis(at));
        let mut backlog = Backlog { oldest, ..Backlog::default() };
        for (state, count) in rows {
            let count_of_state = match state.as_str() {
                "waiting" => &mut backlog.waiting,
                "leased" => &mut backlog.leased,
                _ => &mut backlog.failed,
            };
            *count_of_state = u64::try_from(count).unwrap_or_default();
        }
        Ok(backlog)
    }

    /// Returns the sum of all counts.
    pub async fn total_counts(&self) -> Result<Totals, StoreFailure> {
        let rows: Vec<(String, i64)> = on_pool!(self, |pool| sqlx::query_as(SUM_COUNTS).fetch_all(pool).await?);
        let mut totals = Totals::default();
        for (kind, times) in rows {
            if let Some(event) = CountedEvent::parse(&kind) {
                totals.add(event, u64::try_from(times).unwrap_or_default());
            }
        }
        Ok(totals)
    }
}
