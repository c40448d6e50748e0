//! Accounts, certificates and challenges of ACME, shared by all instances.

use std::fmt;
use std::time::Duration;

use super::connection::{Store, StoreFailure, from_row_struct, values};
use crate::domain::time::Timestamp;

const SELECT_ACCOUNT: &str = "SELECT credentials FROM acme_accounts WHERE directory = $1";

const SAVE_ACCOUNT: &str = "INSERT INTO acme_accounts (directory, credentials) VALUES ($1, $2) \
     ON CONFLICT (directory) DO UPDATE SET credentials = excluded.credentials";

const SELECT_CERTIFICATE: &str = "SELECT chain, private_key, failures, failure, next_attempt FROM acme_certificates \
     WHERE directory = $1 AND hosts = $2";

const SELECT_CERTIFICATES: &str = "SELECT directory, hosts, chain, private_key FROM acme_certificates \
     WHERE chain IS NOT NULL AND private_key IS NOT NULL";

const DELETE_CERTIFICATE: &str = "DELETE FROM acme_certificates WHERE directory = $1 AND hosts = $2 AND chain = $3";

const ENSURE_CERTIFICATE: &str = "INSERT INTO acme_certificates (directory, hosts, failures, next_attempt, lease_until) \
     VALUES ($1, $2, 0, 0, 0) ON CONFLICT (directory, hosts) DO NOTHING";

/// Of several instances, one succeeds, and only if the certificate is still the one that it knows. An order counts as failed
/// until it has succeeded, so that one that is interrupted counts, too. A time that is far ahead comes from a wrong clock.
const CLAIM_ORDER: &str = "UPDATE acme_certificates SET lease_until = $4, failures = failures + 1, next_attempt = $5 \
     WHERE directory = $1 AND hosts = $2 AND (lease_until <= $3 OR lease_until > $7) \
         AND (next_attempt <= $3 OR next_attempt > $8) AND COALESCE(chain, '') = $6";

const RELEASE_ORDER: &str =
    "UPDATE acme_certificates SET lease_until = 0 WHERE directory = $1 AND hosts = $2 AND lease_until = $3";

const SAVE_CERTIFICATE: &str = "UPDATE acme_certificates SET chain = $3, private_key = $4, failures = 0, failure = NULL, \
     next_attempt = 0, lease_until = 0 WHERE directory = $1 AND hosts = $2";

const RECORD_FAILURE: &str = "UPDATE acme_certificates SET failure = $3, next_attempt = $5, lease_until = 0 \
     WHERE directory = $1 AND hosts = $2 AND lease_until = $4";

const SAVE_CHALLENGE: &str = "INSERT INTO acme_challenges (token, answer, created_at) VALUES ($1, $2, $3) \
     ON CONFLICT (token) DO UPDATE SET answer = excluded.answer, created_at = excluded.created_at";

const SELECT_CHALLENGE: &str = "SELECT answer FROM acme_challenges WHERE token = $1";

const DELETE_CHALLENGES: &str = "DELETE FROM acme_challenges WHERE created_at < $1";

/// No order takes longer.
const MAX_LEASE: Duration = Duration::from_hours(1);
/// No pause between two orders is longer.
const MAX_PAUSE: Duration = Duration::from_hours(8 * 24);

/// The right to order.
#[derive(Clone, Copy, Debug)]
pub struct OrderClaim {
    pub now: Timestamp,
    /// Until when no other instance orders.
    pub lease_until: Timestamp,
    /// When the next order may begin if this one does not succeed.
    pub next_attempt: Timestamp,
}

/// Which certificate: the authority that issues it, and the host names, separated by commas.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateKey {
    pub directory: String,
    pub hosts: String,
}

from_row_struct! {
    /// What is known of a certificate.
    #[derive(Clone)]
    pub struct StoredCertificate {
        pub chain: Option<String>,
        pub private_key: Option<String>,
        pub failures: i64,
        pub failure: Option<String>,
        pub next_attempt: Timestamp,
    }
}

/// Leaves out the key.
impl fmt::Debug for StoredCertificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoredCertificate").field("failure", &self.failure).finish_non_exhaustive()
    }
}

