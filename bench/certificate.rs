//! A certificate that both servers present, and clients that trust it.

use std::path::PathBuf;
use std::sync::Arc;

use rcgen::CertifiedKey;
use rustls::{ClientConfig, RootCertStore};
use tempfile::TempDir;
use tokio_rustls::TlsConnector;

pub struct Certificate {
    folder: TempDir,
    roots: RootCertStore,
}

impl Certificate {
    /// A self-signed certificate for `localhost` with an ECDSA key.
    pub fn new() -> Self {
        let CertifiedKey { cert, signing_key } =
            rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
        let (folder, mut roots) = (tempfile::tempdir().expect("a folder"), RootCertStore::empty());
        std::fs::write(folder.path().join("certificate.pem"), cert.pem()).expect("a file");
        std::fs::write(folder.path().join("key.pem"), signing_key.serialize_pem()).expect("a file");
        roots.add(cert.der().clone()).expect("a root");
        Self { folder, roots }
    }

    pub fn certificate(&self) -> PathBuf {
        self.folder.path().join("certificate.pem")
    }

    pub fn key(&self) -> PathBuf {
        self.folder.path().join("key.pem")
    }

    /// A client that offers this protocol.
    pub fn connector(&self, protocol: &str) -> TlsConnector {
        let mut config = ClientConfig::builder_with_provider(rustls::crypto::ring::default_provider().into())
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_root_certificates(self.roots.clone())
            .with_no_client_auth();
        config.alpn_protocols = vec![protocol.as_bytes().to_vec()];
        TlsConnector::from(Arc::new(config))
    }
}
