//! Removes signups that were invented, and people of whom nothing else is stored. Counts are not changed.

use crate::domain::limits;
use crate::domain::time::Timestamp;
use crate::store::connection::{BatchStatement, Store, StoreFailure, Transaction, count, values};

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

/// A query of signups `s` that match a filter.
macro_rules! matching {
    ($before:literal, $after:literal) => {
        concat!(
            $before,
            "(CAST($1 AS TEXT) IS NULL OR COALESCE(s.source, '') = $1) AND s.at >= $2 AND s.at < $3",
            $after
        )
    };
}

const COUNT_MATCHING: &str = matching!(
    "SELECT COUNT(CASE kind WHEN 'download' THEN 1 END), COUNT(CASE kind WHEN 'join' THEN 1 END), \
         COUNT(DISTINCT address) FROM signups s WHERE ",
    ""
);

/// A consent has the id of the signup that it came with.
const COUNT_REMOVABLE_PEOPLE: &str = matching!(
    "SELECT COUNT(*) FROM people p WHERE EXISTS (SELECT 1 FROM signups s WHERE s.address = p.address) \
     AND NOT EXISTS (SELECT 1 FROM signups s WHERE s.address = p.address AND NOT (",
    ")) \
     AND NOT EXISTS (SELECT 1 FROM consents c WHERE c.address = p.address \
         AND NOT EXISTS (SELECT 1 FROM signups s WHERE s.address = c.address AND s.id = c.id)) \
     AND NOT EXISTS (SELECT 1 FROM messages m WHERE m.address = p.address) \
     AND NOT EXISTS (SELECT 1 FROM letter_recipients r WHERE r.address = p.address)"
);

const SELECT_MATCHING: &str = matching!(
    "SELECT address, id FROM signups s WHERE (address, id) > ($4, $5) AND ",
    " ORDER BY address, id LIMIT $6"
);

/// In the order of addresses, as signups do. SQLite needs no lock.
const LOCK_PEOPLE: BatchStatement = BatchStatement::new(
    "address text",
    "SELECT address FROM people WHERE address IN (SELECT address FROM batch) ORDER BY address FOR UPDATE",
);

const DELETE_SIGNUPS: BatchStatement = BatchStatement::new(
    "address text, id text",
    "DELETE FROM signups WHERE (address, id) IN (SELECT address, id FROM batch)",
);

const DELETE_WITHDRAWALS: BatchStatement =
    BatchStatement::new("id text", "DELETE FROM withdrawals WHERE consent IN (SELECT id FROM batch)");

const DELETE_CONSENTS: BatchStatement =
    BatchStatement::new("id text", "DELETE FROM consents WHERE id IN (SELECT id FROM batch)");

/// An opt-in that waits for its confirmation goes with its signup, and so does its mail.
const DELETE_CONFIRMATIONS: BatchStatement =
    BatchStatement::new("id text", "DELETE FROM confirmations WHERE consent IN (SELECT id FROM batch)");

const DELETE_CONFIRMATION_MAILS: BatchStatement =
    BatchStatement::new("id text", "DELETE FROM outbox WHERE id IN (SELECT id FROM batch)");

/// Ids sort by time: the smallest is the oldest.
const UPDATE_PEOPLE: BatchStatement = BatchStatement::new(
    "address text",
    "UPDATE people SET \
         first_download = CASE WHEN EXISTS (SELECT 1 FROM signups s \
                 WHERE s.address = people.address AND s.id = people.first_download) THEN first_download \
             ELSE (SELECT MIN(s.id) FROM signups s WHERE s.address = people.address AND s.kind = 'download') END, \
         first_join = CASE WHEN EXISTS (SELECT 1 FROM signups s \
                 WHERE s.address = people.address AND s.id = people.first_join) THEN first_join \
             ELSE (SELECT MIN(s.id) FROM signups s WHERE s.address = people.address AND s.kind = 'join') END, \
         opt_in = CASE WHEN EXISTS (SELECT 1 FROM consents c WHERE c.id = people.opt_in) THEN opt_in END, \
         first_seen_at = COALESCE((SELECT MIN(s.at) FROM signups s WHERE s.address = people.address), first_seen_at) \
     WHERE address IN (SELECT address FROM batch)",
);

/// Cascades to the unsubscribe token and to a confirmation.
const DELETE_PEOPLE: BatchStatement = BatchStatement::new(
    "address text",
    "DELETE FROM people WHERE NOT EXISTS (SELECT 1 FROM signups s WHERE s.address = people.address) \
     AND NOT EXISTS (SELECT 1 FROM consents c WHERE c.address = people.address) \
     AND NOT EXISTS (SELECT 1 FROM messages m WHERE m.address = people.address) \
     AND NOT EXISTS (SELECT 1 FROM letter_recipients r WHERE r.address = people.address) \
     AND address IN (SELECT address FROM batch)",
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
        let filter = values![filter.source.as_deref(), since, until];
        let (downloads, joins, people) = self.run(COUNT_MATCHING, filter).await?.one()?;
        let (removable,) = self.run(COUNT_REMOVABLE_PEOPLE, filter).await?.one()?;
        let [downloads, joins, people, removable_people] = [downloads, joins, people, removable].map(count);
        Ok(MatchingSignups { downloads, joins, people, removable_people })
    }

    /// Removes the signups that match, with the opt-ins that came with them, in bounded steps. A person is removed if
    /// nothing else is left: no other signup, opt-in, message or letter.
    pub async fn purge_signups(&self, filter: &SignupFilter) -> Result<Purged, StoreFailure> {
        let (since, until) = filter.bounds();
        let (mut last, mut purged, mut steps) = ((String::new(), String::new()), Purged::default(), self.steps());
        loop {
            let values = values![filter.source.as_deref(), since, until, &last.0, &last.1, limits::MAX_ROWS_PER_STEP];
            let signups: Vec<(String, String)> = self.run(SELECT_MATCHING, values).await?.all()?;
            let Some(newest) = signups.last() else { return Ok(purged) };
            let removed = self.remove_signups(&signups).await;
            if !steps.should_repeat_this(&removed).await {
                let step = removed?;
                purged.signups += step.signups;
                purged.people += step.people;
                last.clone_from(newest);
            }
        }
    }

    async fn remove_signups(&self, signups: &[(String, String)]) -> Result<Purged, StoreFailure> {
        let ids = || signups.iter().map(|(_, id)| [id.into()]).collect();
        let addresses = || signups.iter().map(|(address, _)| [address.into()]).collect();
        let keys = signups.iter().map(|(address, id)| [address.into(), id.into()]).collect();
        let mut tx = self.begin().await?;
        if let Transaction::Postgres(_) = tx {
            tx.run_batch(LOCK_PEOPLE, addresses()).await?;
        }
        let signups = tx.run_batch(DELETE_SIGNUPS, keys).await?.affected;
        for statement in [DELETE_WITHDRAWALS, DELETE_CONSENTS, DELETE_CONFIRMATIONS, DELETE_CONFIRMATION_MAILS] {
            tx.run_batch(statement, ids()).await?;
        }
        tx.run_batch(UPDATE_PEOPLE, addresses()).await?;
        let people = tx.run_batch(DELETE_PEOPLE, addresses()).await?.affected;
        tx.commit().await?;
        Ok(Purged { signups, people })
    }
}
