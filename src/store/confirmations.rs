//! Opt-ins that count once they are confirmed: recorded with the signup, asked for by mail, confirmed or declined by the link
//! in it, and deleted when they expire.
//!
//! A person has at most one row in `confirmations`. While it waits, further signups do not change it. It is deleted when the
//! person unsubscribes. Its mail waits in the outbox under the id of the opt-in.
//!
//! One transaction leases the next mail. It checks again that the address may be mailed, and records a hash of the mailbox,
//! so that nobody is asked twice within [`CONFIRMATION_PERIOD`]. A table lock serializes these transactions, so that all
//! instances together keep the limit on such mails.

use uuid::Uuid;

use super::batch_statement::BatchStatement;
use super::outbox::{MailKind, parse_id};
use super::signups::{INSERT_CONSENTS, SignupRecord};
use super::statement::{Statement, Transaction, Value, count, from_row_struct, values};
use super::steps::Steps;
use super::{Store, StoreFailure};
use crate::domain::calendar::Day;
use crate::domain::confirmation::{ConfirmationToken, LinkState};
use crate::domain::consent::{Via, opt_in_origin};
use crate::domain::counts::{CountedEvent, Counts};
use crate::domain::email::EmailAddress;
use crate::domain::limits::{CONFIRMATION_MAIL_PERIOD, CONFIRMATION_PERIOD, MAX_CONFIRMATION_MAILS, MAX_ROWS_PER_STEP};
use crate::domain::time::Timestamp;
use crate::domain::unsubscribe::UnsubscribeKind;

/// The result of leasing the next mail.
#[derive(Debug)]
pub enum ConfirmationLease {
    Leased(Box<LeasedConfirmation>),
    /// The address must not be mailed, or its opt-in no longer waits. There may be further mails.
    Skipped,
    /// Nothing is due, or the limit is reached.
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
    pub origin: &'static str,
    /// The number of attempts before this one that failed.
    pub tries: u32,
    /// Whether an earlier attempt may have arrived.
    pub is_repeat: bool,
}

/// How many opt-ins are of a kind that makers should know about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OptInCounts {
    /// They wait for their confirmation, and do not count yet.
    pub pending: u64,
    /// They count, a program sent them, and nobody confirmed them by mail.
    pub unconfirmed_from_programs: u64,
}

/// Opt-ins of these people that the new one replaces: those that have expired and are not deleted yet, and those that must not
/// be asked or were declined. Whether the person may be asked now is decided anew.
const SELECT_REPLACED: BatchStatement = BatchStatement::new(
    "address text, at bigint",
    "SELECT f.address FROM batch JOIN confirmations f ON f.address = batch.address \
     WHERE f.expires_at <= batch.at OR f.state IN ('skipped', 'declined')",
);

const DELETE_MAILS: BatchStatement = BatchStatement::new(
    "address text",
    "DELETE FROM outbox WHERE id IN (SELECT f.consent FROM batch JOIN confirmations f ON f.address = batch.address)",
);

/// Only those that were never confirmed.
const DELETE_CONSENTS: BatchStatement = BatchStatement::new(
    "address text",
    "DELETE FROM consents WHERE confirmed_at IS NULL AND id IN \
     (SELECT f.consent FROM batch JOIN confirmations f ON f.address = batch.address)",
);

const DELETE_CONFIRMATIONS: BatchStatement =
    BatchStatement::new("address text", "DELETE FROM confirmations WHERE address IN (SELECT address FROM batch)");

/// Only for people without an opt-in. An opt-in that waits already stays, and its mail is not sent again.
const INSERT_CONFIRMATIONS: BatchStatement = BatchStatement::new(
    "address text, id text, at bigint, expires_at bigint",
    "INSERT INTO confirmations (address, consent, state, at, expires_at) \
     SELECT batch.address, batch.id, 'pending', batch.at, batch.expires_at \
     FROM batch JOIN people p ON p.address = batch.address WHERE p.opt_in IS NULL \
     ON CONFLICT (address) DO NOTHING RETURNING consent",
);

