//! Certificates from an ACME authority: when one is ordered, and what happens after a failure.
//!
//! Of several instances one orders at a time, and all of them use what it got: accounts, certificates and the answers to
//! challenges are in the database.
//!
//! Where the hosts or the authority have changed, a certificate that was ordered before is used until there is a new one, if it
//! is still valid for the host of the site.
//!
//! With a database server, a copy of the certificate is kept in a file, so that an instance starts with https while the server is
//! unavailable. The copy has the chain and the private key, never the account at the authority. It is read only at a start, and deleted if the
//! settings that it was ordered for have changed. Backups do not contain it.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tempfile::NamedTempFile;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::acme::{AcmeAccount, AcmeFailure, IssuedCertificate, PublishChallenge};
use crate::blocking::blocking;
use crate::clock::Clock;
use crate::config::AcmeSettings;
use crate::domain::rate_limit::Hourly;
use crate::domain::time::Timestamp;
use crate::store::{CertificateKey, OrderClaim, Store, StoreFailure, StoredCertificate, make_private_folder};
use crate::tls::{CertificateState, SiteCertificate};

/// How long one instance may take for an order before another one tries.
const LEASE: Duration = Duration::from_mins(5);

/// How long an order may take. It ends before another instance tries.
const ORDER_TIMEOUT: Duration = Duration::from_mins(4);

/// How long the answer to a challenge is kept.
const CHALLENGE_LIFETIME: Duration = Duration::from_hours(24);

/// How long to wait after the first failures in a row; after more, as long as after the last one. Let's Encrypt allows five
/// failed validations of a host in an hour.
const PAUSES: [Duration; 5] = [
    Duration::from_mins(1),
    Duration::from_mins(5),
    Duration::from_mins(15),
    Duration::from_mins(30),
    Duration::from_hours(1),
];

/// The longest pause that an authority may ask for. The limits of Let's Encrypt are for a week at most.
const MAX_WAIT: Duration = Duration::from_hours(7 * 24);

/// The certificate for the hosts of the site.
#[derive(Clone, Debug)]
pub struct CertificateOrders {
    pub clock: Clock,
    store: Store,
    email: String,
    ca_file: Option<PathBuf>,
    hosts: Vec<String>,
    key: CertificateKey,
    copy: Option<Arc<CertificateCopy>>,
    /// Issued, but not in the database yet. Authorities issue the same certificate only a few times a week.
    unsaved: Arc<Mutex<Option<IssuedCertificate>>>,
}

/// Why the certificate in use is not the one that the settings ask for.
const ORDERED_BEFORE: &str = "it was ordered for other host names or by another authority, and there is no new one yet";

impl CertificateOrders {
    pub fn new(settings: &AcmeSettings, hosts: Vec<String>, store: Store, clock: Clock) -> Self {
        let key = CertificateKey { directory: settings.directory.clone(), hosts: hosts.join(",") };
        let (email, ca_file) = (settings.email.clone(), settings.ca_file.clone());
        Self { store, clock, email, ca_file, hosts, key, copy: None, unsaved: Arc::default() }
    }

    /// Keeps a copy of the certificate in this folder, and starts with it while the database is unavailable.
    pub fn with_copy_in(self, folder: &Path) -> Self {
        let copy = CertificateCopy::open(folder, &self.email, &self.key.directory, &self.key.hosts);
        Self { copy: Some(Arc::new(copy)), ..self }
    }

    /// Returns what the service starts with, and orders nothing.
    pub async fn initial_state(&self) -> CertificateState {
        match self.state().await {
            Ok(state) => state,
            Err(failure) => CertificateState {
                certificate: self.copy.as_ref().and_then(|copy| copy.read()).map(Arc::new),
                failure: Some(failure.to_string()),
            },
        }
    }

