//! The site's certificate while the service runs: from files that are read again when they change, or from an ACME authority.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use crate::actions::{CertificateOrders, CertificateState, CertificateStatus};
use crate::clock::Clock;
use crate::config::{CertificateFiles, InvalidSettings};
use crate::tls::{SiteCertificate, server_config};

/// How often the files are looked at.
const FILES_INTERVAL: Duration = Duration::from_secs(5);
/// How often the database is asked for a newer certificate, and whether one has to be ordered.
const ORDERS_INTERVAL: Duration = Duration::from_secs(15);

/// The certificate of the public listener, and where it comes from.
#[derive(Clone, Debug)]
pub(super) struct ServedCertificate {
    source: Source,
    clock: Clock,
    pub(super) status: CertificateStatus,
}

#[derive(Clone, Debug)]
enum Source {
    /// The files, the host names that it must be for, and what the files were when they were read.
    Files(CertificateFiles, Vec<String>, Fingerprint),
    Orders(CertificateOrders),
}

impl ServedCertificate {
    pub(super) fn from_files(
        files: CertificateFiles,
        hosts: Vec<String>,
        clock: Clock,
    ) -> Result<Self, InvalidSettings> {
        let seen = fingerprint(&files);
        let certificate = SiteCertificate::read(&files, &hosts)?;
        let served = Self::new(Source::Files(files, hosts, seen), clock);
        served.replace(certificate, None);
        Ok(served)
    }

    /// Begins with what is in the database, if there is something, so that a restart orders nothing.
    pub(super) async fn from_orders(orders: CertificateOrders) -> Self {
        let initial = orders.initial_state().await;
        let clock = orders.clock.clone();
        let served = Self::new(Source::Orders(orders), clock);
        served.show(initial);
        served
    }

    fn new(source: Source, clock: Clock) -> Self {
        Self { source, clock, status: CertificateStatus::default() }
    }

    pub(super) fn acceptor(&self) -> Result<TlsAcceptor, InvalidSettings> {
        let config = server_config(Arc::clone(&self.status.0)).map_err(|why| InvalidSettings::new("tls_cert", why))?;
        Ok(TlsAcceptor::from(config))
    }

    /// Replaces the certificate whenever there is a newer one.
    pub(super) async fn follow(self, stop: CancellationToken) {
        match &self.source {
            Source::Files(files, hosts, seen) => self.follow_files(files, hosts, *seen, stop).await,
            Source::Orders(orders) => self.follow_orders(orders, stop).await,
        }
    }

    /// A pair that cannot be used leaves the present one in use.
    async fn follow_files(
        &self,
        files: &CertificateFiles,
        hosts: &[String],
        mut seen: Fingerprint,
        stop: CancellationToken,
    ) {
        while stop.run_until_cancelled(sleep(FILES_INTERVAL)).await.is_some() {
            let present = fingerprint(files);
            if present == seen {
                continue;
            }
            seen = present;
            match SiteCertificate::read(files, hosts) {
                Ok(certificate) => self.replace(certificate, None),
                Err(failure) => {
                    tracing::warn!(%failure, "the changed certificate cannot be used; the previous one stays in use");
                    self.status.failed(failure.to_string());
                }
            }
        }
    }

    async fn follow_orders(&self, orders: &CertificateOrders, stop: CancellationToken) {
        loop {
            let mut pause = ORDERS_INTERVAL;
            match orders.step(&stop).await {
                Ok(state) => {
                    let until_renewal = state.renewal.map(|renewal| orders.clock.now().until(renewal));
                    pause = until_renewal.filter(|left| !left.is_zero()).map_or(pause, |left| pause.min(left));
                    self.show(state);
                }
                Err(failure) => self.status.failed(failure.to_string()),
            }
            if stop.run_until_cancelled(sleep(pause)).await.is_none() {
                return;
            }
        }
    }

    fn show(&self, CertificateState { certificate, failure, .. }: CertificateState) {
        match (certificate, failure) {
            (Some(certificate), failure) => self.replace(certificate, failure),
            (None, Some(failure)) => self.status.failed(failure),
            (None, None) => {}
        }
    }

    /// Uses the certificate from now on. `failure` is why there is no newer one.
    fn replace(&self, certificate: SiteCertificate, failure: Option<String>) {
        let current = self.status.0.state().certificate;
        if current.is_none_or(|current| !current.is_same_as(&certificate)) {
            let until = certificate.expires().rfc3339();
            if certificate.expires() < self.clock.now() {
                tracing::warn!(until, "the certificate in use has expired, so browsers refuse the site");
            } else {
                tracing::info!(until, "a certificate is in use");
            }
        }
        self.status.in_use(certificate, failure);
    }
}

/// What differs after a change of the files.
fn fingerprint(files: &CertificateFiles) -> Fingerprint {
    let of = |path: &Path| {
        let metadata = std::fs::metadata(path).ok()?;
        // The time of the last change covers permissions, too.
        Some([metadata.mtime_nsec(), metadata.mtime(), metadata.ctime_nsec(), metadata.ctime()])
    };
    [of(&files.chain), of(&files.key)]
}

type Fingerprint = [Option<[i64; 4]>; 2];
