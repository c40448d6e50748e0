//! Mailboxes that are never mailed again, and single addresses that do not exist. They are stored as keyed hashes; one row stands
//! for all variants of a mailbox.

use std::collections::HashMap;

use crate::domain::mail::EmailAddress;
use crate::domain::people::{AddressHashKey, SuppressionReason};
use crate::domain::time::Timestamp;
use crate::store::connection::{BatchStatement, Rows, Store, StoreFailure, Transaction, Value, values};

const SELECT_HASH_KEY: &str = "SELECT value FROM secrets WHERE name = 'addresses'";

/// An earlier suppression keeps its reason, but not the address that it excepted, unless the new one excepts one as well.
const SUPPRESS: &str = "INSERT INTO suppressions (hash, at, reason, except_hash) VALUES ($1, $2, $3, $4) \
     ON CONFLICT (hash) DO UPDATE SET except_hash = NULL WHERE excluded.except_hash IS NULL";

/// `$1` and `$2` are the hashes under which the address may be suppressed, `$3` is its own.
const UNSUPPRESS: &str =
    "DELETE FROM suppressions WHERE hash IN ($1, $2) AND (except_hash IS NULL OR except_hash <> $3)";

/// For each address, and for its mailbox, the suppression that holds for the address.
const SELECT_SUPPRESSED: BatchStatement = BatchStatement::new(
    "hash text, address text",
    "SELECT batch.address, s.at, s.reason FROM batch JOIN suppressions s ON s.hash = batch.hash \
     WHERE s.except_hash IS NULL OR s.except_hash <> batch.address",
);

/// Since when and why addresses are suppressed.
pub(in crate::store) struct Suppressions {
    key: AddressHashKey,
    by_hash: HashMap<String, (Timestamp, SuppressionReason)>,
}

impl Suppressions {
    fn read(key: AddressHashKey, rows: Rows) -> Result<Self, StoreFailure> {
        let rows: Vec<(String, Timestamp, String)> = rows.all()?;
        let read = |(hash, at, reason): (String, _, String)| (hash, (at, SuppressionReason::from_stored(&reason)));
        Ok(Self { key, by_hash: rows.into_iter().map(read).collect() })
    }

    pub(in crate::store) fn get(&self, email: &EmailAddress) -> Option<(Timestamp, SuppressionReason)> {
        if self.by_hash.is_empty() { None } else { self.by_hash.get(&self.key.hash(email.key())).copied() }
    }
}

fn hashes<'a>(key: &AddressHashKey, people: impl IntoIterator<Item = &'a EmailAddress>) -> Vec<[Value<'static>; 2]> {
    let rows = people.into_iter().flat_map(|email| {
        let address = key.hash(email.key());
        key.suppression_hashes(email).map(|hash| [hash.into(), address.clone().into()])
    });
    rows.collect()
}

impl Transaction {
    pub(in crate::store) async fn address_hash_key(&mut self) -> Result<AddressHashKey, StoreFailure> {
        parse_hash_key(self.run(SELECT_HASH_KEY, &[]).await?)
    }

    pub(in crate::store) async fn is_suppressed(&mut self, email: &EmailAddress) -> Result<bool, StoreFailure> {
        let key = self.address_hash_key().await?;
        let rows = self.run_batch(SELECT_SUPPRESSED, hashes(&key, [email])).await?;
        Ok(Suppressions::read(key, rows)?.get(email).is_some())
    }

    /// Suppresses an address with its whole mailbox, but for one address of it, or alone if it does not exist. An earlier
    /// suppression keeps its reason.
    pub(in crate::store) async fn suppress(
        &mut self,
        email: &EmailAddress,
        reason: SuppressionReason,
        except: Option<&str>,
        at: Timestamp,
    ) -> Result<(), StoreFailure> {
        let key = self.address_hash_key().await?;
        let (hash, except) = (key.suppression_hash(email, reason), except.map(|address| key.hash(address)));
        self.run(SUPPRESS, values![hash, at, reason.as_str(), except]).await.map(drop)
    }
}

impl Store {
    pub(in crate::store) async fn suppressions(
        &self,
        people: impl IntoIterator<Item = &EmailAddress>,
    ) -> Result<Suppressions, StoreFailure> {
        let key = self.address_hash_key().await?;
        let rows = self.run_batch(SELECT_SUPPRESSED, hashes(&key, people)).await?;
        Suppressions::read(key, rows)
    }

    /// Suppresses an address, known or not, with its mailbox, or alone if it does not exist.
    pub async fn suppress(
        &self,
        email: &EmailAddress,
        reason: SuppressionReason,
        at: Timestamp,
    ) -> Result<(), StoreFailure> {
        let mut tx = self.begin().await?;
        tx.suppress(email, reason, None, at).await?;
        tx.commit().await
    }

    /// Lifts the suppression of an address and of its mailbox. Returns `false` if there was none.
    pub async fn unsuppress(&self, email: &EmailAddress) -> Result<bool, StoreFailure> {
        let key = self.address_hash_key().await?;
        let [alone, mailbox] = key.suppression_hashes(email);
        Ok(self.run(UNSUPPRESS, values![alone, mailbox, key.hash(email.key())]).await?.affected > 0)
    }

    pub(in crate::store) async fn address_hash_key(&self) -> Result<AddressHashKey, StoreFailure> {
        parse_hash_key(self.run(SELECT_HASH_KEY, &[]).await?)
    }
}

fn parse_hash_key(rows: Rows) -> Result<AddressHashKey, StoreFailure> {
    let (key,): (String,) = rows.one()?;
    AddressHashKey::parse(&key).ok_or_else(|| StoreFailure::invalid("the key of the address hashes"))
}
