//! Monthly letters: the recipients of each and their state.
//!
//! One transaction claims a recipient: it reads opt-in and suppression again, takes the person's only row in
//! `letter_months` for this month, and marks the recipient as `uncertain`. The mail is sent after the commit, so
//! whatever happens then, nobody is claimed twice.

use serde_json::{Value, json};

use super::outbox::invalid;
use super::statement::{Statement, batch_statement, in_transaction, on_pool};
use super::unsubscribe::{Recipient, SELECT_HASH_KEY, parse_email, parse_hash_key};
use super::{Store, StoreFailure};
use crate::domain::email::EmailAddress;
use crate::domain::letter::{Letter, LetterCounts};
use crate::domain::sha256::Sha256;
use crate::domain::time::Timestamp;
use crate::domain::unsubscribe::UnsubscribeToken;

/// The result of claiming the next recipient.
#[derive(Debug)]
pub enum LetterClaim {
    /// This recipient is marked as uncertain until the outcome is recorded.
    Claimed(Box<ClaimedRecipient>),
    /// This recipient must not be mailed any more.
    Skipped,
    /// No recipient can be claimed now: the remaining ones are deferred until at least this time, or are being claimed by
    /// another sender.
    NotDueUntil(Timestamp),
    NoneLeft,
}

#[derive(Clone, Debug)]
pub struct ClaimedRecipient {
    pub recipient: Recipient,
    pub token: UnsubscribeToken,
    /// How often the letter to this recipient was deferred, by the mail server or because it was unavailable.
    pub tries: u32,
}

/// The outcome for a claimed recipient.
#[derive(Clone, Debug)]
pub enum LetterOutcome {
    Sent,
    /// Not delivered; to be retried.
    Deferred {
        until: Timestamp,
        reason: String,
    },
    /// Rejected permanently.
    Rejected {
        reason: String,
    },
}

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
    "INSERT INTO letter_recipients (letter, address, state, at, tries) SELECT $2, batch.address, 'waiting', $3, 0",
    (address text),
    "AND batch.address IN (SELECT address FROM people) ON CONFLICT DO NOTHING"
);

/// A new run of the command retries deferred recipients at once.
const END_DEFERRALS: &str =
    "UPDATE letter_recipients SET at = $2, tries = 0 WHERE letter = $1 AND state = 'waiting' AND at > $2";

const SELECT_DUE: Statement = Statement {
    sqlite: "SELECT address, tries FROM letter_recipients WHERE letter = $1 AND state = 'waiting' AND at <= $2 \
             ORDER BY at, address LIMIT 1",
    postgres: "SELECT address, tries FROM letter_recipients WHERE letter = $1 AND state = 'waiting' AND at <= $2 \
               ORDER BY at, address LIMIT 1 FOR UPDATE SKIP LOCKED",
};

const SELECT_NEXT: &str = "SELECT MIN(at) FROM letter_recipients WHERE letter = $1 AND state = 'waiting'";

/// Locks the person until the commit, so that they cannot unsubscribe in between.
const SELECT_OPTED_IN: Statement = Statement {
    sqlite: "SELECT p.email, c.at, c.via, c.source, t.token FROM people p JOIN consents c ON c.id = p.opt_in \
             JOIN unsubscribe_tokens t ON t.address = p.address WHERE p.address = $1",
    postgres: "SELECT p.email, c.at, c.via, c.source, t.token FROM people p JOIN consents c ON c.id = p.opt_in \
               JOIN unsubscribe_tokens t ON t.address = p.address WHERE p.address = $1 FOR UPDATE OF p",
};

const COUNT_SUPPRESSIONS: &str = "SELECT COUNT(*) FROM suppressions WHERE hash = $1";

/// One letter per person and calendar month: inserts nothing if the person has had one.
const TAKE_MONTH: &str =
    "INSERT INTO letter_months (hash, month, letter) VALUES ($1, $2, $3) ON CONFLICT (hash, month) DO NOTHING";

