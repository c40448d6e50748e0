//! Erases a person.
//!
//! A person may have thousands of downloads and messages. These are deleted in steps first, so that no other write waits for
//! long. The last transaction deletes the rest. After the letters (see [`DELETE_LETTERS`]), it locks the person's row, and
//! creates it if there is none: a concurrent signup waits for the commit and then creates a new person, so that nothing is
//! left half-erased. Three tables keep keyed hashes of the address: suppressions, the letter of the current month, and that
//! the address was asked to confirm an opt-in.
//!
//! Deleted rows are overwritten in SQLite (`secure_delete`), but unused parts of pages may hold older copies of them, and so
//! do the files of PostgreSQL. [`Store::vacuum`] clears those.

use std::collections::BTreeSet;
use std::time::Duration;

use sqlx::{Executor, SqlitePool};

use crate::domain::letters::RecipientState;
use crate::domain::limits;
use crate::domain::mail::EmailAddress;
use crate::domain::time::Timestamp;
use crate::store::connection::{Statement, Store, StoreFailure, values};
use crate::store::letters::CountChange;

/// The number of erased rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Erased {
    pub signups: u64,
    pub consents: u64,
    pub messages: u64,
    pub letters: u64,
    /// Whether the WAL of SQLite may still hold the erased data, because another process is reading it.
    pub is_left_in_wal: bool,
}

/// Runs before [`LOCK_PERSON`]: `claim_recipient` also locks the recipient row before the person, so the two cannot
/// deadlock.
const DELETE_LETTERS: &str = "DELETE FROM letter_recipients WHERE address = $1 RETURNING letter, state, bounce";

/// Locks the person's row.
const LOCK_PERSON: &str = "INSERT INTO people (address, email, first_seen_at) VALUES ($1, $1, 0) \
     ON CONFLICT (address) DO UPDATE SET email = people.email";

/// From now on no letter can get the person as a recipient. One that started concurrently may have.
const LOCK_REFERENCES: Statement =
    Statement { sqlite: "SELECT $1", postgres: "SELECT address FROM people WHERE address = $1 FOR UPDATE" };

const DELETE_SIGNUPS: &str = "DELETE FROM signups WHERE address = $1";

const DELETE_WITHDRAWALS: &str = "DELETE FROM withdrawals WHERE address = $1";

const DELETE_CONSENTS: &str = "DELETE FROM consents WHERE address = $1";

/// The counts of sources that on their day came from this person alone, who may have typed something personal. What happened stays
/// counted, as without a source.
const DELETE_SOURCES: &str = "DELETE FROM sources WHERE (day, source, downloads, joins) IN \
     (SELECT at / 86400000, source, COUNT(CASE kind WHEN 'download' THEN 1 END), COUNT(CASE kind WHEN 'join' THEN 1 END) \
      FROM signups WHERE address = $1 AND source IS NOT NULL GROUP BY at / 86400000, source)";

/// At most `$2` of the signups, but not those that the person's row refers to.
const DELETE_SOME_SIGNUPS: &str = "DELETE FROM signups WHERE address = $1 AND id IN \
     (SELECT s.id FROM signups s JOIN people p ON p.address = s.address WHERE s.address = $1 \
          AND s.id <> COALESCE(p.first_download, '') AND s.id <> COALESCE(p.first_join, '') LIMIT $2)";

/// At most `$2` of the messages.
const SELECT_SOME_MESSAGES: &str = "SELECT id FROM messages WHERE address = $1 LIMIT $2";

/// The mail of an opt-in that waits for its confirmation.
const DELETE_CONFIRMATION_MAIL: &str =
    "DELETE FROM outbox WHERE id IN (SELECT consent FROM confirmations WHERE address = $1)";

/// Cascades to the unsubscribe token and to a confirmation.
const DELETE_PERSON: &str = "DELETE FROM people WHERE address = $1";

