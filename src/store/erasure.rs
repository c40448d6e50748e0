//! Erases a person.
//!
//! A person may have thousands of downloads and messages. These are deleted in steps first, so that no other write waits for
//! long. The last transaction deletes the rest. After the letters (see [`DELETE_LETTERS`]), it locks the person's row, and
//! creates it if there is none: a concurrent signup waits for the commit and then creates a new person, so that nothing is
//! left half-erased. Three tables keep keyed hashes of the address: suppressions, the letter of the current month, and that
//! the address was asked to confirm an opt-in.

use super::delete_messages::{DeletedMessage, delete_messages};
use super::statement::{in_transaction, on_pool};
use super::steps::{StepFailure, Steps};
use super::{Store, StoreFailure};
use crate::domain::email::EmailAddress;
use crate::domain::limits;
use crate::domain::time::Timestamp;

/// The number of erased rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Erased {
    pub events: u64,
    pub consents: u64,
    pub messages: u64,
    pub letters: u64,
    /// The forms of the address that were stored.
    pub spellings: Vec<String>,
}

/// Runs before [`LOCK_PERSON`]: `claim_recipient` also locks the recipient row before the person, so the two cannot
/// deadlock.
const DELETE_LETTERS: &str = "DELETE FROM letter_recipients WHERE address = $1";

/// Locks the person's row.
const LOCK_PERSON: &str = "INSERT INTO people (address, email, first_seen_at) VALUES ($1, $1, 0) \
     ON CONFLICT (address) DO UPDATE SET email = people.email";

const DELETE_EVENTS: &str = "DELETE FROM events WHERE address = $1";

const DELETE_WITHDRAWALS: &str = "DELETE FROM withdrawals WHERE address = $1";

const DELETE_CONSENTS: &str = "DELETE FROM consents WHERE address = $1";

/// At most `$2` of the events, but not those that the person's row refers to.
const DELETE_SOME_EVENTS: &str = "DELETE FROM events WHERE id IN \
     (SELECT e.id FROM events e JOIN people p ON p.address = e.address WHERE e.address = $1 \
          AND e.id <> COALESCE(p.first_download, '') AND e.id <> COALESCE(p.first_join, '') LIMIT $2)";

/// At most `$2` of the messages.
const SELECT_SOME_MESSAGES: &str = "SELECT id FROM messages WHERE address = $1 LIMIT $2";

/// Cascades to the unsubscribe token, to a confirmation, and to the recipient row of a letter that was started concurrently.
const DELETE_PERSON: &str = "DELETE FROM people WHERE address = $1 RETURNING email";

impl Store {
    /// Deletes everything stored about an address, except what is stored under its hash.
    pub async fn erase(&self, email: &EmailAddress, at: Timestamp) -> Result<Erased, StoreFailure> {
        self.prune(at).await?;
        let (mut erased, mut steps) = (Erased::default(), Steps::default());
        while steps.should_repeat(self.erase_events(email, &mut erased).await)? {}
        while steps.should_repeat(self.erase_messages(email, &mut erased).await)? {}
        while steps.should_repeat(self.erase_rest(email, &mut erased).await)? {}
        Ok(erased)
    }

    async fn erase_events(&self, email: &EmailAddress, erased: &mut Erased) -> Result<u64, StepFailure> {
        let events = on_pool!(self, |pool| sqlx::query(DELETE_SOME_EVENTS)
            .bind(email.key())
            .bind(limits::MAX_ROWS_PER_STEP)
            .execute(pool)
            .await?
            .rows_affected());
        erased.events += events;
        Ok(events)
    }

    async fn erase_messages(&self, email: &EmailAddress, erased: &mut Erased) -> Result<u64, StepFailure> {
        let deleted = in_transaction!(self, |tx, sql| {
            let ids: Vec<String> = sqlx::query_scalar(SELECT_SOME_MESSAGES)
                .bind(email.key())
                .bind(limits::MAX_ROWS_PER_STEP)
                .fetch_all(&mut *tx)
                .await?;
            delete_messages!(tx, sql, ids)
        });
        Ok(erased.add_messages(deleted))
    }

    /// Deletes everything that is left, in one transaction.
    async fn erase_rest(&self, email: &EmailAddress, erased: &mut Erased) -> Result<u64, StepFailure> {
        let address = email.key();
        let (rest, messages, spelling) = in_transaction!(self, |tx, sql| {
            let letters = sqlx::query(DELETE_LETTERS).bind(address).execute(&mut *tx).await?.rows_affected();
            sqlx::query(LOCK_PERSON).bind(address).execute(&mut *tx).await?;
            let events = sqlx::query(DELETE_EVENTS).bind(address).execute(&mut *tx).await?.rows_affected();
            sqlx::query(DELETE_WITHDRAWALS).bind(address).execute(&mut *tx).await?;
            let consents = sqlx::query(DELETE_CONSENTS).bind(address).execute(&mut *tx).await?.rows_affected();
            let ids: Vec<String> =
                sqlx::query_scalar(SELECT_SOME_MESSAGES).bind(address).bind(i64::MAX).fetch_all(&mut *tx).await?;
            let messages = delete_messages!(tx, sql, ids);
            let spelling: Vec<(String,)> = sqlx::query_as(DELETE_PERSON).bind(address).fetch_all(&mut *tx).await?;
            (Erased { events, consents, letters, ..Erased::default() }, messages, spelling)
        });
        erased.events += rest.events;
        erased.consents += rest.consents;
        erased.letters += rest.letters;
        erased.add_messages(messages);
        erased.spellings.extend(spelling.into_iter().map(|(email,)| email));
        Ok(0)
    }
}

impl Erased {
    /// Returns the number of messages.
    fn add_messages(&mut self, deleted: Vec<DeletedMessage>) -> u64 {
        let count = deleted.len() as u64;
        self.messages += count;
        self.spellings.extend(deleted.into_iter().map(|(_, _, email, ..)| email));
        self.spellings.sort_unstable();
        self.spellings.dedup();
        count
    }
}
