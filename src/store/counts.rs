//! Daily counts. A transaction that records an event adds to them last: so they are exact, and their rows, which all
//! writers share, are locked for the shortest time.

use serde_json::{Value, json};

use super::statement::{Statement, batch_statement, in_transaction, on_pool};
use super::{Store, StoreFailure};
use crate::domain::calendar::Day;
use crate::domain::counts::{CountedEvent, Counts, SourceCounts, Totals};

pub(super) const ADD_COUNTS: Statement = batch_statement!(
    "INSERT INTO counts (day, kind, via, name, times) \
     SELECT batch.day, batch.kind, batch.via, batch.name, batch.times",
    (day bigint, kind text, via text, name text, times bigint),
    "ON CONFLICT (day, kind, via, name) DO UPDATE SET times = counts.times + excluded.times"
);

pub(super) const ADD_SOURCES: Statement = batch_statement!(
    "INSERT INTO sources (day, source, downloads, people, opt_ins, joins) \
     SELECT batch.day, batch.source, batch.downloads, batch.people, batch.opt_ins, batch.joins",
    (day bigint, source text, downloads bigint, people bigint, opt_ins bigint, joins bigint),
    "ON CONFLICT (day, source) DO UPDATE SET \
         downloads = sources.downloads + excluded.downloads, people = sources.people + excluded.people, \
         opt_ins = sources.opt_ins + excluded.opt_ins, joins = sources.joins + excluded.joins"
);

/// The sources that were not seen on their day or in the seven days before.
pub(super) const SELECT_NEW_SOURCES: Statement = batch_statement!(
    "SELECT batch.day, batch.source",
    (day bigint, source text),
    "AND batch.source <> '' AND NOT EXISTS (SELECT 1 FROM sources AS known WHERE known.source = batch.source AND known.day \
         IN (batch.day, batch.day - 1, batch.day - 2, batch.day - 3, batch.day - 4, batch.day - 5, batch.day - 6, \
             batch.day - 7)) \
     ORDER BY batch.day, batch.source"
);

pub(super) const SELECT_NEW_SOURCES_OF_DAY: &str = "SELECT names FROM new_sources WHERE day = $1";

/// Locks the row until the commit, so that instances admit new sources one after another.
pub(super) const LOCK_NEW_SOURCES_OF_DAY: &str = "INSERT INTO new_sources (day, names) VALUES ($1, 0) \
     ON CONFLICT (day) DO UPDATE SET names = new_sources.names RETURNING names";

pub(super) const ADD_NEW_SOURCES_OF_DAY: &str = "UPDATE new_sources SET names = names + $2 WHERE day = $1";

/// Adds the totals by source. Clients can send any source, so a day admits a bounded number of new ones; the events of the
/// others are in the daily counts alone.
///
/// Only a batch with a new source asks for the number of the day, and locks it only if there is room. The number never
/// shrinks, so a day that is full stays full. After the lock the question is repeated: another instance may have admitted
/// the same source.
macro_rules! add_sources {
    ($tx:ident, $sql:ident, $sources:expr) => {{
        use $crate::store::counts::{
            ADD_NEW_SOURCES_OF_DAY, ADD_SOURCES, LOCK_NEW_SOURCES_OF_DAY, SELECT_NEW_SOURCES,
            SELECT_NEW_SOURCES_OF_DAY, sources_batch,
        };
        let mut sources: $crate::domain::counts::SourceCounts = $sources;
        let batch = sources_batch(&sources);
        let unknown: Vec<(i64, String)> =
            sqlx::query_as($sql(SELECT_NEW_SOURCES)).bind(&batch).fetch_all(&mut *$tx).await?;
        let days: std::collections::BTreeSet<i64> = unknown.iter().map(|(day, _)| *day).collect();
        for day in days {
            let names: Option<i64> =
                sqlx::query_scalar(SELECT_NEW_SOURCES_OF_DAY).bind(day).fetch_optional(&mut *$tx).await?;
            let mut room = $crate::domain::limits::MAX_NEW_SOURCES_PER_DAY - names.unwrap_or_default();
            if room > 0 {
                let names: i64 = sqlx::query_scalar(LOCK_NEW_SOURCES_OF_DAY).bind(day).fetch_one(&mut *$tx).await?;
                room = $crate::domain::limits::MAX_NEW_SOURCES_PER_DAY - names;
            }
            let unknown: Vec<(i64, String)> =
                sqlx::query_as($sql(SELECT_NEW_SOURCES)).bind(&batch).fetch_all(&mut *$tx).await?;
            let unknown: Vec<_> = unknown.into_iter().filter(|(of, _)| *of == day).map(|(_, source)| source).collect();
            let (admitted, refused) = unknown.split_at(unknown.len().min(usize::try_from(room).unwrap_or_default()));
            if !admitted.is_empty() {
                let admitted = i64::try_from(admitted.len()).unwrap_or(i64::MAX);
                sqlx::query(ADD_NEW_SOURCES_OF_DAY).bind(day).bind(admitted).execute(&mut *$tx).await?;
            }
            sources.remove($crate::domain::calendar::Day::from_number(day), refused);
        }
        sqlx::query($sql(ADD_SOURCES)).bind(sources_batch(&sources)).execute(&mut *$tx).await?;
    }};
}

