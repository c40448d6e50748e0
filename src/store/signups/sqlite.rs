//! Stores signups in SQLite. The transaction has the write lock from its beginning, so what it has read of a person is true
//! until its end.

use std::collections::HashMap;

use sqlx::pool::PoolConnection;
use sqlx::sqlite::{Sqlite, SqlitePool, SqliteRow};
use sqlx::{Connection, Row, SqliteConnection};
use uuid::Uuid;

use super::kept_connection::KeptConnection;
use super::{
    Indexed, OFFERS_RELEASE, People, PersonBatch, SignupKind, SignupRecord, group_by_person, known_before_each,
    pending_opt_ins,
};
use crate::domain::calendar::Day;
use crate::domain::consent;
use crate::domain::counts::{CountKey, CountedEvent, Counts, SourceCounts, Totals};
use crate::domain::signup::KnownBefore;
use crate::domain::text::Source;
use crate::store::confirmations::record_pending_opt_ins;
use crate::store::rows_statement::{RowsStatement, Script, Value};
use crate::store::sources::RefusedSources;
use crate::store::statement::Statement;

static SELECT_PEOPLE: RowsStatement<1> = RowsStatement::new(
    "SELECT people.address, people.first_download, people.first_join, people.opt_in",
    "CROSS JOIN people ON people.address = batch.column1",
);

/// On conflict, keeps the existing address as typed, first download, first join and opt-in. So `updates` turns the letter
/// on and never off.
static UPSERT_PEOPLE: RowsStatement<6> = RowsStatement::new(
    "INSERT INTO people (address, email, first_seen_at, first_download, first_join, opt_in) SELECT *",
    "WHERE batch.column1 IS NOT NULL ON CONFLICT (address) DO UPDATE SET \
         first_download = COALESCE(people.first_download, excluded.first_download), \
         first_join = COALESCE(people.first_join, excluded.first_join), \
         opt_in = COALESCE(people.opt_in, excluded.opt_in)",
);

static INSERT_EVENTS: RowsStatement<6> = RowsStatement::new(
    "INSERT INTO events (id, address, kind, at, via, source) SELECT *",
    "WHERE batch.column1 IS NOT NULL ON CONFLICT (id) DO NOTHING",
);

static INSERT_CONSENTS: RowsStatement<7> = RowsStatement::new(
    "INSERT INTO consents (id, address, at, via, source, wording, from_program) SELECT *",
    "WHERE batch.column1 IS NOT NULL ON CONFLICT (id) DO NOTHING",
);

/// This and the next statement do nothing if the statement before changed nothing.
static ADD_SOURCES: RowsStatement<6> = RowsStatement::new(
    "INSERT INTO sources (day, source, downloads, people, opt_ins, joins) SELECT *",
    "WHERE batch.column1 IS NOT NULL AND changes() > 0 ON CONFLICT (day, source) DO UPDATE SET \
         downloads = sources.downloads + excluded.downloads, people = sources.people + excluded.people, \
         opt_ins = sources.opt_ins + excluded.opt_ins, joins = sources.joins + excluded.joins",
);

static ADD_COUNTS: RowsStatement<5> = RowsStatement::new(
    "INSERT INTO counts (day, kind, via, name, times) SELECT *",
    "WHERE batch.column1 IS NOT NULL AND changes() > 0 ON CONFLICT (day, kind, via, name) DO UPDATE SET times = counts.times + excluded.times",
);

/// The ids in the row of a person.
#[derive(Default)]
struct StoredPerson {
    first_download: Option<String>,
    first_join: Option<String>,
    opt_in: Option<String>,
}

pub(super) async fn insert(
    pool: &SqlitePool,
    kept: &mut KeptConnection<PoolConnection<Sqlite>>,
    signups: Vec<(usize, &SignupRecord)>,
    refused: &RefusedSources,
) -> Result<Vec<Option<KnownBefore>>, sqlx::Error> {
    let mut connection = match kept.take() {
        Some(connection) => connection,
        None => Box::pin(pool.acquire()).await?,
    };
    let result = insert_on(&mut connection, signups, refused).await;
    kept.keep(connection, &result);
    result
}

