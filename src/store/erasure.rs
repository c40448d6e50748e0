//! Erases a person in one transaction.
//!
//! After the letters (see [`DELETE_LETTERS`]), the person's row is locked, and created if there is none: a concurrent
//! signup waits for the commit and then creates a new person, so that nothing is left half-erased. Two tables keep keyed
//! hashes of the address: suppressions, and the letter of the current month.

use serde_json::{Value, json};

use super::statement::{Statement, batch_statement, in_transaction};
use super::unsubscribe::{SELECT_HASH_KEY, parse_hash_key};
use super::{Store, StoreFailure};
use crate::domain::email::EmailAddress;
use crate::domain::time::Timestamp;

/// The number of erased rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Erased {
    pub events: u64,
    pub consents: u64,
    pub messages: u64,
    pub letters: u64,
}

/// Attempts at a transaction that conflicts with another one.
const MAX_ATTEMPTS: usize = 5;

/// Runs before [`LOCK_PERSON`]: `claim_recipient` also locks the recipient row before the person, so the two cannot
/// deadlock.
const DELETE_LETTERS: &str = "DELETE FROM letter_recipients WHERE address = $1";

/// Locks the person's row.
const LOCK_PERSON: &str = "INSERT INTO people (address, email, first_seen_at) VALUES ($1, $1, 0) \
     ON CONFLICT (address) DO UPDATE SET email = people.email";

const DELETE_EVENTS: &str = "DELETE FROM events WHERE address = $1";

const DELETE_WITHDRAWALS: &str = "DELETE FROM withdrawals WHERE address = $1";

const DELETE_CONSENTS: &str = "DELETE FROM consents WHERE address = $1";

/// Cascades to the outbox.
const DELETE_MESSAGES: &str = "DELETE FROM messages WHERE address = $1 RETURNING id";

/// Only of the deleted messages: a message that arrives concurrently keeps its hash.
const DELETE_CONTENT_HASHES: Statement = batch_statement!(
    "DELETE FROM message_digests WHERE message IN (SELECT batch.id",
    (id text),
    ")"
);

const DELETE_OLD_MONTHS: &str = "DELETE FROM letter_months WHERE hash = $1 AND month <> $2";

/// Cascades to the unsubscribe token, and to the recipient row of a letter that was started concurrently.
const DELETE_PERSON: &str = "DELETE FROM people WHERE address = $1";

impl Store {
    /// Deletes everything stored about an address, except what is stored under its hash.
    ///
    /// # Errors
    /// When the database is unavailable: nothing was erased.
    pub async fn erase(&self, email: &EmailAddress, at: Timestamp) -> Result<Erased, StoreFailure> {
        for _ in 1..MAX_ATTEMPTS {
            match self.try_erase(email, at).await {
                Err(EraseFailure::Database(error)) if StoreFailure::is_conflict(&error) => {}
                result => return Ok(result?),
            }
        }
        Ok(self.try_erase(email, at).await?)
    }

    async fn try_erase(&self, email: &EmailAddress, at: Timestamp) -> Result<Erased, EraseFailure> {
        let (address, month) = (email.key(), at.month());
        let erased = in_transaction!(self, |tx, sql| {
            let letters = sqlx::query(DELETE_LETTERS).bind(address).execute(&mut *tx).await?.rows_affected();
            sqlx::query(LOCK_PERSON).bind(address).execute(&mut *tx).await?;
            let events = sqlx::query(DELETE_EVENTS).bind(address).execute(&mut *tx).await?.rows_affected();
            sqlx::query(DELETE_WITHDRAWALS).bind(address).execute(&mut *tx).await?;
            let consents = sqlx::query(DELETE_CONSENTS).bind(address).execute(&mut *tx).await?.rows_affected();
            let messages: Vec<(String,)> = sqlx::query_as(DELETE_MESSAGES).bind(address).fetch_all(&mut *tx).await?;
            let batch = messages.iter().map(|(id,)| json!({ "id": id })).collect::<Value>().to_string();
            sqlx::query(sql(DELETE_CONTENT_HASHES)).bind(&batch).execute(&mut *tx).await?;
            let (key,): (String,) = sqlx::query_as(SELECT_HASH_KEY).fetch_one(&mut *tx).await?;
            let hash = parse_hash_key(&key)?.hash(email);
            sqlx::query(DELETE_OLD_MONTHS).bind(&hash).bind(&month).execute(&mut *tx).await?;
            sqlx::query(DELETE_PERSON).bind(address).execute(&mut *tx).await?;
            Erased { events, consents, messages: messages.len() as u64, letters }
        });
        Ok(erased)
    }
}

/// Keeps the error of sqlx, which tells whether the transaction may be repeated.
enum EraseFailure {
    Database(sqlx::Error),
    Store(StoreFailure),
}

impl From<sqlx::Error> for EraseFailure {
    fn from(error: sqlx::Error) -> Self {
        Self::Database(error)
    }
}

impl From<StoreFailure> for EraseFailure {
    fn from(failure: StoreFailure) -> Self {
        Self::Store(failure)
    }
}

impl From<EraseFailure> for StoreFailure {
    fn from(failure: EraseFailure) -> Self {
        match failure {
            EraseFailure::Database(error) => error.into(),
            EraseFailure::Store(failure) => failure,
        }
    }
}
