//! Removes signups that were invented, and people of whom nothing else is stored. Counts are not changed.

use serde_json::{Value, json};

use super::statement::{Statement, batch_statement, in_transaction, on_pool};
use super::steps::{StepFailure, Steps};
use super::{Store, StoreFailure};
use crate::domain::limits;
use crate::domain::time::Timestamp;

/// Which downloads and joins to remove: those that meet all conditions.
#[derive(Clone, Debug, Default)]
pub struct SignupFilter {
    /// The exact source. An empty text stands for none.
    pub source: Option<String>,
    pub since: Option<Timestamp>,
    /// Signups at this time or later are not removed.
    pub until: Option<Timestamp>,
}

/// What a purge would remove.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MatchingSignups {
    pub downloads: u64,
    pub joins: u64,
    pub people: u64,
    /// Those of the people of whom nothing else is stored.
    pub removable_people: u64,
}

/// The number of removed rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Purged {
    pub signups: u64,
    pub people: u64,
}

macro_rules! matching {
    ($before:literal, $events:literal, $after:literal) => {
        concat!(
            $before,
            "(CAST($1 AS TEXT) IS NULL OR COALESCE(",
            $events,
            ".source, '') = $1) AND ",
            $events,
            ".at >= $2 AND ",
            $events,
            ".at < $3",
            $after
        )
    };
}

const COUNT_MATCHING: &str = matching!(
    "SELECT COUNT(CASE kind WHEN 'download' THEN 1 END), COUNT(CASE kind WHEN 'join' THEN 1 END), \
         COUNT(DISTINCT address) FROM events e WHERE ",
    "e",
    ""
);

/// A consent has the id of the signup that it came with.
const COUNT_REMOVABLE_PEOPLE: &str = matching!(
    "SELECT COUNT(*) FROM people p WHERE EXISTS (SELECT 1 FROM events e WHERE e.address = p.address) \
     AND NOT EXISTS (SELECT 1 FROM events e WHERE e.address = p.address AND NOT (",
    "e",
    ")) \
     AND NOT EXISTS (SELECT 1 FROM consents c WHERE c.address = p.address \
         AND NOT EXISTS (SELECT 1 FROM events e WHERE e.id = c.id)) \
     AND NOT EXISTS (SELECT 1 FROM messages m WHERE m.address = p.address) \
     AND NOT EXISTS (SELECT 1 FROM letter_recipients r WHERE r.address = p.address)"
);

const SELECT_MATCHING: &str =
    matching!("SELECT id, address FROM events e WHERE id > $4 AND ", "e", " ORDER BY id LIMIT $5");

/// In the order of addresses, as signups do.
const LOCK_PEOPLE: Statement = Statement {
    sqlite: "SELECT COUNT(*) FROM json_each($1)",
    postgres: "SELECT COUNT(*) FROM (SELECT 1 FROM people WHERE address IN \
                   (SELECT parsed.address FROM json_to_recordset($1::json) AS parsed(address text)) \
               ORDER BY address FOR UPDATE) AS locked",
};

const DELETE_EVENTS: Statement = batch_statement!("DELETE FROM events WHERE id IN (SELECT batch.id", (id text), ")");

const DELETE_WITHDRAWALS: Statement =
    batch_statement!("DELETE FROM withdrawals WHERE consent IN (SELECT batch.id", (id text), ")");

const DELETE_CONSENTS: Statement =
    batch_statement!("DELETE FROM consents WHERE id IN (SELECT batch.id", (id text), ")");

/// An opt-in that waits for its confirmation goes with its signup.
const DELETE_CONFIRMATIONS: Statement = batch_statement!("DELETE FROM confirmations WHERE (address, consent) IN (SELECT batch.address, batch.id", (address text, id text), ")");

/// Ids sort by time: the smallest is the oldest.
const UPDATE_PEOPLE: Statement = batch_statement!(
    "UPDATE people SET \
         first_download = CASE WHEN EXISTS (SELECT 1 FROM events e WHERE e.id = people.first_download) \
             THEN first_download \
             ELSE (SELECT MIN(e.id) FROM events e WHERE e.address = people.address AND e.kind = 'download') END, \
         first_join = CASE WHEN EXISTS (SELECT 1 FROM events e WHERE e.id = people.first_join) \
             THEN first_join \
             ELSE (SELECT MIN(e.id) FROM events e WHERE e.address = people.address AND e.kind = 'join') END, \
         opt_in = CASE WHEN EXISTS (SELECT 1 FROM consents c WHERE c.id = people.opt_in) THEN opt_in END, \
         first_seen_at = COALESCE((SELECT MIN(e.at) FROM events e WHERE e.address = people.address), first_seen_at) \
     WHERE address IN (SELECT batch.address",
    (address text),
    ")"
);

