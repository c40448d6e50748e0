//! Monthly letters: the recipients of each, and how many are in which state.
//!
//! Recipients are the people with a current opt-in who are not suppressed. They are read in pages, so that the memory that this
//! takes does not depend on their number.

use serde::Serialize;

use crate::domain::letters::{Letter, LetterCounts};
use crate::domain::mail::EmailAddress;
use crate::domain::people::AddressHashKey;
use crate::domain::sha256::Sha256;
use crate::domain::time::Timestamp;
use crate::store::connection::{BatchStatement, Rows, Store, StoreFailure, Transaction, Value, count, values};

/// A letter that has been started.
#[derive(Clone, Debug, Serialize)]
pub struct StartedLetter {
    pub id: String,
    pub subject: String,
    #[serde(rename = "started")]
    pub started_at: Timestamp,
    #[serde(flatten)]
    pub counts: LetterCounts,
}

const INSERT_LETTER: &str = "INSERT INTO letters (id, subject, started_at) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING";

const INSERT_RECIPIENTS: BatchStatement = BatchStatement::new(
    "letter text, address text, at bigint",
    "INSERT INTO letter_recipients (letter, address, state, at, tries) SELECT letter, address, 'waiting', at, 0 FROM batch \
     WHERE address IN (SELECT address FROM people) ORDER BY address ON CONFLICT DO NOTHING",
);

/// How far apart recipients may be in the order of a letter, in milliseconds.
const ORDER_PERIOD: i64 = 3_600_000;

/// A new run of the command retries deferred recipients at once.
const END_DEFERRALS: &str =
    "UPDATE letter_recipients SET at = $2, tries = 0 WHERE letter = $1 AND address IN \
         (SELECT address FROM letter_recipients WHERE letter = $1 AND state = 'waiting' AND at > $2 LIMIT $3)";

const SELECT_LETTERS: &str = "SELECT id, subject, started_at FROM letters ORDER BY started_at DESC, id";

const SELECT_LETTER: &str = "SELECT id, subject, started_at FROM letters WHERE id = $1";

const SELECT_LATEST_LETTER: &str = "SELECT id, subject, started_at FROM letters ORDER BY started_at DESC, id LIMIT 1";

const COUNT_RECIPIENTS: &str =
    "SELECT state, COUNT(*), COUNT(bounce) FROM letter_recipients WHERE letter = $1 GROUP BY state";

const COUNT_STATES: &str = "SELECT letter, state, COUNT(*), COUNT(bounce) FROM letter_recipients GROUP BY letter, state ORDER BY letter, state";

/// Id, subject, when it was started.
type LetterRow = (String, String, Timestamp);

impl Store {
    /// Records everyone who gets the letter now and has an unsubscribe token, in one transaction. If the letter was started
    /// before, its recipients stay and deferred ones become due.
    ///
    /// Each recipient is due since another moment of the hour before, which depends on the letter and a secret key. So nobody
    /// who signs up with many addresses chooses which of them come first, or one after another.
    pub async fn start_letter(&self, letter: &Letter, at: Timestamp) -> Result<(), StoreFailure> {
        let id = letter.id.hex();
        let mut tx = self.begin().await?;
        let key = tx.address_hash_key().await?;
        if tx.run(INSERT_LETTER, values![&id, &letter.subject, at]).await?.affected > 0 {
            let mut after = String::new();
            while let Some(page) = tx.recipients_page(&after, &key).await? {
                let rows = page.people.iter().map(|email| {
                    let due = at.unix_millis() - key.position(&letter.id, email) % ORDER_PERIOD;
                    [(&id).into(), email.key().into(), due.into()]
                });
                tx.run_batch(INSERT_RECIPIENTS, rows.collect()).await?;
                after = page.last;
            }
        } else {
            tx.run(END_DEFERRALS, values![&id, at]).await?;
        }
        tx.commit().await
    }

    /// Returns a letter, if it has been started. Counts its own recipients alone.
    pub async fn letter(&self, id: &Sha256) -> Result<Option<StartedLetter>, StoreFailure> {
        let letter = self.run(SELECT_LETTER, values![id.hex()]).await?.first()?;
        self.with_counts(letter).await
    }

    /// Returns the letter that was started last.
    pub async fn latest_letter(&self) -> Result<Option<StartedLetter>, StoreFailure> {
        let letter = self.run(SELECT_LATEST_LETTER, &[]).await?.first()?;
        self.with_counts(letter).await
    }

    async fn with_counts(&self, letter: Option<LetterRow>) -> Result<Option<StartedLetter>, StoreFailure> {
        let Some((id, subject, started_at)) = letter else { return Ok(None) };
        let mut counts = LetterCounts::default();
        for (state, count, bounced) in self.run(COUNT_RECIPIENTS, values![&id]).await?.all::<(String, i64, i64)>()? {
            counts.add(&state, count, bounced);
        }
        Ok(Some(StartedLetter { id, subject, started_at, counts }))
    }

