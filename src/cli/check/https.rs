//! Whether browsers trust the site.

use std::time::Duration;

use tokio::time::timeout;

use super::WORLD_WITHIN;
use super::finding::Finding;
use crate::domain::base_url::BaseUrl;
use crate::domain::time::Timestamp;
use crate::probe::{Certificate, CertificateFailure};

/// Whoever renews certificates by machine has done so by then.
const RENEWED_BEFORE: Duration = Duration::from_hours(21 * 24);

/// Nothing, if the site is not to be encrypted.
pub(super) async fn about_https(base_url: &BaseUrl, now: Timestamp) -> Option<Finding> {
    const NAME: &str = "https";
    if !base_url.is_https() {
        return None;
    }
    let (host, port) = base_url.server();
    let site = base_url.as_str().trim_start_matches("https://");
    let looked = timeout(WORLD_WITHIN, Certificate::of(&host, port, now, RENEWED_BEFORE)).await;
    Some(match looked.unwrap_or_else(|_| Err(CertificateFailure::Unreachable("it does not answer".to_owned()))) {
        Ok(Certificate::Valid) => Finding::good(NAME, format!("{site} shows a valid certificate")),
        Ok(Certificate::EndsAt(end)) => {
            let words = format!("The certificate of {site} ends on {}. Renew it before that.", end.date());
            Finding::note(NAME, words)
        }
        Err(CertificateFailure::Invalid(flaw)) => {
            let words = format!("The certificate of {site} is not valid: {flaw}. Browsers turn visitors away.");
            Finding::note(NAME, words)
        }
        Err(CertificateFailure::NoTls(why)) => Finding::note(NAME, format!("{site} does not speak TLS: {why}.")),
        Err(CertificateFailure::Unreachable(why)) => {
            let words = format!("{site} cannot be reached from here: {why}. See whether it can from elsewhere.");
            Finding::note(NAME, words)
        }
        Err(why @ CertificateFailure::NoAuthorities) => {
            let words = format!("{site} cannot be judged: {why}. Install ca-certificates, or set SSL_CERT_FILE.");
            Finding::note(NAME, words)
        }
    })
}
