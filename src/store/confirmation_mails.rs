//! The mails that ask for a confirmation: which is sent next, and the outcome of each attempt.
//!
//! One transaction leases the next mail. It checks again that the address may be mailed, and records a hash of the mailbox,
//! so that nobody is asked twice within [`CONFIRMATION_PERIOD`]. A table lock serializes these transactions, so that all
//! instances together keep the limit on such mails.

use uuid::Uuid;

use super::confirmations::{DELETE_CONFIRMATION, DELETE_PENDING_CONSENT};
use super::outbox::invalid;
use super::statement::{Statement, from_row_struct, in_transaction, on_pool};
use super::unsubscribe::{SELECT_HASH_KEY, parse_hash_key, parse_origin};
use super::{Store, StoreFailure};
use crate::domain::confirmation::ConfirmationToken;
use crate::domain::consent::OptInOrigin;
use crate::domain::email::EmailAddress;
use crate::domain::limits::{CONFIRMATION_MAIL_PERIOD, CONFIRMATION_PERIOD, MAX_CONFIRMATION_MAILS};
use crate::domain::plural::quantity;
use crate::domain::time::Timestamp;

/// The result of leasing the next mail.
#[derive(Debug)]
pub enum ConfirmationLease {
    Leased(Box<LeasedConfirmation>),
    /// The address must not be mailed, or its opt-in no longer waits. There may be further mails.
    Skipped,
    /// The limit is reached: no mail may be sent before this time.
    LimitReachedUntil(Timestamp),
    /// Nothing is due.
    NoneDue,
}

/// A mail that is leased to us.
#[derive(Clone, Debug)]
pub struct LeasedConfirmation {
    pub email: EmailAddress,
    pub token: ConfirmationToken,
    /// The id of the opt-in, and of the mail: a repeated mail has the same.
    pub id: Uuid,
    pub requested_at: Timestamp,
    pub origin: OptInOrigin,
    /// When the first attempt was made.
    pub first_tried_at: Timestamp,
    /// The number of attempts before this one that failed, or whose outcome is unknown.
    pub tries: u32,
}

/// The outcome of an attempt.
#[derive(Clone, Debug)]
pub enum ConfirmationOutcome {
    Sent,
    Retry { at: Timestamp, reason: String },
    Failed { reason: String },
}

/// Serializes leases: in PostgreSQL two transactions could otherwise both find the last place free.
const LOCK: Statement =
    Statement { sqlite: "SELECT 1", postgres: "LOCK TABLE asked_addresses IN SHARE ROW EXCLUSIVE MODE" };

/// The mailboxes that were asked after `$1`, except at a time that is far ahead, which was written with a wrong clock.
const SELECT_RECENT: &str = "SELECT COUNT(*), MIN(at) FROM asked_addresses WHERE at > $1 AND at <= $2";

/// Without the columns of `c` if an older program purged the signup.
macro_rules! select_due {
    ($lock:literal) => {
        concat!(
            "SELECT f.address, f.consent, f.tries, f.asked_at, f.token, p.email, p.opt_in, c.at AS requested_at, c.via, \
                 c.from_program \
             FROM confirmations f JOIN people p ON p.address = f.address LEFT JOIN consents c ON c.id = f.consent \
             WHERE f.state = $1 AND f.at <= $2 ORDER BY f.at LIMIT 1",
            $lock
        )
    };
}

/// Locks the person until the commit, so that they cannot be suppressed in between.
const SELECT_DUE: Statement = Statement { sqlite: select_due!(""), postgres: select_due!(" FOR UPDATE OF p") };

const SELECT_NEXT: &str = "SELECT at FROM confirmations WHERE state = $1 ORDER BY at LIMIT 1";

const COUNT_SUPPRESSIONS: &str = "SELECT COUNT(*) FROM suppressions WHERE hash = $1";

/// Records that the mailbox is asked, unless it was asked after `$3`.
const ASK: &str = "INSERT INTO asked_addresses (hash, at) VALUES ($1, $2) \
     ON CONFLICT (hash) DO UPDATE SET at = excluded.at WHERE asked_addresses.at <= $3";

const SKIP: &str =
    "UPDATE confirmations SET state = 'skipped', at = $3, trouble = $4 WHERE address = $1 AND consent = $2";

/// The person may have confirmed before they were locked.
const LEASE: &str = "UPDATE confirmations SET state = 'leased', at = $3, asked_at = $4, token = $5, expires_at = $6, \
         tries = tries + $7 \
     WHERE address = $1 AND consent = $2 AND state IN ('waiting', 'leased')";

