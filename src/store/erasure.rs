//! A person is erased, in one transaction, whoever writes of the same person at that moment.
//!
//! The person's row is held first, and made if there is none: whoever signs up meanwhile waits for the
//! end and finds nobody, so that no half of a person is left. What is kept are hashes: a suppression,
//! and the letter of the month that runs.

use serde_json::{Value, json};

use super::statement::{Statement, in_transaction, over_batch};
use super::unsubscribe::{SELECT_KEY, read_key};
use super::{Store, StoreFailure};
use crate::domain::email::EmailAddress;
use crate::domain::time::Timestamp;

/// How much there was to erase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Erased {
    pub events: u64,
    pub consents: u64,
    pub messages: u64,
    pub letters: u64,
}

/// How often it is tried when somebody else stands in the way.
const TRIES: usize = 5;

/// Before the person: whoever claims a recipient takes the two in this order.
const DELETE_LETTERS: &str = "DELETE FROM letter_recipients WHERE address = $1";

const HOLD_PERSON: &str = "INSERT INTO people (address, email, first_seen_at) VALUES ($1, $1, 0) \
     ON CONFLICT (address) DO UPDATE SET email = people.email";

const DELETE_EVENTS: &str = "DELETE FROM events WHERE address = $1";

const DELETE_WITHDRAWALS: &str = "DELETE FROM withdrawals WHERE address = $1";

const DELETE_CONSENTS: &str = "DELETE FROM consents WHERE address = $1";

/// Their places in the outbox go along.
const DELETE_MESSAGES: &str = "DELETE FROM messages WHERE address = $1 RETURNING id";

/// Of exactly those messages: the digest of one that comes at this moment stays with it.
const DELETE_DIGESTS: Statement = over_batch!(
    "DELETE FROM message_digests WHERE message IN (SELECT batch.id",
    (id text),
    ")"
);

const DELETE_OLD_MONTHS: &str = "DELETE FROM letter_months WHERE hash = $1 AND month <> $2";

/// The way out goes along, and a letter that was started at this moment.
const DELETE_PERSON: &str = "DELETE FROM people WHERE address = $1";

impl Store {
    /// Removes everything held of an address, but for what is kept as a hash.
    ///
    /// # Errors
    /// When the database does not answer: then nothing was erased.
    pub async fn erase(&self, email: &EmailAddress, at: Timestamp) -> Result<Erased, StoreFailure> {
        for _ in 1..TRIES {
            match self.try_to_erase(email, at).await {
                Err(EraseFailure::Database(error)) if StoreFailure::is_conflict(&error) => {}
                outcome => return Ok(outcome?),
            }
        }
        Ok(self.try_to_erase(email, at).await?)
    }

    async fn try_to_erase(&self, email: &EmailAddress, at: Timestamp) -> Result<Erased, EraseFailure> {
        let (address, month) = (email.key(), at.month());
        let erased = in_transaction!(self, |tx, words| {
            let letters = sqlx::query(DELETE_LETTERS).bind(address).execute(&mut *tx).await?.rows_affected();
            sqlx::query(HOLD_PERSON).bind(address).execute(&mut *tx).await?;
            let events = sqlx::query(DELETE_EVENTS).bind(address).execute(&mut *tx).await?.rows_affected();
            sqlx::query(DELETE_WITHDRAWALS).bind(address).execute(&mut *tx).await?;
            let consents = sqlx::query(DELETE_CONSENTS).bind(address).execute(&mut *tx).await?.rows_affected();
            let messages: Vec<(String,)> = sqlx::query_as(DELETE_MESSAGES).bind(address).fetch_all(&mut *tx).await?;
            let batch = messages.iter().map(|(id,)| json!({ "id": id })).collect::<Value>().to_string();
            sqlx::query(words(DELETE_DIGESTS)).bind(&batch).execute(&mut *tx).await?;
            let (key,): (String,) = sqlx::query_as(SELECT_KEY).fetch_one(&mut *tx).await?;
            let hash = read_key(&key)?.hash(email);
            sqlx::query(DELETE_OLD_MONTHS).bind(&hash).bind(&month).execute(&mut *tx).await?;
            sqlx::query(DELETE_PERSON).bind(address).execute(&mut *tx).await?;
            Erased { events, consents, messages: messages.len() as u64, letters }
        });
        Ok(erased)
    }
}

/// Kept as the database said it, to tell whether to try again.
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