const RELEASE_MONTH: &str = "DELETE FROM letter_months WHERE hash = $1 AND month = $2 AND letter = $3";

const SET_STATE: &str =
    "UPDATE letter_recipients SET state = $3, at = $4, trouble = $5 WHERE letter = $1 AND address = $2";

const DEFER: &str = "UPDATE letter_recipients SET state = 'waiting', at = $3, trouble = $4, tries = tries + 1 \
                       WHERE letter = $1 AND address = $2";

const SELECT_LETTERS: &str = "SELECT id, subject, started_at FROM letters ORDER BY started_at DESC, id";

const COUNT_STATES: &str =
    "SELECT letter, state, COUNT(*) FROM letter_recipients GROUP BY letter, state ORDER BY letter, state";

type OptedIn = (String, i64, String, Option<String>, String);

impl Store {
    /// Records the recipients, except those erased meanwhile. If the letter was started before, its recipients stay and
    /// deferred ones become due.
    ///
    /// # Errors
    /// When the database is unavailable.
    pub async fn start_letter(&self, letter: &Letter, to: &[Recipient], at: Timestamp) -> Result<(), StoreFailure> {
        let (id, at) = (letter.id.hex(), at.unix_millis());
        let batch = to.iter().map(|recipient| json!({ "address": recipient.email.key() }));
        let batch = batch.collect::<Value>().to_string();
        in_transaction!(self, |tx, sql| {
            let new = sqlx::query(INSERT_LETTER).bind(&id).bind(&letter.subject).bind(at).execute(&mut *tx).await?;
            if new.rows_affected() > 0 {
                sqlx::query(sql(INSERT_RECIPIENTS)).bind(&batch).bind(&id).bind(at).execute(&mut *tx).await?;
            } else {
                sqlx::query(END_DEFERRALS).bind(&id).bind(at).execute(&mut *tx).await?;
            }
        });
        Ok(())
    }

    /// Claims the next recipient for the calendar month of `now`.
    ///
    /// # Errors
    /// When the database is unavailable. If the commit failed, a recipient may be uncertain.
    pub async fn claim_recipient(&self, letter: &Sha256, now: Timestamp) -> Result<LetterClaim, StoreFailure> {
        let (id, month, at) = (letter.hex(), now.month(), now.unix_millis());
        let claim = in_transaction!(self, |tx, sql| {
            let due: Option<(String, i64)> =
                sqlx::query_as(sql(SELECT_DUE)).bind(&id).bind(at).fetch_optional(&mut *tx).await?;
            let Some((address, tries)) = due else {
                let (next,): (Option<i64>,) = sqlx::query_as(SELECT_NEXT).bind(&id).fetch_one(&mut *tx).await?;
                return Ok(next.map_or(LetterClaim::NoneLeft, |next| {
                    LetterClaim::NotDueUntil(Timestamp::from_unix_millis(next))
                }));
            };
            let opted_in: Option<OptedIn> =
                sqlx::query_as(sql(SELECT_OPTED_IN)).bind(&address).fetch_optional(&mut *tx).await?;
            let (key,): (String,) = sqlx::query_as(SELECT_HASH_KEY).fetch_one(&mut *tx).await?;
            let mut skip_reason = Some("opted out since");
            let mut claimed = None;
            if let Some((email, opted_in_at, via, source, token)) = opted_in {
                let email = parse_email(&email)?;
                let token = UnsubscribeToken::parse(&token).ok_or_else(|| invalid("an unsubscribe token"))?;
                let hash = parse_hash_key(&key)?.hash(&email);
                let (suppressed,): (i64,) = sqlx::query_as(COUNT_SUPPRESSIONS).bind(&hash).fetch_one(&mut *tx).await?;
                skip_reason = if suppressed > 0 {
                    Some("suppressed")
                } else {
                    let inserted = sqlx::query(TAKE_MONTH).bind(&hash).bind(&month).bind(&id).execute(&mut *tx).await?;
                    (inserted.rows_affected() == 0).then_some("had a letter this month")
                };
                let recipient = Recipient { email, opted_in_at: Timestamp::from_unix_millis(opted_in_at), via, source };
                claimed = Some(ClaimedRecipient { recipient, token, tries: u32::try_from(tries).unwrap_or_default() });
            }
            let state = if skip_reason.is_some() { "skipped" } else { "uncertain" };
            let mark = sqlx::query(SET_STATE).bind(&id).bind(&address).bind(state).bind(at).bind(skip_reason);
            mark.execute(&mut *tx).await?;
            match claimed.filter(|_| skip_reason.is_none()) {
                Some(claimed) => LetterClaim::Claimed(Box::new(claimed)),
                None => LetterClaim::Skipped,
            }
        });
        Ok(claim)
    }