    /// Returns every letter that has been started, newest first.
    pub async fn letters(&self) -> Result<Vec<StartedLetter>, StoreFailure> {
        let letters: Vec<LetterRow> = self.run(SELECT_LETTERS, &[]).await?.all()?;
        let rows: Vec<(String, String, i64, i64)> = self.run(COUNT_STATES, &[]).await?.all()?;
        let started = letters.into_iter().map(|(id, subject, started_at)| {
            let mut counts = LetterCounts::default();
            for (_, state, count, bounced) in rows.iter().filter(|(letter, ..)| *letter == id) {
                counts.add(state, *count, *bounced);
            }
            StartedLetter { id, subject, started_at, counts }
        });
        Ok(started.collect())
    }
}

impl LetterCounts {
    fn add(&mut self, state: &str, recipients: i64, bounced: i64) {
        let [recipients, bounced] = [recipients, bounced].map(count);
        let count_of_state = match state {
            "sent" => &mut self.sent,
            "waiting" => &mut self.waiting,
            "uncertain" => &mut self.uncertain,
            "refused" => &mut self.refused,
            _ => &mut self.skipped,
        };
        *count_of_state += recipients;
        self.recipients += recipients;
        if matches!(state, "sent" | "uncertain") {
            self.bounced += bounced;
        }
    }
}

/// People per page.
const PAGE_SIZE: i64 = 1000;

/// Some of the recipients, in the order of their normalized addresses.
#[derive(Debug)]
pub struct RecipientsPage {
    pub people: Vec<EmailAddress>,
    /// The next page begins after this normalized address.
    pub last: String,
}

/// The people after `$1` with a current opt-in, suppressed or not. The opt-in of a person has their address, so the join needs
/// no second condition. With one, PostgreSQL expects next to no rows, and reads all consents for each page.
macro_rules! select_opted_in {
    ($join:literal) => {
        concat!(
            "SELECT p.address, p.email FROM people p JOIN consents c ON c.id = p.opt_in ",
            $join,
            " WHERE p.address > $1 ORDER BY p.address LIMIT $2"
        )
    };
}

const SELECT_OPTED_IN: &str = select_opted_in!("");

/// Only those who have an unsubscribe token.
const SELECT_WITH_TOKEN: &str =
    select_opted_in!("JOIN unsubscribe_tokens t ON t.address = p.address AND t.address > $1");

/// Those of the hashes that are suppressed.
const SELECT_SUPPRESSED: BatchStatement =
    BatchStatement::new("hash text", "SELECT hash FROM suppressions WHERE hash IN (SELECT hash FROM batch)");

/// A page before suppressed people are left out.
struct OptedIn {
    people: Vec<EmailAddress>,
    hashes: Vec<String>,
}

impl OptedIn {
    fn read(rows: Rows, key: &AddressHashKey) -> Result<Self, StoreFailure> {
        let rows: Vec<(String, String)> = rows.all()?;
        let people: Vec<_> =
            rows.into_iter().map(|(address, email)| EmailAddress::from_stored(email, address)).collect();
        let hashes = people.iter().map(|email| key.hash(email)).collect();
        Ok(Self { people, hashes })
    }

    fn hash_rows(&self) -> Vec<[Value<'_>; 1]> {
        self.hashes.iter().map(|hash| [hash.into()]).collect()
    }

    /// Returns `None` if nobody is left.
    fn without(self, suppressed: &[String]) -> Option<RecipientsPage> {
        let last = self.people.last()?.key().to_owned();
        let people = self.people.into_iter().zip(self.hashes);
        let people = people.filter(|(_, hash)| !suppressed.contains(hash)).map(|(email, _)| email).collect();
        Some(RecipientsPage { people, last })
    }
}

impl Transaction {
    /// As [`Store::recipients_page`], of those who have an unsubscribe token.
    pub(in crate::store) async fn recipients_page(
        &mut self,
        after: &str,
        key: &AddressHashKey,
    ) -> Result<Option<RecipientsPage>, StoreFailure> {
        let page = OptedIn::read(self.run(SELECT_WITH_TOKEN, values![after, PAGE_SIZE]).await?, key)?;
        let suppressed = self.run_batch(SELECT_SUPPRESSED, page.hash_rows()).await?.column::<String>()?;
        Ok(page.without(&suppressed))
    }
}

impl Store {
    /// Returns the recipients that follow a normalized address, the first ones after `""`. A page may have none. Returns `None`
    /// after the last page.
    pub async fn recipients_page(&self, after: &str) -> Result<Option<RecipientsPage>, StoreFailure> {
        let key = self.address_hash_key().await?;
        let page = OptedIn::read(self.run(SELECT_OPTED_IN, values![after, PAGE_SIZE]).await?, &key)?;
        let suppressed = self.run_batch(SELECT_SUPPRESSED, page.hash_rows()).await?.column::<String>()?;
        Ok(page.without(&suppressed))
    }

    pub async fn count_recipients(&self) -> Result<u64, StoreFailure> {
        let (mut count, mut after) = (0, String::new());
        while let Some(page) = self.recipients_page(&after).await? {
            count += page.people.len() as u64;
            after = page.last;
        }
        Ok(count)
    }
}