    /// Returns the certificate in the database, after ordering one if it is due and nobody else does. An order that `stop`
    /// interrupts counts as an attempt, and another instance may try after the pause.
    pub async fn step(&self, stop: &CancellationToken) -> Result<CertificateState, StoreFailure> {
        if let Err(unsaved) = self.save_issued().await {
            return Ok(unsaved);
        }
        let stored = self.store.acme_certificate(&self.key).await?;
        let state = self.state_of(stored.as_ref()).await?;
        let now = self.clock.now();
        if stored.as_ref().and_then(read).is_some_and(|certificate| now < certificate.renewal()) {
            return Ok(state);
        }
        let failures = stored.as_ref().map_or(0, |stored| usize::try_from(stored.failures).unwrap_or_default());
        let pause = PAUSES[failures.min(PAUSES.len() - 1)];
        let mut claim = OrderClaim { now, lease_until: now.after(LEASE), next_attempt: now.after(pause) };
        if !self.store.claim_acme_order(&self.key, &claim, stored.as_ref()).await? {
            return Ok(state);
        }
        tracing::info!(hosts = self.key.hosts, "ordering a certificate");
        match stop.run_until_cancelled(timeout(ORDER_TIMEOUT, self.order())).await {
            None => self.store.release_acme_order(&self.key, &claim).await?,
            Some(Ok(Ok(issued))) => {
                tracing::info!(hosts = self.key.hosts, "certificate issued");
                *self.unsaved() = Some(issued);
                if let Err(unsaved) = self.save_issued().await {
                    tracing::warn!(failure = unsaved.failure, "the certificate is in use, and will be saved later");
                    return Ok(unsaved);
                }
                self.delete_abandoned().await?;
            }
            Some(failed) => {
                let (failure, wait) = match failed {
                    Ok(Err(failure)) => (failure.to_string(), failure.wait()),
                    _ => ("the authority did not finish the order in time".to_owned(), Duration::ZERO),
                };
                claim.next_attempt = self.clock.now().after(pause.max(wait.min(MAX_WAIT)));
                tracing::warn!(failure, next_attempt = claim.next_attempt.rfc3339(), "certificate order failed");
                self.store.record_acme_failure(&self.key, &claim, &failure).await?;
            }
        }
        self.store.delete_acme_challenges(now.before(CHALLENGE_LIFETIME)).await?;
        self.state().await
    }

    fn unsaved(&self) -> MutexGuard<'_, Option<IssuedCertificate>> {
        self.unsaved.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Saves the certificate that was issued and is not in the database yet, if there is one. If that fails, returns it, to be used
    /// all the same, and to be saved in the next step.
    async fn save_issued(&self) -> Result<(), CertificateState> {
        let Some(issued) = self.unsaved().clone() else { return Ok(()) };
        let (chain, private_key) = (&issued.chain, issued.private_key.expose());
        let Err(failure) = self.store.save_acme_certificate(&self.key, chain, private_key).await else {
            *self.unsaved() = None;
            return Ok(());
        };
        self.keep_copy(chain, private_key);
        let certificate = SiteCertificate::from_pem(chain.as_bytes(), private_key.as_bytes()).ok().map(Arc::new);
        Err(CertificateState { certificate, failure: Some(format!("the new one could not be saved: {failure}")) })
    }

    /// Deletes certificates, with their keys, that were ordered for other hosts or from another authority, and that nobody has renewed
    /// in time. Before that, an instance with other settings may use them, and would order anew.
    async fn delete_abandoned(&self) -> Result<(), StoreFailure> {
        let now = self.clock.now();
        for (key, chain, private_key) in self.store.acme_certificates().await? {
            let certificate = SiteCertificate::from_pem(chain.as_bytes(), private_key.as_bytes());
            if key != self.key && certificate.is_ok_and(|certificate| certificate.renewal() < now) {
                self.store.delete_acme_certificate(&key, &chain).await?;
            }
        }
        Ok(())
    }

    /// Returns the certificate in the database, and orders none.
    pub async fn state(&self) -> Result<CertificateState, StoreFailure> {
        let stored = self.store.acme_certificate(&self.key).await?;
        self.state_of(stored.as_ref()).await
    }

    async fn state_of(&self, stored: Option<&StoredCertificate>) -> Result<CertificateState, StoreFailure> {
        let failure = stored.and_then(|stored| {
            let failure = stored.failure.as_ref()?;
            Some(format!("{failure}; the next attempt is at {}", stored.next_attempt.rfc3339()))
        });
        let ordered = stored.and_then(read);
        if let Some(StoredCertificate { chain: Some(chain), private_key: Some(private_key), .. }) = stored
            && ordered.is_some()
        {
            self.keep_copy(chain, private_key);
        }
        if ordered.as_ref().is_some_and(|certificate| self.is_usable(certificate)) {
            return Ok(CertificateState { certificate: ordered.map(Arc::new), failure });
        }
        let earlier = self.earlier_certificate().await?;
        let failure = failure.or_else(|| earlier.as_ref().map(|_| ORDERED_BEFORE.to_owned()));
        Ok(CertificateState { certificate: earlier.or(ordered).map(Arc::new), failure })
    }

    fn is_usable(&self, certificate: &SiteCertificate) -> bool {
        certificate.covers(&self.hosts[0]) && self.clock.now() < certificate.expires()
    }

    /// Returns the best certificate that was ordered for other hosts, or by another authority, which browsers may not trust.
    async fn earlier_certificate(&self) -> Result<Option<SiteCertificate>, StoreFailure> {
        let stored = self.store.acme_certificates().await?;
        let certificates = stored.iter().filter_map(|(key, chain, private_key)| {
            let certificate = SiteCertificate::from_pem(chain.as_bytes(), private_key.as_bytes()).ok()?;
            Some((key.directory == self.key.directory, certificate))
        });
        let usable = certificates.filter(|(_, certificate)| self.is_usable(certificate));
        let best = usable.max_by_key(|(same_authority, certificate)| (*same_authority, certificate.expires()));
        Ok(best.map(|(_, certificate)| certificate))
    }

