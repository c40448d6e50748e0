//! Stores signups in SQLite. The transaction has the write lock from its beginning, so what it has read of a person is true
//! until its end.
//!
//! A transaction takes two round trips to the thread of the connection: one begins it and reads, the other writes and
//! commits. Beginning and committing by sqlx takes three more, and each costs as much as storing some rows.

use std::collections::HashMap;

use sqlx::pool::PoolConnection;
use sqlx::sqlite::{Sqlite, SqlitePool, SqliteRow};
use sqlx::{Row, SqliteConnection};
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

// A statement that writes several rows and may be aborted keeps copies of the pages that it changes, so that it can be undone
// alone. `OR ROLLBACK` needs none: a batch is rolled back as a whole.

/// On conflict, keeps the existing address as typed, first download, first join and opt-in. So `updates` turns the letter
/// on and never off.
static UPSERT_PEOPLE: RowsStatement<6> = RowsStatement::new(
    "INSERT OR ROLLBACK INTO people (address, email, first_seen_at, first_download, first_join, opt_in) SELECT *",
    "WHERE batch.column1 IS NOT NULL ON CONFLICT (address) DO UPDATE SET \
         first_download = COALESCE(people.first_download, excluded.first_download), \
         first_join = COALESCE(people.first_join, excluded.first_join), \
         opt_in = COALESCE(people.opt_in, excluded.opt_in)",
);

static INSERT_EVENTS: RowsStatement<6> = RowsStatement::new(
    "INSERT OR ROLLBACK INTO events (id, address, kind, at, via, source) SELECT *",
    "WHERE batch.column1 IS NOT NULL ON CONFLICT (id) DO NOTHING",
);

static INSERT_CONSENTS: RowsStatement<7> = RowsStatement::new(
    "INSERT OR ROLLBACK INTO consents (id, address, at, via, source, wording, from_program) SELECT *",
    "WHERE batch.column1 IS NOT NULL ON CONFLICT (id) DO NOTHING",
);

/// This and the next statement do nothing if the statement before changed nothing.
static ADD_SOURCES: RowsStatement<6> = RowsStatement::new(
    "INSERT OR ROLLBACK INTO sources (day, source, downloads, people, opt_ins, joins) SELECT *",
    "WHERE batch.column1 IS NOT NULL AND changes() > 0 ON CONFLICT (day, source) DO UPDATE SET \
         downloads = sources.downloads + excluded.downloads, people = sources.people + excluded.people, \
         opt_ins = sources.opt_ins + excluded.opt_ins, joins = sources.joins + excluded.joins",
);

static ADD_COUNTS: RowsStatement<5> = RowsStatement::new(
    "INSERT OR ROLLBACK INTO counts (day, kind, via, name, times) SELECT *",
    "WHERE batch.column1 IS NOT NULL AND changes() > 0 ON CONFLICT (day, kind, via, name) DO UPDATE SET times = counts.times + excluded.times",
);

/// A person of the batch.
struct Person<'p, 'a> {
    address: &'a str,
    batch: &'p PersonBatch<'a>,
    stored: Option<StoredPerson>,
}

/// The ids in the row of a person.
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
    let mut transaction = Transaction { connection: &mut connection, is_committed: false };
    let outputs = insert_in(transaction.connection, signups, refused).await?;
    transaction.is_committed = true;
    drop(transaction);
    kept.keep(connection);
    Ok(outputs)
}

/// A transaction that sqlx does not know of. If it fails or is cancelled, its connection will be closed, which rolls back.
struct Transaction<'a> {
    connection: &'a mut PoolConnection<Sqlite>,
    is_committed: bool,
}

impl Drop for Transaction<'_> {
    fn drop(&mut self) {
        if !self.is_committed {
            self.connection.close_on_drop();
        }
    }
}

async fn insert_in(
    connection: &mut SqliteConnection,
    mut signups: Vec<(usize, &SignupRecord)>,
    refused: &RefusedSources,
) -> Result<Vec<Option<KnownBefore>>, sqlx::Error> {
    let count = signups.len();
    let requires_release = signups.iter().any(|(_, signup)| signup.requires_release());
    let mut people = group_by_person(&signups);
    let mut rows = begin(&people, requires_release)?.query().fetch_all(&mut *connection).await?.into_iter();
    if requires_release && !rows.next().ok_or(sqlx::Error::RowNotFound)?.try_get::<bool, _>(0)? {
        signups.retain(|(_, signup)| !signup.requires_release());
        people = group_by_person(&signups);
    }
    let people = with_stored(&people, rows)?;
    let mut script = write(&signups, &people, refused)?;
    let pending = pending_opt_ins(people.iter().map(|person| person.batch));
    if !pending.is_empty() {
        script.query().execute(&mut *connection).await?;
        record_pending_opt_ins!(connection, |statement: Statement| statement.sqlite, pending);
        script = Script::default();
    }
    script.append_text("COMMIT");
    script.query().execute(&mut *connection).await?;
    Ok(known_before_each(count, people.iter().map(|person| (person.batch, person.known_before()))))
}

/// Begins a transaction and selects whether there is a release, if that is asked, and then the people.
fn begin(people: &People<'_>, requires_release: bool) -> Result<Script, sqlx::Error> {
    let mut script = Script::default();
    script.append_text("BEGIN IMMEDIATE");
    if requires_release {
        script.append_text(OFFERS_RELEASE);
    }
    script.append(&SELECT_PEOPLE, people.keys().map(|address| [Value::from(*address)]))?;
    Ok(script)
}

