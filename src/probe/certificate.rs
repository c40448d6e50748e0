//! The TLS certificate of a site, verified as a browser would.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier;
use rustls::crypto::ring;
use rustls::pki_types::{ServerName, UnixTime};
use rustls::{CertificateError, ClientConfig, Error};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::domain::time::Timestamp;
use crate::http_client::system_roots;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Certificate {
    Valid,
    /// Valid now, but expires within the given period.
    ExpiresAt(Timestamp),
}

/// Why no valid certificate was found.
#[derive(Debug, thiserror::Error)]
pub enum CertificateFailure {
    #[error("this system has no list of trusted certificate authorities")]
    NoAuthorities,
    #[error("{0}")]
    Unreachable(String),
    #[error("{0}")]
    Handshake(Error),
    #[error("{0}")]
    Invalid(String),
}

impl Certificate {
    /// Connects once, and verifies with the authorities that this system trusts that the certificate
    /// is valid now and for the given period.
    pub async fn probe(host: &str, port: u16, now: Timestamp, period: Duration) -> Result<Self, CertificateFailure> {
        let name =
            ServerName::try_from(host.to_owned()).map_err(|_| CertificateFailure::Invalid(WRONG_NAME.to_owned()))?;
        let provider = Arc::new(ring::default_provider());
        let verifier =
            WebPkiServerVerifier::builder_with_provider(system_roots().into(), Arc::clone(&provider)).build();
        let verifier = verifier.map_err(|_| CertificateFailure::NoAuthorities)?;
        let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let config = config.map_err(CertificateFailure::Handshake)?.with_webpki_verifier(Arc::clone(&verifier));
        let connector = TlsConnector::from(Arc::new(config.with_no_client_auth()));
        let connection = TcpStream::connect((host, port)).await.map_err(failure)?;
        let mut connection = connector.connect(name.clone(), connection).await.map_err(failure)?;
        let [certificate, intermediates @ ..] = connection.get_ref().1.peer_certificates().unwrap_or_default() else {
            return Err(CertificateFailure::Handshake(Error::NoCertificatesPresented));
        };
        let later = unix_time(now.after(period));
        let result = verifier.verify_server_cert(certificate, intermediates, &name, &[], later);
        let _ = connection.shutdown().await;
        Ok(match result {
            Err(Error::InvalidCertificate(CertificateError::ExpiredContext { not_after, .. })) => {
                Self::ExpiresAt(timestamp(not_after))
            }
            _ => Self::Valid,
        })
    }
}

fn failure(error: io::Error) -> CertificateFailure {
    match error.downcast::<Error>() {
        Ok(Error::InvalidCertificate(error)) => CertificateFailure::Invalid(fault(error)),
        Ok(error) => CertificateFailure::Handshake(error),
        Err(error) => CertificateFailure::Unreachable(error.to_string()),
    }
}

const WRONG_NAME: &str = "it is for another name";

/// What is wrong with a certificate.
fn fault(error: CertificateError) -> String {
    match error {
        CertificateError::ExpiredContext { not_after, .. } => format!("it expired on {}", timestamp(not_after).date()),
        CertificateError::NotValidYetContext { not_before, .. } => {
            format!("it is not valid before {}", timestamp(not_before).date())
        }
        CertificateError::Expired | CertificateError::NotValidYet => "it has expired, or is not valid yet".to_owned(),
        CertificateError::NotValidForNameContext { .. } => WRONG_NAME.to_owned(),
        CertificateError::UnknownIssuer => {
            "this system does not trust its issuer, or the server does not send the intermediate certificates"
                .to_owned()
        }
        CertificateError::Other(error) => format!("it is not a certificate for a website ({error})"),
        other => format!("it is not a certificate for a website ({other})"),
    }
}

fn unix_time(timestamp: Timestamp) -> UnixTime {
    UnixTime::since_unix_epoch(Duration::from_millis(u64::try_from(timestamp.unix_millis()).unwrap_or_default()))
}

fn timestamp(time: UnixTime) -> Timestamp {
    Timestamp::from_unix_millis(0).after(Duration::from_secs(time.as_secs()))
}
