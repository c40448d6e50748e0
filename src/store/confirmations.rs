//! Opt-ins that count once they are confirmed: recorded with the signup, confirmed or declined by the link in the mail, and
//! deleted when they expire. `store/confirmation_mails.rs` has the mails.
//!
//! A person has at most one row in `confirmations`. While it waits, further signups do not change it. It is deleted when the
//! person unsubscribes. A version that does not know of confirmations leaves it there, even if it opts the person in or
//! purges the signup; then a later opt-in takes its place.

use serde_json::{Value, json};

use super::counts::{ADD_COUNTS, counts_batch};
use super::signups::SignupRecord;
use super::statement::{Statement, batch_statement, in_transaction, on_pool};
use super::steps::{StepFailure, Steps};
use super::unsubscribe::withdraw_opt_in;
use super::{Store, StoreFailure};
use crate::domain::calendar::Day;
use crate::domain::confirmation::{ConfirmationToken, LinkState};
use crate::domain::consent::Via;
use crate::domain::counts::{CountedEvent, Counts};
use crate::domain::limits::{self, CONFIRMATION_PERIOD};
use crate::domain::text::Source;
use crate::domain::time::Timestamp;
use crate::domain::unsubscribe::UnsubscribeKind;

/// Opt-ins of these people that the new one replaces: those that have expired and are not deleted yet, and those whose mail
/// was not sent or that were declined. Whether the person may be asked now is decided anew.
///
/// The batch is read first, and each of its rows looks up one row by key. A subquery that compares with the table outside of it
/// would be evaluated for every row of that table.
pub(super) const DELETE_REPLACED_CONSENTS: Statement = batch_statement!(
    "DELETE FROM consents WHERE confirmed_at IS NULL AND id IN (SELECT (SELECT f.consent FROM confirmations f \
     WHERE f.address = batch.address AND (f.expires_at <= batch.at OR f.state IN ('skipped', 'declined')))",
    (address text, at bigint),
    ")"
);

pub(super) const DELETE_REPLACED: Statement = batch_statement!(
    "DELETE FROM confirmations WHERE address IN (SELECT (SELECT f.address FROM confirmations f \
     WHERE f.address = batch.address AND (f.expires_at <= batch.at OR f.state IN ('skipped', 'declined')))",
    (address text, at bigint),
    ")"
);

/// Only for people without an opt-in. An opt-in that waits already stays, and its mail is not sent again. One whose signup an
/// older program purged does not wait.
pub(super) const INSERT_CONFIRMATIONS: Statement = batch_statement!(
    "INSERT INTO confirmations (address, consent, state, at, expires_at, tries) \
     SELECT batch.address, batch.id, 'waiting', batch.at, batch.expires_at, 0",
    (address text, id text, at bigint, expires_at bigint),
    "AND EXISTS (SELECT 1 FROM people p WHERE p.address = batch.address AND p.opt_in IS NULL) ORDER BY batch.address \
     ON CONFLICT (address) DO UPDATE SET consent = excluded.consent, state = 'waiting', at = excluded.at, \
         expires_at = excluded.expires_at, tries = 0, trouble = NULL \
     WHERE (confirmations.state = 'confirmed' AND confirmations.consent <> excluded.consent) \
         OR NOT EXISTS (SELECT 1 FROM consents c WHERE c.id = confirmations.consent)"
);

/// The consents that [`INSERT_CONFIRMATIONS`] refers to.
pub(super) const INSERT_PENDING_CONSENTS: Statement = batch_statement!(
    "INSERT INTO consents (id, address, at, via, source, wording, from_program) \
     SELECT batch.id, batch.address, batch.at, batch.via, batch.source, batch.wording, batch.from_program",
    (address text, id text, at bigint, via text, source text, wording bigint, from_program bigint),
    "AND EXISTS (SELECT 1 FROM confirmations f WHERE f.address = batch.address AND f.consent = batch.id) \
     ON CONFLICT (id) DO NOTHING"
);

