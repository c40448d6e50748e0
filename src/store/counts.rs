//! Daily counts. A transaction that records an event adds to them last: so they are exact, and their rows, which all
//! writers share, are locked for the shortest time. Signups in PostgreSQL add rows of their own instead
//! (`pending_counts`), and what is read here includes these.

use serde_json::{Value, json};

use super::pending_counts::all_counts;
use super::statement::{Statement, batch_statement, in_transaction, on_pool};
use super::{Store, StoreFailure};
use crate::domain::calendar::Day;
use crate::domain::counts::{CountedEvent, Counts, Totals};

pub(super) const ADD_COUNTS: Statement = batch_statement!(
    "INSERT INTO counts (day, kind, via, name, times) \
     SELECT batch.day, batch.kind, batch.via, batch.name, batch.times",
    (day bigint, kind text, via text, name text, times bigint),
    "ON CONFLICT (day, kind, via, name) DO UPDATE SET times = counts.times + excluded.times"
);

const SELECT_FIRST_DAY: &str = "SELECT MIN(day) FROM (SELECT MIN(day) AS day FROM counts UNION ALL SELECT MIN(day) FROM pending_counts UNION ALL SELECT MIN(day) FROM reads) AS first";

const SELECT_BY_DAY: &str = concat!(
    "SELECT day, kind, via, CAST(SUM(times) AS BIGINT) FROM ",
    all_counts!(),
    " WHERE day >= $1 GROUP BY day, kind, via ORDER BY day, kind, via"
);

/// More than a hundred are of no use to a reader.
const SELECT_BY_SOURCE: &str = "SELECT source, CAST(SUM(downloads) AS BIGINT), CAST(SUM(people) AS BIGINT), \
         CAST(SUM(opt_ins) AS BIGINT), CAST(SUM(joins) AS BIGINT) \
     FROM (SELECT day, source, downloads, people, opt_ins, joins FROM sources \
           UNION ALL SELECT day, source, downloads, people, opt_ins, joins FROM pending_counts) AS all_sources \
     WHERE day >= $1 AND source IS NOT NULL GROUP BY source HAVING SUM(downloads + people + opt_ins + joins) > 0 \
     ORDER BY SUM(downloads) + SUM(joins) DESC, source LIMIT 100";

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
    pub async fn add_counts(&self, counts: &Counts) -> Result<(), StoreFailure> {
        let batch = counts_batch(counts);
        in_transaction!(self, |tx, sql| {
            sqlx::query(sql(ADD_COUNTS)).bind(&batch).execute(&mut *tx).await?;
        });
        Ok(())
    }

    pub async fn first_counted_day(&self) -> Result<Option<Day>, StoreFailure> {
        let (day,): (Option<i64>,) = on_pool!(self, |pool| sqlx::query_as(SELECT_FIRST_DAY).fetch_one(pool).await?);
        Ok(day.map(Day::from_number))
    }

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

fn number(times: i64) -> u64 {
    u64::try_from(times).unwrap_or_default()
}