    /// Records the outcome of a claim that was made at `claimed_at`. A recipient who was certainly not mailed may get
    /// another letter this month.
    ///
    /// # Errors
    /// When the database is unavailable: the recipient stays uncertain.
    pub async fn record_letter_outcome(
        &self,
        letter: &Sha256,
        email: &EmailAddress,
        claimed_at: Timestamp,
        outcome: &LetterOutcome,
        at: Timestamp,
    ) -> Result<(), StoreFailure> {
        let (id, address, month) = (letter.hex(), email.key(), claimed_at.month());
        in_transaction!(self, |tx, _sql| {
            let (key,): (String,) = sqlx::query_as(SELECT_HASH_KEY).fetch_one(&mut *tx).await?;
            if !matches!(outcome, LetterOutcome::Sent) {
                let hash = parse_hash_key(&key)?.hash(email);
                sqlx::query(RELEASE_MONTH).bind(&hash).bind(&month).bind(&id).execute(&mut *tx).await?;
            }
            let at = at.unix_millis();
            match outcome {
                LetterOutcome::Sent => {
                    sqlx::query(SET_STATE).bind(&id).bind(address).bind("sent").bind(at).bind(None::<&str>)
                }
                LetterOutcome::Rejected { reason } => {
                    sqlx::query(SET_STATE).bind(&id).bind(address).bind("refused").bind(at).bind(Some(reason.as_str()))
                }
                LetterOutcome::Deferred { until, reason } => {
                    sqlx::query(DEFER).bind(&id).bind(address).bind(until.unix_millis()).bind(reason)
                }
            }
            .execute(&mut *tx)
            .await?;
        });
        Ok(())
    }

    /// Returns every letter that has been started, newest first.
    ///
    /// # Errors
    /// When the database is unavailable.
    pub async fn letters(&self) -> Result<Vec<StartedLetter>, StoreFailure> {
        let letters: Vec<(String, String, i64)> =
            on_pool!(self, |pool| sqlx::query_as(SELECT_LETTERS).fetch_all(pool).await?);
        let rows: Vec<(String, String, i64)> =
            on_pool!(self, |pool| sqlx::query_as(COUNT_STATES).fetch_all(pool).await?);
        let started = letters.into_iter().map(|(id, subject, started_at)| {
            let mut counts = LetterCounts::default();
            for (_, state, count) in rows.iter().filter(|(letter, ..)| *letter == id) {
                counts.add(state, u64::try_from(*count).unwrap_or_default());
            }
            StartedLetter { id, subject, started_at: Timestamp::from_unix_millis(started_at), counts }
        });
        Ok(started.collect())
    }
}

impl LetterCounts {
    pub(super) fn add(&mut self, state: &str, count: u64) {
        let count_of_state = match state {
            "sent" => &mut self.sent,
            "waiting" => &mut self.waiting,
            "uncertain" => &mut self.uncertain,
            "refused" => &mut self.refused,
            _ => &mut self.skipped,
        };
        *count_of_state += count;
        self.recipients += count;
    }
}