const ENQUEUE: BatchStatement = BatchStatement::new(
    "id text, at bigint",
    "INSERT INTO outbox (id, kind, state, at) SELECT id, 'confirmation', 'waiting', at FROM batch WHERE true \
     ON CONFLICT (id) DO NOTHING",
);

const SELECT_STATE: &str = "SELECT state FROM confirmations WHERE token = $1 AND expires_at > $2";

/// Locks the person until the commit. People are locked before confirmations, as signups do.
const LOCK_OWNER: Statement = Statement {
    sqlite: "SELECT p.address, p.email FROM confirmations f JOIN people p ON p.address = f.address \
             WHERE f.token = $1 AND f.expires_at > $2",
    postgres: "SELECT p.address, p.email FROM confirmations f JOIN people p ON p.address = f.address \
               WHERE f.token = $1 AND f.expires_at > $2 FOR UPDATE OF p",
};

/// Marks the opt-in as confirmed, if it waits. Returns its row of `consents`.
const CONFIRM: &str = "UPDATE confirmations SET state = 'confirmed', at = $2 \
     WHERE address = $1 AND state NOT IN ('confirmed', 'declined') RETURNING consent";

const CONFIRM_CONSENT: &str =
    "UPDATE consents SET confirmed_at = $2 WHERE id = $1 AND confirmed_at IS NULL RETURNING at, via, source";

/// Meanwhile no confirmation may have been needed.
const SET_OPT_IN: &str = "UPDATE people SET opt_in = COALESCE(opt_in, $2) WHERE address = $1";

/// The row exists, unless the source is not among the largest of its day.
const COUNT_SOURCE: &str = "UPDATE sources SET opt_ins = opt_ins + 1 WHERE day = $1 AND source = $2";

/// The link answers as before until it expires.
const DECLINE: &str = "UPDATE confirmations SET state = 'declined', at = $2 WHERE address = $1";

/// Locks people before confirmations, as signups do. Begins where the step before ended, so that PostgreSQL does not pass the
/// index entries of deleted rows again.
const SELECT_EXPIRED: Statement = Statement {
    sqlite: "SELECT address, expires_at FROM confirmations WHERE expires_at BETWEEN $1 AND $2 ORDER BY expires_at LIMIT $3",
    postgres: "SELECT p.address, f.expires_at FROM confirmations f JOIN people p ON p.address = f.address \
               WHERE f.expires_at BETWEEN $1 AND $2 ORDER BY f.expires_at LIMIT $3 FOR UPDATE OF p SKIP LOCKED",
};

const DELETE_OLD_HASHES: &str = "DELETE FROM asked_mailboxes WHERE hash IN \
     (SELECT hash FROM asked_mailboxes WHERE at <= $1 LIMIT $2)";

const COUNT_PENDING: &str = "SELECT COUNT(*) FROM confirmations WHERE state IN ('pending', 'skipped')";

/// `via` and `from_program` as in [`opt_in_origin`].
const COUNT_UNCONFIRMED: &str = "SELECT COUNT(*) FROM people p JOIN consents c ON c.id = p.opt_in \
     WHERE c.confirmed_at IS NULL AND (c.via = 'mcp' OR c.from_program = 1)";

/// Serializes leases: in PostgreSQL two transactions could otherwise both find the last place free.
const LOCK: Statement =
    Statement { sqlite: "SELECT 1", postgres: "LOCK TABLE asked_mailboxes IN SHARE ROW EXCLUSIVE MODE" };

/// The mailboxes that were asked after `$1`, except at a time that is far ahead, which was written with a wrong clock.
const SELECT_RECENT: &str = "SELECT COUNT(*), MIN(at) FROM asked_mailboxes WHERE at > $1 AND at <= $2";

