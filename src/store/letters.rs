//! Monthly letters: the recipients of each, and how many are in which state.

use serde_json::{Value, json};

use super::recipients::{SELECT_SUPPRESSED, SELECT_WITH_TOKEN, read_recipients};
use super::statement::{Statement, batch_statement, in_transaction, on_pool};
use super::{Store, StoreFailure};
use crate::domain::email::EmailAddress;
use crate::domain::letter::{Letter, LetterCounts};
use crate::domain::sha256::Sha256;
use crate::domain::time::Timestamp;

/// A letter that has been started.
#[derive(Clone, Debug)]
pub struct StartedLetter {
    pub id: String,
    pub subject: String,
    pub started_at: Timestamp,
    pub counts: LetterCounts,
}

const INSERT_LETTER: &str = "INSERT INTO letters (id, subject, started_at) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING";

const INSERT_RECIPIENTS: Statement = batch_statement!(
    "INSERT INTO letter_recipients (letter, address, state, at, tries) SELECT $2, batch.address, 'waiting', batch.at, 0",
    (address text, at bigint),
    "AND batch.address IN (SELECT address FROM people) ORDER BY batch.address ON CONFLICT DO NOTHING"
);

/// How far apart recipients may be in the order of a letter, in milliseconds.
const ORDER_PERIOD: i64 = 3_600_000;

/// A new run of the command retries deferred recipients at once.
const END_DEFERRALS: &str =
    "UPDATE letter_recipients SET at = $2, tries = 0 WHERE letter = $1 AND state = 'waiting' AND at > $2";

const SELECT_LETTERS: &str = "SELECT id, subject, started_at FROM letters ORDER BY started_at DESC, id";

const SELECT_LETTER: &str = "SELECT id, subject, started_at FROM letters WHERE id = $1";

const SELECT_LATEST_LETTER: &str = "SELECT id, subject, started_at FROM letters ORDER BY started_at DESC, id LIMIT 1";

const COUNT_RECIPIENTS: &str =
    "SELECT state, COUNT(*), COUNT(bounce) FROM letter_recipients WHERE letter = $1 GROUP BY state";

const COUNT_STATES: &str = "SELECT letter, state, COUNT(*), COUNT(bounce) FROM letter_recipients GROUP BY letter, state ORDER BY letter, state";

/// Id, subject, when it was started.
type LetterRow = (String, String, i64);

impl Store {
    /// Records everyone who gets the letter now and has an unsubscribe token, in one transaction. If the letter was started
    /// before, its recipients stay and deferred ones become due.
    ///
    /// Each recipient is due since another moment of the hour before, which depends on the letter and a secret key. So nobody
    /// who signs up with many addresses chooses which of them come first, or one after another.
    pub async fn start_letter(&self, letter: &Letter, at: Timestamp) -> Result<(), StoreFailure> {
        let (id, at) = (letter.id.hex(), at.unix_millis());
        let key = self.address_hash_key().await?;
        in_transaction!(self, |tx, sql| {
            let new = sqlx::query(INSERT_LETTER).bind(&id).bind(&letter.subject).bind(at).execute(&mut *tx).await?;
            if new.rows_affected() > 0 {
                let (suppressed, mut after) = (sql(SELECT_SUPPRESSED), String::new());
                while let Some(page) = read_recipients!(&mut *tx, SELECT_WITH_TOKEN, suppressed, &key, &after) {
                    let batch =
                        recipients_batch(&page.people, |email| at - key.position(&letter.id, email) % ORDER_PERIOD);
                    sqlx::query(sql(INSERT_RECIPIENTS)).bind(&batch).bind(&id).execute(&mut *tx).await?;
                    after = page.last;
                }
            } else {
                sqlx::query(END_DEFERRALS).bind(&id).bind(at).execute(&mut *tx).await?;
            }
        });
        Ok(())
    }

    /// Returns a letter, if it has been started. Counts its own recipients alone.
    pub async fn letter(&self, id: &Sha256) -> Result<Option<StartedLetter>, StoreFailure> {
        let id = id.hex();
        let letter: Option<LetterRow> =
            on_pool!(self, |pool| sqlx::query_as(SELECT_LETTER).bind(&id).fetch_optional(pool).await?);
        self.with_counts(letter).await
    }

    /// Returns the letter that was started last.
    pub async fn latest_letter(&self) -> Result<Option<StartedLetter>, StoreFailure> {
        let letter: Option<LetterRow> =
            on_pool!(self, |pool| sqlx::query_as(SELECT_LATEST_LETTER).fetch_optional(pool).await?);
        self.with_counts(letter).await
    }

    async fn with_counts(&self, letter: Option<LetterRow>) -> Result<Option<StartedLetter>, StoreFailure> {
        let Some((id, subject, started_at)) = letter else { return Ok(None) };
        let rows: Vec<(String, i64, i64)> =
            on_pool!(self, |pool| sqlx::query_as(COUNT_RECIPIENTS).bind(&id).fetch_all(pool).await?);
        let mut counts = LetterCounts::default();
        for (state, count, bounced) in rows {
            counts.add(&state, count, bounced);
        }
        Ok(Some(StartedLetter { id, subject, started_at: Timestamp::from_unix_millis(started_at), counts }))
    }

    /// Returns every letter that has been started, newest first.
    pub async fn letters(&self) -> Result<Vec<StartedLetter>, StoreFailure> {
        let letters: Vec<LetterRow> = on_pool!(self, |pool| sqlx::query_as(SELECT_LETTERS).fetch_all(pool).await?);
        let rows: Vec<(String, String, i64, i64)> =
            on_pool!(self, |pool| sqlx::query_as(COUNT_STATES).fetch_all(pool).await?);
        let started = letters.into_iter().map(|(id, subject, started_at)| {
            let mut counts = LetterCounts::default();
            for (_, state, count, bounced) in rows.iter().filter(|(letter, ..)| *letter == id) {
                counts.add(state, *count, *bounced);
            }
            StartedLetter { id, subject, started_at: Timestamp::from_unix_millis(started_at), counts }
        });
        Ok(started.collect())
    }
}

/// The parameter of [`INSERT_RECIPIENTS`].
fn recipients_batch(people: &[EmailAddress], due: impl Fn(&EmailAddress) -> i64) -> String {
    people.iter().map(|email| json!({ "address": email.key(), "at": due(email) })).collect::<Value>().to_string()
}

impl LetterCounts {
    fn add(&mut self, state: &str, count: i64, bounced: i64) {
        let [count, bounced] = [count, bounced].map(|count| u64::try_from(count).unwrap_or_default());
        let count_of_state = match state {
            "sent" => &mut self.sent,
            "waiting" => &mut self.waiting,
            "uncertain" => &mut self.uncertain,
            "refused" => &mut self.refused,
            _ => &mut self.skipped,
        };
        *count_of_state += count;
        self.recipients += count;
        if matches!(state, "sent" | "uncertain") {
            self.bounced += bounced;
        }
    }
}