    fn keep_copy(&self, chain: &str, private_key: &str) {
        if let Some(copy) = &self.copy {
            blocking(|| copy.write(chain, private_key, self.clock.now()));
        }
    }

    /// Orders with the stored account, or with a new one if there is none, if the authority no longer knows it, or if it is
    /// damaged.
    async fn order(&self) -> Result<IssuedCertificate, AcmeFailure> {
        let storage = |failure: StoreFailure| AcmeFailure::Storage(failure.to_string());
        let stored = self.store.acme_account(&self.key.directory).await.map_err(storage)?;
        if let Some(credentials) = stored {
            let ordered = match AcmeAccount::restore(&credentials, self.ca_file.as_deref()).await {
                Ok(account) => account.order(&self.hosts, self).await,
                Err(failure) => Err(failure),
            };
            match ordered {
                Err(failure @ (AcmeFailure::UnknownAccount | AcmeFailure::Credentials(_))) => {
                    tracing::warn!(%failure, "opening a new account at the authority");
                }
                result => return result,
            }
        }
        let (account, credentials) =
            AcmeAccount::create(&self.key.directory, self.ca_file.as_deref(), &self.email).await?;
        self.store.save_acme_account(&self.key.directory, &credentials).await.map_err(storage)?;
        account.order(&self.hosts, self).await
    }
}

/// In the database, where every instance finds them.
impl PublishChallenge for CertificateOrders {
    async fn publish(&self, token: &str, answer: &str) -> Result<(), String> {
        let saved = self.store.save_acme_challenge(token, answer, self.clock.now()).await;
        saved.map_err(|failure| failure.to_string())
    }
}

/// What cannot be read is ordered anew.
fn read(stored: &StoredCertificate) -> Option<SiteCertificate> {
    let (chain, private_key) = (stored.chain.as_ref()?, stored.private_key.as_ref()?);
    SiteCertificate::from_pem(chain.as_bytes(), private_key.as_bytes()).ok()
}

#[derive(Debug)]
pub(super) struct CertificateCopy {
    path: PathBuf,
    /// The first line of the file, which says what the certificate is for.
    settings: String,
    failure: Hourly,
}

/// The beginning of the first line, by which the file is recognized before it is deleted.
const MARK: &str = "# Porchlight's copy of the certificate";

fn path_in(folder: &Path) -> PathBuf {
    folder.join("acme-certificate.pem")
}

/// Deletes the copy of a certificate that is no longer ordered.
pub fn delete_certificate_copy(folder: &Path) {
    let path = path_in(folder);
    if !fs::read(&path).is_ok_and(|text| text.starts_with(MARK.as_bytes())) {
        return;
    }
    if let Err(error) = fs::remove_file(&path) {
        tracing::warn!(%error, path = %path.display(), "cannot delete the copy of a certificate");
    }
}

impl CertificateCopy {
    /// Deletes a copy that was made for other settings.
    pub(super) fn open(folder: &Path, email: &str, directory: &str, hosts: &str) -> Self {
        let settings = format!("{MARK} of {hosts}, from {directory}, for {email}");
        let copy = Self { path: path_in(folder), settings, failure: Hourly::default() };
        if copy.read().is_none() {
            delete_certificate_copy(folder);
        }
        copy
    }

    pub(super) fn read(&self) -> Option<SiteCertificate> {
        let text = fs::read_to_string(&self.path).ok()?;
        let (settings, pem) = text.split_once('\n')?;
        let pem = Some(pem.as_bytes()).filter(|_| settings == self.settings)?;
        SiteCertificate::from_pem(pem, pem).ok()
    }

    /// Replaces the file, unless it has the same content. A failure is logged once an hour: the service can do without.
    pub(super) fn write(&self, chain: &str, private_key: &str, now: Timestamp) {
        let text = format!("{}\n{}\n{}\n", self.settings, chain.trim_end(), private_key.trim_end());
        if fs::read(&self.path).is_ok_and(|present| present == text.as_bytes()) {
            return;
        }
        if let Err(error) = self.replace(&text)
            && self.failure.is_due(now)
        {
            tracing::warn!(
                %error, path = %self.path.display(),
                "cannot write a copy of the certificate; without it there is no https after a start without the database"
            );
        }
    }

    fn replace(&self, text: &str) -> io::Result<()> {
        let folder = self.path.parent().unwrap_or(Path::new("."));
        make_private_folder(folder)?;
        // Only its owner can read a temporary file, whatever the umask.
        let mut file = NamedTempFile::new_in(folder)?;
        file.write_all(text.as_bytes())?;
        file.as_file().sync_all()?;
        file.persist(&self.path)?;
        Ok(())
    }
}
