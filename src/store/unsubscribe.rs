//! Who gets the monthly email, and leaving it: tokens, opt-ins taken back, and suppressions.

use std::collections::{HashMap, HashSet};

use serde_json::{Value, json};

use super::counts::{ADD_COUNTS, counts_batch};
use super::statement::{Statement, in_transaction, on_pool, over_batch};
use super::{Store, StoreFailure};
use crate::domain::calendar::Day;
use crate::domain::counts::{CountedEvent, Counts};
use crate::domain::email::EmailAddress;
use crate::domain::suppression::{AddressHashKey, SuppressionReason};
use crate::domain::time::Timestamp;
use crate::domain::unsubscribe::{UnsubscribeKind, UnsubscribeToken};

/// Somebody who would be mailed now, and the opt-in that says so.
#[derive(Clone, Debug)]
pub struct Recipient {
    pub email: EmailAddress,
    pub opted_in_at: Timestamp,
    pub via: String,
    pub source: Option<String>,
}

pub(super) const SELECT_KEY: &str = "SELECT value FROM secrets WHERE name = 'addresses'";

const INSERT_TOKENS: Statement = over_batch!(
    "INSERT INTO unsubscribe_tokens (token, address, at) SELECT batch.token, batch.address, $2",
    (token text, address text),
    "AND batch.address IN (SELECT address FROM people) ON CONFLICT (address) DO NOTHING"
);

const SELECT_TOKENS: Statement = over_batch!(
    "SELECT address, token FROM unsubscribe_tokens WHERE address IN (SELECT batch.address",
    (address text),
    ")"
);

const COUNT_HOLDERS: &str = "SELECT COUNT(*) FROM unsubscribe_tokens WHERE token = $1";

/// Held until the end of the transaction, so that no opt-in comes in between.
const SELECT_HOLDER: Statement = Statement {
    sqlite: "SELECT p.address, p.email FROM unsubscribe_tokens t JOIN people p ON p.address = t.address \
             WHERE t.token = $1",
    postgres: "SELECT p.address, p.email FROM unsubscribe_tokens t JOIN people p ON p.address = t.address \
               WHERE t.token = $1 FOR UPDATE OF p",
};

/// The consent that stood is kept as taken back; there is at most one.
const INSERT_WITHDRAWAL: &str = "INSERT INTO withdrawals (consent, address, at, how) \
     SELECT opt_in, address, $2, $3 FROM people WHERE address = $1 AND opt_in IS NOT NULL \
     ON CONFLICT (consent) DO NOTHING";

const WITHDRAW: &str = "UPDATE people SET opt_in = NULL WHERE address = $1";

const SUPPRESS: &str = "INSERT INTO suppressions (hash, at, reason) VALUES ($1, $2, $3) ON CONFLICT (hash) DO NOTHING";

const UNSUPPRESS: &str = "DELETE FROM suppressions WHERE hash = $1";

const SELECT_SUPPRESSED: &str = "SELECT hash FROM suppressions";

const SELECT_OPTED_IN: &str = "SELECT p.email, c.at, c.via, c.source FROM people p \
     JOIN consents c ON c.id = p.opt_in AND c.address = p.address ORDER BY p.address";

