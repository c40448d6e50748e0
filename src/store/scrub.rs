//! Removes what is left of deleted rows in the files of the database, while the service uses it.
//!
//! In SQLite, `secure_delete` overwrites deleted rows, but not older copies of them: those in unused parts of pages, from
//! when a row was moved to another page, and those in the WAL. `VACUUM` would remove them, but it blocks all writes while
//! it copies the whole file. So the pages are read, which blocks nobody, the unused parts of those that have a copy are
//! overwritten in short transactions, and the WAL is truncated by short attempts.

mod page;

use std::time::Duration;

use sqlx::{Connection, Executor, SqliteConnection, SqlitePool};

use self::page::{clear_unused_parts, is_in_unused_parts};
use super::Store;
use super::postgres_pool::PostgresPool;
use crate::domain::email::EmailAddress;

/// Truncating the WAL has to wait for readers and blocks writers, so each attempt is short.
const MAX_ATTEMPTS: usize = 20;
const SET_ATTEMPT_TIMEOUT: &str = "PRAGMA busy_timeout = 100";
const RETRY_DELAY: Duration = Duration::from_millis(150);

/// How often the file is searched for copies. Two searches do where nobody writes meanwhile.
const MAX_SEARCHES: usize = 20;
/// Pages that one statement reads, and that one transaction overwrites.
const PAGES_PER_READ: i64 = 256;
const PAGES_PER_WRITE: usize = 16;

/// The table function `sqlite_dbpage` has to be compiled in, see `.cargo/config.toml`.
const SELECT_PAGES: &str = "WITH RECURSIVE numbers(number) AS \
         (SELECT $1 UNION ALL SELECT number + 1 FROM numbers WHERE number < $2) \
     SELECT number, data FROM numbers JOIN sqlite_dbpage ON pgno = number";

const UPDATE_PAGE: &str = "UPDATE sqlite_dbpage SET data = $2 WHERE pgno = $1";

/// In databases with more pages, an overflow page could look like one of a b-tree.
const MAX_PAGES: i64 = 1 << 24;

/// The tables from which an erasure deletes rows.
const VACUUM_TABLES: &str = "VACUUM (TRUNCATE FALSE) people, events, consents, withdrawals, messages, outbox, \
                             message_digests, unsubscribe_tokens, letter_recipients, letter_months";

/// The owner of a table or of the database may vacuum it.
const MAY_VACUUM: &str = "SELECT pg_has_role(relowner, 'USAGE') OR \
         (SELECT pg_has_role(datdba, 'USAGE') FROM pg_database WHERE datname = current_database()) \
     FROM pg_class WHERE oid = 'people'::regclass";

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScrubOutcome {
    /// SQLite: nothing is left in the database file and the WAL.
    Clean,
    /// Readers kept the WAL from being truncated. Deleted data stays there until it is overwritten or
    /// the database is closed.
    LeftInWal,
    /// The file could not be searched or overwritten. Deleted data may be left in it.
    LeftInFile(String),
    /// PostgreSQL: the tables were vacuumed.
    Vacuumed,
    /// PostgreSQL: deleted data is left until the next vacuum.
    NotVacuumed(String),
}

impl Store {
    /// Removes what is left of a deleted person. `spellings` are all forms of the address that were stored.
    pub async fn scrub_deleted(&self, email: &EmailAddress, spellings: &[String]) -> ScrubOutcome {
        let known = [email.key(), email.as_typed()].into_iter().chain(spellings.iter().map(String::as_str));
        let needles: Vec<Vec<u8>> = known.map(|text| text.to_ascii_lowercase().into_bytes()).collect();
        match self {
            Self::Sqlite(pool) => match scrub(pool, &needles).await {
                Ok(true) => ScrubOutcome::Clean,
                Ok(false) => ScrubOutcome::LeftInWal,
                Err(why) => ScrubOutcome::LeftInFile(why.to_string()),
            },
            Self::Postgres(pool) => match vacuum(pool).await {
                Ok(()) => ScrubOutcome::Vacuumed,
                Err(why) => ScrubOutcome::NotVacuumed(why.to_string()),
            },
        }
    }
}

/// Plain `VACUUM` blocks neither reads nor writes. Without permission it only warns, so that is checked first.
async fn vacuum(pool: &PostgresPool) -> Result<(), sqlx::Error> {
    let (is_permitted,): (bool,) = sqlx::query_as(MAY_VACUUM).fetch_one(pool).await?;
    if !is_permitted {
        return Err(sqlx::Error::Protocol("the role owns neither the tables nor the database".to_owned()));
    }
    pool.execute(VACUUM_TABLES).await.map(drop)
}

