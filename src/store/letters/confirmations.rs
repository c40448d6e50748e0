//! Opt-ins that count once they are confirmed: recorded with the signup, asked for by mail, confirmed or declined by the link
//! in it, and deleted when they expire.
//!
//! A person has at most one row in `confirmations`. While it waits, further signups do not change it. It is deleted when the
//! person unsubscribes. Its mail waits in the outbox under the id of the opt-in.

use std::collections::BTreeMap;

use crate::domain::letters::{ConfirmationToken, LinkState, UnsubscribeKind};
use crate::domain::limits::{CONFIRMATION_PERIOD, MAX_ROWS_PER_STEP};
use crate::domain::mail::EmailAddress;
use crate::domain::signups::{SignupRecord, Via, Wording};
use crate::domain::statistics::{CountedEvent, Counts};
use crate::domain::text::Source;
use crate::domain::time::{Day, Timestamp};
use crate::store::connection::{
    Batch, BatchStatement, Statement, Store, StoreFailure, Transaction, Value, count, values,
};

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

pub(in crate::store) const INSERT_CONSENTS: BatchStatement = BatchStatement::new(
    "id text, address text, at bigint, via text, source text, wording bigint, from_program bigint",
    "INSERT INTO consents (id, address, at, via, source, wording, from_program) SELECT * FROM batch",
);

const SELECT_STATE: &str = "SELECT state FROM confirmations WHERE token = $1 AND expires_at > $2";

const SELECT_OWNER: &str = "SELECT p.address, p.email FROM confirmations f JOIN people p ON p.address = f.address \
     WHERE f.token = $1 AND f.expires_at > $2";

/// Locks the person until the commit. People are locked before confirmations, as signups do.
const LOCK_OWNER: Statement = Statement {
    sqlite: SELECT_OWNER,
    postgres: "SELECT p.address, p.email FROM confirmations f JOIN people p ON p.address = f.address \
               WHERE f.token = $1 AND f.expires_at > $2 FOR NO KEY UPDATE OF p",
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
               WHERE f.expires_at BETWEEN $1 AND $2 ORDER BY f.expires_at LIMIT $3 FOR NO KEY UPDATE OF p SKIP LOCKED",
};

const DELETE_OLD_HASHES: &str = "DELETE FROM asked_mailboxes WHERE (mailbox, slot) IN \
     (SELECT mailbox, slot FROM asked_mailboxes WHERE at <= $1 LIMIT $2)";

const COUNT_PENDING: &str = "SELECT COUNT(*) FROM confirmations WHERE state IN ('pending', 'skipped')";

/// `via` and `from_program` as in [`opt_in_origin`](crate::domain::signups::opt_in_origin).
const COUNT_UNCONFIRMED: &str = "SELECT COUNT(*) FROM people p JOIN consents c ON c.id = p.opt_in \
     WHERE c.confirmed_at IS NULL AND (c.via = 'mcp' OR c.from_program = 1)";

const INSERT_WORDINGS: BatchStatement = BatchStatement::new(
    "number bigint, text text",
    "INSERT INTO wordings (number, text) SELECT * FROM batch WHERE true ON CONFLICT (number) DO NOTHING",
);

/// Records the texts that these people agreed to. The program itself knows the built-in one.
pub(in crate::store) fn wordings_batch<'a>(opt_ins: impl Iterator<Item = &'a SignupRecord>) -> Batch<'a> {
    let wordings = opt_ins.map(|signup| &signup.wording).filter(|wording| **wording != Wording::BUILT_IN);
    let wordings: BTreeMap<_, _> = wordings.map(|wording| (wording.number(), wording.text())).collect();
    INSERT_WORDINGS.of(wordings.into_iter().map(|(number, text)| [number.into(), text.into()]))
}

/// The row of `consents`: who agreed to get the letter, when, where and to which wording.
pub(in crate::store) fn consent_row(signup: &SignupRecord) -> [Value<'_>; 7] {
    let (source, via) = (signup.source.as_ref().map(Source::as_str), signup.via.as_str());
    let (wording, from_program) = (signup.wording.number(), signup.via.is_program());
    let (id, address, at) = (signup.id, signup.email.key(), signup.at);
    [id.into(), address.into(), at.into(), via.into(), source.into(), wording.into(), from_program.into()]
}

impl Transaction {
    /// Records opt-ins that wait for their confirmation, in the transaction of their signups. Repeating it has no effect.
    pub(in crate::store) async fn record_pending_opt_ins(
        &mut self,
        signups: &[&SignupRecord],
    ) -> Result<(), StoreFailure> {
        let rows = signups.iter().map(|signup| [signup.email.key().into(), signup.at.into()]).collect();
        let replaced = self.run_batch(SELECT_REPLACED, rows).await?.column()?;
        self.delete_confirmations(&replaced).await?;
        let rows = signups.iter().map(|signup| {
            let expires_at = signup.at.after(CONFIRMATION_PERIOD);
            [signup.email.key().into(), signup.id.into(), signup.at.into(), expires_at.into()]
        });
        let new = self.run_batch(INSERT_CONFIRMATIONS, rows.collect()).await?.column::<String>()?;
        let new = || signups.iter().filter(|signup| new.contains(&signup.id.to_string()));
        self.run_batch(INSERT_CONSENTS, new().map(|signup| consent_row(signup)).collect()).await?;
        self.run_batch(ENQUEUE, new().map(|signup| [signup.id.into(), signup.at.into()]).collect()).await?;
        Ok(())
    }

    /// Deletes the confirmations of these people, with their mails and the opt-ins that were never confirmed.
    pub(in crate::store) async fn delete_confirmations(&mut self, addresses: &[String]) -> Result<u64, StoreFailure> {
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

    /// Records that the token's owner did not ask for the letter: ends the opt-ins of the mailbox, whether they wait or count, and
    /// suppresses it, as in `Transaction::end_opt_ins`. Returns `false` if the token is unknown or has expired.
    pub async fn decline_opt_in(&self, token: &ConfirmationToken, now: Timestamp) -> Result<bool, StoreFailure> {
        match self.confirmation_link(token, now).await? {
            None => return Ok(false),
            Some(LinkState::Declined) => return Ok(true),
            Some(LinkState::Pending | LinkState::Confirmed) => {}
        }
        let mut tx = self.begin().await?;
        let owner = tx.run(SELECT_OWNER, values![token.as_str(), now]).await?;
        let Some((address, email)) = owner.first::<(String, String)>()? else { return Ok(false) };
        let owner = EmailAddress::from_stored(email, address.as_str());
        tx.end_opt_ins(&owner, UnsubscribeKind::NotMe, Some(&address), now).await?;
        tx.run(DECLINE, values![&address, now]).await?;
        tx.commit().await?;
        Ok(true)
    }

    /// Deletes opt-ins that were not confirmed in time, and the hashes of addresses that may be asked again. Each
    /// transaction deletes a bounded number of rows.
    pub async fn prune_confirmations(&self, now: Timestamp) -> Result<(), StoreFailure> {
        let (mut steps, mut from) = (self.steps(), i64::MIN);
        while steps.should_repeat(self.delete_expired(&mut from, now).await).await? {}
        let oldest = values![now.before(CONFIRMATION_PERIOD), MAX_ROWS_PER_STEP];
        while steps.should_repeat(self.run(DELETE_OLD_HASHES, oldest).await.map(|rows| rows.affected)).await? {}
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
}