const RECORD: &str = "UPDATE confirmations SET state = $3, at = $4, trouble = $5, tries = tries + $6 \
     WHERE address = $1 AND consent = $2 AND state = 'leased'";

const COUNT_UNSENT: &str = "SELECT COUNT(CASE WHEN f.state <> 'failed' THEN 1 END), \
         COUNT(CASE WHEN f.state = 'failed' THEN 1 END), MIN(CASE WHEN f.state <> 'failed' THEN c.at END) \
     FROM confirmations f JOIN consents c ON c.id = f.consent WHERE f.state IN ('waiting', 'leased', 'failed')";

/// The mails that were not sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConfirmationMails {
    pub waiting: u64,
    /// Not retried any more.
    pub failed: u64,
    /// When the oldest opt-in was made whose mail waits.
    pub oldest: Option<Timestamp>,
}

impl ConfirmationMails {
    /// As a part of a sentence.
    pub fn in_words(&self) -> String {
        let waiting = quantity(self.waiting, "person still waits", "people still wait");
        let failed = quantity(self.failed, "such mail failed", "such mails failed");
        format!("{waiting} for the mail that asks to confirm the opt-in, and {failed}")
    }
}

from_row_struct! {
    struct DueRow {
        address: String,
        consent: String,
        tries: i64,
        asked_at: Option<i64>,
        token: Option<String>,
        email: String,
        opt_in: Option<String>,
        requested_at: Option<i64>,
        via: Option<String>,
        from_program: Option<i64>,
    }
}

/// The times of mails that count.
fn period_around(now: Timestamp) -> (i64, i64) {
    (now.before(CONFIRMATION_MAIL_PERIOD).unix_millis(), now.after(CONFIRMATION_MAIL_PERIOD).unix_millis())
}

/// When there is room for another mail, if the limit is reached.
fn room_at((recent, oldest): (i64, Option<i64>)) -> Option<Timestamp> {
    let oldest = oldest.filter(|_| recent >= MAX_CONFIRMATION_MAILS)?;
    Some(Timestamp::from_unix_millis(oldest).after(CONFIRMATION_MAIL_PERIOD))
}

impl Store {
    /// Returns when the next mail may be sent.
    pub async fn next_confirmation(&self, now: Timestamp) -> Result<Option<Timestamp>, StoreFailure> {
        let mut next: Option<i64> = None;
        for state in ["leased", "waiting"] {
            let at: Option<i64> =
                on_pool!(self, |pool| sqlx::query_scalar(SELECT_NEXT).bind(state).fetch_optional(pool).await?);
            next = [next, at].into_iter().flatten().min();
        }
        let Some(next) = next.map(Timestamp::from_unix_millis) else { return Ok(None) };
        let (since, until) = period_around(now);
        let recent =
            on_pool!(self, |pool| sqlx::query_as(SELECT_RECENT).bind(since).bind(until).fetch_one(pool).await?);
        Ok(Some(room_at(recent).map_or(next, |room| room.max(next))))
    }

    /// Returns how many mails wait or failed.
    pub async fn confirmation_mails(&self) -> Result<ConfirmationMails, StoreFailure> {
        let (waiting, failed, oldest): (i64, i64, Option<i64>) =
            on_pool!(self, |pool| sqlx::query_as(COUNT_UNSENT).fetch_one(pool).await?);
        let number = |count: i64| u64::try_from(count).unwrap_or_default();
        let oldest = oldest.map(Timestamp::from_unix_millis);
        Ok(ConfirmationMails { waiting: number(waiting), failed: number(failed), oldest })
    }