macro_rules! select_due {
    ($lock:literal) => {
        concat!(
            "SELECT o.id, o.tries, o.first_tried_at, f.address, f.token, f.asked_at, p.email, p.opt_in, c.at AS requested_at, \
                 c.via, c.from_program \
             FROM outbox o JOIN confirmations f ON f.consent = o.id JOIN people p ON p.address = f.address \
                 JOIN consents c ON c.id = o.id \
             WHERE o.kind = 'confirmation' AND o.state = $1 AND o.at <= $2 ORDER BY o.at LIMIT 1",
            $lock
        )
    };
}

/// Locks the person until the commit, so that they cannot be suppressed in between.
const SELECT_DUE: Statement = Statement { sqlite: select_due!(""), postgres: select_due!(" FOR UPDATE OF p") };

/// Records that the mailbox is asked, unless it was asked after `$3`.
const ASK: &str = "INSERT INTO asked_mailboxes (hash, at) VALUES ($1, $2) \
     ON CONFLICT (hash) DO UPDATE SET at = excluded.at WHERE asked_mailboxes.at <= $3";

const SKIP: &str = "UPDATE confirmations SET state = 'skipped', at = $2 WHERE address = $1 AND state = 'pending'";

const DELETE_MAIL: &str = "DELETE FROM outbox WHERE id = $1";

/// The person may have confirmed before they were locked.
const SET_TOKEN: &str = "UPDATE confirmations SET asked_at = $2, token = $3, expires_at = $4 \
     WHERE address = $1 AND state = 'pending'";

const LEASE: &str = "UPDATE outbox SET state = 'leased', lease = $2, at = $3, first_tried_at = COALESCE(first_tried_at, $4) \
     WHERE id = $1";

from_row_struct! {
    struct DueRow {
        id: String,
        tries: i64,
        first_tried_at: Option<Timestamp>,
        address: String,
        token: Option<String>,
        asked_at: Option<Timestamp>,
        email: String,
        opt_in: Option<String>,
        requested_at: Timestamp,
        via: String,
        from_program: Option<i64>,
    }
}

/// The times of mails that count.
fn period_around(now: Timestamp) -> [Value<'static>; 2] {
    [now.before(CONFIRMATION_MAIL_PERIOD).into(), now.after(CONFIRMATION_MAIL_PERIOD).into()]
}

/// When there is room for another mail, if the limit is reached.
fn room_at((recent, oldest): (i64, Option<Timestamp>)) -> Option<Timestamp> {
    Some(oldest.filter(|_| recent >= MAX_CONFIRMATION_MAILS)?.after(CONFIRMATION_MAIL_PERIOD))
}

impl Transaction {
    /// Records opt-ins that wait for their confirmation, in the transaction of their signups. Repeating it has no effect.
    pub(super) async fn record_pending_opt_ins(&mut self, signups: &[&SignupRecord]) -> Result<(), StoreFailure> {
        let rows = signups.iter().map(|signup| [signup.email.key().into(), signup.at.into()]).collect();
        let replaced = self.run_batch(SELECT_REPLACED, rows).await?.column()?;
        self.delete_confirmations(&replaced).await?;
        let rows = signups.iter().map(|signup| {
            let expires_at = signup.at.after(CONFIRMATION_PERIOD);
            [signup.email.key().into(), signup.id.into(), signup.at.into(), expires_at.into()]
        });
        let new = self.run_batch(INSERT_CONFIRMATIONS, rows.collect()).await?.column::<String>()?;
        let new = || signups.iter().filter(|signup| new.contains(&signup.id.to_string()));
        self.run_batch(INSERT_CONSENTS, new().map(|signup| signup.consent_row()).collect()).await?;
        self.run_batch(ENQUEUE, new().map(|signup| [signup.id.into(), signup.at.into()]).collect()).await?;
        Ok(())
    }

