//! The certificate in use, which can be replaced while connections are accepted.

use std::sync::{Arc, PoisonError, RwLock};

use rustls::crypto::ring;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{Error, ServerConfig};

use super::SiteCertificate;

#[derive(Debug, Default)]
pub struct CertificateSlot(RwLock<SlotState>);

#[derive(Clone, Debug, Default)]
pub struct SlotState {
    pub certificate: Option<Arc<SiteCertificate>>,
    /// Why there is no newer certificate.
    pub failure: Option<String>,
}

impl CertificateSlot {
    pub fn state(&self) -> SlotState {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub fn change(&self, change: impl FnOnce(&mut SlotState)) {
        change(&mut self.0.write().unwrap_or_else(PoisonError::into_inner));
    }
}

/// A client that asks for another name is refused. One that names none is served.
impl ResolvesServerCert for CertificateSlot {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let certificate = self.state().certificate?;
        let is_wanted = hello.server_name().is_none_or(|name| certificate.covers(name));
        is_wanted.then(|| certificate.certified_key())
    }
}

/// TLS 1.2 and 1.3, and HTTP/2 before HTTP/1.1.
pub fn server_config(slot: Arc<CertificateSlot>) -> Result<Arc<ServerConfig>, Error> {
    let mut config = ServerConfig::builder_with_provider(ring::default_provider().into())
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_cert_resolver(slot);
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    config.ticketer = ring::Ticketer::new()?;
    Ok(Arc::new(config))
}
