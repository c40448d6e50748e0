//! Daily counts of events and of reads, and of sources. A transaction that records an event adds to them last: so they are
//! exact, and their rows, which all writers share, are locked for the shortest time.

use super::connection::{Batch, BatchStatement, Store, StoreFailure, Transaction, count, values};
use crate::domain::limits::{MAX_KEPT_SOURCES_PER_DAY, MAX_LISTED_SOURCES, MAX_ROWS_PER_STEP};
use crate::domain::statistics::{CountedEvent, Counts, DailyReads, ReadTotals, Reader, SourceCounts, Totals};
use crate::domain::time::Day;

const ADD_COUNTS: BatchStatement = BatchStatement::new(
    "day bigint, kind text, via text, name text, times bigint",
    "INSERT INTO counts (day, kind, via, name, times) SELECT * FROM batch WHERE true \
     ON CONFLICT (day, kind, via, name) DO UPDATE SET times = counts.times + excluded.times",
);

const ADD_SOURCES: BatchStatement = BatchStatement::new(
    "day bigint, source text, downloads bigint, new_people bigint, opt_ins bigint, joins bigint",
    "INSERT INTO sources (day, source, downloads, new_people, opt_ins, joins) SELECT * FROM batch WHERE true \
     ON CONFLICT (day, source) DO UPDATE SET \
         downloads = sources.downloads + excluded.downloads, new_people = sources.new_people + excluded.new_people, \
         opt_ins = sources.opt_ins + excluded.opt_ins, joins = sources.joins + excluded.joins",
);

const SELECT_FIRST_DAY: &str =
    "SELECT MIN(day) FROM (SELECT MIN(day) AS day FROM counts UNION ALL SELECT MIN(day) FROM reads) AS first";

const SELECT_BY_DAY: &str = "SELECT day, kind, via, CAST(SUM(times) AS BIGINT) FROM counts \
     WHERE day >= $1 GROUP BY day, kind, via ORDER BY day, kind, via";

const SELECT_BY_SOURCE: &str = "SELECT source, CAST(SUM(downloads) AS BIGINT), CAST(SUM(new_people) AS BIGINT), \
         CAST(SUM(opt_ins) AS BIGINT), CAST(SUM(joins) AS BIGINT) \
     FROM sources WHERE day >= $1 GROUP BY source ORDER BY SUM(downloads) + SUM(joins) DESC, source LIMIT $2";

const SELECT_OF_KIND: &str = "SELECT name, CAST(SUM(times) AS BIGINT) FROM counts \
     WHERE day >= $1 AND kind = $2 GROUP BY name ORDER BY 2 DESC, 1";

const SELECT_OF_KIND_BY_DAY: &str =
    "SELECT day, name, times FROM counts WHERE day >= $1 AND kind = $2 ORDER BY day, name";

/// Sums up by day first, which is the order of the primary key and needs no sort.
const SUM_COUNTS: &str = "SELECT kind, CAST(SUM(times) AS BIGINT) FROM \
         (SELECT day, kind, SUM(times) AS times FROM counts GROUP BY day, kind) AS days GROUP BY kind ORDER BY kind";

const SELECT_LARGE_DAYS: &str = "SELECT day FROM sources GROUP BY day HAVING COUNT(*) > $1 ORDER BY day";

/// The smallest of the sources that are kept.
const SELECT_LAST_KEPT: &str = "SELECT downloads + joins, source FROM sources WHERE day = $1 \
     ORDER BY downloads + joins DESC, source LIMIT 1 OFFSET $2";

const DELETE_SMALLER: &str = "DELETE FROM sources WHERE day = $1 AND source IN \
     (SELECT source FROM sources WHERE day = $1 \
          AND (downloads + joins < $2 OR downloads + joins = $2 AND source > $3) LIMIT $4)";

/// How often an event happened on one day through one interface.
#[derive(Clone, Debug)]
pub struct DailyCount {
    pub day: Day,
    pub what: CountedEvent,
    /// Empty for events without one.
    pub via: String,
    pub times: u64,
}

impl Transaction {
    pub(in crate::store) async fn add_counts(&mut self, counts: &Counts) -> Result<(), StoreFailure> {
        self.run_batches(vec![counts_batch(counts)]).await.map(drop)
    }
}

pub(in crate::store) fn counts_batch(counts: &Counts) -> Batch<'_> {
    ADD_COUNTS.of(counts.iter().map(|(key, times)| {
        let (day, kind, name) = (key.day.number(), key.what.as_str(), key.name.as_str());
        [day.into(), kind.into(), key.via.into(), name.into(), times.into()]
    }))
}

pub(in crate::store) fn sources_batch<'a>(sources: &SourceCounts<'a>) -> Batch<'a> {
    ADD_SOURCES.of(sources.iter().map(|((day, source), totals)| {
        let Totals { downloads, new_people, opt_ins, joins, .. } = *totals;
        [day.number().into(), (*source).into(), downloads.into(), new_people.into(), opt_ins.into(), joins.into()]
    }))
}

impl Store {
    /// Adds counts of events that are not stored themselves.
    pub async fn add_counts(&self, counts: &Counts) -> Result<(), StoreFailure> {
        let mut tx = self.begin().await?;
        tx.add_counts(counts).await?;
        tx.commit().await
    }

    pub async fn first_counted_day(&self) -> Result<Option<Day>, StoreFailure> {
        let (day,): (Option<i64>,) = self.run(SELECT_FIRST_DAY, &[]).await?.one()?;
        Ok(day.map(Day::from_number))
    }