/// Records opt-ins that wait for their confirmation, in the transaction of their signups. Repeating it has no effect.
macro_rules! record_pending_opt_ins {
    ($tx:ident, $sql:expr, $signups:expr) => {{
        use $crate::store::confirmations::{
            DELETE_REPLACED, DELETE_REPLACED_CONSENTS, INSERT_CONFIRMATIONS, INSERT_PENDING_CONSENTS, pending_batch,
        };
        let (sql, batch) = ($sql, pending_batch($signups));
        for statement in
            [DELETE_REPLACED_CONSENTS, DELETE_REPLACED, INSERT_CONFIRMATIONS, INSERT_PENDING_CONSENTS].map(sql)
        {
            sqlx::query(statement).bind(&batch).execute(&mut *$tx).await?;
        }
    }};
}

pub(super) use record_pending_opt_ins;

/// The parameter of the statements of [`record_pending_opt_ins`].
pub(super) fn pending_batch<'a>(signups: impl IntoIterator<Item = &'a SignupRecord>) -> String {
    let rows = signups.into_iter().map(|signup| {
        json!({
            "address": signup.email.key(),
            "id": signup.id,
            "at": signup.at.unix_millis(),
            "expires_at": signup.at.after(CONFIRMATION_PERIOD).unix_millis(),
            "via": signup.via.as_str(),
            "source": signup.source.as_ref().map(Source::as_str),
            "wording": crate::domain::consent::WORDING,
            "from_program": i64::from(signup.via.is_program()),
        })
    });
    rows.collect::<Value>().to_string()
}

/// Finds nothing if an older program purged the signup.
const SELECT_STATE: &str = "SELECT f.state FROM confirmations f LEFT JOIN consents c ON c.id = f.consent \
     WHERE f.token = $1 AND f.expires_at > $2 AND (c.id IS NOT NULL OR f.state = 'declined')";

/// Locks the person until the commit. People are locked before confirmations, as signups do.
const LOCK_OWNER: Statement = Statement {
    sqlite: "SELECT p.address, p.email FROM confirmations f JOIN people p ON p.address = f.address \
                 JOIN consents c ON c.id = f.consent WHERE f.token = $1 AND f.expires_at > $2",
    postgres: "SELECT p.address, p.email FROM confirmations f JOIN people p ON p.address = f.address \
                   JOIN consents c ON c.id = f.consent WHERE f.token = $1 AND f.expires_at > $2 FOR UPDATE OF p",
};

/// Marks the opt-in as confirmed, if it waits. Returns its row of `consents`.
const CONFIRM: &str = "UPDATE confirmations SET state = 'confirmed', at = $2 \
     WHERE address = $1 AND state NOT IN ('confirmed', 'declined') RETURNING consent";

const CONFIRM_CONSENT: &str =
    "UPDATE consents SET confirmed_at = $2 WHERE id = $1 AND confirmed_at IS NULL RETURNING at, via, source";

/// The makers may have imported the person meanwhile.
const SET_OPT_IN: &str = "UPDATE people SET opt_in = COALESCE(opt_in, $2) WHERE address = $1";

/// The row exists if the source of the signup was counted by name.
const COUNT_SOURCE: &str = "UPDATE sources SET opt_ins = opt_ins + 1 WHERE day = $1 AND source = $2";

pub(super) const DELETE_PENDING_CONSENT: &str = "DELETE FROM consents WHERE confirmed_at IS NULL AND id IN \
     (SELECT consent FROM confirmations WHERE address = $1)";

pub(super) const DELETE_CONFIRMATION: &str = "DELETE FROM confirmations WHERE address = $1";

/// The link answers as before until it expires.
const DECLINE: &str = "UPDATE confirmations SET state = 'declined', at = $2 WHERE address = $1";

/// Locks people before confirmations, as signups do. Begins where the step before ended, so that PostgreSQL does not pass the
/// index entries of deleted rows again.
const SELECT_EXPIRED: Statement = Statement {
    sqlite: "SELECT address, expires_at FROM confirmations WHERE expires_at BETWEEN $1 AND $2 ORDER BY expires_at LIMIT $3",
    postgres: "SELECT p.address, f.expires_at FROM confirmations f JOIN people p ON p.address = f.address \
               WHERE f.expires_at BETWEEN $1 AND $2 ORDER BY f.expires_at LIMIT $3 FOR UPDATE OF p SKIP LOCKED",
};

const DELETE_OLD_HASHES: &str = "DELETE FROM asked_addresses WHERE hash IN \
     (SELECT hash FROM asked_addresses WHERE at <= $1 LIMIT $2)";