/// Cascades to the unsubscribe token and to a confirmation.
const DELETE_PEOPLE: Statement = batch_statement!(
    "DELETE FROM people WHERE NOT EXISTS (SELECT 1 FROM events e WHERE e.address = people.address) \
     AND NOT EXISTS (SELECT 1 FROM consents c WHERE c.address = people.address) \
     AND NOT EXISTS (SELECT 1 FROM messages m WHERE m.address = people.address) \
     AND NOT EXISTS (SELECT 1 FROM letter_recipients r WHERE r.address = people.address) \
     AND address IN (SELECT batch.address",
    (address text),
    ")"
);

impl SignupFilter {
    fn bounds(&self) -> (i64, i64) {
        (self.since.map_or(i64::MIN, Timestamp::unix_millis), self.until.map_or(i64::MAX, Timestamp::unix_millis))
    }
}

impl Store {
    /// Counts what [`Self::purge_signups`] would remove.
    pub async fn matching_signups(&self, filter: &SignupFilter) -> Result<MatchingSignups, StoreFailure> {
        let (since, until) = filter.bounds();
        let source = filter.source.as_deref();
        let (downloads, joins, people): (i64, i64, i64) = on_pool!(self, |pool| sqlx::query_as(COUNT_MATCHING)
            .bind(source)
            .bind(since)
            .bind(until)
            .fetch_one(pool)
            .await?);
        let removable: i64 = on_pool!(self, |pool| sqlx::query_scalar(COUNT_REMOVABLE_PEOPLE)
            .bind(source)
            .bind(since)
            .bind(until)
            .fetch_one(pool)
            .await?);
        let number = |count: i64| u64::try_from(count).unwrap_or_default();
        Ok(MatchingSignups {
            downloads: number(downloads),
            joins: number(joins),
            people: number(people),
            removable_people: number(removable),
        })
    }

    /// Removes the signups that match, with the opt-ins that came with them, in bounded steps. A person is removed if
    /// nothing else is left: no other signup, opt-in, message or letter.
    pub async fn purge_signups(&self, filter: &SignupFilter) -> Result<Purged, StoreFailure> {
        let (since, until) = filter.bounds();
        let (mut last, mut purged, mut steps) = (String::new(), Purged::default(), Steps::default());
        loop {
            let signups: Vec<(String, String)> = on_pool!(self, |pool| sqlx::query_as(SELECT_MATCHING)
                .bind(filter.source.as_deref())
                .bind(since)
                .bind(until)
                .bind(&last)
                .bind(limits::MAX_ROWS_PER_STEP)
                .fetch_all(pool)
                .await?);
            let Some((newest, _)) = signups.last() else { return Ok(purged) };
            let removed = self.remove_signups(&signups).await;
            if let Ok(step) = &removed {
                purged.signups += step.signups;
                purged.people += step.people;
                last.clone_from(newest);
            }
            // Only a conflict is repeated here; the next step begins with the next signup.
            steps.should_repeat(removed.map(|_| 0))?;
        }
    }

    async fn remove_signups(&self, signups: &[(String, String)]) -> Result<Purged, StepFailure> {
        let rows = signups.iter().map(|(id, address)| json!({ "id": id, "address": address }));
        let batch = rows.collect::<Value>().to_string();
        let purged = in_transaction!(self, |tx, sql| {
            let _: (i64,) = sqlx::query_as(sql(LOCK_PEOPLE)).bind(&batch).fetch_one(&mut *tx).await?;
            let signups = sqlx::query(sql(DELETE_EVENTS)).bind(&batch).execute(&mut *tx).await?.rows_affected();
            sqlx::query(sql(DELETE_WITHDRAWALS)).bind(&batch).execute(&mut *tx).await?;
            sqlx::query(sql(DELETE_CONSENTS)).bind(&batch).execute(&mut *tx).await?;
            sqlx::query(sql(DELETE_CONFIRMATIONS)).bind(&batch).execute(&mut *tx).await?;
            sqlx::query(sql(UPDATE_PEOPLE)).bind(&batch).execute(&mut *tx).await?;
            let people = sqlx::query(sql(DELETE_PEOPLE)).bind(&batch).execute(&mut *tx).await?.rows_affected();
            Purged { signups, people }
        });
        Ok(purged)
    }
}