    /// Deletes the confirmations of these people, with their mails and the opt-ins that were never confirmed.
    pub(super) async fn delete_confirmations(&mut self, addresses: &[String]) -> Result<u64, StoreFailure> {
        let rows = || addresses.iter().map(|address| [address.into()]).collect();
        self.run_batch(DELETE_MAILS, rows()).await?;
        self.run_batch(DELETE_CONSENTS, rows()).await?;
        Ok(self.run_batch(DELETE_CONFIRMATIONS, rows()).await?.affected)
    }
}

impl Store {
    /// Returns `None` if the token is unknown or has expired.
    pub async fn confirmation_link(
        &self,
        token: &ConfirmationToken,
        now: Timestamp,
    ) -> Result<Option<LinkState>, StoreFailure> {
        let state = self.run(SELECT_STATE, values![token.as_str(), now]).await?.column::<String>()?.pop();
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
        let mut tx = self.begin().await?;
        let owner = tx.run(LOCK_OWNER, values![token.as_str(), now]).await?;
        let Some((address, _)) = owner.first::<(String, String)>()? else { return Ok(None) };
        let Some(consent) = tx.run(CONFIRM, values![&address, now]).await?.column::<String>()?.pop() else {
            return Ok(Some(LinkState::Confirmed));
        };
        tx.run(SET_OPT_IN, values![&address, &consent]).await?;
        let confirmed = tx.run(CONFIRM_CONSENT, values![&consent, now]).await?;
        if let Some((requested_at, via, source)) = confirmed.first::<(Timestamp, String, Option<String>)>()? {
            let (day, mut counts) = (Day::of(requested_at), Counts::default());
            counts.add_unnamed(day, CountedEvent::OptIn, Some(Via::from_stored(&via)));
            tx.add_counts(&counts).await?;
            tx.run(COUNT_SOURCE, values![day.number(), source.unwrap_or_default()]).await?;
        }
        tx.commit().await?;
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
        let mut tx = self.begin().await?;
        let owner = tx.run(LOCK_OWNER, values![token.as_str(), now]).await?;
        let Some((address, email)) = owner.first::<(String, String)>()? else { return Ok(false) };
        for statement in [DELETE_MAILS, DELETE_CONSENTS] {
            tx.run_batch(statement, vec![[(&address).into()]]).await?;
        }
        tx.run(DECLINE, values![&address, now]).await?;
        tx.withdraw_opt_in(&EmailAddress::from_stored(email, address), UnsubscribeKind::NotMe, now).await?;
        tx.commit().await?;
        Ok(true)
    }

    /// Deletes opt-ins that were not confirmed in time, and the hashes of addresses that may be asked again. Each
    /// transaction deletes a bounded number of rows.
    pub async fn prune_confirmations(&self, now: Timestamp) -> Result<(), StoreFailure> {
        let (mut steps, mut from) = (Steps::default(), i64::MIN);
        while steps.should_repeat(self.delete_expired(&mut from, now).await)? {}
        let oldest = values![now.before(CONFIRMATION_PERIOD), MAX_ROWS_PER_STEP];
        while steps.should_repeat(self.run(DELETE_OLD_HASHES, oldest).await.map(|rows| rows.affected))? {}
        Ok(())
    }

    /// Deletes some that expired at `from` or later, and sets it to when the last of them did.
    async fn delete_expired(&self, from: &mut i64, now: Timestamp) -> Result<u64, StoreFailure> {
        let mut tx = self.begin().await?;
        let expired = tx.run(SELECT_EXPIRED, values![*from, now, MAX_ROWS_PER_STEP]).await?;
        let (addresses, times): (Vec<_>, Vec<_>) = expired.all::<(String, i64)>()?.into_iter().unzip();
        let deleted = tx.delete_confirmations(&addresses).await?;
        tx.commit().await?;
        *from = times.last().copied().unwrap_or(*from);
        Ok(deleted)
    }