/// The people of the batch, each with their row if there is one.
fn with_stored<'p, 'a>(
    people: &'p People<'a>,
    rows: impl Iterator<Item = SqliteRow>,
) -> Result<Vec<Person<'p, 'a>>, sqlx::Error> {
    let read = |row: SqliteRow| {
        let (first_download, first_join, opt_in) = (row.try_get(1)?, row.try_get(2)?, row.try_get(3)?);
        Ok((row.try_get(0)?, StoredPerson { first_download, first_join, opt_in }))
    };
    let mut stored = rows.map(read).collect::<Result<HashMap<String, _>, sqlx::Error>>()?;
    Ok(people.iter().map(|(&address, batch)| Person { address, batch, stored: stored.remove(address) }).collect())
}

fn write(signups: &Indexed<'_>, people: &[Person<'_, '_>], refused: &RefusedSources) -> Result<Script, sqlx::Error> {
    let changed: Vec<_> = people.iter().filter(|person| person.changes()).collect();
    let opt_ins: Vec<_> = people.iter().filter_map(Person::opt_in).collect();
    let new_people = people.iter().filter(|person| person.is_new()).filter_map(|person| person.batch.first());
    let (counts, sources) = count_events(signups, new_people, &opt_ins, refused);
    let mut script = Script::default();
    script.append(&UPSERT_PEOPLE, changed.iter().map(|person| person.row()))?;
    script.append(&INSERT_CONSENTS, opt_ins.iter().map(|signup| consent_row(signup)))?;
    // A repeated write inserts nothing and must not be counted again.
    script.append(&INSERT_EVENTS, signups.iter().map(|(_, signup)| event_row(signup)))?;
    script.append(&ADD_SOURCES, sources.iter().map(source_row))?;
    script.append(&ADD_COUNTS, counts.iter().map(count_row))?;
    Ok(script)
}

impl<'a> Person<'_, 'a> {
    fn row(&self) -> [Value<'a>; 6] {
        let PersonBatch { download, join, opt_in, .. } = *self.batch;
        let first = self.batch.first();
        let [download, join, opt_in] =
            [download, join, opt_in].map(|signup| signup.map(|signup| signup.id.to_string()).into());
        let (email, at) = (first.map(|signup| signup.email.as_typed()), first.map(|signup| signup.at.unix_millis()));
        [self.address.into(), email.into(), at.into(), download, join, opt_in]
    }

    /// Whether the row would change.
    fn changes(&self) -> bool {
        let (Self { batch, .. }, Some(stored)) = (self, &self.stored) else { return true };
        (stored.first_download.is_none() && batch.download.is_some())
            || (stored.first_join.is_none() && batch.join.is_some())
            || (stored.opt_in.is_none() && batch.opt_in.is_some())
    }

    /// The opt-in, if it takes effect: if there was none.
    fn opt_in(&self) -> Option<&'a SignupRecord> {
        let current = self.stored.as_ref().and_then(|stored| stored.opt_in.as_deref());
        self.batch.opt_in.filter(|signup| current.is_none_or(|id| has_id(signup, id)))
    }

    fn is_new(&self) -> bool {
        self.known_before() == KnownBefore::default()
    }

    /// What was known before this batch, which may be a repeated one.
    fn known_before(&self) -> KnownBefore {
        let existed_before = |first: &Option<String>, ours: Option<&SignupRecord>| {
            first.as_ref().is_some_and(|id| !ours.is_some_and(|signup| has_id(signup, id)))
        };
        self.stored.as_ref().map_or_else(KnownBefore::default, |stored| KnownBefore {
            downloaded: existed_before(&stored.first_download, self.batch.download),
            joined: existed_before(&stored.first_join, self.batch.join),
        })
    }
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

fn has_id(signup: &SignupRecord, id: &str) -> bool {
    Uuid::parse_str(id) == Ok(signup.id)
}

fn integer(times: u64) -> i64 {
    i64::try_from(times).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use futures_util::poll;
    use sqlx::Connection;

    use super::*;
    use crate::domain::consent::Via;
    use crate::domain::email::EmailAddress;
    use crate::domain::time::Timestamp;
    use crate::store::{Database, Store};

    #[tokio::test]
    async fn a_batch_whose_caller_has_given_up_leaves_no_transaction_open() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open_for_writer(&Database::Sqlite(folder.path().join("porchlight.db"))).unwrap();
        store.migrate().await.unwrap();
        let Store::Sqlite(pool) = &store else { unreachable!("a SQLite database") };
        let join = SignupRecord {
            id: Uuid::nil(),
            kind: SignupKind::Join,
            email: EmailAddress::parse("ada@example.com").unwrap(),
            source: None,
            via: Via::Api,
            at: Timestamp::from_unix_millis(0),
        };
        let (mut kept, refused) = (KeptConnection::default(), RefusedSources::default());
        kept.keep(pool.acquire().await.unwrap());

        // The batch waits for the lock of another transaction, and begins when its caller has gone.
        let mut other = pool.acquire().await.unwrap();
        let lock = other.begin_with("BEGIN IMMEDIATE").await.unwrap();
        {
            let mut insert = std::pin::pin!(insert(pool, &mut kept, vec![(0, &join)], &refused));
            assert!(poll!(&mut insert).is_pending());
        }
        lock.rollback().await.unwrap();

        other.begin_with("BEGIN IMMEDIATE").await.unwrap().rollback().await.unwrap();
        let known = insert(pool, &mut kept, vec![(0, &join)], &refused).await.unwrap();
        assert_eq!(known, [Some(KnownBefore::default())], "nothing of the first batch was stored");
    }
}