async fn insert_on(
    connection: &mut SqliteConnection,
    mut signups: Vec<(usize, &SignupRecord)>,
    refused: &RefusedSources,
) -> Result<Vec<Option<KnownBefore>>, sqlx::Error> {
    let count = signups.len();
    let mut tx = connection.begin_with("BEGIN IMMEDIATE").await?;
    if signups.iter().any(|(_, signup)| signup.requires_release()) {
        let is_offered: bool = sqlx::query_scalar(OFFERS_RELEASE).fetch_one(&mut *tx).await?;
        signups.retain(|(_, signup)| is_offered || !signup.requires_release());
    }
    if signups.is_empty() {
        return Ok(vec![None; count]);
    }
    let people = group_by_person(&signups);
    let stored = stored_people(select_people(&people)?.query().fetch_all(&mut *tx).await?)?;
    let known_before = |address: &str, person: &PersonBatch<'_>| known_before(person, stored.get(address));
    write(&signups, &people, &stored, refused)?.query().execute(&mut *tx).await?;
    let pending = pending_opt_ins(&people);
    if !pending.is_empty() {
        record_pending_opt_ins!(tx, |statement: Statement| statement.sqlite, pending);
    }
    tx.commit().await?;
    Ok(known_before_each(count, &people, known_before))
}

fn select_people(people: &People<'_>) -> Result<Script, sqlx::Error> {
    let mut script = Script::default();
    script.append(&SELECT_PEOPLE, people.keys().map(|address| [Value::from(*address)]))?;
    Ok(script)
}

fn stored_people(rows: Vec<SqliteRow>) -> Result<HashMap<String, StoredPerson>, sqlx::Error> {
    let read = |row: SqliteRow| {
        let (first_download, first_join, opt_in) = (row.try_get(1)?, row.try_get(2)?, row.try_get(3)?);
        Ok((row.try_get(0)?, StoredPerson { first_download, first_join, opt_in }))
    };
    rows.into_iter().map(read).collect()
}

fn write(
    signups: &Indexed<'_>,
    people: &People<'_>,
    stored: &HashMap<String, StoredPerson>,
    refused: &RefusedSources,
) -> Result<Script, sqlx::Error> {
    let changed: Vec<_> = people.iter().filter(|(address, person)| changes(person, stored.get(**address))).collect();
    let opt_ins = opt_ins(people, stored);
    let is_new = |(address, person): &(&&str, &PersonBatch<'_>)| {
        known_before(person, stored.get(**address)) == KnownBefore::default()
    };
    let new_people = people.iter().filter(is_new).filter_map(|(_, person)| person.first());
    let (counts, sources) = count_events(signups, new_people, &opt_ins, refused);
    let mut script = Script::default();
    script.append(&UPSERT_PEOPLE, changed.iter().map(|(address, person)| person_row(address, person)))?;
    script.append(&INSERT_CONSENTS, opt_ins.iter().map(|signup| consent_row(signup)))?;
    // A repeated write inserts nothing and must not be counted again.
    script.append(&INSERT_EVENTS, signups.iter().map(|(_, signup)| event_row(signup)))?;
    script.append(&ADD_SOURCES, sources.iter().map(source_row))?;
    script.append(&ADD_COUNTS, counts.iter().map(count_row))?;
    Ok(script)
}

fn person_row<'a>(address: &'a str, person: &PersonBatch<'a>) -> [Value<'a>; 6] {
    let first = person.first();
    let [download, join, opt_in] =
        [person.download, person.join, person.opt_in].map(|signup| signup.map(|signup| signup.id.to_string()).into());
    let (email, at) = (first.map(|signup| signup.email.as_typed()), first.map(|signup| signup.at.unix_millis()));
    [address.into(), email.into(), at.into(), download, join, opt_in]
}

fn event_row(signup: &SignupRecord) -> [Value<'_>; 6] {
    [
        signup.id.to_string().into(),
        signup.email.key().into(),
        signup.kind_name().into(),
        signup.at.unix_millis().into(),
        signup.via.as_str().into(),
        signup.source.as_ref().map(Source::as_str).into(),
    ]
}

