//! Downloads and joins: many people in one transaction, each told what was known of them before.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use uuid::Uuid;

use super::Store;
use super::counts::{ADD_COUNTS, ADD_SOURCES, counts_batch, sources_batch};
use super::statement::{Statement, in_transaction, over_batch};
use super::writer::Record;
use crate::domain::calendar::Day;
use crate::domain::consent::{self, Via};
use crate::domain::counts::{CountedEvent, Counts, SourceCounts};
use crate::domain::email::EmailAddress;
use crate::domain::limits;
use crate::domain::signup::KnownBefore;
use crate::domain::text::Source;
use crate::domain::time::Timestamp;

/// What somebody did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignupKind {
    /// `requires_release`: only if a release is on offer at that moment.
    Download {
        updates: bool,
        requires_release: bool,
    },
    Join,
}

/// One download or join. `id` tells it from all others, so that writing it twice is writing it once.
#[derive(Clone, Debug)]
pub struct SignupRecord {
    pub id: Uuid,
    pub kind: SignupKind,
    pub email: EmailAddress,
    pub source: Option<Source>,
    pub via: Via,
    pub at: Timestamp,
}

/// Keeps what stands: the address as first typed, the first download, the first join, and an
/// opt-in that is on. So `updates` goes on and never off.
const UPSERT_PEOPLE: Statement = over_batch!(
    "INSERT INTO people (address, email, first_seen_at, first_download, first_join, opt_in) \
     SELECT batch.address, batch.email, batch.at, batch.download, batch.joined, batch.opt_in",
    (address text, email text, at bigint, download text, joined text, opt_in text),
    "ON CONFLICT (address) DO UPDATE SET \
         first_download = COALESCE(people.first_download, excluded.first_download), \
         first_join = COALESCE(people.first_join, excluded.first_join), \
         opt_in = COALESCE(people.opt_in, excluded.opt_in) \
     RETURNING address, first_download, first_join, opt_in"
);

pub(super) const INSERT_EVENTS: Statement = over_batch!(
    "INSERT INTO events (id, address, kind, at, via, source) \
     SELECT batch.id, batch.address, batch.kind, batch.at, batch.via, batch.source",
    (id text, address text, kind text, at bigint, via text, source text),
    "ON CONFLICT (id) DO NOTHING"
);

pub(super) const INSERT_CONSENTS: Statement = over_batch!(
    "INSERT INTO consents (id, address, at, via, source, wording) \
     SELECT batch.id, batch.address, batch.at, batch.via, batch.source, batch.wording",
    (id text, address text, at bigint, via text, source text, wording bigint),
    "ON CONFLICT (id) DO NOTHING"
);

const COUNT_RELEASES_ON_OFFER: &str = "SELECT count(*) FROM releases WHERE withdrawn IS NULL AND prerelease = 0";

/// What one batch holds of one person, in the order in which it came.
#[derive(Default)]
struct PersonBatch<'a> {
    signups: Vec<(usize, &'a SignupRecord)>,
    download: Option<&'a SignupRecord>,
    join: Option<&'a SignupRecord>,
    opt_in: Option<&'a SignupRecord>,
}

/// The row of a person after the batch: address, first download, first join, opt-in.
type PersonRow = (String, Option<String>, Option<String>, Option<String>);

impl Record for SignupRecord {
    /// What was known of the address before. `None`: there is no release to download, and nothing
    /// was recorded.
    type Answer = Option<KnownBefore>;

    async fn record(store: &Store, signups: &[Self]) -> Result<Vec<Option<KnownBefore>>, sqlx::Error> {
        let requires_release =
            |signup: &Self| matches!(signup.kind, SignupKind::Download { requires_release: true, .. });
        let standings = in_transaction!(store, |tx, words| {
            let mut recorded: Vec<_> = signups.iter().enumerate().collect();
            if signups.iter().any(requires_release) {
                let (on_offer,): (i64,) = sqlx::query_as(COUNT_RELEASES_ON_OFFER).fetch_one(&mut *tx).await?;
                recorded.retain(|(_, signup)| on_offer > 0 || !requires_release(signup));
            }
            let visits = by_person(&recorded);
            let people = people_batch(&visits);
            let rows: Vec<PersonRow> = sqlx::query_as(words(UPSERT_PEOPLE)).bind(&people).fetch_all(&mut *tx).await?;
            let events = events_batch(&recorded);
            let written = sqlx::query(words(INSERT_EVENTS)).bind(&events).execute(&mut *tx).await?.rows_affected();
            if let Some(consents) = consents_batch(&visits, &rows) {
                sqlx::query(words(INSERT_CONSENTS)).bind(&consents).execute(&mut *tx).await?;
            }
            // What was written before has been counted before.
            if written > 0 {
                let (counts, sources) = counted(&recorded, &visits, &rows);
                sqlx::query(words(ADD_SOURCES))
                    .bind(sources_batch(&sources))
                    .bind(limits::MAX_NEW_SOURCES_PER_DAY)
                    .execute(&mut *tx)
                    .await?;
                sqlx::query(words(ADD_COUNTS)).bind(counts_batch(&counts)).execute(&mut *tx).await?;
            }
            standings(signups.len(), &visits, &rows)
        });
        Ok(standings)
    }
}

/// Signups, each with its place in the batch.
type Placed<'a> = [(usize, &'a SignupRecord)];

