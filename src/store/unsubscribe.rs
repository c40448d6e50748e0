//! Unsubscribe tokens, withdrawals of consent, and suppressions.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::confirmations::{DELETE_CONFIRMATION, DELETE_PENDING_CONSENT};
use super::outbox::invalid;
use super::statement::{Statement, batch_statement, in_transaction, on_pool};
use super::{Store, StoreFailure};
use crate::domain::calendar::Day;
use crate::domain::consent::OptInOrigin;
use crate::domain::counts::{CountedEvent, Counts};
use crate::domain::email::EmailAddress;
use crate::domain::suppression::{AddressHashKey, SuppressionReason};
use crate::domain::time::Timestamp;
use crate::domain::unsubscribe::{UnsubscribeKind, UnsubscribeToken};

/// A person who gets the letter, and their current opt-in.
#[derive(Clone, Debug)]
pub struct Recipient {
    pub email: EmailAddress,
    pub opted_in_at: Timestamp,
    pub origin: OptInOrigin,
}

pub(super) const SELECT_HASH_KEY: &str = "SELECT value FROM secrets WHERE name = 'addresses'";

const INSERT_TOKENS: Statement = batch_statement!(
    "INSERT INTO unsubscribe_tokens (token, address, at) SELECT batch.token, batch.address, $2",
    (token text, address text),
    "AND batch.address IN (SELECT address FROM people) ON CONFLICT (address) DO NOTHING"
);