/// Returns `false` if the WAL could not be truncated.
async fn scrub(pool: &SqlitePool, needles: &[Vec<u8>]) -> Result<bool, sqlx::Error> {
    let mut connection = pool.acquire().await?.detach();
    overwrite_copies(&mut connection, needles).await?;
    let truncated = truncate_wal(&mut connection).await?;
    connection.close().await?;
    Ok(truncated)
}

/// Overwrites the unused parts of all pages that have one of the texts there. Rows of others that contain such a text,
/// such as a longer address, are not changed.
///
/// No new copies can appear, because the rows are deleted. But a concurrent write may move one to another page when it
/// balances a b-tree. So the file is searched again until it has none.
async fn overwrite_copies(connection: &mut SqliteConnection, needles: &[Vec<u8>]) -> Result<(), sqlx::Error> {
    let (auto_vacuum,): (i64,) = sqlx::query_as("PRAGMA auto_vacuum").fetch_one(&mut *connection).await?;
    if auto_vacuum != 0 {
        // Its pointer-map pages may start like the page of a b-tree.
        return Err(sqlx::Error::Protocol("auto_vacuum is on".to_owned()));
    }
    for _ in 0..MAX_SEARCHES {
        let pages = pages_with_copies(connection, needles).await?;
        if pages.is_empty() {
            return Ok(());
        }
        for pages in pages.chunks(PAGES_PER_WRITE) {
            clear_pages(connection, pages).await?;
        }
    }
    Err(sqlx::Error::Protocol("other writes moved it from page to page meanwhile".to_owned()))
}

/// Returns the numbers of the pages that have one of the texts in an unused part. Reads all pages in one transaction,
/// so that none is missed because it was moved meanwhile.
async fn pages_with_copies(connection: &mut SqliteConnection, needles: &[Vec<u8>]) -> Result<Vec<i64>, sqlx::Error> {
    let mut transaction = connection.begin().await?;
    let (pages,): (i64,) = sqlx::query_as("PRAGMA page_count").fetch_one(&mut *transaction).await?;
    if pages >= MAX_PAGES {
        return Err(sqlx::Error::Protocol("the file is too large".to_owned()));
    }
    let (mut found, mut first) = (Vec::new(), 1);
    while first <= pages {
        let last = pages.min(first + PAGES_PER_READ - 1);
        let read = read_pages(&mut transaction, first, last).await?;
        let with_copy = read.into_iter().filter(|(number, page)| is_in_unused_parts(page, *number, needles));
        found.extend(with_copy.map(|(number, _)| number));
        first = last + 1;
    }
    transaction.commit().await?;
    Ok(found)
}

/// Clears the unused parts of a few pages in one transaction.
async fn clear_pages(connection: &mut SqliteConnection, pages: &[i64]) -> Result<(), sqlx::Error> {
    let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await?;
    for number in pages {
        for (_, mut page) in read_pages(&mut transaction, *number, *number).await? {
            clear_unused_parts(&mut page, *number);
            sqlx::query(UPDATE_PAGE).bind(number).bind(page).execute(&mut *transaction).await?;
        }
    }
    transaction.commit().await
}

/// Returns pages with their numbers.
async fn read_pages(
    connection: &mut SqliteConnection,
    first: i64,
    last: i64,
) -> Result<Vec<(i64, Vec<u8>)>, sqlx::Error> {
    sqlx::query_as(SELECT_PAGES).bind(first).bind(last).fetch_all(connection).await
}

/// Checkpoints and truncates the WAL. Returns `false` if readers prevented it.
async fn truncate_wal(connection: &mut SqliteConnection) -> Result<bool, sqlx::Error> {
    connection.execute(SET_ATTEMPT_TIMEOUT).await?;
    for _ in 0..MAX_ATTEMPTS {
        // Does most of the work without blocking writers.
        connection.execute("PRAGMA wal_checkpoint(PASSIVE)").await?;
        let (busy, _, _): (i64, i64, i64) =
            sqlx::query_as("PRAGMA wal_checkpoint(TRUNCATE)").fetch_one(&mut *connection).await?;
        if busy == 0 {
            return Ok(true);
        }
        tokio::time::sleep(RETRY_DELAY).await;
    }
    Ok(false)
}
