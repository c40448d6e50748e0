//! Which sources of a day are counted by name. Clients can send any source, so a day admits a bounded number of new ones; the
//! events of the others are in the daily counts alone.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use serde_json::{Value, json};

use super::Store;
use super::statement::{Statement, batch_statement, in_transaction};
use crate::domain::calendar::Day;
use crate::domain::limits::MAX_NEW_SOURCES_PER_DAY;

/// The sources that were not seen on their day or in the seven days before.
const SELECT_NEW_SOURCES: Statement = batch_statement!(
    "SELECT batch.day, batch.source",
    (day bigint, source text),
    "AND NOT EXISTS (SELECT 1 FROM sources AS known WHERE known.source = batch.source AND known.day \
         IN (batch.day, batch.day - 1, batch.day - 2, batch.day - 3, batch.day - 4, batch.day - 5, batch.day - 6, \
             batch.day - 7)) \
     ORDER BY batch.day, batch.source"
);

const SELECT_NEW_SOURCES_OF_DAY: &str = "SELECT names FROM new_sources WHERE day = $1";

/// Locks the row until the commit, so that instances admit new sources one after another.
const LOCK_NEW_SOURCES_OF_DAY: &str = "INSERT INTO new_sources (day, names) VALUES ($1, 0) \
     ON CONFLICT (day) DO UPDATE SET names = new_sources.names RETURNING names";

const ADD_NEW_SOURCES_OF_DAY: &str = "UPDATE new_sources SET names = names + $2 WHERE day = $1";

/// So that the sources are known from now on, to all instances.
const INSERT_SOURCES: Statement = batch_statement!(
    "INSERT INTO sources (day, source, downloads, people, opt_ins, joins) SELECT batch.day, batch.source, 0, 0, 0, 0",
    (day bigint, source text),
    "ON CONFLICT (day, source) DO NOTHING"
);

/// How many days are remembered: around midnight there are events of two.
const REMEMBERED_DAYS: usize = 2;

/// The sources of the last days that are known to be admitted. A day admits a bounded number, so there are a few
/// thousand at most.
#[derive(Debug, Default)]
pub(super) struct AdmittedSources(BTreeMap<Day, HashSet<String>>);

/// Sources that are too many of their day.
#[derive(Debug, Default)]
pub(super) struct RefusedSources(BTreeSet<(Day, String)>);

impl RefusedSources {
    pub(super) fn contains(&self, day: Day, source: &str) -> bool {
        !self.0.is_empty() && self.0.contains(&(day, source.to_owned()))
    }

    pub(super) fn extend<'a>(&mut self, sources: impl Iterator<Item = (Day, &'a str)>) {
        self.0.extend(sources.map(|(day, source)| (day, source.to_owned())));
    }
}

impl AdmittedSources {
    /// Returns the sources that are not known to be admitted. The empty source stands for none and needs no place.
    pub(super) fn unknown<'a>(&self, sources: impl Iterator<Item = (Day, &'a str)>) -> BTreeSet<(Day, &'a str)> {
        let is_known = |day: &Day, source: &str| self.0.get(day).is_some_and(|sources| sources.contains(source));
        sources.filter(|(day, source)| !source.is_empty() && !is_known(day, source)).collect()
    }

    /// Admits sources, as long as their days have room, and returns the others.
    pub(super) async fn admit(
        &mut self,
        store: &Store,
        unknown: &BTreeSet<(Day, &str)>,
    ) -> Result<RefusedSources, sqlx::Error> {
        if unknown.is_empty() {
            return Ok(RefusedSources::default());
        }
        let refused = admit_unknown(store, unknown).await?;
        for (day, source) in unknown.iter().copied().filter(|(day, source)| !refused.contains(*day, source)) {
            self.0.entry(day).or_default().insert(source.to_owned());
        }
        while self.0.len() > REMEMBERED_DAYS {
            self.0.pop_first();
        }
        Ok(refused)
    }
}

/// Asks the database about sources, and admits the new ones if there is room.
///
/// The number of a day is read only if a source is new, and locked only if there is room. It never shrinks, so a day that is
/// full stays full. After the lock the question is repeated: another instance may have admitted the same source.
async fn admit_unknown(store: &Store, sources: &BTreeSet<(Day, &str)>) -> Result<RefusedSources, sqlx::Error> {
    let batch = sources_batch(sources);
    let refused = in_transaction!(store, |tx, sql| {
        let mut refused = RefusedSources::default();
        let new: Vec<(i64, String)> = sqlx::query_as(sql(SELECT_NEW_SOURCES)).bind(&batch).fetch_all(&mut *tx).await?;
        let days: BTreeSet<i64> = new.iter().map(|(day, _)| *day).collect();
        for day in days {
            let names: Option<i64> =
                sqlx::query_scalar(SELECT_NEW_SOURCES_OF_DAY).bind(day).fetch_optional(&mut *tx).await?;
            let mut room = MAX_NEW_SOURCES_PER_DAY - names.unwrap_or_default();
            if room > 0 {
                let names: i64 = sqlx::query_scalar(LOCK_NEW_SOURCES_OF_DAY).bind(day).fetch_one(&mut *tx).await?;
                room = MAX_NEW_SOURCES_PER_DAY - names;
            }
            let new: Vec<(i64, String)> =
                sqlx::query_as(sql(SELECT_NEW_SOURCES)).bind(&batch).fetch_all(&mut *tx).await?;
            let mut new: Vec<_> = new.into_iter().filter(|(of, _)| *of == day).map(|(_, source)| source).collect();
            let too_many = new.split_off(new.len().min(usize::try_from(room).unwrap_or_default()));
            if !new.is_empty() {
                let admitted = i64::try_from(new.len()).unwrap_or(i64::MAX);
                sqlx::query(ADD_NEW_SOURCES_OF_DAY).bind(day).bind(admitted).execute(&mut *tx).await?;
            }
            refused.0.extend(too_many.into_iter().map(|source| (Day::from_number(day), source)));
        }
        let admitted = sources.iter().copied().filter(|(day, source)| !refused.contains(*day, source)).collect();
        sqlx::query(sql(INSERT_SOURCES)).bind(sources_batch(&admitted)).execute(&mut *tx).await?;
        refused
    });
    Ok(refused)
}

fn sources_batch(sources: &BTreeSet<(Day, &str)>) -> String {
    let rows = sources.iter().map(|(day, source)| json!({ "day": day.number(), "source": source }));
    rows.collect::<Value>().to_string()
}
