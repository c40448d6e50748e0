//! Checks whether there is a proxy that no setting names.

use super::finding::Finding;
use crate::actions::UnconfiguredProxy;
use crate::config::Settings;
use crate::domain::time::Timestamp;
use crate::store::Store;

/// Returns `None` if there is nothing to say. A database of an older version has no such notes.
pub(super) async fn check_proxy(settings: &Settings, store: &Store, now: Timestamp) -> Option<Finding> {
    if settings.clients.proxies.is_some() || !settings.clients.limits {
        return None;
    }
    let seen = UnconfiguredProxy::last_seen(store, now).await.ok()??;
    Some(Finding::note(
        "proxy",
        format!(
            "On {} requests came from a public address with a header that proxies add. If there is a proxy, set \
             `client_ip_header` and `trusted_proxies`: the limits count all its clients as one.",
            seen.date()
        ),
    ))
}
