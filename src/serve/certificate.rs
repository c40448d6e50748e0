//! The site's certificate while the service runs: read at the start, and again when its files change.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::time::sleep;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use crate::actions::CertificateStatus;
use crate::config::{CertificateFiles, InvalidSettings};
use crate::tls::{CertificateSlot, SiteCertificate, server_config};

/// How often the files are looked at.
const CHECK_INTERVAL: Duration = Duration::from_secs(5);

/// The certificate of the public listener, and where it comes from.
#[derive(Clone, Debug)]
pub(super) struct ServedCertificate {
    files: CertificateFiles,
    /// Host names that it must be for.
    hosts: Vec<String>,
    slot: Arc<CertificateSlot>,
    pub(super) status: CertificateStatus,
}

impl ServedCertificate {
    /// # Errors
    /// When the files cannot be used.
    pub(super) fn read(
        files: CertificateFiles,
        hosts: Vec<String>,
        status: CertificateStatus,
    ) -> Result<Self, InvalidSettings> {
        let served = Self { files, hosts, slot: Arc::default(), status };
        served.replace()?;
        Ok(served)
    }

    /// # Errors
    /// When the system has no random numbers.
    pub(super) fn acceptor(&self) -> Result<TlsAcceptor, InvalidSettings> {
        let config = server_config(Arc::clone(&self.slot)).map_err(|why| InvalidSettings::new("tls_cert", why))?;
        Ok(TlsAcceptor::from(config))
    }

    /// Reads the files again whenever they change. A pair that cannot be used leaves the present one in use.
    pub(super) async fn follow_files(self, stop: CancellationToken) {
        let mut seen = self.fingerprint();
        while stop.run_until_cancelled(sleep(CHECK_INTERVAL)).await.is_some() {
            let present = self.fingerprint();
            if present == seen {
                continue;
            }
            seen = present;
            match self.replace() {
                Ok(()) => tracing::info!("the certificate was replaced"),
                Err(failure) => {
                    tracing::warn!(%failure, "the changed certificate cannot be used; the previous one stays in use");
                    self.status.failed(failure.to_string());
                }
            }
        }
    }

    fn replace(&self) -> Result<(), InvalidSettings> {
        let certificate = SiteCertificate::read(&self.files, &self.hosts)?;
        self.status.in_use(certificate.begins(), certificate.expires());
        self.slot.replace(certificate);
        Ok(())
    }

    /// What differs after a change of the files.
    fn fingerprint(&self) -> [Option<(SystemTime, u64)>; 2] {
        let of = |path: &Path| {
            let metadata = std::fs::metadata(path).ok()?;
            Some((metadata.modified().ok()?, metadata.len()))
        };
        [of(&self.files.chain), of(&self.files.key)]
    }
}
