//! The site's certificate while the service runs: from files that are read again when they change, or from an ACME authority.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use tokio::time::sleep;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use crate::actions::CertificateOrders;
use crate::clock::Clock;
use crate::config::{CertificateFiles, InvalidSettings};
use crate::tls::{CertificateState, CertificateStatus, SiteCertificate};

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
        Ok(Self::new(Source::Files(files, hosts, seen), clock, certificate.into()))
    }

    /// Begins with what is in the database, if there is something, so that a restart orders nothing.
    pub(super) async fn from_orders(orders: CertificateOrders) -> Self {
        let (state, clock) = (orders.initial_state().await, orders.clock.clone());
        Self::new(Source::Orders(orders), clock, state)
    }

    fn new(source: Source, clock: Clock, state: CertificateState) -> Self {
        let served = Self { source, clock, status: CertificateStatus::default() };
        served.show(state);
        served
    }

    pub(super) fn acceptor(&self) -> Result<TlsAcceptor, InvalidSettings> {
        let config = self.status.server_config().map_err(|why| InvalidSettings::new("tls_cert", why))?;
        Ok(TlsAcceptor::from(config))
    }

    /// Replaces the certificate whenever there is a newer one. One that cannot be used leaves the present one in use.
    pub(super) async fn follow(mut self, stop: CancellationToken) {
        loop {
            let (next, pause) = match &mut self.source {
                Source::Files(files, hosts, seen) => (read_if_changed(files, hosts, seen), FILES_INTERVAL),
                Source::Orders(orders) => {
                    let state = orders.step(&stop).await.unwrap_or_else(|failure| CertificateState {
                        certificate: None,
                        failure: Some(failure.to_string()),
                    });
                    let renewal = state.certificate.as_ref().map(|certificate| certificate.renewal());
                    let until_renewal = renewal.map(|renewal| orders.clock.now().until(renewal));
                    let until_renewal = until_renewal.filter(|left| !left.is_zero()).unwrap_or(ORDERS_INTERVAL);
                    (Some(state), ORDERS_INTERVAL.min(until_renewal))
                }
            };
            if let Some(state) = next {
                self.show(state);
            }
            if stop.run_until_cancelled(sleep(pause)).await.is_none() {
                return;
            }
        }
    }

    fn show(&self, state: CertificateState) {
        let current = self.status.state().certificate;
        if let Some(certificate) = &state.certificate
            && current.is_none_or(|current| !current.is_same_as(certificate))
        {
            let until = certificate.expires().rfc3339();
            if certificate.expires() < self.clock.now() {
                tracing::warn!(until, "the certificate in use has expired, so browsers refuse the site");
            } else {
                tracing::info!(until, "a certificate is in use");
            }
        }
        self.status.update(state);
    }
}

/// Returns `None` if the files are as they were.
fn read_if_changed(files: &CertificateFiles, hosts: &[String], seen: &mut Fingerprint) -> Option<CertificateState> {
    let present = fingerprint(files);
    if std::mem::replace(seen, present) == present {
        return None;
    }
    Some(SiteCertificate::read(files, hosts).map_or_else(
        |failure| {
            tracing::warn!(%failure, "the changed certificate cannot be used; the previous one stays in use");
            CertificateState { certificate: None, failure: Some(failure.to_string()) }
        },
        CertificateState::from,
    ))
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
