//! Monthly letters: the recipients of each, and how many are in which state.
//!
//! Recipients are the people with a current opt-in who are not suppressed. They are read in pages, so that the memory that this
//! takes does not depend on their number, and recorded in short transactions. The row of a letter counts them by state, in the
//! transactions that change a state, so that nobody has to count them anew.

use serde::{Serialize, Serializer};

use crate::domain::letters::{LetterCounts, LetterRun, RecipientState, UnsubscribeToken};
use crate::domain::limits::MAX_ROWS_PER_STEP;
use crate::domain::mail::EmailAddress;
use crate::domain::people::AddressHashKey;
use crate::domain::sha256::Sha256;
use crate::domain::time::Timestamp;
use crate::store::connection::{
    BatchStatement, Statement, Store, StoreFailure, Transaction, count, from_row_struct, values,
};
use crate::store::revisions::Revision;

/// A letter that has been started.
#[derive(Clone, Debug, Serialize)]
pub struct StartedLetter {
    pub id: String,
    pub subject: String,
    #[serde(rename = "started")]
    pub started_at: Timestamp,
    #[serde(flatten)]
    pub counts: LetterCounts,
    /// Whether everybody can read it on the site.
    pub archived: bool,
    /// Who may send it.
    #[serde(serialize_with = "word")]
    pub run: LetterRun,
    /// Why nobody may, unless somebody stopped it.
    pub stop_reason: Option<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn word<S: Serializer>(run: &LetterRun, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(run.as_str())
}

const START: &str = "UPDATE letters SET started_at = $2, archived = $3 WHERE id = $1 AND started_at IS NULL";

/// Nobody is added once the letter has started.
const INSERT_RECIPIENTS: BatchStatement = BatchStatement::new(
    "letter text, address text, at bigint",
    "INSERT INTO letter_recipients (letter, address, state, at, tries) \
     SELECT batch.letter, batch.address, 'waiting', batch.at, 0 FROM batch \
         JOIN letters l ON l.id = batch.letter AND l.started_at IS NULL \
     WHERE batch.address IN (SELECT address FROM people) ORDER BY batch.address ON CONFLICT DO NOTHING",
);

/// How far apart recipients may be in the order of a letter, in milliseconds.
const ORDER_PERIOD: i64 = 3_600_000;

/// Until PostgreSQL knows what is in the table, it reads all recipients of a letter to find the next one.
const ANALYZE: Statement = Statement { sqlite: "SELECT 1", postgres: "ANALYZE letter_recipients" };

/// A new run of the command retries deferred recipients at once.
pub(super) const END_DEFERRALS: &str = "UPDATE letter_recipients SET at = $2, tries = 0 WHERE letter = $1 AND address IN \
     (SELECT address FROM letter_recipients WHERE letter = $1 AND state = 'waiting' AND at > $2 LIMIT $3)";

const ADD_TO_COUNTS: &str = "UPDATE letters SET waiting = waiting + $2, uncertain = uncertain + $3, sent = sent + $4, \
         refused = refused + $5, skipped = skipped + $6, bounced = bounced + $7 WHERE id = $1";

macro_rules! select_letters {
    ($rest:literal) => {
        concat!(
            "SELECT id, subject, started_at, waiting, uncertain, sent, refused, skipped, bounced, archived, run, stop_reason \
             FROM letters \
             WHERE started_at IS NOT NULL ",
            $rest
        )
    };
}

const SELECT_LETTERS: &str = select_letters!("ORDER BY started_at DESC, id");

const SELECT_LETTER: &str = select_letters!("AND id = $1");

const SELECT_LATEST_LETTER: &str = select_letters!("ORDER BY started_at DESC, id LIMIT 1");

from_row_struct! {
    struct LetterRow {
        id: String,
        subject: String,
        started_at: Timestamp,
        waiting: i64,
        uncertain: i64,
        sent: i64,
        refused: i64,
        skipped: i64,
        bounced: i64,
        archived: i64,
        run: String,
        stop_reason: Option<String>,
    }
}

impl From<LetterRow> for StartedLetter {
    fn from(row: LetterRow) -> Self {
        let LetterRow { id, subject, started_at, waiting, uncertain, sent, refused, skipped, bounced, .. } = row;
        let [sent, waiting, uncertain, refused, skipped, bounced] =
            [sent, waiting, uncertain, refused, skipped, bounced].map(count);
        let recipients = sent + waiting + uncertain + refused + skipped;
        let counts = LetterCounts { recipients, sent, waiting, uncertain, refused, skipped, bounced };
        let run = LetterRun::parse(&row.run).unwrap_or(LetterRun::Stopped);
        Self { id, subject, started_at, counts, archived: row.archived != 0, run, stop_reason: row.stop_reason }
    }
}

/// By how much the numbers of the recipients of a letter change.
#[derive(Debug, Default)]
pub(in crate::store) struct CountChange {
    by_state: [i64; RecipientState::ALL.len()],
    bounced: i64,
}

impl CountChange {
    pub(in crate::store) fn of_bounced(bounced: i64) -> Self {
        Self { bounced, ..Self::default() }
    }