fn consent_row(signup: &SignupRecord) -> [Value<'_>; 7] {
    [
        signup.id.to_string().into(),
        signup.email.key().into(),
        signup.at.unix_millis().into(),
        signup.via.as_str().into(),
        signup.source.as_ref().map(Source::as_str).into(),
        consent::WORDING.into(),
        i64::from(signup.via.is_program()).into(),
    ]
}

fn source_row<'a>((day, source, totals): (Day, &'a str, &Totals)) -> [Value<'a>; 6] {
    let [downloads, new_people, opt_ins, joins] =
        [totals.downloads, totals.new_people, totals.opt_ins, totals.joins].map(|times| integer(times).into());
    [day.number().into(), source.into(), downloads, new_people, opt_ins, joins]
}

fn count_row((key, times): (&CountKey, u64)) -> [Value<'_>; 5] {
    [key.day.number().into(), key.what.as_str().into(), key.via.into(), key.name.as_str().into(), integer(times).into()]
}

/// Counts the signups, the first ones of new people and the opt-ins that took effect.
fn count_events<'a>(
    signups: &Indexed<'a>,
    new_people: impl Iterator<Item = &'a SignupRecord>,
    opt_ins: &[&'a SignupRecord],
    refused: &RefusedSources,
) -> (Counts, SourceCounts) {
    let event = |signup: &SignupRecord| match signup.kind {
        SignupKind::Download { .. } => CountedEvent::Download,
        SignupKind::Join => CountedEvent::Join,
    };
    let signups = signups.iter().map(|(_, signup)| (event(signup), *signup));
    let new_people = new_people.map(|signup| (CountedEvent::NewPerson, signup));
    let opt_ins = opt_ins.iter().map(|signup| (CountedEvent::OptIn, *signup));
    let (mut counts, mut sources) = (Counts::default(), SourceCounts::default());
    for (event, signup) in signups.chain(new_people).chain(opt_ins) {
        let day = Day::of(signup.at);
        counts.add_unnamed(day, event, Some(signup.via));
        if let Some(source) = signup.counted_source(refused) {
            sources.add(day, event, source);
        }
    }
    (counts, sources)
}

/// Whether the row of a person would change.
fn changes(person: &PersonBatch<'_>, stored: Option<&StoredPerson>) -> bool {
    let Some(stored) = stored else { return true };
    (stored.first_download.is_none() && person.download.is_some())
        || (stored.first_join.is_none() && person.join.is_some())
        || (stored.opt_in.is_none() && person.opt_in.is_some())
}

/// The opt-ins that take effect: those of people without one.
fn opt_ins<'a>(people: &People<'a>, stored: &HashMap<String, StoredPerson>) -> Vec<&'a SignupRecord> {
    let opt_in = |(address, person): (&&str, &PersonBatch<'a>)| {
        let current = stored.get(*address).and_then(|stored| stored.opt_in.as_deref());
        person.opt_in.filter(|signup| current.is_none_or(|id| has_id(signup, id)))
    };
    people.iter().filter_map(opt_in).collect()
}

/// What was known of a person before this batch, which may be a repeated one.
fn known_before(person: &PersonBatch<'_>, stored: Option<&StoredPerson>) -> KnownBefore {
    let existed_before = |first: Option<&String>, ours: Option<&SignupRecord>| {
        first.is_some_and(|id| !ours.is_some_and(|signup| has_id(signup, id)))
    };
    KnownBefore {
        downloaded: existed_before(stored.and_then(|stored| stored.first_download.as_ref()), person.download),
        joined: existed_before(stored.and_then(|stored| stored.first_join.as_ref()), person.join),
    }
}

fn has_id(signup: &SignupRecord, id: &str) -> bool {
    Uuid::parse_str(id) == Ok(signup.id)
}

fn integer(times: u64) -> i64 {
    i64::try_from(times).unwrap_or(i64::MAX)
}