pub(super) use add_sources;

const SELECT_FIRST_DAY: &str = "SELECT MIN(day) FROM counts";

const SELECT_BY_DAY: &str = "SELECT day, kind, via, CAST(SUM(times) AS BIGINT) FROM counts WHERE day >= $1 \
     GROUP BY day, kind, via ORDER BY day, kind, via";

/// More than a hundred are of no use to a reader.
const SELECT_BY_SOURCE: &str = "SELECT source, CAST(SUM(downloads) AS BIGINT), CAST(SUM(people) AS BIGINT), \
         CAST(SUM(opt_ins) AS BIGINT), CAST(SUM(joins) AS BIGINT) \
     FROM sources WHERE day >= $1 GROUP BY source ORDER BY SUM(downloads) + SUM(joins) DESC, source LIMIT 100";

const SELECT_OF_KIND: &str = "SELECT name, CAST(SUM(times) AS BIGINT) FROM counts \
     WHERE day >= $1 AND kind = $2 GROUP BY name ORDER BY 2 DESC, 1";

/// How often an event happened on one day through one interface.
#[derive(Clone, Debug)]
pub struct DailyCount {
    pub day: Day,
    pub what: CountedEvent,
    /// Empty for events without one.
    pub via: String,
    pub times: u64,
}

impl Store {
    /// Adds counts of events that are not stored themselves.
    ///
    /// # Errors
    /// When the database is unavailable; then nothing was added, or all of it.
    pub async fn add_counts(&self, counts: &Counts) -> Result<(), StoreFailure> {
        let batch = counts_batch(counts);
        in_transaction!(self, |tx, sql| {
            sqlx::query(sql(ADD_COUNTS)).bind(&batch).execute(&mut *tx).await?;
        });
        Ok(())
    }

    /// # Errors
    /// When the database is unavailable.
    pub async fn first_counted_day(&self) -> Result<Option<Day>, StoreFailure> {
        let (day,): (Option<i64>,) = on_pool!(self, |pool| sqlx::query_as(SELECT_FIRST_DAY).fetch_one(pool).await?);
        Ok(day.map(Day::from_number))
    }

    /// # Errors
    /// When the database is unavailable.
    pub async fn counts_by_day(&self, since: Day) -> Result<Vec<DailyCount>, StoreFailure> {
        type Row = (i64, String, String, i64);
        let rows: Vec<Row> =
            on_pool!(self, |pool| sqlx::query_as(SELECT_BY_DAY).bind(since.number()).fetch_all(pool).await?);
        let read = |(day, kind, via, times): Row| {
            Some(DailyCount {
                day: Day::from_number(day),
                what: CountedEvent::parse(&kind)?,
                via,
                times: number(times),
            })
        };
        Ok(rows.into_iter().filter_map(read).collect())
    }

    /// Returns the most frequent sources first.
    ///
    /// # Errors
    /// When the database is unavailable.
    pub async fn counts_by_source(&self, since: Day) -> Result<Vec<(String, Totals)>, StoreFailure> {
        type Row = (String, i64, i64, i64, i64);
        let rows: Vec<Row> =
            on_pool!(self, |pool| sqlx::query_as(SELECT_BY_SOURCE).bind(since.number()).fetch_all(pool).await?);
        let read = |(source, downloads, people, opt_ins, joins): Row| {
            let totals = Totals {
                downloads: number(downloads),
                new_people: number(people),
                opt_ins: number(opt_ins),
                joins: number(joins),
                ..Totals::default()
            };
            (source, totals)
        };
        Ok(rows.into_iter().map(read).collect())
    }

    /// Returns the counts of one event by name, most frequent first.
    ///
    /// # Errors
    /// When the database is unavailable.
    pub async fn counts_by_name(&self, what: CountedEvent, since: Day) -> Result<Vec<(String, u64)>, StoreFailure> {
        let rows: Vec<(String, i64)> = on_pool!(self, |pool| {
            sqlx::query_as(SELECT_OF_KIND).bind(since.number()).bind(what.as_str()).fetch_all(pool).await?
        });
        Ok(rows.into_iter().map(|(name, times)| (name, number(times))).collect())
    }
}

pub(super) fn counts_batch(counts: &Counts) -> String {
    let rows = counts.iter().map(|(key, times)| {
        json!({
            "day": key.day.number(),
            "kind": key.what.as_str(),
            "via": key.via,
            "name": key.name,
            "times": times,
        })
    });
    rows.collect::<Value>().to_string()
}

pub(super) fn sources_batch(sources: &SourceCounts) -> String {
    let rows = sources.iter().map(|(day, source, totals)| {
        json!({
            "day": day.number(),
            "source": source,
            "downloads": totals.downloads,
            "people": totals.new_people,
            "opt_ins": totals.opt_ins,
            "joins": totals.joins,
        })
    });
    rows.collect::<Value>().to_string()
}

fn number(times: i64) -> u64 {
    u64::try_from(times).unwrap_or_default()
}
