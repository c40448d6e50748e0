//! Checks whether browsers trust the certificate of the site.

use std::time::Duration;

use tokio::time::timeout;

use super::PROBE_TIMEOUT;
use super::finding::Finding;
use crate::cli::base_url;
use crate::config::Settings;
use crate::domain::base_url::BaseUrl;
use crate::domain::time::Timestamp;
use crate::probe::{Certificate, CertificateFailure};
use crate::tls::SiteCertificate;

/// ACME clients renew earlier than this, so a certificate this close to its expiry was not renewed.
const RENEWAL_PERIOD: Duration = Duration::from_hours(21 * 24);

/// Checks the files of `tls_cert` and `tls_key`. Returns `None` if they are not set.
pub(super) fn check_certificate(settings: &Settings, now: Timestamp) -> Option<Finding> {
    const NAME: &str = "certificate";
    let tls = settings.tls.as_ref()?;
    let hosts = std::iter::once(base_url(settings).host()).chain(settings.also_hosts.iter().map(ToString::to_string));
    let certificate = match SiteCertificate::read(&tls.certificate, &hosts.collect::<Vec<_>>()) {
        Ok(certificate) => certificate,
        Err(failure) => return Some(Finding::failed(NAME, failure.to_string())),
    };
    let (file, expires) = (tls.certificate.chain.display(), certificate.expires());
    Some(if expires < now {
        Finding::failed(NAME, format!("The certificate in {file} expired on {}.", expires.date()))
    } else if expires < now.after(RENEWAL_PERIOD) {
        Finding::note(NAME, format!("The certificate in {file} expires on {}. Renew it before that.", expires.date()))
    } else {
        Finding::ok(NAME, format!("{file} is valid until {}", expires.date()))
    })
}

/// Returns `None` if the site does not use https.
pub(super) async fn check_https(base_url: &BaseUrl, now: Timestamp) -> Option<Finding> {
    const NAME: &str = "https";
    if !base_url.is_https() {
        return None;
    }
    let (host, port) = base_url.host_and_port();
    let site = base_url.as_str().trim_start_matches("https://");
    let probed = timeout(PROBE_TIMEOUT, Certificate::probe(&host, port, now, RENEWAL_PERIOD)).await;
    let timed_out = |_| Err(CertificateFailure::Unreachable("it did not respond in time".to_owned()));
    let detail = match probed.unwrap_or_else(timed_out) {
        Ok(Certificate::Valid) => return Some(Finding::ok(NAME, format!("{site} has a valid certificate"))),
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
    Some(Finding::note(NAME, detail))
}
