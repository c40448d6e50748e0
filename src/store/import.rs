//! Imports people in one transaction. Existing people stay unchanged.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use uuid::Uuid;

use super::statement::{Statement, batch_statement, in_transaction};
use super::unsubscribe::{SELECT_HASH_KEY, parse_hash_key};
use super::{Store, StoreFailure};
use crate::domain::consent::Via;
use crate::domain::signup::Person;
use crate::domain::text::Source;
use crate::domain::time::Timestamp;

/// A person, and the ids of the rows to insert.
#[derive(Clone, Debug)]
pub struct ImportedPerson {
    pub person: Person,
    pub downloads: Vec<Uuid>,
    pub join: Option<Uuid>,
    pub opt_in: Option<Uuid>,
}

/// People per statement.
const BATCH_SIZE: usize = 1000;
/// Downloads and joins per statement. One person may have any number.
const EVENTS_BATCH_SIZE: usize = 10_000;

const INSERT_PEOPLE: Statement = batch_statement!(
    "INSERT INTO people (address, email, first_seen_at, first_download, first_join, opt_in) \
     SELECT batch.address, batch.email, batch.at, batch.download, batch.joined, batch.opt_in",
    (address text, email text, at bigint, download text, joined text, opt_in text),
    "ON CONFLICT (address) DO NOTHING RETURNING address"
);

const INSERT_EVENTS: Statement = batch_statement!(
    "INSERT INTO events (id, address, kind, at, via, source) \
     SELECT batch.id, batch.address, batch.kind, batch.at, batch.via, batch.source",
    (id text, address text, kind text, at bigint, via text, source text),
    "ON CONFLICT (id) DO NOTHING"
);

const INSERT_CONSENTS: Statement = batch_statement!(
    "INSERT INTO consents (id, address, at, via, source, wording, from_program, confirmed_at) \
     SELECT batch.id, batch.address, batch.at, batch.via, batch.source, batch.wording, batch.from_program, \
         batch.confirmed_at",
    (id text, address text, at bigint, via text, source text, wording bigint, from_program bigint, confirmed_at bigint),
    "ON CONFLICT (id) DO NOTHING"
);

const SUPPRESS: Statement = batch_statement!(
    "INSERT INTO suppressions (hash, at, reason) SELECT batch.hash, $2, batch.reason",
    (hash text, reason text),
    "ON CONFLICT (hash) DO NOTHING"
);

impl Store {
    /// Inserts the people who do not exist yet and returns their number. All people who are suppressed in the list are
    /// suppressed, new or not.
    pub async fn import(&self, people: &[ImportedPerson], at: Timestamp) -> Result<u64, StoreFailure> {
        // Sorted by address, so that concurrent transactions lock rows in the same order.
        let mut by_address = BTreeMap::new();
        for person in people {
            by_address.entry(person.person.email.key()).or_insert(person);
        }
        let unique: Vec<_> = by_address.values().copied().collect();
        let added = in_transaction!(self, |tx, sql| {
            let (key,): (String,) = sqlx::query_as(SELECT_HASH_KEY).fetch_one(&mut *tx).await?;
            let key = parse_hash_key(&key)?;
            let mut added = 0;
            for chunk in unique.chunks(BATCH_SIZE) {
                let rows = chunk.iter().map(|person| person_row(person)).collect::<Value>().to_string();
                let new: Vec<(String,)> = sqlx::query_as(sql(INSERT_PEOPLE)).bind(&rows).fetch_all(&mut *tx).await?;
                let new = new.iter().filter_map(|(address,)| by_address.get(address.as_str()));
                let new: Vec<_> = new.copied().collect();
                let mut events = new.iter().flat_map(|person| event_rows(person)).peekable();
                while events.peek().is_some() {
                    let some = events.by_ref().take(EVENTS_BATCH_SIZE).collect::<Value>().to_string();
                    sqlx::query(sql(INSERT_EVENTS)).bind(&some).execute(&mut *tx).await?;
                }
                let consents = new.iter().filter_map(|person| consent_row(person)).collect::<Value>().to_string();
                sqlx::query(sql(INSERT_CONSENTS)).bind(&consents).execute(&mut *tx).await?;
                added += new.len() as u64;
            }
            // From the whole list: of an address that is in it twice, either row may say that it is suppressed.
            let suppressed: BTreeMap<_, _> = people
                .iter()
                .filter_map(|ImportedPerson { person, .. }| Some((key.hash(&person.email), person.suppressed?)))
                .collect();
            let suppressed = suppressed.iter().map(|(hash, reason)| json!({ "hash": hash, "reason": reason.as_str() }));
            let suppressed = suppressed.collect::<Value>().to_string();
            sqlx::query(sql(SUPPRESS)).bind(&suppressed).bind(at.unix_millis()).execute(&mut *tx).await?;
            added
        });
        // If no service is running, no other process checkpoints the large WAL of a long list.
        self.checkpoint().await?;
        Ok(added)
    }
}

fn person_row(imported: &ImportedPerson) -> Value {
    json!({
        "address": imported.person.email.key(),
        "email": imported.person.email.as_typed(),
        "at": imported.person.first_seen.unix_millis(),
        "download": imported.downloads.first(),
        "joined": imported.join,
        "opt_in": imported.opt_in,
    })
}

fn event_rows(imported: &ImportedPerson) -> impl Iterator<Item = Value> {
    let downloads = imported.downloads.iter().map(|id| (id, "download"));
    downloads.chain(imported.join.iter().map(|id| (id, "join"))).map(|(id, kind)| {
        json!({
            "id": id,
            "address": imported.person.email.key(),
            "kind": kind,
            "at": imported.person.first_seen.unix_millis(),
            "via": Via::Import.as_str(),
        })
    })
}

fn consent_row(imported: &ImportedPerson) -> Option<Value> {
    let opt_in = imported.person.opt_in.as_ref()?;
    Some(json!({
        "id": imported.opt_in?,
        "address": imported.person.email.key(),
        "at": opt_in.at.unix_millis(),
        "via": opt_in.via.as_str(),
        "source": opt_in.source.as_ref().map(Source::as_str),
        "wording": opt_in.wording,
        "confirmed_at": opt_in.confirmed_at.map(Timestamp::unix_millis),
    }))
}
