//! Checks whether browsers trust the certificate of the site.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;

use super::finding::{Finding, PROBE_TIMEOUT, failed, note, ok};
use crate::actions::CertificateOrders;
use crate::clock::Clock;
use crate::config::{CertificateSource, Settings};
use crate::domain::network::BaseUrl;
use crate::domain::time::Timestamp;
use crate::probe::{Certificate, CertificateFailure};
use crate::store::Store;
use crate::tls::SiteCertificate;

/// ACME clients renew earlier than this, so a certificate this close to its expiry was not renewed.
const RENEWAL_PERIOD: Duration = Duration::from_hours(21 * 24);

/// Checks the certificate that the service itself serves. Returns `None` if it speaks plain HTTP.
pub(super) async fn check_certificate(settings: &Settings, store: Option<&Store>, now: Timestamp) -> Option<Finding> {
    let hosts = settings.host_names(&settings.public_url());
    let (from, certificate) = match &settings.tls.as_ref()?.certificate {
        CertificateSource::Files(files) => match SiteCertificate::read(files, &hosts) {
            Ok(certificate) => (files.chain.display().to_string(), Arc::new(certificate)),
            Err(failure) => return Some(failed(failure)),
        },
        CertificateSource::Acme(acme) => {
            let orders = CertificateOrders::new(acme, hosts, store?.clone(), Clock::System);
            let state = match orders.state().await {
                Ok(state) => state,
                Err(failure) => return Some(failed(failure.sentence("The certificate is not known"))),
            };
            let failure = state.failure.map(|failure| format!(" {}: {failure}.", acme.directory)).unwrap_or_default();
            match state.certificate {
                None => return Some(note(format!("There is no certificate yet.{failure}"))),
                Some(certificate) if !failure.is_empty() && now <= certificate.expires() => {
                    let date = certificate.expires().date();
                    return Some(note(format!("It is valid until {date} and not renewed yet.{failure}")));
                }
                Some(certificate) => (acme.directory.clone(), certificate),
            }
        }
    };
    let expires = certificate.expires();
    Some(if expires < now {
        failed(format!("The certificate from {from} expired on {}.", expires.date()))
    } else if certificate.is_renewal_overdue(now) {
        note(format!("The certificate from {from} expires on {}. Renew it before that.", expires.date()))
    } else {
        ok(format!("from {from}, valid until {}", expires.date()))
    })
}

/// Returns `None` if the site does not use https.
pub(super) async fn check_https(base_url: &BaseUrl, now: Timestamp) -> Option<Finding> {
    if !base_url.is_https() {
        return None;
    }
    let (host, port) = base_url.host_and_port();
    let site = base_url.as_str().trim_start_matches("https://");
    let probed = timeout(PROBE_TIMEOUT, Certificate::probe(&host, port, now, RENEWAL_PERIOD)).await;
    let timed_out = |_| Err(CertificateFailure::Unreachable("it did not respond in time".to_owned()));
    let detail = match probed.unwrap_or_else(timed_out) {
        Ok(Certificate::Valid) => return Some(ok(format!("{site} has a valid certificate"))),
        Ok(Certificate::ExpiresAt(end)) => {
            format!("The certificate of {site} expires on {}. Renew it before that.", end.date())
        }
        Err(CertificateFailure::Invalid(fault)) => {
            format!("The certificate of {site} is not valid: {fault}. Browsers will show a warning.")
        }
        Err(CertificateFailure::Handshake(error)) => format!("The TLS handshake with {site} failed: {error}."),
        Err(CertificateFailure::Unreachable(error)) => {
            format!("{site} cannot be reached from here: {error}. Check whether it can be reached from elsewhere.")
        }
        Err(failure @ CertificateFailure::NoAuthorities) => {
            format!("{site} could not be checked: {failure}. Install ca-certificates, or set SSL_CERT_FILE.")
        }
    };
    Some(note(detail))
}
