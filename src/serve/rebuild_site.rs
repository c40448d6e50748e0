//! Rebuilds the site when a release was published or withdrawn, by this instance or another, and when its files change.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::spawn_blocking;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::site::Content;
use crate::web::App;

/// How often the database is polled for releases: pages change within a second.
const RELEASES_INTERVAL: Duration = Duration::from_millis(500);
/// How often the files of a watched site are polled.
const FILES_INTERVAL: Duration = Duration::from_millis(300);

/// Rebuilds the site for new releases until shutdown starts.
pub(super) async fn follow_releases((content, app): (Content, App), stop: CancellationToken) {
    let mut shown = app.service.catalog.cached();
    let mut failing = false;
    while stop.run_until_cancelled(sleep(RELEASES_INTERVAL)).await.is_some() {
        match app.service.catalog.refresh().await {
            Ok(()) => failing = false,
            Err(failure) if !failing => {
                failing = true;
                tracing::warn!(%failure, "new releases are not shown until the database is available");
            }
            Err(_) => {}
        }
        let cached = app.service.catalog.cached();
        if !Arc::ptr_eq(&cached, &shown) {
            shown = cached;
            rebuild(&content, &app).await;
        }
    }
}

/// Rebuilds the site whenever its files differ from those of the fingerprint `seen`, until shutdown starts.
pub(super) async fn follow_files((content, app): (Content, App), mut seen: u64, stop: CancellationToken) {
    while stop.run_until_cancelled(sleep(FILES_INTERVAL)).await.is_some() {
        let watched = content.clone();
        let Ok(state) = spawn_blocking(move || watched.fingerprint()).await else { continue };
        if state != seen {
            seen = state;
            rebuild(&content, &app).await;
        }
    }
}

/// Rebuilds on a blocking thread: rendering every page would hold up requests. If that fails, the old site stays.
async fn rebuild(content: &Content, app: &App) {
    let (content, app) = (content.clone(), app.clone());
    match spawn_blocking(move || app.rebuild(&content)).await {
        Ok(Ok(())) => tracing::info!("site rebuilt"),
        Ok(Err(failure)) => tracing::warn!(%failure, "site rebuild failed; still serving the previous version"),
        Err(failure) => tracing::error!(%failure, "rebuilding the site panicked"),
    }
}
