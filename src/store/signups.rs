//! Stores downloads and joins in batches, and returns for each what was known of the address before.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use uuid::Uuid;

use super::Store;
use super::counts::{ADD_COUNTS, add_sources, counts_batch};
use super::statement::{Statement, batch_statement, in_transaction};
use super::writer::Record;
use crate::domain::calendar::Day;
use crate::domain::consent::{self, Via};
use crate::domain::counts::{CountedEvent, Counts, SourceCounts};
use crate::domain::email::EmailAddress;
use crate::domain::signup::KnownBefore;
use crate::domain::text::Source;
use crate::domain::time::Timestamp;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignupKind {
    /// With `requires_release`, it is recorded only if there is a release to download.
    Download {
        updates: bool,
        requires_release: bool,
    },
    Join,
}

/// One download or join. Writing the same `id` twice has no further effect.
#[derive(Clone, Debug)]
pub struct SignupRecord {
    pub id: Uuid,
    pub kind: SignupKind,
    pub email: EmailAddress,
    pub source: Option<Source>,
    pub via: Via,
    pub at: Timestamp,
}

/// On conflict, keeps the existing address as typed, first download, first join and opt-in. So `updates` turns the letter
/// on and never off.
///
/// Returns the ids of the first download and the first join. If a returned id is not from this batch, the person had
/// downloaded or joined before (`already` in the API).
const UPSERT_PEOPLE: Statement = batch_statement!(
    "INSERT INTO people (address, email, first_seen_at, first_download, first_join, opt_in) \
     SELECT batch.address, batch.email, batch.at, batch.download, batch.joined, batch.opt_in",
    (address text, email text, at bigint, download text, joined text, opt_in text),
    "ON CONFLICT (address) DO UPDATE SET \
         first_download = COALESCE(people.first_download, excluded.first_download), \
         first_join = COALESCE(people.first_join, excluded.first_join), \
         opt_in = COALESCE(people.opt_in, excluded.opt_in) \
     RETURNING address, first_download, first_join, opt_in"
);

pub(super) const INSERT_EVENTS: Statement = batch_statement!(
    "INSERT INTO events (id, address, kind, at, via, source) \
     SELECT batch.id, batch.address, batch.kind, batch.at, batch.via, batch.source",
    (id text, address text, kind text, at bigint, via text, source text),
    "ON CONFLICT (id) DO NOTHING"
);

pub(super) const INSERT_CONSENTS: Statement = batch_statement!(
    "INSERT INTO consents (id, address, at, via, source, wording, from_program) \
     SELECT batch.id, batch.address, batch.at, batch.via, batch.source, batch.wording, batch.from_program",
    (id text, address text, at bigint, via text, source text, wording bigint, from_program bigint),
    "ON CONFLICT (id) DO NOTHING"
);

const COUNT_OFFERED_RELEASES: &str = "SELECT count(*) FROM releases WHERE withdrawn IS NULL AND prerelease = 0";

/// The signups of one person in a batch, in their order, and the first of each kind.
#[derive(Default)]
struct PersonBatch<'a> {
    signups: Vec<(usize, &'a SignupRecord)>,
    download: Option<&'a SignupRecord>,
    join: Option<&'a SignupRecord>,
    opt_in: Option<&'a SignupRecord>,
}

/// A row of [`UPSERT_PEOPLE`]: address, first download, first join, current opt-in.
type UpsertedRow = (String, Option<String>, Option<String>, Option<String>);

impl Record for SignupRecord {
    /// What was known of the address before, or `None` if there is no release to download and nothing was recorded.
    type Output = Option<KnownBefore>;

    async fn insert(store: &Store, signups: &[Self]) -> Result<Vec<Option<KnownBefore>>, sqlx::Error> {
        let requires_release =
            |signup: &Self| matches!(signup.kind, SignupKind::Download { requires_release: true, .. });
        let known = in_transaction!(store, |tx, sql| {
            let mut recorded: Vec<_> = signups.iter().enumerate().collect();
            if signups.iter().any(requires_release) {
                let (offered,): (i64,) = sqlx::query_as(COUNT_OFFERED_RELEASES).fetch_one(&mut *tx).await?;
                recorded.retain(|(_, signup)| offered > 0 || !requires_release(signup));
            }
            let people = group_by_person(&recorded);
            let batch = people_batch(&people);
            let rows: Vec<UpsertedRow> = sqlx::query_as(sql(UPSERT_PEOPLE)).bind(&batch).fetch_all(&mut *tx).await?;
            let events = events_batch(&recorded);
            let inserted = sqlx::query(sql(INSERT_EVENTS)).bind(&events).execute(&mut *tx).await?.rows_affected();
            if let Some(consents) = consents_batch(&people, &rows) {
                sqlx::query(sql(INSERT_CONSENTS)).bind(&consents).execute(&mut *tx).await?;
            }
            // A repeated write inserts nothing and must not be counted again.
            if inserted > 0 {
                let (counts, sources) = count(&recorded, &people, &rows);
                add_sources!(tx, sql, sources);
                sqlx::query(sql(ADD_COUNTS)).bind(counts_batch(&counts)).execute(&mut *tx).await?;
            }
            known_before_each(signups.len(), &people, &rows)
        });
        Ok(known)
    }
}

/// Signups, each with its index in the batch.
type Indexed<'a> = [(usize, &'a SignupRecord)];