    /// Leases the next mail until `lease_until`. `new_token` is used for a person who has none.
    pub async fn lease_confirmation(
        &self,
        new_token: &ConfirmationToken,
        now: Timestamp,
        lease_until: Timestamp,
    ) -> Result<ConfirmationLease, StoreFailure> {
        let at = now.unix_millis();
        let (since, until) = period_around(now);
        Ok(in_transaction!(self, |tx, sql| {
            sqlx::query(sql(LOCK)).execute(&mut *tx).await?;
            let recent = sqlx::query_as(SELECT_RECENT).bind(since).bind(until).fetch_one(&mut *tx).await?;
            if let Some(room_at) = room_at(recent) {
                return Ok(ConfirmationLease::LimitReachedUntil(room_at));
            }
            // A lease that has expired comes first. Its mail may have been sent.
            let begun: Option<DueRow> =
                sqlx::query_as(sql(SELECT_DUE)).bind("leased").bind(at).fetch_optional(&mut *tx).await?;
            let was_leased = begun.is_some();
            let due = match begun {
                Some(begun) => Some(begun),
                None => sqlx::query_as(sql(SELECT_DUE)).bind("waiting").bind(at).fetch_optional(&mut *tx).await?,
            };
            let Some(due) = due else { return Ok(ConfirmationLease::NoneDue) };
            // Nothing waits any more, and a later opt-in must not wait behind this row.
            let (Some(requested_at), Some(via), None) = (due.requested_at, due.via, due.opt_in) else {
                for statement in [DELETE_PENDING_CONSENT, DELETE_CONFIRMATION] {
                    sqlx::query(statement).bind(&due.address).execute(&mut *tx).await?;
                }
                tx.commit().await?;
                return Ok(ConfirmationLease::Skipped);
            };
            let is_repeat = was_leased || due.tries > 0;
            let email = EmailAddress::from_stored(due.email, due.address.as_str());
            let (key,): (String,) = sqlx::query_as(SELECT_HASH_KEY).fetch_one(&mut *tx).await?;
            let key = parse_hash_key(&key)?;
            let suppressions: i64 =
                sqlx::query_scalar(COUNT_SUPPRESSIONS).bind(key.hash(&email)).fetch_one(&mut *tx).await?;
            let skip_reason = if suppressions > 0 {
                Some("suppressed")
            } else {
                let asked_before = if is_repeat { i64::MAX } else { now.before(CONFIRMATION_PERIOD).unix_millis() };
                let ask = sqlx::query(ASK).bind(key.hash(&email.mailbox())).bind(at).bind(asked_before);
                (ask.execute(&mut *tx).await?.rows_affected() == 0).then_some("asked less than 30 days ago")
            };
            if let Some(reason) = skip_reason {
                let skip = sqlx::query(SKIP).bind(&due.address).bind(&due.consent).bind(at).bind(reason);
                skip.execute(&mut *tx).await?;
                ConfirmationLease::Skipped
            } else {
                let first_tried_at = match due.asked_at {
                    Some(asked_at) if is_repeat => Timestamp::from_unix_millis(asked_at),
                    _ => now,
                };
                let token =
                    due.token.as_deref().and_then(ConfirmationToken::parse).unwrap_or_else(|| new_token.clone());
                let lease = sqlx::query(LEASE)
                    .bind(&due.address)
                    .bind(&due.consent)
                    .bind(lease_until.unix_millis())
                    .bind(first_tried_at.unix_millis())
                    .bind(token.as_str())
                    .bind(first_tried_at.after(CONFIRMATION_PERIOD).unix_millis())
                    .bind(i64::from(was_leased));
                if lease.execute(&mut *tx).await?.rows_affected() == 0 {
                    // Rolls back that the mailbox was asked.
                    return Ok(ConfirmationLease::Skipped);
                }
                ConfirmationLease::Leased(Box::new(LeasedConfirmation {
                    email,
                    token,
                    id: Uuid::parse_str(&due.consent).map_err(|_| invalid("the id of an opt-in"))?,
                    requested_at: Timestamp::from_unix_millis(requested_at),
                    origin: parse_origin(&via, due.from_program),
                    first_tried_at,
                    tries: u32::try_from(due.tries).unwrap_or(u32::MAX).saturating_add(u32::from(was_leased)),
                }))
            }
        }))
    }

    /// Records the outcome for a leased mail. It has no effect if the person confirmed, or was erased, meanwhile.
    pub async fn record_confirmation_mail(
        &self,
        leased: &LeasedConfirmation,
        outcome: &ConfirmationOutcome,
        now: Timestamp,
    ) -> Result<(), StoreFailure> {
        let (state, at, reason, tries) = match outcome {
            ConfirmationOutcome::Sent => ("sent", now, None, 0_i64),
            ConfirmationOutcome::Retry { at, reason } => ("waiting", *at, Some(reason), 1),
            ConfirmationOutcome::Failed { reason } => ("failed", now, Some(reason), 1),
        };
        let consent = leased.id.to_string();
        on_pool!(self, |pool| {
            let record = sqlx::query(RECORD).bind(leased.email.key()).bind(&consent).bind(state);
            record.bind(at.unix_millis()).bind(reason).bind(tries).execute(pool).await?;
        });
        Ok(())
    }
}