impl Store {
    /// The token of each of these people: the one they have, or the fresh one that comes along. Who
    /// was erased meanwhile gets none.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn ensure_unsubscribe_tokens(
        &self,
        fresh: &[(EmailAddress, UnsubscribeToken)],
        at: Timestamp,
    ) -> Result<HashMap<String, UnsubscribeToken>, StoreFailure> {
        let batch = fresh.iter().map(|(email, token)| json!({ "address": email.key(), "token": token.as_str() }));
        let batch = batch.collect::<Value>().to_string();
        let rows: Vec<(String, String)> = in_transaction!(self, |tx, words| {
            sqlx::query(words(INSERT_TOKENS)).bind(&batch).bind(at.unix_millis()).execute(&mut *tx).await?;
            sqlx::query_as(words(SELECT_TOKENS)).bind(&batch).fetch_all(&mut *tx).await?
        });
        let read = |(address, token): (String, String)| Some((address, UnsubscribeToken::parse(&token)?));
        Ok(rows.into_iter().filter_map(read).collect())
    }

    /// # Errors
    /// When the database does not answer.
    pub async fn token_exists(&self, token: &UnsubscribeToken) -> Result<bool, StoreFailure> {
        let (holders,): (i64,) =
            on_pool!(self, |pool| sqlx::query_as(COUNT_HOLDERS).bind(token.as_str()).fetch_one(pool).await?);
        Ok(holders > 0)
    }

    /// Takes back the opt-in of whoever has this token, if one stands, and suppresses the address if
    /// it was never theirs. False when nobody has it.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn unsubscribe(
        &self,
        token: &UnsubscribeToken,
        how: UnsubscribeKind,
        at: Timestamp,
    ) -> Result<bool, StoreFailure> {
        let mut counts = Counts::default();
        counts.add_unnamed(Day::of(at), CountedEvent::Unsubscribe, None);
        let (at, counts) = (at.unix_millis(), counts_batch(&counts));
        in_transaction!(self, |tx, words| {
            let holder: Option<(String, String)> =
                sqlx::query_as(words(SELECT_HOLDER)).bind(token.as_str()).fetch_optional(&mut *tx).await?;
            let Some((address, email)) = holder else { return Ok(false) };
            let withdrawal = sqlx::query(INSERT_WITHDRAWAL).bind(&address).bind(at).bind(how.as_str());
            let withdrawn = withdrawal.execute(&mut *tx).await?.rows_affected();
            sqlx::query(WITHDRAW).bind(&address).execute(&mut *tx).await?;
            if how == UnsubscribeKind::NotMe {
                let (key,): (String,) = sqlx::query_as(SELECT_KEY).fetch_one(&mut *tx).await?;
                let hash = read_key(&key)?.hash(&stored(&email)?);
                let reason = SuppressionReason::NotMe.as_str();
                sqlx::query(SUPPRESS).bind(hash).bind(at).bind(reason).execute(&mut *tx).await?;
            }
            if withdrawn > 0 {
                sqlx::query(words(ADD_COUNTS)).bind(&counts).execute(&mut *tx).await?;
            }
        });
        Ok(true)
    }

    /// Has an address, known or not, never mailed again. What stood first stands.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn suppress(
        &self,
        email: &EmailAddress,
        reason: SuppressionReason,
        at: Timestamp,
    ) -> Result<(), StoreFailure> {
        let hash = self.address_key().await?.hash(email);
        on_pool!(self, |pool| {
            sqlx::query(SUPPRESS).bind(&hash).bind(at.unix_millis()).bind(reason.as_str()).execute(pool).await?;
        });
        Ok(())
    }

    /// Lets an address be mailed again, if its owner wants that. False when it was not suppressed.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn unsuppress(&self, email: &EmailAddress) -> Result<bool, StoreFailure> {
        let hash = self.address_key().await?.hash(email);
        let lifted = on_pool!(self, |pool| sqlx::query(UNSUPPRESS).bind(&hash).execute(pool).await?.rows_affected());
        Ok(lifted > 0)
    }

    /// Everybody whom the monthly email would go to now: who opted in, has not taken it back since,
    /// and is not suppressed.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn recipients(&self) -> Result<Vec<Recipient>, StoreFailure> {
        type Row = (String, i64, String, Option<String>);
        let key = self.address_key().await?;
        let rows: Vec<Row> = on_pool!(self, |pool| sqlx::query_as(SELECT_OPTED_IN).fetch_all(pool).await?);
        let hashes: Vec<(String,)> = on_pool!(self, |pool| sqlx::query_as(SELECT_SUPPRESSED).fetch_all(pool).await?);
        let suppressed: HashSet<String> = hashes.into_iter().map(|(hash,)| hash).collect();
        let mut recipients = Vec::with_capacity(rows.len());
        for (email, at, via, source) in rows {
            let email = stored(&email)?;
            if suppressed.is_empty() || !suppressed.contains(&key.hash(&email)) {
                recipients.push(Recipient { email, opted_in_at: Timestamp::from_unix_millis(at), via, source });
            }
        }
        Ok(recipients)
    }

    pub(super) async fn address_key(&self) -> Result<AddressHashKey, StoreFailure> {
        let (key,): (String,) = on_pool!(self, |pool| sqlx::query_as(SELECT_KEY).fetch_one(pool).await?);
        read_key(&key)
    }
}

pub(super) fn read_key(text: &str) -> Result<AddressHashKey, StoreFailure> {
    AddressHashKey::parse(text).ok_or_else(|| StoreFailure::Refused("the key of the addresses is not one".to_owned()))
}

pub(super) fn stored(email: &str) -> Result<EmailAddress, StoreFailure> {
    EmailAddress::parse(email)
        .map_err(|_| StoreFailure::Refused("an address is not of a form that was ever stored".to_owned()))
}