    /// The number of opt-ins that wait for their confirmation. Expired ones count until they are deleted.
    pub async fn pending_opt_ins(&self) -> Result<u64, StoreFailure> {
        Ok(count(self.run(COUNT_PENDING, &[]).await?.one::<(i64,)>()?.0))
    }

    pub async fn opt_in_counts(&self) -> Result<OptInCounts, StoreFailure> {
        let (unconfirmed,) = self.run(COUNT_UNCONFIRMED, &[]).await?.one()?;
        Ok(OptInCounts { pending: self.pending_opt_ins().await?, unconfirmed_from_programs: count(unconfirmed) })
    }

    /// Returns when the next mail may be sent.
    pub async fn next_confirmation(&self, now: Timestamp) -> Result<Option<Timestamp>, StoreFailure> {
        let Some(next) = self.next_due(MailKind::Confirmation, now).await? else { return Ok(None) };
        let recent = self.run(SELECT_RECENT, &period_around(now)).await?.one()?;
        Ok(Some(room_at(recent).map_or(next, |room| room.max(next))))
    }

    /// Leases the next mail until `until`. `new_token` is used for a person who has none.
    pub async fn lease_confirmation(
        &self,
        lease: Uuid,
        new_token: &ConfirmationToken,
        now: Timestamp,
        until: Timestamp,
    ) -> Result<ConfirmationLease, StoreFailure> {
        let mut tx = self.begin().await?;
        tx.run(LOCK, &[]).await?;
        if room_at(tx.run(SELECT_RECENT, &period_around(now)).await?.one()?).is_some() {
            return Ok(ConfirmationLease::NoneDue);
        }
        // A lease that has expired comes first. Its mail may have been sent.
        let mut due = tx.run(SELECT_DUE, values!["leased", now]).await?.first::<DueRow>()?;
        if due.is_none() {
            due = tx.run(SELECT_DUE, values!["waiting", now]).await?.first()?;
        }
        let Some(due) = due else { return Ok(ConfirmationLease::NoneDue) };
        if due.opt_in.is_some() {
            // Meanwhile no confirmation was needed.
            tx.run(DELETE_MAIL, values![&due.id]).await?;
            tx.commit().await?;
            return Ok(ConfirmationLease::Skipped);
        }
        let is_repeat = due.first_tried_at.is_some();
        let email = EmailAddress::from_stored(due.email, due.address.as_str());
        let key = tx.address_hash_key().await?;
        let asked_before = if is_repeat { i64::MAX } else { now.before(CONFIRMATION_PERIOD).unix_millis() };
        let may_ask = !tx.is_suppressed(&key.hash(&email)).await?
            && tx.run(ASK, values![key.hash(&email.mailbox()), now, asked_before]).await?.affected > 0;
        if !may_ask {
            tx.run(SKIP, values![&due.address, now]).await?;
            tx.run(DELETE_MAIL, values![&due.id]).await?;
            tx.commit().await?;
            return Ok(ConfirmationLease::Skipped);
        }
        let asked_at = due.asked_at.filter(|_| is_repeat).unwrap_or(now);
        let token = due.token.as_deref().and_then(ConfirmationToken::parse).unwrap_or_else(|| new_token.clone());
        let expires_at = asked_at.after(CONFIRMATION_PERIOD);
        if tx.run(SET_TOKEN, values![&due.address, asked_at, token.as_str(), expires_at]).await?.affected == 0 {
            // Rolls back that the mailbox was asked.
            return Ok(ConfirmationLease::Skipped);
        }
        tx.run(LEASE, values![&due.id, lease, until, now]).await?;
        tx.commit().await?;
        Ok(ConfirmationLease::Leased(Box::new(LeasedConfirmation {
            email,
            token,
            id: parse_id(&due.id)?,
            requested_at: due.requested_at,
            origin: opt_in_origin(&due.via, due.from_program.map(|program| program != 0)),
            tries: u32::try_from(due.tries).unwrap_or(u32::MAX),
            is_repeat,
        })))
    }
}
