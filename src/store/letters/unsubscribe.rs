//! Unsubscribe tokens, and the end of the opt-ins of a mailbox.

use crate::domain::letters::{UnsubscribeKind, UnsubscribeToken};
use crate::domain::mail::EmailAddress;
use crate::domain::people::SuppressionReason;
use crate::domain::statistics::{CountKey, CountedEvent, Counts};
use crate::domain::time::{Day, Timestamp};
use crate::store::connection::{BatchStatement, Statement, Store, StoreFailure, Transaction, values};

const INSERT_TOKENS: BatchStatement = BatchStatement::new(
    "token text, address text, at bigint",
    "INSERT INTO unsubscribe_tokens (token, address, at) SELECT * FROM batch \
     WHERE address IN (SELECT address FROM people) ON CONFLICT (address) DO NOTHING",
);

const COUNT_TOKENS: &str = "SELECT COUNT(*) FROM unsubscribe_tokens WHERE token = $1";

const SELECT_OWNER: &str = "SELECT p.address, p.email FROM unsubscribe_tokens t JOIN people p ON p.address = t.address \
     WHERE t.token = $1";

/// The addresses of a mailbox whose opt-ins end: not `$2`, if there is one. Anybody can add any number of addresses to a mailbox, so
/// they are never listed.
macro_rules! of_mailbox {
    ($before:literal, $after:literal) => {
        concat!($before, "(p.address = $1 OR p.mailbox = $1) AND p.address <> $2", $after)
    };
}

/// Locks people until the commit, in the order in which signups do, so that no opt-in comes in between.
const LOCK_MAILBOX: Statement = Statement {
    sqlite: "SELECT 1",
    postgres: of_mailbox!(
        "SELECT COUNT(*) FROM (SELECT 1 FROM people p WHERE ",
        " AND (p.opt_in IS NOT NULL OR EXISTS (SELECT 1 FROM confirmations f WHERE f.address = p.address)) \
         ORDER BY p.address FOR NO KEY UPDATE OF p) AS locked"
    ),
};

/// The opt-in of a mailbox that counts for longest.
const SELECT_OLDEST: &str = of_mailbox!(
    "SELECT p.address, c.at FROM people p JOIN consents c ON c.id = p.opt_in WHERE ",
    " ORDER BY c.at, p.address LIMIT 1"
);

/// When the opt-in of an address came that counts, or else the last one that was withdrawn.
const SELECT_OWN: &str = "SELECT COALESCE((SELECT c.at FROM people p JOIN consents c ON c.id = p.opt_in WHERE p.address = $1), \
     (SELECT MAX(c.at) FROM withdrawals w JOIN consents c ON c.id = w.consent WHERE w.address = $1))";

const INSERT_WITHDRAWALS: &str = of_mailbox!(
    "INSERT INTO withdrawals (consent, address, at, how) SELECT p.opt_in, p.address, $3, $4 FROM people p WHERE ",
    " AND p.opt_in IS NOT NULL ON CONFLICT (consent) DO NOTHING"
);

const CLEAR_OPT_INS: &str = of_mailbox!("UPDATE people AS p SET opt_in = NULL WHERE ", " AND p.opt_in IS NOT NULL");

const DELETE_MAILS: &str = of_mailbox!(
    "DELETE FROM outbox WHERE id IN (SELECT f.consent FROM confirmations f JOIN people p ON p.address = f.address WHERE ",
    ")"
);

/// Only those that were never confirmed.
const DELETE_CONSENTS: &str = of_mailbox!(
    "DELETE FROM consents WHERE confirmed_at IS NULL AND id IN \
         (SELECT f.consent FROM confirmations f JOIN people p ON p.address = f.address WHERE ",
    ")"
);

const DELETE_CONFIRMATIONS: &str = of_mailbox!(
    "DELETE FROM confirmations WHERE address IN (SELECT p.address FROM people p WHERE ",
    ") AND address <> $3"
);

/// Whoever opts in again is asked at once.
const FORGET_ASKED: &str = "DELETE FROM asked_mailboxes WHERE mailbox = $1";

