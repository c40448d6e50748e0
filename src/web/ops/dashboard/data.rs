//! The numbers that the dashboard shows, read from the database.

use crate::actions::{OpsSummary, StatisticsRange, ops_summary, statistics};
use crate::domain::calendar::{Day, Period};
use crate::domain::counts::CountedEvent;
use crate::domain::statistics::Statistics;
use crate::store::StoreFailure;
use crate::web::app::App;

/// How many days count for the adoption of the newest release.
pub(super) const ADOPTION_DAYS: i64 = 7;

pub(super) struct DashboardData {
    /// By the period that was chosen.
    pub chosen: Statistics,
    /// The last days, whatever period was chosen.
    pub days: Statistics,
    /// Tool calls of agents today and yesterday.
    pub calls: [u64; 2],
    /// Images sent within [`ADOPTION_DAYS`], by version.
    pub images_lately: Vec<(String, u64)>,
    pub summary: OpsSummary,
}

impl DashboardData {
    pub(super) async fn load(app: &App, by: Period, today: Day) -> Result<Self, StoreFailure> {
        let store = &app.service().ops_pool;
        let days = statistics(store, Period::Day, StatisticsRange::Chart, today).await?;
        let calls_today = total(&store.counts_by_name(CountedEvent::Tool, today).await?);
        let calls_of_two_days = total(&store.counts_by_name(CountedEvent::Tool, today.before(1)).await?);
        Ok(Self {
            chosen: if by == Period::Day {
                days.clone()
            } else {
                statistics(store, by, StatisticsRange::Chart, today).await?
            },
            days,
            calls: [calls_today, calls_of_two_days.saturating_sub(calls_today)],
            images_lately: store.counts_by_name(CountedEvent::Image, today.before(ADOPTION_DAYS - 1)).await?,
            summary: ops_summary(app.service()).await?,
        })
    }
}

/// The sum of all rows.
pub(super) fn total(rows: &[(String, u64)]) -> u64 {
    rows.iter().map(|(_, times)| times).sum()
}
