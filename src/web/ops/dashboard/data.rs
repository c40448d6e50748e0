//! The numbers that the dashboard shows, read from the database.

use crate::actions::{OpsSummary, StatisticsRange, ops_summary, statistics};
use crate::domain::calendar::{Day, Period};
use crate::domain::counts::{CountedEvent, Statistics};
use crate::store::StoreFailure;
use crate::web::app::App;

/// How many days count for the adoption of the newest release.
pub(super) const ADOPTION_DAYS: i64 = 7;

pub(super) struct DashboardData {
    /// By the selected period.
    pub selected: Statistics,
    /// By day, whatever period is selected.
    pub daily: Statistics,
    /// Tool calls of agents today and yesterday.
    pub tool_calls: [u64; 2],
    /// Images sent within [`ADOPTION_DAYS`], by version.
    pub recent_images: Vec<(String, u64)>,
    pub summary: OpsSummary,
}

impl DashboardData {
    pub(super) async fn load(app: &App, by: Period, today: Day) -> Result<Self, StoreFailure> {
        let store = &app.service().ops_pool;
        let daily = statistics(store, Period::Day, StatisticsRange::Chart, today).await?;
        let calls_today = sum(&store.counts_by_name(CountedEvent::ToolCall, today).await?);
        let calls_since_yesterday = sum(&store.counts_by_name(CountedEvent::ToolCall, today.before(1)).await?);
        Ok(Self {
            selected: if by == Period::Day {
                daily.clone()
            } else {
                statistics(store, by, StatisticsRange::Chart, today).await?
            },
            daily,
            tool_calls: [calls_today, calls_since_yesterday.saturating_sub(calls_today)],
            recent_images: store.counts_by_name(CountedEvent::ImageDownload, today.before(ADOPTION_DAYS - 1)).await?,
            summary: ops_summary(app.service()).await?,
        })
    }
}

pub(super) fn sum(counts: &[(String, u64)]) -> u64 {
    counts.iter().map(|(_, count)| count).sum()
}