impl Transaction {
    /// Ends every opt-in of a mailbox, whether it counts or waits, and counts those that counted. [`UnsubscribeKind::NotMe`] also
    /// suppresses the mailbox; if another address of it has an older opt-in that counts, that one stays and is still mailed. The
    /// row of the confirmation of `answered` stays, so that its link goes on to answer.
    pub(in crate::store) async fn end_opt_ins(
        &mut self,
        email: &EmailAddress,
        kind: UnsubscribeKind,
        answered: Option<&str>,
        at: Timestamp,
    ) -> Result<(), StoreFailure> {
        let mailbox = email.mailbox();
        self.run(LOCK_MAILBOX, values![&mailbox, ""]).await?;
        let kept = match kind {
            UnsubscribeKind::Unsubscribe => None,
            UnsubscribeKind::NotMe => self.older_opt_in(email, &mailbox).await?,
        };
        let excepted = kept.as_deref().unwrap_or_default();
        let withdrawn = self.run(INSERT_WITHDRAWALS, values![&mailbox, excepted, at, kind.as_str()]).await?.affected;
        self.run(CLEAR_OPT_INS, values![&mailbox, excepted]).await?;
        for statement in [DELETE_MAILS, DELETE_CONSENTS] {
            self.run(statement, values![&mailbox, excepted]).await?;
        }
        self.run(DELETE_CONFIRMATIONS, values![&mailbox, excepted, answered.unwrap_or_default()]).await?;
        if kind == UnsubscribeKind::NotMe {
            self.suppress(email, SuppressionReason::NotMe, kept.as_deref(), at).await?;
        } else if withdrawn > 0 {
            let hash = self.address_hash_key().await?.hash(&mailbox);
            self.run(FORGET_ASKED, values![hash]).await?;
        }
        if withdrawn > 0 {
            let mut counts = Counts::default();
            let (day, what) = (Day::of(at), CountedEvent::Unsubscribe);
            counts.add_times(CountKey { day, what, via: "", name: String::new() }, withdrawn);
            self.add_counts(&counts).await?;
        }
        Ok(())
    }

    /// Returns the address of the mailbox whose opt-in counts for longest, if it is another one and older than that of `email`.
    async fn older_opt_in(&mut self, email: &EmailAddress, mailbox: &str) -> Result<Option<String>, StoreFailure> {
        let oldest = self.run(SELECT_OLDEST, values![mailbox, email.key()]).await?;
        let Some((address, oldest)) = oldest.first::<(String, Timestamp)>()? else { return Ok(None) };
        let (own,): (Option<Timestamp>,) = self.run(SELECT_OWN, values![email.key()]).await?.one()?;
        Ok(Some(address).filter(|_| own.is_none_or(|own| oldest < own)))
    }

    /// Gives an unsubscribe token to each of these people who has none. People who were erased meanwhile get none.
    pub(in crate::store) async fn insert_unsubscribe_tokens(
        &mut self,
        new: &[(EmailAddress, UnsubscribeToken)],
        at: Timestamp,
    ) -> Result<(), StoreFailure> {
        let rows = new.iter().map(|(email, token)| [token.as_str().into(), email.key().into(), at.into()]).collect();
        self.run_batch(INSERT_TOKENS, rows).await.map(drop)
    }
}

impl Store {
    pub async fn token_exists(&self, token: &UnsubscribeToken) -> Result<bool, StoreFailure> {
        Ok(self.run(COUNT_TOKENS, values![token.as_str()]).await?.one::<(i64,)>()?.0 > 0)
    }

    /// Ends every opt-in of the mailbox of the token's owner, as in `Transaction::end_opt_ins`, with those that wait for their
    /// confirmation. Returns `false` if the token is unknown.
    pub async fn unsubscribe(
        &self,
        token: &UnsubscribeToken,
        kind: UnsubscribeKind,
        at: Timestamp,
    ) -> Result<bool, StoreFailure> {
        // Anybody can invent tokens. An unknown one must not take the write lock.
        if !self.token_exists(token).await? {
            return Ok(false);
        }
        let mut tx = self.begin().await?;
        let owner = tx.run(SELECT_OWNER, values![token.as_str()]).await?;
        let Some((address, email)) = owner.first::<(String, String)>()? else { return Ok(false) };
        tx.end_opt_ins(&EmailAddress::from_stored(email, address), kind, None, at).await?;
        tx.commit().await?;
        Ok(true)
    }
}