    pub(in crate::store) fn add(&mut self, state: RecipientState, recipients: i64) {
        for (known, number) in RecipientState::ALL.iter().zip(&mut self.by_state) {
            *number += if *known == state { recipients } else { 0 };
        }
    }
}

impl Transaction {
    /// Counts a change in the row of the letter. That row is shared by all senders, so this comes last in a transaction.
    pub(in crate::store) async fn count_recipients(
        &mut self,
        letter: &str,
        change: &CountChange,
    ) -> Result<(), StoreFailure> {
        let CountChange { by_state: [waiting, uncertain, sent, refused, skipped], bounced } = *change;
        let values = values![letter, waiting, uncertain, sent, refused, skipped, bounced];
        self.run(ADD_TO_COUNTS, values).await.map(drop)
    }
}

impl Store {
    /// Records people as recipients, and unsubscribe tokens for those who have none, in bounded steps. Nobody is recorded twice.
    ///
    /// Each recipient is due since another moment of the hour before, which depends on the letter and a secret key. So nobody
    /// who signs up with many addresses chooses which of them come first, or one after another.
    pub async fn record_recipients(
        &self,
        letter: &Sha256,
        people: &[(EmailAddress, UnsubscribeToken)],
        at: Timestamp,
    ) -> Result<(), StoreFailure> {
        let (key, mut steps) = (self.address_hash_key().await?, self.steps());
        for step in people.chunks(usize::try_from(MAX_ROWS_PER_STEP).unwrap_or(1)) {
            loop {
                let recorded = self.record_some_recipients(letter, step, &key, at).await;
                if !steps.should_repeat_this(&recorded).await {
                    break recorded?;
                }
            }
        }
        Ok(())
    }

    async fn record_some_recipients(
        &self,
        letter: &Sha256,
        people: &[(EmailAddress, UnsubscribeToken)],
        key: &AddressHashKey,
        at: Timestamp,
    ) -> Result<(), StoreFailure> {
        let id = letter.hex();
        let rows = people.iter().map(|(email, _)| {
            let due = at.unix_millis() - key.position(letter, email) % ORDER_PERIOD;
            [(&id).into(), email.key().into(), due.into()]
        });
        let mut tx = self.begin().await?;
        tx.insert_unsubscribe_tokens(people, at).await?;
        let recorded = tx.run_batch(INSERT_RECIPIENTS, rows.collect()).await?.affected;
        let mut change = CountChange::default();
        change.add(RecipientState::Waiting, recorded.cast_signed());
        tx.count_recipients(&id, &change).await?;
        tx.commit().await
    }

    /// Starts a letter whose recipients are recorded, in the archive or not. If it was started before, deferred ones become due.
    pub async fn start_letter(&self, letter: &Sha256, archived: bool, at: Timestamp) -> Result<(), StoreFailure> {
        let id = letter.hex();
        let mut tx = self.begin().await?;
        let is_started = tx.run(START, values![&id, at, archived]).await?.affected > 0;
        if is_started && archived {
            tx.change_revision(Revision::Letters).await?;
        }
        tx.commit().await?;
        if is_started {
            self.run(ANALYZE, &[]).await?;
        }
        self.end_deferrals(letter, at).await
    }

    /// Returns a letter, if it has been started.
    pub async fn letter(&self, id: &Sha256) -> Result<Option<StartedLetter>, StoreFailure> {
        Ok(self.run(SELECT_LETTER, values![id.hex()]).await?.first::<LetterRow>()?.map(Into::into))
    }

    /// Returns the letter that was started last.
    pub async fn latest_letter(&self) -> Result<Option<StartedLetter>, StoreFailure> {
        Ok(self.run(SELECT_LATEST_LETTER, &[]).await?.first::<LetterRow>()?.map(Into::into))
    }

    /// Returns every letter that has been started, newest first.
    pub async fn letters(&self) -> Result<Vec<StartedLetter>, StoreFailure> {
        Ok(self.run(SELECT_LETTERS, &[]).await?.all::<LetterRow>()?.into_iter().map(Into::into).collect())
    }
}

/// People per page.
pub(super) const PAGE_SIZE: i64 = 1000;

/// Some of the recipients, in the order of their normalized addresses.
#[derive(Debug)]
pub struct RecipientsPage {
    pub people: Vec<EmailAddress>,
    /// The next page begins after this normalized address.
    pub last: String,
}

/// The people after `$1` with a current opt-in, suppressed or not. The opt-in of a person has their address, so the join needs
/// no second condition. With one, PostgreSQL expects next to no rows, and reads all consents for each page.
const SELECT_OPTED_IN: &str = "SELECT p.address, p.email FROM people p JOIN consents c ON c.id = p.opt_in \
     WHERE p.address > $1 ORDER BY p.address LIMIT $2";

impl Store {
    /// Returns the recipients that follow a normalized address, the first ones after `""`. A page may have none. Returns `None`
    /// after the last page.
    pub async fn recipients_page(&self, after: &str) -> Result<Option<RecipientsPage>, StoreFailure> {
        let rows: Vec<(String, String)> = self.run(SELECT_OPTED_IN, values![after, PAGE_SIZE]).await?.all()?;
        let mut people: Vec<_> =
            rows.into_iter().map(|(address, email)| EmailAddress::from_stored(email, address)).collect();
        let Some(last) = people.last().map(|email| email.key().to_owned()) else { return Ok(None) };
        let suppressions = self.suppressions(&people).await?;
        people.retain(|email| suppressions.get(email).is_none());
        Ok(Some(RecipientsPage { people, last }))
    }
}
