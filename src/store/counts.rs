//! The counts by day. Whoever records something adds to them last in the same transaction: they are
//! as right as what they count, and others wait for their rows for the shortest time.

use serde_json::{Value, json};

use super::statement::{Statement, in_transaction, on_pool, over_batch};
use super::{Store, StoreFailure};
use crate::domain::calendar::Day;
use crate::domain::counts::{Counted, Counts};
use crate::domain::statistics::Totals;

pub(super) const ADD_COUNTS: Statement = over_batch!(
    "INSERT INTO counts (day, kind, via, source, times) \
     SELECT batch.day, batch.kind, batch.via, batch.source, batch.times",
    (day bigint, kind text, via text, source text, times bigint),
    "ON CONFLICT (day, kind, via, source) DO UPDATE SET times = counts.times + excluded.times"
);

const SELECT_FIRST_DAY: &str = "SELECT MIN(day) FROM counts";

/// In the order of the table, so that nothing has to be sorted, however many sources there are.
const SELECT_BY_DAY: &str = "SELECT day, kind, via, CAST(SUM(times) AS BIGINT) FROM counts WHERE day >= $1 \
     GROUP BY day, kind, via ORDER BY day, kind, via";

/// Anybody may invent a source: only the hundred that most came from are told.
const SELECT_BY_SOURCE: &str = "SELECT source, \
         CAST(SUM(CASE kind WHEN 'download' THEN times ELSE 0 END) AS BIGINT), \
         CAST(SUM(CASE kind WHEN 'person' THEN times ELSE 0 END) AS BIGINT), \
         CAST(SUM(CASE kind WHEN 'opt-in' THEN times ELSE 0 END) AS BIGINT), \
         CAST(SUM(CASE kind WHEN 'join' THEN times ELSE 0 END) AS BIGINT) \
     FROM counts WHERE day >= $1 AND kind IN ('download', 'person', 'opt-in', 'join') GROUP BY source \
     ORDER BY SUM(CASE WHEN kind IN ('download', 'join') THEN times ELSE 0 END) DESC, source LIMIT 100";

const SELECT_OF_KIND: &str = "SELECT source, CAST(SUM(times) AS BIGINT) FROM counts \
     WHERE day >= $1 AND kind = $2 GROUP BY source ORDER BY 2 DESC, 1";

/// What was counted on one day, through which face.
#[derive(Clone, Debug)]
pub struct CountedOn {
    pub day: Day,
    pub what: Counted,
    /// Empty where there is none.
    pub via: String,
    pub times: u64,
}

impl Store {
    /// Adds what is counted and nowhere recorded.
    ///
    /// # Errors
    /// When the database does not answer; then nothing was added, or all of it.
    pub async fn add_counts(&self, counts: &Counts) -> Result<(), StoreFailure> {
        let batch = counts_batch(counts);
        in_transaction!(self, |tx, words| {
            sqlx::query(words(ADD_COUNTS)).bind(&batch).execute(&mut *tx).await?;
        });
        Ok(())
    }

    /// # Errors
    /// When the database does not answer.
    pub async fn first_counted_day(&self) -> Result<Option<Day>, StoreFailure> {
        let (day,): (Option<i64>,) = on_pool!(self, |pool| sqlx::query_as(SELECT_FIRST_DAY).fetch_one(pool).await?);
        Ok(day.map(Day::from_number))
    }

    /// # Errors
    /// When the database does not answer.
    pub async fn counts_by_day(&self, since: Day) -> Result<Vec<CountedOn>, StoreFailure> {
        type Row = (i64, String, String, i64);
        let rows: Vec<Row> =
            on_pool!(self, |pool| sqlx::query_as(SELECT_BY_DAY).bind(since.number()).fetch_all(pool).await?);
        let read = |(day, kind, via, times): Row| {
            Some(CountedOn { day: Day::from_number(day), what: Counted::parse(&kind)?, via, times: number(times) })
        };
        Ok(rows.into_iter().filter_map(read).collect())
    }

    /// The sources that most came from, those first.
    ///
    /// # Errors
    /// When the database does not answer.
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

    /// One kind alone, by what stands where others have their source; the most first.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn counts_of(&self, what: Counted, since: Day) -> Result<Vec<(String, u64)>, StoreFailure> {
        let rows: Vec<(String, i64)> = on_pool!(self, |pool| {
            sqlx::query_as(SELECT_OF_KIND).bind(since.number()).bind(what.as_str()).fetch_all(pool).await?
        });
        Ok(rows.into_iter().map(|(source, times)| (source, number(times))).collect())
    }
}

pub(super) fn counts_batch(counts: &Counts) -> String {
    let rows = counts.iter().map(|(key, times)| {
        json!({
            "day": key.day.number(),
            "kind": key.what.as_str(),
            "via": key.via,
            "source": key.source,
            "times": times,
        })
    });
    rows.collect::<Value>().to_string()
}

fn number(times: i64) -> u64 {
    u64::try_from(times).unwrap_or_default()
}
