//! The counts by day. Whoever records something adds to them last in the same transaction: they are
//! as right as what they count, and others wait for their rows for the shortest time.

use serde_json::{Value, json};

use super::statement::{Statement, in_transaction, on_pool, over_batch};
use super::{Store, StoreFailure};
use crate::domain::calendar::Day;
use crate::domain::counts::{Counted, Counts};

pub(super) const ADD_COUNTS: Statement = over_batch!(
    "INSERT INTO counts (day, kind, via, source, times) \
     SELECT batch.day, batch.kind, batch.via, batch.source, batch.times",
    (day bigint, kind text, via text, source text, times bigint),
    "ON CONFLICT (day, kind, via, source) DO UPDATE SET times = counts.times + excluded.times"
);

const SELECT_FIRST_DAY: &str = "SELECT MIN(day) FROM counts";

const SELECT_BY_DAY: &str = "SELECT day, kind, CAST(SUM(times) AS BIGINT) FROM counts WHERE day >= $1 \
     GROUP BY day, kind ORDER BY day, kind";

/// Anybody may invent a source: only the hundred that most came from are told.
const SELECT_BY_SOURCE: &str = "SELECT source, kind, CAST(SUM(times) AS BIGINT) FROM counts \
     WHERE day >= $1 AND via <> '' AND kind NOT IN ('tool', 'image') AND source IN ( \
         SELECT source FROM counts WHERE day >= $1 AND kind IN ('download', 'join') \
         GROUP BY source ORDER BY SUM(times) DESC, source LIMIT 100) \
     GROUP BY source, kind ORDER BY source, kind";

const SELECT_BY_FACE: &str = "SELECT via, kind, CAST(SUM(times) AS BIGINT) FROM counts \
     WHERE day >= $1 AND via <> '' AND kind NOT IN ('tool', 'image') GROUP BY via, kind ORDER BY via, kind";

const SELECT_OF_KIND: &str = "SELECT source, CAST(SUM(times) AS BIGINT) FROM counts \
     WHERE day >= $1 AND kind = $2 GROUP BY source ORDER BY 2 DESC, 1";

type NamedRow = (String, String, i64);

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
    pub async fn counts_by_day(&self, since: Day) -> Result<Vec<(Day, Counted, u64)>, StoreFailure> {
        let rows: Vec<(i64, String, i64)> =
            on_pool!(self, |pool| sqlx::query_as(SELECT_BY_DAY).bind(since.number()).fetch_all(pool).await?);
        let read = |(day, kind, times): (i64, String, i64)| {
            Some((Day::from_number(day), Counted::parse(&kind)?, number(times)))
        };
        Ok(rows.into_iter().filter_map(read).collect())
    }

    /// # Errors
    /// When the database does not answer.
    pub async fn counts_by_source(&self, since: Day) -> Result<Vec<(String, Counted, u64)>, StoreFailure> {
        let rows: Vec<NamedRow> =
            on_pool!(self, |pool| sqlx::query_as(SELECT_BY_SOURCE).bind(since.number()).fetch_all(pool).await?);
        Ok(named(rows))
    }

    /// # Errors
    /// When the database does not answer.
    pub async fn counts_by_face(&self, since: Day) -> Result<Vec<(String, Counted, u64)>, StoreFailure> {
        let rows: Vec<NamedRow> =
            on_pool!(self, |pool| sqlx::query_as(SELECT_BY_FACE).bind(since.number()).fetch_all(pool).await?);
        Ok(named(rows))
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

fn named(rows: Vec<NamedRow>) -> Vec<(String, Counted, u64)> {
    rows.into_iter().filter_map(|(name, kind, times)| Some((name, Counted::parse(&kind)?, number(times)))).collect()
}

fn number(times: i64) -> u64 {
    u64::try_from(times).unwrap_or_default()
}