const COUNT_PENDING: &str = "SELECT COUNT(*) FROM confirmations WHERE state NOT IN ('confirmed', 'declined')";

/// `via` and `from_program` as in [`OptInOrigin::of`](crate::domain::consent::OptInOrigin::of).
const COUNT_UNCONFIRMED: &str = "SELECT COUNT(*) FROM people p JOIN consents c ON c.id = p.opt_in \
     WHERE c.confirmed_at IS NULL AND (c.via = 'mcp' OR c.from_program = 1)";

/// How many opt-ins are of a kind that makers should know about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OptInCounts {
    /// They wait for their confirmation, and do not count yet.
    pub pending: u64,
    /// They count, a program sent them, and nobody confirmed them by mail.
    pub unconfirmed_from_programs: u64,
}

impl Store {
    /// Returns `None` if the token is unknown or has expired.
    pub async fn confirmation_link(
        &self,
        token: &ConfirmationToken,
        now: Timestamp,
    ) -> Result<Option<LinkState>, StoreFailure> {
        let state: Option<String> = on_pool!(self, |pool| {
            sqlx::query_scalar(SELECT_STATE).bind(token.as_str()).bind(now.unix_millis()).fetch_optional(pool).await?
        });
        Ok(state.map(|state| match state.as_str() {
            "confirmed" => LinkState::Confirmed,
            "declined" => LinkState::Declined,
            _ => LinkState::Pending,
        }))
    }

    /// Makes the opt-in of the token's owner count. Repeating it has no effect, nor has it if the owner declined. Returns what
    /// the link leads to then, or `None` if the token is unknown or has expired.
    ///
    /// The opt-in is counted on the day of its signup, like the signup itself.
    pub async fn confirm_opt_in(
        &self,
        token: &ConfirmationToken,
        now: Timestamp,
    ) -> Result<Option<LinkState>, StoreFailure> {
        // Anybody can invent tokens. An unknown one must not take the write lock.
        let link = self.confirmation_link(token, now).await?;
        if link != Some(LinkState::Pending) {
            return Ok(link);
        }
        let at = now.unix_millis();
        in_transaction!(self, |tx, sql| {
            let owner: Option<(String, String)> =
                sqlx::query_as(sql(LOCK_OWNER)).bind(token.as_str()).bind(at).fetch_optional(&mut *tx).await?;
            let Some((address, _)) = owner else { return Ok(None) };
            let consent: Option<String> =
                sqlx::query_scalar(CONFIRM).bind(&address).bind(at).fetch_optional(&mut *tx).await?;
            let Some(consent) = consent else { return Ok(Some(LinkState::Confirmed)) };
            sqlx::query(SET_OPT_IN).bind(&address).bind(&consent).execute(&mut *tx).await?;
            let confirmed: Option<(i64, String, Option<String>)> =
                sqlx::query_as(CONFIRM_CONSENT).bind(&consent).bind(at).fetch_optional(&mut *tx).await?;
            if let Some((requested_at, via, source)) = confirmed {
                let day = Day::of(Timestamp::from_unix_millis(requested_at));
                let mut counts = Counts::default();
                counts.add_unnamed(day, CountedEvent::OptIn, Some(Via::from_stored(&via)));
                let source = source.unwrap_or_default();
                sqlx::query(COUNT_SOURCE).bind(day.number()).bind(source).execute(&mut *tx).await?;
                sqlx::query(sql(ADD_COUNTS)).bind(counts_batch(&counts)).execute(&mut *tx).await?;
            }
        });
        Ok(Some(LinkState::Confirmed))
    }

    /// Records that the token's owner did not ask for the letter: deletes the opt-in that waits, withdraws one that is
    /// confirmed, and suppresses the address. Returns `false` if the token is unknown or has expired.
    pub async fn decline_opt_in(&self, token: &ConfirmationToken, now: Timestamp) -> Result<bool, StoreFailure> {
        match self.confirmation_link(token, now).await? {
            None => return Ok(false),
            Some(LinkState::Declined) => return Ok(true),
            Some(LinkState::Pending | LinkState::Confirmed) => {}
        }
        let at = now.unix_millis();
        in_transaction!(self, |tx, sql| {
            let owner: Option<(String, String)> =
                sqlx::query_as(sql(LOCK_OWNER)).bind(token.as_str()).bind(at).fetch_optional(&mut *tx).await?;
            let Some((address, email)) = owner else { return Ok(false) };
            sqlx::query(DELETE_PENDING_CONSENT).bind(&address).execute(&mut *tx).await?;
            sqlx::query(DECLINE).bind(&address).bind(at).execute(&mut *tx).await?;
            withdraw_opt_in!(tx, sql, address, email, UnsubscribeKind::NotMe, now);
        });
        Ok(true)
    }

