//! Unsubscribe tokens, withdrawals of consent, and suppressions.

use std::collections::HashMap;

use crate::domain::letters::{UnsubscribeKind, UnsubscribeToken};
use crate::domain::mail::EmailAddress;
use crate::domain::people::{AddressHashKey, SuppressionReason};
use crate::domain::statistics::{CountedEvent, Counts};
use crate::domain::time::{Day, Timestamp};
use crate::store::connection::{BatchStatement, Rows, Statement, Store, StoreFailure, Transaction, values};

/// A person who gets the letter, and their current opt-in.
#[derive(Clone, Debug)]
pub struct Recipient {
    pub email: EmailAddress,
    pub opted_in_at: Timestamp,
    pub origin: &'static str,
}

const SELECT_HASH_KEY: &str = "SELECT value FROM secrets WHERE name = 'addresses'";

const INSERT_TOKENS: BatchStatement = BatchStatement::new(
    "token text, address text, at bigint",
    "INSERT INTO unsubscribe_tokens (token, address, at) SELECT * FROM batch \
     WHERE address IN (SELECT address FROM people) ON CONFLICT (address) DO NOTHING",
);

const SELECT_TOKENS: BatchStatement = BatchStatement::new(
    "address text",
    "SELECT address, token FROM unsubscribe_tokens WHERE address IN (SELECT address FROM batch)",
);

const COUNT_TOKENS: &str = "SELECT COUNT(*) FROM unsubscribe_tokens WHERE token = $1";

/// Locks the person until the commit, so that no opt-in comes in between.
const SELECT_OWNER: Statement = Statement {
    sqlite: "SELECT p.address, p.email FROM unsubscribe_tokens t JOIN people p ON p.address = t.address \
             WHERE t.token = $1",
    postgres: "SELECT p.address, p.email FROM unsubscribe_tokens t JOIN people p ON p.address = t.address \
               WHERE t.token = $1 FOR UPDATE OF p",
};

/// Records the withdrawal of the current consent, if there is one.
const INSERT_WITHDRAWAL: &str = "INSERT INTO withdrawals (consent, address, at, how) \
     SELECT opt_in, address, $2, $3 FROM people WHERE address = $1 AND opt_in IS NOT NULL \
     ON CONFLICT (consent) DO NOTHING";

const CLEAR_OPT_IN: &str = "UPDATE people SET opt_in = NULL WHERE address = $1";

const SUPPRESS: &str = "INSERT INTO suppressions (hash, at, reason) VALUES ($1, $2, $3) ON CONFLICT (hash) DO NOTHING";

const UNSUPPRESS: &str = "DELETE FROM suppressions WHERE hash = $1";

const COUNT_SUPPRESSIONS: &str = "SELECT COUNT(*) FROM suppressions WHERE hash = $1";

impl Transaction {
    pub(in crate::store) async fn address_hash_key(&mut self) -> Result<AddressHashKey, StoreFailure> {
        parse_hash_key(self.run(SELECT_HASH_KEY, &[]).await?)
    }

    pub(in crate::store) async fn is_suppressed(&mut self, hash: &str) -> Result<bool, StoreFailure> {
        Ok(self.run(COUNT_SUPPRESSIONS, values![hash]).await?.one::<(i64,)>()?.0 > 0)
    }

    /// Suppresses an address. An earlier suppression keeps its reason.
    pub(in crate::store) async fn suppress(
        &mut self,
        email: &EmailAddress,
        reason: SuppressionReason,
        at: Timestamp,
    ) -> Result<(), StoreFailure> {
        let hash = self.address_hash_key().await?.hash(email);
        self.run(SUPPRESS, values![hash, at, reason.as_str()]).await.map(drop)
    }

    /// Withdraws the current opt-in of a person whose row is locked, if there is one, and counts that.
    /// [`UnsubscribeKind::NotMe`] also suppresses the address.
    pub(in crate::store) async fn withdraw_opt_in(
        &mut self,
        email: &EmailAddress,
        kind: UnsubscribeKind,
        at: Timestamp,
    ) -> Result<(), StoreFailure> {
        let withdrawn = self.run(INSERT_WITHDRAWAL, values![email.key(), at, kind.as_str()]).await?.affected;
        self.run(CLEAR_OPT_IN, values![email.key()]).await?;
        if kind == UnsubscribeKind::NotMe {
            self.suppress(email, SuppressionReason::NotMe, at).await?;
        }
        if withdrawn > 0 {
            let mut counts = Counts::default();
            counts.add_unnamed(Day::of(at), CountedEvent::Unsubscribe, None);
            self.add_counts(&counts).await?;
        }
        Ok(())
    }
}

impl Store {
    /// Returns the token of each of these people by normalized address. A person without a token gets the given new
    /// one; one who was erased meanwhile gets none.
    pub async fn ensure_unsubscribe_tokens(
        &self,
        new: &[(EmailAddress, UnsubscribeToken)],
        at: Timestamp,
    ) -> Result<HashMap<String, UnsubscribeToken>, StoreFailure> {
        let rows = new.iter().map(|(email, token)| [token.as_str().into(), email.key().into(), at.into()]).collect();
        let addresses = new.iter().map(|(email, _)| [email.key().into()]).collect();
        let mut tx = self.begin().await?;
        tx.run_batch(INSERT_TOKENS, rows).await?;
        let tokens: Vec<(String, String)> = tx.run_batch(SELECT_TOKENS, addresses).await?.all()?;
        tx.commit().await?;
        let read = |(address, token): (String, String)| Some((address, UnsubscribeToken::parse(&token)?));
        Ok(tokens.into_iter().filter_map(read).collect())
    }

    pub async fn token_exists(&self, token: &UnsubscribeToken) -> Result<bool, StoreFailure> {
        Ok(self.run(COUNT_TOKENS, values![token.as_str()]).await?.one::<(i64,)>()?.0 > 0)
    }

    /// Withdraws the current opt-in of the token's owner, if there is one, and forgets one that waits for its
    /// confirmation. [`UnsubscribeKind::NotMe`] also suppresses the address. Returns `false` if the token is unknown.
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
        tx.delete_confirmations(std::slice::from_ref(&address)).await?;
        tx.withdraw_opt_in(&EmailAddress::from_stored(email, address), kind, at).await?;
        tx.commit().await?;
        Ok(true)
    }

    /// Suppresses an address, known or not. An earlier suppression keeps its reason.
    pub async fn suppress(
        &self,
        email: &EmailAddress,
        reason: SuppressionReason,
        at: Timestamp,
    ) -> Result<(), StoreFailure> {
        let mut tx = self.begin().await?;
        tx.suppress(email, reason, at).await?;
        tx.commit().await
    }

    /// Lifts a suppression. Returns `false` if there was none.
    pub async fn unsuppress(&self, email: &EmailAddress) -> Result<bool, StoreFailure> {
        let hash = self.address_hash_key().await?.hash(email);
        Ok(self.run(UNSUPPRESS, values![hash]).await?.affected > 0)
    }

    pub(in crate::store) async fn address_hash_key(&self) -> Result<AddressHashKey, StoreFailure> {
        parse_hash_key(self.run(SELECT_HASH_KEY, &[]).await?)
    }
}

fn parse_hash_key(rows: Rows) -> Result<AddressHashKey, StoreFailure> {
    let (key,): (String,) = rows.one()?;
    AddressHashKey::parse(&key).ok_or_else(|| StoreFailure::invalid("the key of the address hashes"))
}