/// How often it is tried to truncate the WAL, which has to wait for readers and blocks writers, so each attempt is short; and how
/// often PostgreSQL is asked whether earlier transactions have ended.
const MAX_ATTEMPTS: usize = 10;
const RETRY_DELAY: Duration = Duration::from_millis(150);

/// The tables with rows about people. A plain `VACUUM` would leave bytes in tables and indexes.
const VACUUM_TABLES: &str = "VACUUM (FULL, ANALYZE) people, signups, consents, withdrawals, confirmations, messages, \
     message_hashes, outbox, unsubscribe_tokens, letter_recipients, letter_months, asked_mailboxes, sources";

/// The other transactions for which `VACUUM FULL` keeps the rows that were deleted after they began: those of this database, those
/// of connections that are being opened, which belong to no database yet, and those of any database that have written, because
/// every snapshot in the cluster begins with the oldest of them.
const RUNNING_TRANSACTIONS: &str = "SELECT l.virtualtransaction FROM pg_locks l LEFT JOIN pg_stat_activity a ON a.pid = l.pid \
     WHERE l.locktype = 'virtualxid' AND l.pid <> pg_backend_pid() \
         AND (COALESCE(a.datname, current_database()) = current_database() OR a.backend_xid IS NOT NULL)";

/// The owner of a table or of the database may vacuum it. For others PostgreSQL only logs a warning.
const MAY_VACUUM: &str = "SELECT pg_has_role(relowner, 'USAGE') OR \
         (SELECT pg_has_role(datdba, 'USAGE') FROM pg_database WHERE datname = current_database()) \
     FROM pg_class WHERE oid = 'people'::regclass";

impl Store {
    /// Deletes everything stored about an address, except what is stored under its hash.
    pub async fn erase(&self, email: &EmailAddress, at: Timestamp) -> Result<Erased, StoreFailure> {
        self.prune_message_hashes(at).await?;
        self.prune_letter_months(at).await?;
        let (mut erased, mut steps) = (Erased::default(), self.steps());
        while steps.should_repeat(self.run(DELETE_SOURCES, values![email.key()]).await.map(|_| 0)).await? {}
        while steps.should_repeat(self.erase_signups(email, &mut erased).await).await? {}
        while steps.should_repeat(self.erase_messages(email, &mut erased).await).await? {}
        while steps.should_repeat(self.erase_rest(email, &mut erased).await).await? {}
        erased.is_left_in_wal = !self.truncate_wal().await?;
        Ok(erased)
    }

    async fn erase_signups(&self, email: &EmailAddress, erased: &mut Erased) -> Result<u64, StoreFailure> {
        let deleted = self.run(DELETE_SOME_SIGNUPS, values![email.key(), limits::MAX_ROWS_PER_STEP]).await?.affected;
        erased.signups += deleted;
        Ok(deleted)
    }

    async fn erase_messages(&self, email: &EmailAddress, erased: &mut Erased) -> Result<u64, StoreFailure> {
        let mut tx = self.begin().await?;
        let some = tx.run(SELECT_SOME_MESSAGES, values![email.key(), limits::MAX_ROWS_PER_STEP]).await?;
        let deleted = tx.delete_messages(&some.column()?).await?;
        tx.commit().await?;
        erased.messages += deleted;
        Ok(deleted)
    }

