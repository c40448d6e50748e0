//! A proxy in front of the service that no setting names: all its clients are limited as one.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::Notify;

use crate::domain::rate_limit::Hourly;
use crate::domain::time::Timestamp;
use crate::store::{Store, StoreFailure};

const NOTICE: &str = "unconfigured_proxy";
/// An older note is not reported: the proxy may be gone.
const NOTICE_LIFETIME: Duration = Duration::from_hours(7 * 24);

/// What `/readyz` and the dashboard say.
const PROBLEM: &str = "requests seem to come through a proxy, so the limits count all its clients as one; set \
                       client_ip_header and trusted_proxies";

/// Whether this instance has seen requests of such a proxy. Nothing of the requests is kept. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct UnconfiguredProxy(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    was_seen: AtomicBool,
    hourly: Hourly,
    to_record: Notify,
}

impl UnconfiguredProxy {
    /// Notes that a request came through such a proxy. It is logged and recorded the first time, and then at most once an hour.
    pub fn seen(&self, now: Timestamp) {
        self.0.was_seen.store(true, Ordering::Relaxed);
        if self.0.hourly.is_due(now) {
            tracing::warn!(
                "a request from a public address has a header that proxies add; if there is a proxy, set \
                 `client_ip_header` and `trusted_proxies`, because the limits count all its clients as one"
            );
            self.0.to_record.notify_one();
        }
    }

    /// Whether this instance has seen one.
    pub fn was_seen(&self) -> bool {
        self.0.was_seen.load(Ordering::Relaxed)
    }

    pub(super) fn problem(&self) -> Option<String> {
        self.was_seen().then(|| PROBLEM.to_owned())
    }

    /// Waits until there is something to record.
    pub async fn to_record(&self) {
        self.0.to_record.notified().await;
    }

    /// Records it in the database, for `check`.
    pub async fn record(store: &Store, now: Timestamp) -> Result<(), StoreFailure> {
        store.record_notice(NOTICE, now).await
    }

    /// Returns when an instance saw one, if that was recently.
    pub async fn last_seen(store: &Store, now: Timestamp) -> Result<Option<Timestamp>, StoreFailure> {
        let last = store.notice(NOTICE).await?;
        Ok(last.filter(|last| last.until(now) < NOTICE_LIFETIME))
    }
}
