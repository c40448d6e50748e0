//! Who would get a letter that is sent now: what `store/letters/claims.rs` decides for each recipient, for all of them and without changing
//! anything. People are read in pages, so that the time depends on their number alone.

use std::collections::HashSet;
use std::hash::{BuildHasher as _, RandomState};

use super::recipients::PAGE_SIZE;
use crate::domain::letters::LetterForecast;
use crate::domain::mail::EmailAddress;
use crate::domain::sha256::Sha256;
use crate::domain::time::Timestamp;
use crate::store::connection::{BatchStatement, Statement, Store, StoreFailure, values};

/// As [`recipients_page`](Store::recipients_page) reads them.
const SELECT_OPTED_IN: &str = "SELECT p.address, p.email, p.opt_in FROM people p JOIN consents c ON c.id = p.opt_in \
     WHERE p.address > $1 ORDER BY p.address LIMIT $2";

macro_rules! select_waiting {
    ($state:literal) => {
        concat!(
            "SELECT p.address, p.email, p.opt_in FROM letter_recipients r JOIN people p ON p.address = r.address \
             WHERE r.letter = $3 AND ",
            $state,
            " = 'waiting' AND r.address > $1 AND p.address > $1 ORDER BY r.address LIMIT $2"
        )
    };
}

/// SQLite would otherwise sort all that wait for each page, and PostgreSQL read all people before it.
const SELECT_WAITING: Statement =
    Statement { sqlite: select_waiting!("+r.state"), postgres: select_waiting!("r.state") };

const SELECT_ANY_OF_MONTH: &str = "SELECT CAST(1 AS BIGINT) FROM letter_months WHERE month = $1 LIMIT 1";

const SELECT_HAD_LETTER: BatchStatement = BatchStatement::new(
    "hash text, month text",
    "SELECT batch.hash FROM batch JOIN letter_months m ON m.hash = batch.hash AND m.month = batch.month",
);

impl Store {
    /// Counts those whom a letter would go to: the people with a current opt-in or, once it was started, the recipients that wait.
    pub async fn letter_forecast(
        &self,
        started: Option<&Sha256>,
        now: Timestamp,
    ) -> Result<LetterForecast, StoreFailure> {
        let (key, month, hasher) = (self.address_hash_key().await?, now.month(), RandomState::new());
        let any_had_letter = !self.run(SELECT_ANY_OF_MONTH, values![&month]).await?.column::<i64>()?.is_empty();
        // Hashes, because a list may be long.
        let (mut forecast, mut mailboxes, mut after) = (LetterForecast::default(), HashSet::new(), String::new());
        loop {
            let page = match started {
                None => self.run(SELECT_OPTED_IN, values![&after, PAGE_SIZE]).await?,
                Some(letter) => self.run(SELECT_WAITING, values![&after, PAGE_SIZE, letter.hex()]).await?,
            };
            let mut page: Vec<(String, String, Option<String>)> = page.all()?;
            let Some((last, ..)) = page.last() else { return Ok(forecast) };
            after.clone_from(last);
            let all = page.len();
            page.retain(|(_, _, opt_in)| opt_in.is_some());
            forecast.opted_out += (all - page.len()) as u64;
            let people: Vec<_> =
                page.into_iter().map(|(address, email, _)| EmailAddress::from_stored(email, address)).collect();
            let suppressions = self.suppressions(&people).await?;
            let had_letter: HashSet<String> = if any_had_letter {
                let rows = people.iter().map(|email| [key.hash(&email.mailbox()).into(), (&month).into()]);
                self.run_batch(SELECT_HAD_LETTER, rows.collect()).await?.column()?.into_iter().collect()
            } else {
                HashSet::new()
            };
            for email in &people {
                let mailbox = email.mailbox();
                let counted = if suppressions.get(email).is_some() {
                    &mut forecast.suppressed
                } else if any_had_letter && had_letter.contains(&key.hash(&mailbox)) {
                    &mut forecast.had_letter
                } else if mailboxes.insert(hasher.hash_one(&mailbox)) {
                    &mut forecast.recipients
                } else {
                    &mut forecast.same_mailbox
                };
                *counted += 1;
            }
        }
    }
}