const SELECT_TOKENS: Statement = batch_statement!(
    "SELECT address, token FROM unsubscribe_tokens WHERE address IN (SELECT batch.address",
    (address text),
    ")"
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
pub(super) const INSERT_WITHDRAWAL: &str = "INSERT INTO withdrawals (consent, address, at, how) \
     SELECT opt_in, address, $2, $3 FROM people WHERE address = $1 AND opt_in IS NOT NULL \
     ON CONFLICT (consent) DO NOTHING";

pub(super) const CLEAR_OPT_IN: &str = "UPDATE people SET opt_in = NULL WHERE address = $1";

pub(super) const SUPPRESS: &str =
    "INSERT INTO suppressions (hash, at, reason) VALUES ($1, $2, $3) ON CONFLICT (hash) DO NOTHING";

const UNSUPPRESS: &str = "DELETE FROM suppressions WHERE hash = $1";

/// Withdraws the current opt-in of a person whose row is locked, if there is one, and counts that. [`UnsubscribeKind::NotMe`]
/// also suppresses the address.
macro_rules! withdraw_opt_in {
    ($tx:ident, $sql:ident, $address:ident, $email:ident, $kind:expr, $at:expr) => {{
        use $crate::store::counts::{ADD_COUNTS, counts_batch};
        use $crate::store::unsubscribe::{
            CLEAR_OPT_IN, INSERT_WITHDRAWAL, SELECT_HASH_KEY, SUPPRESS, parse_hash_key, unsubscribe_counts,
        };
        let (kind, at) = ($kind, $at.unix_millis());
        let withdrawal = sqlx::query(INSERT_WITHDRAWAL).bind(&$address).bind(at).bind(kind.as_str());
        let withdrawn = withdrawal.execute(&mut *$tx).await?.rows_affected();
        sqlx::query(CLEAR_OPT_IN).bind(&$address).execute(&mut *$tx).await?;
        if kind == $crate::domain::unsubscribe::UnsubscribeKind::NotMe {
            let (key,): (String,) = sqlx::query_as(SELECT_HASH_KEY).fetch_one(&mut *$tx).await?;
            let email = $crate::domain::email::EmailAddress::from_stored($email, $address);
            let reason = $crate::domain::suppression::SuppressionReason::NotMe.as_str();
            let suppress = sqlx::query(SUPPRESS).bind(parse_hash_key(&key)?.hash(&email)).bind(at).bind(reason);
            suppress.execute(&mut *$tx).await?;
        }
        if withdrawn > 0 {
            let counts = counts_batch(&unsubscribe_counts($at));
            sqlx::query($sql(ADD_COUNTS)).bind(counts).execute(&mut *$tx).await?;
        }
    }};
}

pub(super) use withdraw_opt_in;

pub(super) fn unsubscribe_counts(at: Timestamp) -> Counts {
    let mut counts = Counts::default();
    counts.add_unnamed(Day::of(at), CountedEvent::Unsubscribe, None);
    counts
}

impl Store {
    /// Returns the token of each of these people by normalized address. A person without a token gets the given new
    /// one; one who was erased meanwhile gets none.
    pub async fn ensure_unsubscribe_tokens(
        &self,
        new: &[(EmailAddress, UnsubscribeToken)],
        at: Timestamp,
    ) -> Result<HashMap<String, UnsubscribeToken>, StoreFailure> {
        let batch = new.iter().map(|(email, token)| json!({ "address": email.key(), "token": token.as_str() }));
        let batch = batch.collect::<Value>().to_string();
        let rows: Vec<(String, String)> = in_transaction!(self, |tx, sql| {
            sqlx::query(sql(INSERT_TOKENS)).bind(&batch).bind(at.unix_millis()).execute(&mut *tx).await?;
            sqlx::query_as(sql(SELECT_TOKENS)).bind(&batch).fetch_all(&mut *tx).await?
        });
        let read = |(address, token): (String, String)| Some((address, UnsubscribeToken::parse(&token)?));
        Ok(rows.into_iter().filter_map(read).collect())
    }

    pub async fn token_exists(&self, token: &UnsubscribeToken) -> Result<bool, StoreFailure> {
        let (tokens,): (i64,) =
            on_pool!(self, |pool| sqlx::query_as(COUNT_TOKENS).bind(token.as_str()).fetch_one(pool).await?);
        Ok(tokens > 0)
    }

    /// Withdraws the current opt-in of the token's owner, if there is one, and forgets one that waits for its
    /// confirmation. [`UnsubscribeKind::NotMe`] also suppresses
    /// the address. Returns `false` if the token is unknown.
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
        in_transaction!(self, |tx, sql| {
            let owner: Option<(String, String)> =
                sqlx::query_as(sql(SELECT_OWNER)).bind(token.as_str()).fetch_optional(&mut *tx).await?;
            let Some((address, email)) = owner else { return Ok(false) };
            for statement in [DELETE_PENDING_CONSENT, DELETE_CONFIRMATION] {
                sqlx::query(statement).bind(&address).execute(&mut *tx).await?;
            }
            withdraw_opt_in!(tx, sql, address, email, kind, at);
        });
        Ok(true)
    }

    /// Suppresses an address, known or not. An earlier suppression keeps its reason.
    pub async fn suppress(
        &self,
        email: &EmailAddress,
        reason: SuppressionReason,
        at: Timestamp,
    ) -> Result<(), StoreFailure> {
        let hash = self.address_hash_key().await?.hash(email);
        on_pool!(self, |pool| {
            sqlx::query(SUPPRESS).bind(&hash).bind(at.unix_millis()).bind(reason.as_str()).execute(pool).await?;
        });
        Ok(())
    }

    /// Lifts a suppression. Returns `false` if there was none.
    pub async fn unsuppress(&self, email: &EmailAddress) -> Result<bool, StoreFailure> {
        let hash = self.address_hash_key().await?.hash(email);
        let lifted = on_pool!(self, |pool| sqlx::query(UNSUPPRESS).bind(&hash).execute(pool).await?.rows_affected());
        Ok(lifted > 0)
    }

    pub(super) async fn address_hash_key(&self) -> Result<AddressHashKey, StoreFailure> {
        let (key,): (String,) = on_pool!(self, |pool| sqlx::query_as(SELECT_HASH_KEY).fetch_one(pool).await?);
        parse_hash_key(&key)
    }
}

pub(super) fn parse_origin(via: &str, from_program: Option<i64>) -> OptInOrigin {
    OptInOrigin::of(via, from_program.map(|program| program != 0))
}

pub(super) fn parse_hash_key(text: &str) -> Result<AddressHashKey, StoreFailure> {
    AddressHashKey::parse(text).ok_or_else(|| invalid("the key of the address hashes"))
}
