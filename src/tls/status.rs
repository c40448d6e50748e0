//! The certificate in use, which can be replaced while connections are accepted, and what is wrong with it.

use std::sync::{Arc, PoisonError, RwLock};

use rustls::crypto::ring;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{Error, ServerConfig};

use super::certificate::SiteCertificate;
use crate::domain::limits::CERTIFICATE_NOTICE;
use crate::domain::time::Timestamp;

/// For handshakes, `/readyz`, the dashboard and the mail to the makers. Cheap to clone; clones share one state.
#[derive(Clone, Debug, Default)]
pub struct CertificateStatus(Arc<RwLock<CertificateState>>);

#[derive(Clone, Debug, Default)]
pub struct CertificateState {
    pub certificate: Option<Arc<SiteCertificate>>,
    /// Why there is no newer certificate.
    pub failure: Option<String>,
}

impl From<SiteCertificate> for CertificateState {
    fn from(certificate: SiteCertificate) -> Self {
        Self { certificate: Some(Arc::new(certificate)), failure: None }
    }
}

impl CertificateStatus {
    pub fn state(&self) -> CertificateState {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Uses the certificate from now on. If there is none, the one in use stays.
    pub fn update(&self, CertificateState { certificate, failure }: CertificateState) {
        let mut state = self.0.write().unwrap_or_else(PoisonError::into_inner);
        state.failure = failure;
        state.certificate = certificate.or_else(|| state.certificate.take());
    }

    pub fn expires(&self) -> Option<Timestamp> {
        self.state().certificate.map(|certificate| certificate.expires())
    }

    /// Returns what is wrong with it now.
    pub fn problem(&self, now: Timestamp) -> Option<String> {
        let CertificateState { certificate, failure } = self.state();
        let Some(certificate) = certificate else {
            return Some(failure.unwrap_or_else(|| "there is none yet".to_owned()));
        };
        if now < certificate.begins() {
            return Some(format!("it is not valid before {}", certificate.begins().rfc3339()));
        }
        if certificate.expires() < now {
            return Some(format!("it expired on {}{}", certificate.expires().date(), because(failure)));
        }
        failure
    }

    /// Returns what is wrong with it, if it needs a person: there is none because of a failure, or it is not
    /// valid now, or it expires within [`CERTIFICATE_NOTICE`] and should have been renewed.
    pub fn lasting_problem(&self, now: Timestamp) -> Option<String> {
        let CertificateState { certificate, failure } = self.state();
        let Some(certificate) = certificate else { return failure };
        let expires = certificate.expires();
        if now < certificate.begins() || expires < now {
            return self.problem(now);
        }
        let is_close = now.until(expires) < CERTIFICATE_NOTICE && certificate.is_renewal_overdue(now);
        is_close.then(|| format!("it expires on {}{}", expires.date(), because(failure)))
    }

    /// TLS 1.2 and 1.3, and HTTP/2 before HTTP/1.1.
    pub fn server_config(&self) -> Result<Arc<ServerConfig>, Error> {
        let mut config = ServerConfig::builder_with_provider(ring::default_provider().into())
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(self.clone()));
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        config.ticketer = ring::Ticketer::new()?;
        Ok(Arc::new(config))
    }
}

fn because(failure: Option<String>) -> String {
    failure.map(|failure| format!("; {failure}")).unwrap_or_default()
}

/// A client that asks for another name is refused. One that names none is served.
impl ResolvesServerCert for CertificateStatus {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let certificate = self.state().certificate?;
        let is_wanted = hello.server_name().is_none_or(|name| certificate.covers(name));
        is_wanted.then(|| certificate.certified_key())
    }
}