    /// Deletes opt-ins that were not confirmed in time, and the hashes of addresses that may be asked again. Each
    /// transaction deletes a bounded number of rows.
    pub async fn prune_confirmations(&self, now: Timestamp) -> Result<(), StoreFailure> {
        let (mut steps, mut from) = (Steps::default(), i64::MIN);
        while steps.should_repeat(self.delete_expired(&mut from, now.unix_millis()).await)? {}
        let oldest = now.before(CONFIRMATION_PERIOD).unix_millis();
        while steps.should_repeat(self.delete_old_hashes(oldest).await)? {}
        Ok(())
    }

    /// Deletes some that expired at `from` or later, and sets it to when the last of them did.
    async fn delete_expired(&self, from: &mut i64, now: i64) -> Result<u64, StepFailure> {
        let (deleted, last) = in_transaction!(self, |tx, sql| {
            let select = sqlx::query_as(sql(SELECT_EXPIRED)).bind(*from).bind(now).bind(limits::MAX_ROWS_PER_STEP);
            let expired: Vec<(String, i64)> = select.fetch_all(&mut *tx).await?;
            let batch = expired.iter().map(|(address, _)| json!({ "address": address, "at": now }));
            let batch = batch.collect::<Value>().to_string();
            sqlx::query(sql(DELETE_REPLACED_CONSENTS)).bind(&batch).execute(&mut *tx).await?;
            let deleted = sqlx::query(sql(DELETE_REPLACED)).bind(&batch).execute(&mut *tx).await?.rows_affected();
            (deleted, expired.last().map(|(_, expires_at)| *expires_at))
        });
        *from = last.unwrap_or(*from);
        Ok(deleted)
    }

    async fn delete_old_hashes(&self, oldest: i64) -> Result<u64, StepFailure> {
        Ok(on_pool!(self, |pool| sqlx::query(DELETE_OLD_HASHES)
            .bind(oldest)
            .bind(limits::MAX_ROWS_PER_STEP)
            .execute(pool)
            .await?
            .rows_affected()))
    }

    /// The number of opt-ins that wait for their confirmation. Expired ones count until they are deleted.
    pub async fn pending_opt_ins(&self) -> Result<u64, StoreFailure> {
        let pending: i64 = on_pool!(self, |pool| sqlx::query_scalar(COUNT_PENDING).fetch_one(pool).await?);
        Ok(u64::try_from(pending).unwrap_or_default())
    }

    pub async fn opt_in_counts(&self) -> Result<OptInCounts, StoreFailure> {
        let unconfirmed: i64 = on_pool!(self, |pool| sqlx::query_scalar(COUNT_UNCONFIRMED).fetch_one(pool).await?);
        Ok(OptInCounts {
            pending: self.pending_opt_ins().await?,
            unconfirmed_from_programs: u64::try_from(unconfirmed).unwrap_or_default(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Database;

    #[tokio::test]
    async fn a_batch_looks_up_its_own_rows_and_scans_no_table() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&Database::Sqlite(folder.path().join("porchlight.db"))).unwrap();
        store.migrate().await.unwrap();
        let Store::Sqlite(pool) = &store else { panic!("SQLite") };
        for statement in [DELETE_REPLACED_CONSENTS, DELETE_REPLACED, INSERT_CONFIRMATIONS, INSERT_PENDING_CONSENTS] {
            let explain = sqlx::AssertSqlSafe(format!("EXPLAIN QUERY PLAN {}", statement.sqlite));
            let plan: Vec<(i64, i64, i64, String)> = sqlx::query_as(explain).bind("[]").fetch_all(pool).await.unwrap();
            let scans = plan.iter().filter(|(.., step)| step.starts_with("SCAN ") && !step.contains("json_each"));
            assert_eq!(scans.count(), 0, "{}: {plan:#?}", statement.sqlite);
        }
        store.close().await;
    }
}
