//! The site's TLS certificate: reading it, choosing it in a handshake, replacing it while connections are accepted, and what is
//! wrong with it. Layer 1. Knows no listeners and no HTTP.

use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};

use rsa::pkcs8::der::asn1::{AnyRef, GeneralizedTime, UtcTime};
use rsa::pkcs8::der::{self, Decode, Reader, SliceReader, Tag};
use rustls::client::verify_server_name;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::{ClientHello, ParsedCertificate, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{Error, InconsistentKeys, ServerConfig};

use crate::config::{CertificateFiles, InvalidSettings};
use crate::domain::limits::CERTIFICATE_NOTICE;
use crate::domain::text::io_error_in_words;
use crate::domain::time::Timestamp;

#[derive(Debug)]
pub struct SiteCertificate {
    key: Arc<CertifiedKey>,
    /// The first and the last moment at which it is valid.
    validity: (Timestamp, Timestamp),
}

/// A certificate that is renewed in time has more than this part of its lifetime left.
const RENEWAL_FRACTION: u32 = 4;

/// Why a certificate cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum InvalidCertificate {
    #[error("it has no certificate in PEM format")]
    NoCertificate,
    #[error("it has no private key in PEM format")]
    NoKey,
    #[error("the key does not belong to the certificate")]
    OtherKey,
    #[error("the certificate cannot be read: {0}")]
    Unreadable(String),
    #[error("the key cannot be used: {0}")]
    UnusableKey(Error),
}

impl SiteCertificate {
    /// Reads the files and checks that certificate and key belong together, and that they are for these hosts.
    pub fn read(files: &CertificateFiles, hosts: &[String]) -> Result<Self, InvalidSettings> {
        let read = |setting, path: &Path| {
            std::fs::read(path).map_err(|error| {
                InvalidSettings::new(
                    setting,
                    format!("{} could not be read: {}", path.display(), io_error_in_words(&error)),
                )
            })
        };
        let (chain, key) = (read("tls_cert", &files.chain)?, read("tls_key", &files.key)?);
        let certificate = Self::from_pem(&chain, &key).map_err(|why| match why {
            InvalidCertificate::NoCertificate | InvalidCertificate::Unreadable(_) => {
                InvalidSettings::new("tls_cert", format!("{}: {why}", files.chain.display()))
            }
            _ => InvalidSettings::new("tls_key", format!("{}: {why}", files.key.display())),
        })?;
        if let Some(host) = hosts.iter().find(|host| !certificate.covers(host)) {
            let reason = format!("the certificate in {} is not for {host}", files.chain.display());
            return Err(InvalidSettings::new("tls_cert", reason));
        }
        Ok(certificate)
    }

    pub fn from_pem(chain: &[u8], key: &[u8]) -> Result<Self, InvalidCertificate> {
        let chain = CertificateDer::pem_slice_iter(chain).collect::<Result<Vec<_>, _>>();
        let chain = chain.map_err(|error| InvalidCertificate::Unreadable(error.to_string()))?;
        let first = chain.first().ok_or(InvalidCertificate::NoCertificate)?;
        let validity = validity(first).map_err(|_| InvalidCertificate::Unreadable("it has no validity".to_owned()))?;
        ParsedCertificate::try_from(first).map_err(|error| InvalidCertificate::Unreadable(error.to_string()))?;
        let key = PrivateKeyDer::from_pem_slice(key).map_err(|_| InvalidCertificate::NoKey)?;
        let key = CertifiedKey::from_der(chain, key, &ring::default_provider()).map_err(|error| match error {
            Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => InvalidCertificate::OtherKey,
            error => InvalidCertificate::UnusableKey(error),
        })?;
        Ok(Self { key: Arc::new(key), validity })
    }

    /// Whether the certificate is for this host name or IP address.
    pub fn covers(&self, host: &str) -> bool {
        let certificate = self.key.end_entity_cert().and_then(ParsedCertificate::try_from);
        match (certificate, ServerName::try_from(host)) {
            (Ok(certificate), Ok(name)) => verify_server_name(&certificate, &name).is_ok(),
            _ => false,
        }
    }

    pub fn is_same_as(&self, other: &Self) -> bool {
        self.key.cert == other.key.cert
    }

    pub const fn begins(&self) -> Timestamp {
        self.validity.0
    }

    pub const fn expires(&self) -> Timestamp {
        self.validity.1
    }