/// Sorted by address, so that two instances take their locks in one order.
fn by_person<'a>(signups: &Placed<'a>) -> BTreeMap<&'a str, PersonBatch<'a>> {
    let mut visits: BTreeMap<&str, PersonBatch<'_>> = BTreeMap::new();
    for &(place, signup) in signups {
        let visit = visits.entry(signup.email.key()).or_default();
        visit.signups.push((place, signup));
        match signup.kind {
            SignupKind::Download { updates, .. } => {
                visit.download.get_or_insert(signup);
                if updates {
                    visit.opt_in.get_or_insert(signup);
                }
            }
            SignupKind::Join => {
                visit.join.get_or_insert(signup);
            }
        }
    }
    visits
}

fn people_batch(visits: &BTreeMap<&str, PersonBatch<'_>>) -> String {
    let rows = visits.iter().filter_map(|(address, visit)| {
        let (_, first) = visit.signups.first()?;
        Some(json!({
            "address": address,
            "email": first.email.as_typed(),
            "at": first.at.unix_millis(),
            "download": visit.download.map(|signup| signup.id),
            "joined": visit.join.map(|signup| signup.id),
            "opt_in": visit.opt_in.map(|signup| signup.id),
        }))
    });
    rows.collect::<Value>().to_string()
}

fn events_batch(signups: &Placed<'_>) -> String {
    let rows = signups.iter().map(|(_, signup)| {
        let kind = match signup.kind {
            SignupKind::Download { .. } => "download",
            SignupKind::Join => "join",
        };
        let mut row = trace_of(signup);
        row["kind"] = kind.into();
        row
    });
    rows.collect::<Value>().to_string()
}

/// The opt-ins that took effect: those whose own name now stands with the person.
fn opt_ins<'a>(
    visits: &BTreeMap<&str, PersonBatch<'a>>,
    people: &[PersonRow],
) -> impl Iterator<Item = &'a SignupRecord> {
    people.iter().filter_map(|(address, _, _, opt_in)| {
        visits.get(address.as_str())?.opt_in.filter(|signup| is(opt_in.as_deref(), signup))
    })
}

fn consents_batch(visits: &BTreeMap<&str, PersonBatch<'_>>, people: &[PersonRow]) -> Option<String> {
    let rows: Vec<_> = opt_ins(visits, people)
        .map(|signup| {
            let mut row = trace_of(signup);
            row["wording"] = consent::WORDING.into();
            row
        })
        .collect();
    (!rows.is_empty()).then(|| Value::from(rows).to_string())
}

/// How often what happened in this batch.
fn counted(
    signups: &Placed<'_>,
    visits: &BTreeMap<&str, PersonBatch<'_>>,
    people: &[PersonRow],
) -> (Counts, SourceCounts) {
    let (mut counts, mut sources) = (Counts::default(), SourceCounts::default());
    let mut count = |what, signup: &SignupRecord| {
        let day = Day::of(signup.at);
        counts.add_unnamed(day, what, Some(signup.via));
        sources.add(day, what, signup.source.as_ref());
    };
    for (_, signup) in signups {
        match signup.kind {
            SignupKind::Download { .. } => count(CountedEvent::Download, signup),
            SignupKind::Join => count(CountedEvent::Join, signup),
        }
    }
    for row in people {
        let Some(visit) = visits.get(row.0.as_str()) else { continue };
        if let Some((_, first)) = visit.signups.first()
            && known_before(visit, row) == KnownBefore::default()
        {
            count(CountedEvent::NewPerson, first);
        }
    }
    for signup in opt_ins(visits, people) {
        count(CountedEvent::OptIn, signup);
    }
    (counts, sources)
}

/// What events and consents alike keep of a request.
fn trace_of(signup: &SignupRecord) -> Value {
    json!({
        "id": signup.id,
        "address": signup.email.key(),
        "at": signup.at.unix_millis(),
        "via": signup.via.as_str(),
        "source": signup.source.as_ref().map(Source::as_str),
    })
}

/// Goes through each person's part of the batch in order: the second of two equal addresses finds
/// what the first left.
fn standings(count: usize, visits: &BTreeMap<&str, PersonBatch<'_>>, people: &[PersonRow]) -> Vec<Option<KnownBefore>> {
    let mut standings = vec![None; count];
    for row in people {
        let Some(visit) = visits.get(row.0.as_str()) else { continue };
        let mut known = known_before(visit, row);
        for (place, signup) in &visit.signups {
            standings[*place] = Some(known);
            match signup.kind {
                SignupKind::Download { .. } => known.downloaded = true,
                SignupKind::Join => known.joined = true,
            }
        }
    }
    standings
}

/// What was known of a person before this batch.
fn known_before(visit: &PersonBatch<'_>, (_, first_download, first_join, _): &PersonRow) -> KnownBefore {
    KnownBefore {
        downloaded: was_there_before(first_download.as_deref(), visit.download),
        joined: was_there_before(first_join.as_deref(), visit.join),
    }
}

fn was_there_before(first: Option<&str>, ours: Option<&SignupRecord>) -> bool {
    first.is_some() && !ours.is_some_and(|signup| is(first, signup))
}

fn is(id: Option<&str>, signup: &SignupRecord) -> bool {
    id.is_some_and(|id| Uuid::parse_str(id) == Ok(signup.id))
}
