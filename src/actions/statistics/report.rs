//! Statistics from the daily counts, for `stats` and the dashboard.

use std::collections::BTreeMap;

use crate::domain::statistics::{CountedEvent, ReadsByReader, Statistics, Totals};
use crate::domain::time::{Day, Period};
use crate::store::{DailyCount, Store, StoreFailure};

/// How far back statistics go.
#[derive(Clone, Copy, Debug)]
pub enum StatisticsRange {
    /// As far back as is usual for the period.
    Default,
    /// From the start of the period that contains this day.
    Since(Day),
    /// As far back as a chart shows.
    Chart,
}

/// Reads the counts up to and including today.
pub async fn statistics(
    store: &Store,
    by: Period,
    range: StatisticsRange,
    today: Day,
) -> Result<Statistics, StoreFailure> {
    let since = match range {
        StatisticsRange::Default => by.default_start(today),
        StatisticsRange::Since(day) => by.start(day),
        StatisticsRange::Chart => by.chart_start(store.first_counted_day().await?, today),
    };
    let mut periods: BTreeMap<Day, Totals> =
        by.starts(since, today).into_iter().map(|start| (start, Totals::default())).collect();
    let (mut total, mut by_via) = (Totals::default(), BTreeMap::<String, Totals>::new());
    for DailyCount { day, what, via, times } in store.counts_by_day(since).await? {
        if let Some(period) = periods.get_mut(&by.start(day)) {
            period.add(what, times);
            total.add(what, times);
            by_via.entry(via).or_default().add(what, times);
        }
    }
    let (mut readers, mut reads) = (ReadsByReader::default(), BTreeMap::<Day, ReadsByReader>::new());
    for (day, reader, totals) in store.reads_by_day(since).await? {
        if periods.contains_key(&by.start(day)) {
            readers.add_totals(reader, totals);
            reads.entry(by.start(day)).or_default().add_totals(reader, totals);
        }
    }
    by_via.retain(|via, totals| !via.is_empty() && *totals != Totals::default());
    Ok(Statistics {
        by,
        since,
        until: today,
        total,
        pending_opt_ins: store.pending_opt_ins().await?,
        readers,
        readers_by_period: periods.keys().map(|start| reads.remove(start).unwrap_or_default()).collect(),
        periods: periods.into_iter().collect(),
        sources: store.counts_by_source(since).await?,
        via: most_first(by_via),
        tools: store.counts_by_name(CountedEvent::ToolCall, since).await?,
        images: store.counts_by_name(CountedEvent::ImageDownload, since).await?,
    })
}

fn most_first(by_name: BTreeMap<String, Totals>) -> Vec<(String, Totals)> {
    let mut rows: Vec<_> = by_name.into_iter().collect();
    rows.sort_by_key(|(_, totals)| std::cmp::Reverse(totals.downloads + totals.joins));
    rows
}
