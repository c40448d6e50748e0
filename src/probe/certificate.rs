//! The certificate that a site shows, judged as a browser would.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier;
use rustls::crypto::ring;
use rustls::pki_types::{ServerName, UnixTime};
use rustls::time_provider::TimeProvider;
use rustls::{CertificateError, ClientConfig, Error, RootCertStore};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::domain::time::Timestamp;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Certificate {
    Valid,
    /// Valid, but not for as long as was asked.
    EndsAt(Timestamp),
}

/// Why there is no valid certificate.
#[derive(Debug, thiserror::Error)]
pub enum CertificateFailure {
    #[error("this machine has no list of authorities")]
    NoAuthorities,
    #[error("{0}")]
    Unreachable(String),
    #[error("{0}")]
    NoTls(Error),
    #[error("{0}")]
    Invalid(CertificateFault),
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CertificateFault {
    #[error("it ended on {}", .0.date())]
    Ended(Timestamp),
    #[error("it begins on {}", .0.date())]
    NotBegun(Timestamp),
    #[error("it is for another name")]
    AnotherName,
    #[error("it comes from nobody whom this machine trusts, or without the certificates in between")]
    UnknownIssuer,
    #[error("it is not fit for a site ({0})")]
    Unfit(String),
}

impl Certificate {
    /// Makes one connection, and looks whether what is shown is valid now and for some time to come,
    /// by the authorities that this machine trusts.
    ///
    /// # Errors
    /// As [`CertificateFailure`] tells.
    pub async fn of(host: &str, port: u16, now: Timestamp, to_come: Duration) -> Result<Self, CertificateFailure> {
        let name = ServerName::try_from(host.to_owned())
            .map_err(|_| CertificateFailure::Invalid(CertificateFault::AnotherName))?;
        let verifier = verifier()?;
        let connector = TlsConnector::from(Arc::new(client(verifier.clone(), now).map_err(CertificateFailure::NoTls)?));
        let connection = TcpStream::connect((host, port)).await.map_err(refused)?;
        let mut connection = connector.connect(name.clone(), connection).await.map_err(refused)?;
        let [shown, between @ ..] = connection.get_ref().1.peer_certificates().unwrap_or_default() else {
            return Err(CertificateFailure::NoTls(Error::NoCertificatesPresented));
        };
        let then = verifier.verify_server_cert(shown, between, &name, &[], unix_time(now.after(to_come)));
        let _ = connection.shutdown().await;
        Ok(match then {
            Err(Error::InvalidCertificate(CertificateError::ExpiredContext { not_after, .. })) => {
                Self::EndsAt(moment(not_after))
            }
            _ => Self::Valid,
        })
    }
}

fn verifier() -> Result<Arc<WebPkiServerVerifier>, CertificateFailure> {
    let mut authorities = RootCertStore::empty();
    authorities.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    WebPkiServerVerifier::builder_with_provider(authorities.into(), ring::default_provider().into())
        .build()
        .map_err(|_| CertificateFailure::NoAuthorities)
}

fn client(verifier: Arc<WebPkiServerVerifier>, now: Timestamp) -> Result<ClientConfig, Error> {
    let (provider, time) = (ring::default_provider().into(), Arc::new(Now(unix_time(now))));
    let client = ClientConfig::builder_with_details(provider, time).with_safe_default_protocol_versions()?;
    Ok(client.with_webpki_verifier(verifier).with_no_client_auth())
}

fn refused(error: io::Error) -> CertificateFailure {
    match error.downcast::<Error>() {
        Ok(Error::InvalidCertificate(flaw)) => CertificateFailure::Invalid(flaw.into()),
        Ok(error) => CertificateFailure::NoTls(error),
        Err(error) => CertificateFailure::Unreachable(error.to_string()),
    }
}

impl From<CertificateError> for CertificateFault {
    fn from(error: CertificateError) -> Self {
        match error {
            CertificateError::ExpiredContext { not_after, .. } => Self::Ended(moment(not_after)),
            CertificateError::NotValidYetContext { not_before, .. } => Self::NotBegun(moment(not_before)),
            CertificateError::NotValidForNameContext { .. } => Self::AnotherName,
            CertificateError::UnknownIssuer => Self::UnknownIssuer,
            CertificateError::Other(why) => Self::Unfit(why.to_string()),
            other => Self::Unfit(other.to_string()),
        }
    }
}

/// The time that was passed in.
#[derive(Debug)]
struct Now(UnixTime);

impl TimeProvider for Now {
    fn current_time(&self) -> Option<UnixTime> {
        Some(self.0)
    }
}

fn unix_time(moment: Timestamp) -> UnixTime {
    UnixTime::since_unix_epoch(Duration::from_millis(u64::try_from(moment.unix_millis()).unwrap_or_default()))
}

fn moment(time: UnixTime) -> Timestamp {
    Timestamp::from_unix_millis(0).after(Duration::from_secs(time.as_secs()))
}