    /// When the next one is to be ordered: after two thirds of the lifetime.
    pub fn renewal(&self) -> Timestamp {
        self.begins().after(self.begins().until(self.expires()) * 2 / 3)
    }

    /// Whether it should have been renewed.
    pub fn is_renewal_overdue(&self, now: Timestamp) -> bool {
        self.expires().before(self.begins().until(self.expires()) / RENEWAL_FRACTION) < now
    }

    pub(super) fn certified_key(&self) -> Arc<CertifiedKey> {
        Arc::clone(&self.key)
    }
}

/// Reads from when until when a certificate is valid (RFC 5280, section 4.1): rustls does not say when one's own expires.
fn validity(certificate: &[u8]) -> der::Result<(Timestamp, Timestamp)> {
    let certificate = AnyRef::from_der(certificate)?;
    let signed = AnyRef::decode(&mut SliceReader::new(certificate.value())?)?;
    let mut fields = SliceReader::new(signed.value())?;
    if fields.peek_tag()?.is_context_specific() {
        let _version = AnyRef::decode(&mut fields)?;
    }
    for _serial_number_and_algorithm_and_issuer in 0..3 {
        AnyRef::decode(&mut fields)?;
    }
    fields.sequence(|times| Ok((time(times)?, time(times)?)))
}

fn time<'a>(times: &mut impl Reader<'a>) -> der::Result<Timestamp> {
    let since_1970 = match times.peek_tag()? {
        Tag::UtcTime => UtcTime::decode(times)?.to_unix_duration(),
        _ => GeneralizedTime::decode(times)?.to_unix_duration(),
    };
    Ok(Timestamp::from_unix_millis(0).after(since_1970))
}

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

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{CertificateParams, KeyPair, date_time_ymd};

    fn issue(names: &[&str]) -> (String, String) {
        let names = names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let certified = rcgen::generate_simple_self_signed(names).unwrap();
        (certified.cert.pem(), certified.signing_key.serialize_pem())
    }

    #[test]
    fn a_certificate_covers_its_names_in_any_case_and_one_label_of_a_wildcard() {
        let (chain, key) = issue(&["troupe.example", "*.troupe.example", "127.0.0.1"]);
        let certificate = SiteCertificate::from_pem(chain.as_bytes(), key.as_bytes()).unwrap();
        for host in ["troupe.example", "TROUPE.example", "www.troupe.example", "127.0.0.1"] {
            assert!(certificate.covers(host), "{host}");
        }
        for host in ["a.www.troupe.example", "troupe.example.evil", "other.example", "127.0.0.2", ""] {
            assert!(!certificate.covers(host), "{host}");
        }
    }

    #[test]
    fn a_pair_that_does_not_fit_is_refused_with_its_reason() {
        let ((chain, key), (_, other_key)) = (issue(&["a.example"]), issue(&["b.example"]));
        for (chain, key, reason) in [
            ("", key.as_str(), "no certificate"),
            (key.as_str(), key.as_str(), "no certificate"),
            (chain.as_str(), "", "no private key"),
            (chain.as_str(), other_key.as_str(), "does not belong"),
            ("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", key.as_str(), "cannot be read"),
        ] {
            let why = SiteCertificate::from_pem(chain.as_bytes(), key.as_bytes()).unwrap_err().to_string();
            assert!(why.contains(reason), "{why}");
        }
    }

    #[test]
    fn the_days_of_a_certificate_are_read_in_both_encodings() {
        for (from, to) in [((2026, 11, 16), (2027, 2, 14)), ((1999, 12, 31), (2051, 1, 2))] {
            let mut params = CertificateParams::new(vec!["troupe.example".to_owned()]).unwrap();
            params.not_before = date_time_ymd(from.0, from.1, from.2);
            params.not_after = date_time_ymd(to.0, to.1, to.2);
            let certificate = params.self_signed(&KeyPair::generate().unwrap()).unwrap();
            let (begins, expires) = validity(certificate.der()).unwrap();
            let date = |(year, month, day)| format!("{year:04}-{month:02}-{day:02}");
            assert_eq!([begins.date(), expires.date()], [date(from), date(to)]);
        }
    }

    #[test]
    fn a_certificate_that_was_cut_short_has_no_validity() {
        let certified = rcgen::generate_simple_self_signed(vec!["a.example".to_owned()]).unwrap();
        let certificate = certified.cert.der();
        for length in 0..certificate.len() {
            assert!(validity(&certificate[..length]).is_err(), "{length}");
        }
    }
}