    /// Deletes everything that is left, in one transaction.
    async fn erase_rest(&self, email: &EmailAddress, erased: &mut Erased) -> Result<u64, StoreFailure> {
        let address = values![email.key()];
        let mut tx = self.begin().await?;
        let mut letters: Vec<(String, String, Option<String>)> = tx.run(DELETE_LETTERS, address).await?.all()?;
        tx.run(LOCK_PERSON, address).await?;
        tx.run(LOCK_REFERENCES, address).await?;
        letters.extend(tx.run(DELETE_LETTERS, address).await?.all()?);
        letters.sort_unstable();
        let signups = tx.run(DELETE_SIGNUPS, address).await?.affected;
        tx.run(DELETE_WITHDRAWALS, address).await?;
        let consents = tx.run(DELETE_CONSENTS, address).await?.affected;
        let rest = tx.run(SELECT_SOME_MESSAGES, values![email.key(), i64::MAX]).await?;
        let messages = tx.delete_messages(&rest.column()?).await?;
        tx.run(DELETE_CONFIRMATION_MAIL, address).await?;
        tx.run(DELETE_PERSON, address).await?;
        for (letter, state, bounce) in &letters {
            let Some(state) = RecipientState::parse(state) else { continue };
            let mut change = CountChange::of_bounced(-i64::from(bounce.is_some()));
            change.add(state, -1);
            tx.count_recipients(letter, &change).await?;
        }
        tx.commit().await?;
        erased.letters += letters.len() as u64;
        erased.signups += signups;
        erased.consents += consents;
        erased.messages += messages;
        Ok(0)
    }

    /// Copies what is stored to new files, without what deleted rows left in the old ones. Writes have to wait meanwhile. Fails if
    /// a transaction that began before does not end, because the database keeps what that may read.
    pub async fn vacuum(&self) -> Result<(), StoreFailure> {
        let still_read = || {
            let why = "another transaction may still read what was erased, perhaps a backup";
            Err(StoreFailure::Unusable(why.to_owned()))
        };
        match self {
            Self::Sqlite(pool) => {
                pool.execute("VACUUM").await?;
                if !truncate_wal(pool).await? {
                    return still_read();
                }
            }
            Self::Postgres(pool) => {
                if !self.run(MAY_VACUUM, &[]).await?.one::<(bool,)>()?.0 {
                    let why = "the role of `database_url` owns neither the tables nor the database";
                    return Err(StoreFailure::Unusable(why.to_owned()));
                }
                // Twice: a snapshot that was made during the first wait may have begun with one of the transactions it waited for.
                for _ in 0..2 {
                    if !self.earlier_transactions_end().await? {
                        return still_read();
                    }
                }
                pool.execute_long(VACUUM_TABLES).await?;
            }
        }
        Ok(())
    }

    /// PostgreSQL alone: waits for the transactions that are running now. Returns `false` if they take too long.
    async fn earlier_transactions_end(&self) -> Result<bool, StoreFailure> {
        let running = async || self.run(RUNNING_TRANSACTIONS, &[]).await?.column::<String>();
        let mut earlier: BTreeSet<_> = running().await?.into_iter().collect();
        for _ in 0..MAX_ATTEMPTS {
            if earlier.is_empty() {
                return Ok(true);
            }
            tokio::time::sleep(RETRY_DELAY).await;
            let still_running = running().await?;
            earlier.retain(|transaction| still_running.contains(transaction));
        }
        Ok(earlier.is_empty())
    }

    /// Truncates the WAL of SQLite. Returns `false` if readers prevented it.
    async fn truncate_wal(&self) -> Result<bool, StoreFailure> {
        let Self::Sqlite(pool) = self else { return Ok(true) };
        Ok(truncate_wal(pool).await?)
    }
}

async fn truncate_wal(pool: &SqlitePool) -> Result<bool, sqlx::Error> {
    let mut connection = pool.acquire().await?.detach();
    connection.execute("PRAGMA busy_timeout = 100").await?;
    for _ in 0..MAX_ATTEMPTS {
        // Does most of the work without blocking writers.
        connection.execute("PRAGMA wal_checkpoint(PASSIVE)").await?;
        let (busy, _, _): (i64, i64, i64) =
            sqlx::query_as("PRAGMA wal_checkpoint(TRUNCATE)").fetch_one(&mut connection).await?;
        if busy == 0 {
            return Ok(true);
        }
        tokio::time::sleep(RETRY_DELAY).await;
    }
    Ok(false)
}
