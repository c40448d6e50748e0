//! The mails that ask for a confirmation: which is sent next, and the outcome of each attempt.
//!
//! One transaction leases the next mail. It checks again that the address may be mailed, and records a hash of the address,
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
use crate::domain::time::Timestamp;

/// The result of leasing the next mail.
#[derive(Debug)]
pub enum ConfirmationLease {
    Leased(Box<LeasedConfirmation>),
    /// The address must not be mailed, or its opt-in no longer waits. There may be further mails.
    Skipped,
    /// No mail may be sent before this time. `None`: no opt-in waits for one.
    NotDueUntil(Option<Timestamp>),
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
    /// The number of failed attempts.
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

const SELECT_RECENT: &str = "SELECT COUNT(*), MIN(at) FROM asked_addresses WHERE at > $1";

/// Without the columns of `c` if an older program purged the signup.
const SELECT_DUE: &str = "SELECT f.address, f.consent, f.tries, f.asked_at, f.token, p.email, p.opt_in, c.at AS requested_at, c.via, \
         c.from_program \
     FROM confirmations f JOIN people p ON p.address = f.address LEFT JOIN consents c ON c.id = f.consent \
     WHERE f.state = $1 AND f.at <= $2 ORDER BY f.at LIMIT 1";

const SELECT_NEXT: &str = "SELECT MIN(at) FROM confirmations WHERE state IN ('waiting', 'leased')";

const COUNT_SUPPRESSIONS: &str = "SELECT COUNT(*) FROM suppressions WHERE hash = $1";

/// Records that the address is asked, and inserts nothing if it was asked after `$3`.
const ASK: &str = "INSERT INTO asked_addresses (hash, at) VALUES ($1, $2) \
     ON CONFLICT (hash) DO UPDATE SET at = excluded.at WHERE asked_addresses.at <= $3";

const SKIP: &str = "UPDATE confirmations SET state = 'skipped', at = $2, trouble = $3 WHERE address = $1";

const LEASE: &str = "UPDATE confirmations SET state = 'leased', at = $2, asked_at = $3, token = $4, expires_at = $5 \
     WHERE address = $1";

const RECORD: &str = "UPDATE confirmations SET state = $3, at = $4, trouble = $5, tries = tries + $6 \
     WHERE address = $1 AND consent = $2 AND state = 'leased'";

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

impl Store {
    /// Returns when the next mail becomes due. The limit may make it wait longer.
    ///
    /// # Errors
    /// When the database is unavailable.
    pub async fn next_confirmation(&self) -> Result<Option<Timestamp>, StoreFailure> {
        let next: Option<i64> = on_pool!(self, |pool| sqlx::query_scalar(SELECT_NEXT).fetch_one(pool).await?);
        Ok(next.map(Timestamp::from_unix_millis))
    }

    /// Leases the next mail until `lease_until`. `new_token` is used for a person who has none.
    ///
    /// # Errors
    /// When the database is unavailable.
    pub async fn lease_confirmation(
        &self,
        new_token: &ConfirmationToken,
        now: Timestamp,
        lease_until: Timestamp,
    ) -> Result<ConfirmationLease, StoreFailure> {
        let at = now.unix_millis();
        let full_since = now.before(CONFIRMATION_MAIL_PERIOD).unix_millis();
        Ok(in_transaction!(self, |tx, sql| {
            sqlx::query(sql(LOCK)).execute(&mut *tx).await?;
            // A lease that has expired: this mail was begun before, and may go out again.
            let begun: Option<DueRow> =
                sqlx::query_as(SELECT_DUE).bind("leased").bind(at).fetch_optional(&mut *tx).await?;
            let was_leased = begun.is_some();
            let due = match begun {
                Some(begun) => Some(begun),
                None => sqlx::query_as(SELECT_DUE).bind("waiting").bind(at).fetch_optional(&mut *tx).await?,
            };
            let Some(due) = due else {
                let next: Option<i64> = sqlx::query_scalar(SELECT_NEXT).fetch_one(&mut *tx).await?;
                return Ok(ConfirmationLease::NotDueUntil(next.map(Timestamp::from_unix_millis)));
            };
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
            let hash = parse_hash_key(&key)?.hash(&email);
            let suppressions: i64 = sqlx::query_scalar(COUNT_SUPPRESSIONS).bind(&hash).fetch_one(&mut *tx).await?;
            let mut skip_reason = None;
            if suppressions > 0 {
                skip_reason = Some("suppressed");
            } else if !is_repeat {
                let (recent, oldest): (i64, Option<i64>) =
                    sqlx::query_as(SELECT_RECENT).bind(full_since).fetch_one(&mut *tx).await?;
                if recent >= MAX_CONFIRMATION_MAILS {
                    let oldest = Timestamp::from_unix_millis(oldest.unwrap_or(at));
                    return Ok(ConfirmationLease::NotDueUntil(Some(oldest.after(CONFIRMATION_MAIL_PERIOD))));
                }
                let asked_before = now.before(CONFIRMATION_PERIOD).unix_millis();
                let ask = sqlx::query(ASK).bind(&hash).bind(at).bind(asked_before);
                if ask.execute(&mut *tx).await?.rows_affected() == 0 {
                    skip_reason = Some("asked less than 30 days ago");
                }
            }
            if let Some(reason) = skip_reason {
                sqlx::query(SKIP).bind(&due.address).bind(at).bind(reason).execute(&mut *tx).await?;
                ConfirmationLease::Skipped
            } else {
                let first_tried_at = match due.asked_at {
                    Some(asked_at) if is_repeat => Timestamp::from_unix_millis(asked_at),
                    _ => now,
                };
                let token =
                    due.token.as_deref().and_then(ConfirmationToken::parse).unwrap_or_else(|| new_token.clone());
                sqlx::query(LEASE)
                    .bind(&due.address)
                    .bind(lease_until.unix_millis())
                    .bind(first_tried_at.unix_millis())
                    .bind(token.as_str())
                    .bind(first_tried_at.after(CONFIRMATION_PERIOD).unix_millis())
                    .execute(&mut *tx)
                    .await?;
                ConfirmationLease::Leased(Box::new(LeasedConfirmation {
                    email,
                    token,
                    id: Uuid::parse_str(&due.consent).map_err(|_| invalid("the id of an opt-in"))?,
                    requested_at: Timestamp::from_unix_millis(requested_at),
                    origin: parse_origin(&via, due.from_program),
                    first_tried_at,
                    tries: u32::try_from(due.tries).unwrap_or(u32::MAX),
                }))
            }
        }))
    }

    /// Records the outcome for a leased mail. It has no effect if the person confirmed, or was erased, meanwhile.
    ///
    /// # Errors
    /// When the database is unavailable: the lease expires, and the mail is sent again.
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