    pub async fn counts_by_day(&self, since: Day) -> Result<Vec<DailyCount>, StoreFailure> {
        type Row = (i64, String, String, i64);
        let rows: Vec<Row> = self.run(SELECT_BY_DAY, values![since.number()]).await?.all()?;
        let read = |(day, kind, via, times): Row| {
            let what = CountedEvent::parse(&kind)?;
            Some(DailyCount { day: Day::from_number(day), what, via, times: count(times) })
        };
        Ok(rows.into_iter().filter_map(read).collect())
    }

    /// Returns the most frequent sources first.
    pub async fn counts_by_source(&self, since: Day) -> Result<Vec<(String, Totals)>, StoreFailure> {
        type Row = (String, i64, i64, i64, i64);
        let rows: Vec<Row> = self.run(SELECT_BY_SOURCE, values![since.number(), MAX_LISTED_SOURCES]).await?.all()?;
        let read = |(source, downloads, people, opt_ins, joins): Row| {
            let [downloads, new_people, opt_ins, joins] = [downloads, people, opt_ins, joins].map(count);
            (source, Totals { downloads, new_people, opt_ins, joins, ..Totals::default() })
        };
        Ok(rows.into_iter().map(read).collect())
    }

    /// Returns the counts of one event by name, most frequent first.
    pub async fn counts_by_name(&self, what: CountedEvent, since: Day) -> Result<Vec<(String, u64)>, StoreFailure> {
        let rows = self.run(SELECT_OF_KIND, values![since.number(), what.as_str()]).await?;
        let rows: Vec<(String, i64)> = rows.all()?;
        Ok(rows.into_iter().map(|(name, times)| (name, count(times))).collect())
    }

    /// Returns the counts of one event by day and name.
    pub async fn counts_by_day_and_name(
        &self,
        what: CountedEvent,
        since: Day,
    ) -> Result<Vec<(Day, String, u64)>, StoreFailure> {
        let rows = self.run(SELECT_OF_KIND_BY_DAY, values![since.number(), what.as_str()]).await?;
        let rows: Vec<(i64, String, i64)> = rows.all()?;
        Ok(rows.into_iter().map(|(day, name, times)| (Day::from_number(day), name, count(times))).collect())
    }

    /// Returns the sum of all counts.
    pub async fn total_counts(&self) -> Result<Totals, StoreFailure> {
        let mut totals = Totals::default();
        for (kind, times) in self.run(SUM_COUNTS, &[]).await?.all::<(String, i64)>()? {
            if let Some(event) = CountedEvent::parse(&kind) {
                totals.add(event, count(times));
            }
        }
        Ok(totals)
    }

    /// Deletes the sources of each day that are beyond its largest ones. Each transaction deletes a bounded number.
    pub async fn prune_sources(&self) -> Result<(), StoreFailure> {
        let mut steps = self.steps();
        for day in self.run(SELECT_LARGE_DAYS, values![MAX_KEPT_SOURCES_PER_DAY]).await?.column::<i64>()? {
            let last = self.run(SELECT_LAST_KEPT, values![day, MAX_KEPT_SOURCES_PER_DAY - 1]).await?;
            let Some((times, source)) = last.first::<(i64, String)>()? else { continue };
            let values = values![day, times, &source, MAX_ROWS_PER_STEP];
            while steps.should_repeat(self.run(DELETE_SMALLER, values).await.map(|rows| rows.affected)).await? {}
        }
        Ok(())
    }
}

const ADD_READS: BatchStatement = BatchStatement::new(
    "day bigint, reader text, pages bigint, markdown bigint, briefings bigint, tools bigint",
    "INSERT INTO reads (day, reader, pages, markdown, briefings, tools) SELECT * FROM batch WHERE true \
     ON CONFLICT (day, reader) DO UPDATE SET pages = reads.pages + excluded.pages, \
         markdown = reads.markdown + excluded.markdown, briefings = reads.briefings + excluded.briefings, \
         tools = reads.tools + excluded.tools",
);

const SELECT_READS: &str =
    "SELECT day, reader, pages, markdown, briefings, tools FROM reads WHERE day >= $1 ORDER BY day, reader";

impl Store {
    /// The rows are sorted by name, so that instances of different versions, too, lock them in the same order.
    pub async fn add_reads(&self, reads: &DailyReads) -> Result<(), StoreFailure> {
        let mut rows: Vec<_> = reads.iter().collect();
        rows.sort_by_key(|(day, reader, _)| (*day, reader.name()));
        let row = |(day, reader, totals): (Day, Reader, ReadTotals)| {
            let ReadTotals([pages, markdown, briefings, tools]) = totals;
            [day.number().into(), reader.name().into(), pages.into(), markdown.into(), briefings.into(), tools.into()]
        };
        self.run_batch(ADD_READS, rows.into_iter().map(row).collect()).await.map(drop)
    }

    pub async fn reads_by_day(&self, since: Day) -> Result<Vec<(Day, Reader, ReadTotals)>, StoreFailure> {
        type Row = (i64, String, i64, i64, i64, i64);
        let rows: Vec<Row> = self.run(SELECT_READS, values![since.number()]).await?.all()?;
        let read = |(day, reader, pages, markdown, briefings, tools): Row| {
            let totals = ReadTotals([pages, markdown, briefings, tools].map(count));
            (Day::from_number(day), Reader::of_stored_name(&reader), totals)
        };
        Ok(rows.into_iter().map(read).collect())
    }
}
