//! What is known of the site's own certificate, for `/readyz`, the dashboard and the mail to the makers.

use std::sync::{Arc, PoisonError, RwLock};

use crate::domain::limits::CERTIFICATE_NOTICE;
use crate::domain::time::Timestamp;

/// Cheap to clone; clones share one status.
#[derive(Clone, Debug, Default)]
pub struct CertificateStatus(Arc<RwLock<Known>>);

/// A certificate that is renewed in time has more than this part of its lifetime left.
const RENEWAL_FRACTION: u32 = 4;

/// Whether a certificate that is valid from `begins` until `expires` should have been renewed.
pub fn is_renewal_overdue(begins: Timestamp, expires: Timestamp, now: Timestamp) -> bool {
    expires.before(begins.until(expires) / RENEWAL_FRACTION) < now
}

#[derive(Clone, Debug, Default)]
struct Known {
    validity: Option<[Timestamp; 2]>,
    /// Why there is no newer certificate.
    failure: Option<String>,
}

impl CertificateStatus {
    /// A certificate is in use, which is valid from `begins` until `expires`. `failure` is why there is no newer one.
    pub fn in_use(&self, begins: Timestamp, expires: Timestamp, failure: Option<String>) {
        self.change(|known| *known = Known { validity: Some([begins, expires]), failure });
    }

    /// The one in use stays, because a newer one cannot be used.
    pub fn failed(&self, failure: String) {
        self.change(|known| known.failure = Some(failure));
    }

    pub fn expires(&self) -> Option<Timestamp> {
        self.known().validity.map(|[_, expires]| expires)
    }

    /// Returns what is wrong with it now.
    pub fn problem(&self, now: Timestamp) -> Option<String> {
        let known = self.known();
        match known.validity {
            None => Some(known.failure.unwrap_or_else(|| "there is none yet".to_owned())),
            Some([begins, _]) if now < begins => Some(format!("it is not valid before {}", begins.rfc3339())),
            Some([_, expires]) if expires < now => {
                let failure = known.failure.map(|failure| format!("; {failure}")).unwrap_or_default();
                Some(format!("it expired on {}{failure}", expires.date()))
            }
            Some(_) => known.failure,
        }
    }

    /// Returns what is wrong with it, if it needs a person: there is none because of a failure, or it is not
    /// valid now, or it expires within [`CERTIFICATE_NOTICE`] and should have been renewed.
    pub fn lasting_problem(&self, now: Timestamp) -> Option<String> {
        let known = self.known();
        let Some([begins, expires]) = known.validity else { return known.failure };
        if now < begins || expires < now {
            return self.problem(now);
        }
        let is_close = now.until(expires) < CERTIFICATE_NOTICE && is_renewal_overdue(begins, expires, now);
        let failure = known.failure.map(|failure| format!("; {failure}")).unwrap_or_default();
        is_close.then(|| format!("it expires on {}{failure}", expires.date()))
    }

    fn known(&self) -> Known {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn change(&self, change: impl FnOnce(&mut Known)) {
        change(&mut self.0.write().unwrap_or_else(PoisonError::into_inner));
    }
}
