//! Stores signups in SQLite. The transaction has the write lock from its beginning, so what it has read of a person is true
//! until its end.

use std::collections::HashMap;

use sqlx::pool::PoolConnection;
use sqlx::query::Query;
use sqlx::sqlite::{Sqlite, SqliteArguments, SqlitePool, SqliteRow};
use sqlx::{Connection, Row, SqliteConnection};
use uuid::Uuid;

use super::kept_connection::KeptConnection;
use super::{
    Indexed, OFFERS_RELEASE, People, PersonBatch, SignupKind, SignupRecord, group_by_person, known_before_each,
    pending_opt_ins,
};
use crate::domain::calendar::Day;
use crate::domain::consent;
use crate::domain::counts::{CountedEvent, Counts, SourceCounts};
use crate::domain::signup::KnownBefore;
use crate::domain::text::Source;
use crate::store::confirmations::record_pending_opt_ins;
use crate::store::rows_statement::RowsStatement;
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

static ADD_COUNTS: RowsStatement<5> = RowsStatement::new(
    "INSERT INTO counts (day, kind, via, name, times) SELECT *",
    "WHERE batch.column1 IS NOT NULL ON CONFLICT (day, kind, via, name) DO UPDATE SET times = counts.times + excluded.times",
);

static ADD_SOURCES: RowsStatement<6> = RowsStatement::new(
    "INSERT INTO sources (day, source, downloads, people, opt_ins, joins) SELECT *",
    "WHERE batch.column1 IS NOT NULL ON CONFLICT (day, source) DO UPDATE SET \
         downloads = sources.downloads + excluded.downloads, people = sources.people + excluded.people, \
         opt_ins = sources.opt_ins + excluded.opt_ins, joins = sources.joins + excluded.joins",
);

/// The ids in the row of a person.
#[derive(Default)]
struct StoredPerson {
    first_download: Option<String>,
    first_join: Option<String>,
    opt_in: Option<String>,
}

type RowsQuery<'q> = Query<'q, Sqlite, SqliteArguments>;

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
    let stored = stored_people(select_people(&people).fetch_all(&mut *tx).await?)?;
    let changed: Vec<_> = people.iter().filter(|(address, person)| changes(person, stored.get(**address))).collect();
    if !changed.is_empty() {
        upsert_people(&changed).execute(&mut *tx).await?;
    }
    let inserted = insert_events(&signups).execute(&mut *tx).await?.rows_affected();
    let opt_ins = opt_ins(&people, &stored);
    if !opt_ins.is_empty() {
        insert_consents(&opt_ins).execute(&mut *tx).await?;
    }
    let pending = pending_opt_ins(&people);
    if !pending.is_empty() {
        record_pending_opt_ins!(tx, |statement: Statement| statement.sqlite, pending);
    }
    let known_before = |address: &str, person: &PersonBatch<'_>| known_before(person, stored.get(address));
    // A repeated write inserts nothing and must not be counted again.
    if inserted > 0 {
        let new = people.iter().filter(|(address, person)| known_before(address, person) == KnownBefore::default());
        let new = new.filter_map(|(_, person)| person.first());
        let (counts, sources) = count_events(&signups, new, &opt_ins, refused);
        add_sources(&sources).execute(&mut *tx).await?;
        add_counts(&counts).execute(&mut *tx).await?;
    }
    tx.commit().await?;
    Ok(known_before_each(count, &people, known_before))
}

fn select_people<'q>(people: &People<'_>) -> RowsQuery<'q> {
    people.keys().fold(SELECT_PEOPLE.query(people.len()), |query, address| query.bind(*address))
}

fn stored_people(rows: Vec<SqliteRow>) -> Result<HashMap<String, StoredPerson>, sqlx::Error> {
    let read = |row: SqliteRow| {
        let (first_download, first_join, opt_in) = (row.try_get(1)?, row.try_get(2)?, row.try_get(3)?);
        Ok((row.try_get(0)?, StoredPerson { first_download, first_join, opt_in }))
    };
    rows.into_iter().map(read).collect()
}

fn upsert_people<'q>(people: &[(&&str, &PersonBatch<'_>)]) -> RowsQuery<'q> {
    let mut query = UPSERT_PEOPLE.query(people.len());
    for (address, person) in people {
        let first = person.first();
        query = query.bind(**address).bind(first.map(|signup| signup.email.as_typed()));
        query = query.bind(first.map(|signup| signup.at.unix_millis()));
        for signup in [person.download, person.join, person.opt_in] {
            query = query.bind(signup.map(|signup| signup.id.to_string()));
        }
    }
    query
}

fn insert_events<'q>(signups: &Indexed<'_>) -> RowsQuery<'q> {
    let mut query = INSERT_EVENTS.query(signups.len());
    for (_, signup) in signups {
        query = query.bind(signup.id.to_string()).bind(signup.email.key()).bind(signup.kind_name());
        query = query.bind(signup.at.unix_millis()).bind(signup.via.as_str());
        query = query.bind(signup.source.as_ref().map(Source::as_str));
    }
    query
}

fn insert_consents<'q>(opt_ins: &[&SignupRecord]) -> RowsQuery<'q> {
    let mut query = INSERT_CONSENTS.query(opt_ins.len());
    for signup in opt_ins {
        query = query.bind(signup.id.to_string()).bind(signup.email.key()).bind(signup.at.unix_millis());
        query = query.bind(signup.via.as_str()).bind(signup.source.as_ref().map(Source::as_str));
        query = query.bind(consent::WORDING).bind(signup.via.is_program());
    }
    query
}

fn add_sources<'q>(sources: &SourceCounts) -> RowsQuery<'q> {
    let mut query = ADD_SOURCES.query(sources.iter().count());
    for (day, source, totals) in sources.iter() {
        query = query.bind(day.number()).bind(source);
        for times in [totals.downloads, totals.new_people, totals.opt_ins, totals.joins] {
            query = query.bind(integer(times));
        }
    }
    query
}

fn add_counts<'q>(counts: &Counts) -> RowsQuery<'q> {
    let mut query = ADD_COUNTS.query(counts.iter().count());
    for (key, times) in counts.iter() {
        query = query.bind(key.day.number()).bind(key.what.as_str()).bind(key.via).bind(&key.name);
        query = query.bind(integer(times));
    }
    query
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
