//! Statistics, the summary of the dashboard, and counts of events that are stored nowhere else.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::domain::limits;
use crate::domain::releases::Version;
use crate::domain::signups::Via;
use crate::domain::statistics::{
    CountKey, CountedEvent, Counts, DailyReads, PeopleTotals, Reader, Reading, ReadsByReader, Statistics, Totals,
    UpdateCheck, UpdateStatistics,
};
use crate::domain::time::{Day, Period, Timestamp};
use crate::store::{Backlog, DailyCount, MailKind, StartedLetter, Store, StoreFailure};

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
    let mut checks = BTreeMap::<Day, BTreeMap<String, u64>>::new();
    for (day, version, times) in store.counts_by_day_and_name(CountedEvent::UpdateCheck, since).await? {
        if periods.contains_key(&by.start(day)) {
            *checks.entry(by.start(day)).or_default().entry(version).or_default() += times;
        }
    }
    let checks: Vec<_> = periods.keys().map(|start| checks.remove(start).unwrap_or_default()).collect();
    by_via.retain(|via, totals| !via.is_empty() && *totals != Totals::default());
    Ok(Statistics {
        by,
        since,
        until: today,
        total,
        readers,
        readers_by_period: periods.keys().map(|start| reads.remove(start).unwrap_or_default()).collect(),
        periods: periods.into_iter().collect(),
        sources: store.counts_by_source(since).await?,
        via: most_first(by_via),
        tools: store.counts_by_name(CountedEvent::ToolCall, since).await?,
        images: store.counts_by_name(CountedEvent::ImageDownload, since).await?,
        updates: UpdateStatistics::new(
            &checks,
            store.counts_by_name(CountedEvent::UpdateMacos, since).await?,
            store.counts_by_name(CountedEvent::UpdateProcessor, since).await?,
        ),
    })
}

fn most_first(by_name: BTreeMap<String, Totals>) -> Vec<(String, Totals)> {
    let mut rows: Vec<_> = by_name.into_iter().collect();
    rows.sort_by_key(|(_, totals)| std::cmp::Reverse(totals.downloads + totals.joins));
    rows
}

#[derive(Clone, Debug)]
pub struct OpsSummary {
    pub backlog: Backlog,
    /// Age of the oldest message that is still to be forwarded.
    pub outbox_age: Duration,
    /// The letter that was started last.
    pub letter: Option<StartedLetter>,
    /// All counts since the first day.
    pub totals: Totals,
    /// All update checks by version.
    pub update_checks: Vec<(String, u64)>,
}

/// Reads the summary. It counts rows, so `ops_pool` is not the pool of requests.
pub async fn ops_summary(ops_pool: &Store, now: Timestamp) -> Result<OpsSummary, StoreFailure> {
    let backlog = ops_pool.backlog(MailKind::Message).await?;
    Ok(OpsSummary {
        backlog,
        outbox_age: backlog.oldest.map(|oldest| oldest.until(now)).unwrap_or_default(),
        letter: ops_pool.latest_letter().await?,
        totals: ops_pool.total_counts().await?,
        update_checks: ops_pool.counts_by_name(CountedEvent::UpdateCheck, Day::from_number(0)).await?,
    })
}

/// A summary that is read again only after a while, because it counts rows. Cheap to clone; clones share it.
#[derive(Clone, Debug, Default)]
pub struct CachedSummary(Arc<tokio::sync::Mutex<Option<(Timestamp, OpsSummary)>>>);

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

/// The numbers of people of the last minute, because every row is counted. Cheap to clone; clones share it.
#[derive(Clone, Debug, Default)]
pub struct CachedTotals(Arc<tokio::sync::Mutex<Option<(Timestamp, PeopleTotals)>>>);

impl CachedTotals {
    /// Concurrent callers share one query.
    pub async fn recent(&self, ops_pool: &Store, now: Timestamp) -> Result<PeopleTotals, StoreFailure> {
        let mut cached = self.0.lock().await;
        if let Some((read_at, totals)) = &*cached
            && read_at.until(now) < limits::MAX_TOTALS_AGE
        {
            return Ok(*totals);
        }
        let totals = ops_pool.people_totals().await?;
        *cached = Some((now, totals));
        Ok(totals)
    }
}

/// Counts reads, tool calls, disk images that were sent, and update checks, in memory until they are flushed every few seconds. A
/// crash loses the last ones, which is not worth a write for each event. Cheap to clone; clones share one buffer.
#[derive(Clone, Debug, Default)]
pub struct CountBuffer(Arc<Mutex<Buffered>>);

#[derive(Debug, Default)]
struct Buffered {
    counts: Counts,
    reads: DailyReads,
}

impl CountBuffer {
    pub fn read(&self, reader: Reader, reading: Reading, at: Timestamp) {
        self.buffered().reads.add(Day::of(at), reader, reading);
    }

    pub fn tool_called(&self, tool: &'static str, reader: Reader, at: Timestamp) {
        let key =
            CountKey { day: Day::of(at), what: CountedEvent::ToolCall, via: Via::Mcp.as_str(), name: tool.to_owned() };
        let mut buffered = self.buffered();
        buffered.reads.add(key.day, reader, Reading::Tool);
        buffered.counts.add(key);
    }

    pub fn image_sent(&self, version: &Version, at: Timestamp) {
        self.buffered().counts.add(CountKey {
            day: Day::of(at),
            what: CountedEvent::ImageDownload,
            via: "",
            name: version.to_string(),
        });
    }

    pub fn update_checked(&self, check: UpdateCheck, at: Timestamp) {
        let (day, mut buffered) = (Day::of(at), self.buffered());
        for (what, name) in check.counts() {
            buffered.counts.add(CountKey { day, what, via: "", name });
        }
    }

    /// Adds the buffered counts to the database.
    pub async fn flush(&self, store: &Store) -> Result<(), StoreFailure> {
        let Buffered { counts, reads } = std::mem::take(&mut *self.buffered());
        if !counts.is_empty()
            && let Err(failure) = store.add_counts(&counts).await
        {
            let mut buffered = self.buffered();
            buffered.counts.merge(counts);
            buffered.reads.merge(&reads);
            return Err(failure);
        }
        if !reads.is_empty()
            && let Err(failure) = store.add_reads(&reads).await
        {
            self.buffered().reads.merge(&reads);
            return Err(failure);
        }
        Ok(())
    }

    fn buffered(&self) -> MutexGuard<'_, Buffered> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