impl Store {
    /// Returns the credentials of the account at this authority.
    pub async fn acme_account(&self, directory: &str) -> Result<Option<String>, StoreFailure> {
        Ok(self.run(SELECT_ACCOUNT, values![directory]).await?.column()?.pop())
    }

    pub async fn save_acme_account(&self, directory: &str, credentials: &str) -> Result<(), StoreFailure> {
        self.run(SAVE_ACCOUNT, values![directory, credentials]).await.map(drop)
    }

    pub async fn acme_certificate(&self, key: &CertificateKey) -> Result<Option<StoredCertificate>, StoreFailure> {
        self.run(SELECT_CERTIFICATE, values![&key.directory, &key.hosts]).await?.first()
    }

    /// Returns every certificate, whatever hosts it was ordered for, with its chain and its private key.
    pub async fn acme_certificates(&self) -> Result<Vec<(CertificateKey, String, String)>, StoreFailure> {
        let rows: Vec<(String, String, String, String)> = self.run(SELECT_CERTIFICATES, &[]).await?.all()?;
        let key = |directory, hosts| CertificateKey { directory, hosts };
        Ok(rows.into_iter().map(|(directory, hosts, chain, secret)| (key(directory, hosts), chain, secret)).collect())
    }

    /// Deletes a certificate with its private key, unless another one has replaced it.
    pub async fn delete_acme_certificate(&self, key: &CertificateKey, chain: &str) -> Result<(), StoreFailure> {
        self.run(DELETE_CERTIFICATE, values![&key.directory, &key.hosts, chain]).await.map(drop)
    }

    /// Takes the right to order. Returns `false` if another instance has it, if it is too early, or if there is another
    /// certificate than `known`.
    pub async fn claim_acme_order(
        &self,
        key: &CertificateKey,
        claim: &OrderClaim,
        known: Option<&StoredCertificate>,
    ) -> Result<bool, StoreFailure> {
        let CertificateKey { directory, hosts } = key;
        let OrderClaim { now, lease_until, next_attempt } = *claim;
        let chain = known.and_then(|known| known.chain.as_deref()).unwrap_or_default();
        self.run(ENSURE_CERTIFICATE, values![directory, hosts]).await?;
        let (latest_lease, latest_attempt) = (now.after(MAX_LEASE), now.after(MAX_PAUSE));
        let values = values![directory, hosts, now, lease_until, next_attempt, chain, latest_lease, latest_attempt];
        Ok(self.run(CLAIM_ORDER, values).await?.affected == 1)
    }

    /// Gives up the right to order.
    pub async fn release_acme_order(&self, key: &CertificateKey, claim: &OrderClaim) -> Result<(), StoreFailure> {
        self.run(RELEASE_ORDER, values![&key.directory, &key.hosts, claim.lease_until]).await.map(drop)
    }

    /// Records an order that succeeded.
    pub async fn save_acme_certificate(
        &self,
        key: &CertificateKey,
        chain: &str,
        private_key: &str,
    ) -> Result<(), StoreFailure> {
        self.run(SAVE_CERTIFICATE, values![&key.directory, &key.hosts, chain, private_key]).await.map(drop)
    }

    /// Records why an order failed and when the next one may begin, unless another instance has taken over.
    pub async fn record_acme_failure(
        &self,
        key: &CertificateKey,
        claim: &OrderClaim,
        failure: &str,
    ) -> Result<(), StoreFailure> {
        let values = values![&key.directory, &key.hosts, failure, claim.lease_until, claim.next_attempt];
        self.run(RECORD_FAILURE, values).await.map(drop)
    }

    pub async fn save_acme_challenge(&self, token: &str, answer: &str, now: Timestamp) -> Result<(), StoreFailure> {
        self.run(SAVE_CHALLENGE, values![token, answer, now]).await.map(drop)
    }

    /// Returns the answer to a challenge.
    pub async fn acme_challenge(&self, token: &str) -> Result<Option<String>, StoreFailure> {
        Ok(self.run(SELECT_CHALLENGE, values![token]).await?.column()?.pop())
    }

    pub async fn delete_acme_challenges(&self, before: Timestamp) -> Result<(), StoreFailure> {
        self.run(DELETE_CHALLENGES, values![before]).await.map(drop)
    }
}