/// Sorted by address, so that concurrent transactions lock rows in the same order.
fn group_by_person<'a>(signups: &Indexed<'a>) -> BTreeMap<&'a str, PersonBatch<'a>> {
    let mut people: BTreeMap<&str, PersonBatch<'_>> = BTreeMap::new();
    for &(index, signup) in signups {
        let person = people.entry(signup.email.key()).or_default();
        person.signups.push((index, signup));
        match signup.kind {
            SignupKind::Download { updates, .. } => {
                person.download.get_or_insert(signup);
                if updates {
                    person.opt_in.get_or_insert(signup);
                }
            }
            SignupKind::Join => {
                person.join.get_or_insert(signup);
            }
        }
    }
    people
}

fn people_batch(people: &BTreeMap<&str, PersonBatch<'_>>) -> String {
    let rows = people.iter().filter_map(|(address, person)| {
        let (_, first) = person.signups.first()?;
        Some(json!({
            "address": address,
            "email": first.email.as_typed(),
            "at": first.at.unix_millis(),
            "download": person.download.map(|signup| signup.id),
            "joined": person.join.map(|signup| signup.id),
            "opt_in": person.opt_in.map(|signup| signup.id),
        }))
    });
    rows.collect::<Value>().to_string()
}

fn events_batch(signups: &Indexed<'_>) -> String {
    let rows = signups.iter().map(|(_, signup)| {
        let kind = match signup.kind {
            SignupKind::Download { .. } => "download",
            SignupKind::Join => "join",
        };
        let mut row = common_columns(signup);
        row["kind"] = kind.into();
        row
    });
    rows.collect::<Value>().to_string()
}

/// The opt-ins that took effect: those whose id is now the person's current opt-in.
fn opt_ins<'a>(
    people: &BTreeMap<&str, PersonBatch<'a>>,
    rows: &[UpsertedRow],
) -> impl Iterator<Item = &'a SignupRecord> {
    rows.iter().filter_map(|(address, _, _, opt_in)| {
        people.get(address.as_str())?.opt_in.filter(|signup| has_id(signup, opt_in.as_deref()))
    })
}

fn consents_batch(people: &BTreeMap<&str, PersonBatch<'_>>, rows: &[UpsertedRow]) -> Option<String> {
    let rows: Vec<_> = opt_ins(people, rows)
        .map(|signup| {
            let mut row = common_columns(signup);
            row["wording"] = consent::WORDING.into();
            row["from_program"] = i64::from(signup.via.is_program()).into();
            row
        })
        .collect();
    (!rows.is_empty()).then(|| Value::from(rows).to_string())
}

fn count(
    signups: &Indexed<'_>,
    people: &BTreeMap<&str, PersonBatch<'_>>,
    rows: &[UpsertedRow],
) -> (Counts, SourceCounts) {
    let (mut counts, mut sources) = (Counts::default(), SourceCounts::default());
    let mut add = |event, signup: &SignupRecord| {
        let day = Day::of(signup.at);
        counts.add_unnamed(day, event, Some(signup.via));
        sources.add(day, event, signup.source.as_ref());
    };
    for (_, signup) in signups {
        match signup.kind {
            SignupKind::Download { .. } => add(CountedEvent::Download, signup),
            SignupKind::Join => add(CountedEvent::Join, signup),
        }
    }
    for row in rows {
        let Some(person) = people.get(row.0.as_str()) else { continue };
        if let Some((_, first)) = person.signups.first()
            && known_before(person, row) == KnownBefore::default()
        {
            add(CountedEvent::NewPerson, first);
        }
    }
    for signup in opt_ins(people, rows) {
        add(CountedEvent::OptIn, signup);
    }
    (counts, sources)
}

/// The columns that events and consents share.
fn common_columns(signup: &SignupRecord) -> Value {
    json!({
        "id": signup.id,
        "address": signup.email.key(),
        "at": signup.at.unix_millis(),
        "via": signup.via.as_str(),
        "source": signup.source.as_ref().map(Source::as_str),
    })
}

/// What was known before each signup of the batch. An earlier signup of the same batch counts: the second of two equal
/// addresses is known.
fn known_before_each(
    count: usize,
    people: &BTreeMap<&str, PersonBatch<'_>>,
    rows: &[UpsertedRow],
) -> Vec<Option<KnownBefore>> {
    let mut outputs = vec![None; count];
    for row in rows {
        let Some(person) = people.get(row.0.as_str()) else { continue };
        let mut known = known_before(person, row);
        for (index, signup) in &person.signups {
            outputs[*index] = Some(known);
            match signup.kind {
                SignupKind::Download { .. } => known.downloaded = true,
                SignupKind::Join => known.joined = true,
            }
        }
    }
    outputs
}

/// What was known of a person before this batch.
fn known_before(person: &PersonBatch<'_>, (_, first_download, first_join, _): &UpsertedRow) -> KnownBefore {
    KnownBefore {
        downloaded: existed_before(first_download.as_deref(), person.download),
        joined: existed_before(first_join.as_deref(), person.join),
    }
}

/// Whether the first event of a kind is older than this batch, whose first one is `ours`.
fn existed_before(first: Option<&str>, ours: Option<&SignupRecord>) -> bool {
    first.is_some() && !ours.is_some_and(|signup| has_id(signup, first))
}

fn has_id(signup: &SignupRecord, id: Option<&str>) -> bool {
    id.is_some_and(|id| Uuid::parse_str(id) == Ok(signup.id))
}
