//! The mails that ask for a confirmation.
//!
//! One transaction leases the next mail. It checks again that the address may be mailed, and records hashes of the mailbox and of
//! the address, so that within [`CONFIRMATION_PERIOD`] nobody is asked more often than [`slot_to_ask`] says. A lock serializes these
//! transactions, so that all instances together keep the limit on such mails.

use uuid::Uuid;

use crate::domain::letters::{AskedMailbox, AskedSlot, ConfirmationToken, slot_to_ask};
use crate::domain::limits::{CONFIRMATION_MAIL_PERIOD, CONFIRMATION_PERIOD, MAX_CONFIRMATION_MAILS};
use crate::domain::mail::EmailAddress;
use crate::domain::signups::opt_in_origin;
use crate::domain::time::Timestamp;
use crate::store::connection::{Statement, Store, StoreFailure, Transaction, Value, from_row_struct, parse_id, values};
use crate::store::outbox::MailKind;

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

/// Serializes leases: in PostgreSQL two transactions could otherwise both find the last place free.
const LOCK: Statement = Statement {
    sqlite: "SELECT 1",
    postgres: "SELECT 1 FROM pg_advisory_xact_lock(hashtext('porchlight confirmation mails'))",
};

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
const SELECT_DUE: Statement = Statement { sqlite: select_due!(""), postgres: select_due!(" FOR NO KEY UPDATE OF p") };

const SELECT_ASKED: &str = "SELECT slot, address FROM asked_mailboxes WHERE mailbox = $1 AND at > $2";

const ASK: &str = "INSERT INTO asked_mailboxes (mailbox, slot, address, at) VALUES ($1, $2, $3, $4) \
     ON CONFLICT (mailbox, slot) DO UPDATE SET address = excluded.address, at = excluded.at";

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

impl Store {
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
        if !tx.ask(&email, is_repeat, now).await? {
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

impl Transaction {
    /// Records that a person is asked, unless they must not be. Returns whether they may be asked.
    async fn ask(&mut self, email: &EmailAddress, is_repeat: bool, now: Timestamp) -> Result<bool, StoreFailure> {
        if self.is_suppressed(email).await? {
            return Ok(false);
        }
        let key = self.address_hash_key().await?;
        let (address, mailbox) = (key.hash(email.key()), key.hash(&email.mailbox()));
        let asked = self.run(SELECT_ASKED, values![&mailbox, now.before(CONFIRMATION_PERIOD)]).await?;
        let read = |(slot, address): (String, _)| Some(AskedMailbox { slot: AskedSlot::parse(&slot)?, address });
        let asked: Vec<_> = asked.all()?.into_iter().filter_map(read).collect();
        let Some(slot) = slot_to_ask(email, &address, &asked, is_repeat) else { return Ok(false) };
        self.run(ASK, values![mailbox, slot.as_str(), address, now]).await?;
        Ok(true)
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
