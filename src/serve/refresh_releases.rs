//! Rebuilds the site when a release was published or withdrawn, by this instance or another.

use std::time::Duration;

use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::site::Content;
use crate::web::App;

/// How often the database is polled for releases: pages change within a second.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

pub(super) async fn run(content: Content, app: App, stop: CancellationToken) {
    let mut watcher = app.catalog().watch();
    let mut failing = false;
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            () = watcher.changed() => rebuild(&content, &app).await,
            () = sleep(POLL_INTERVAL) => match app.catalog().refresh().await {
                Ok(()) => failing = false,
                Err(failure) if !failing => {
                    failing = true;
                    tracing::warn!(%failure, "new releases are not shown until the database is available");
                }
                Err(_) => {}
            },
        }
    }
}

/// Rebuilds on a blocking thread: rendering every page would hold up requests.
async fn rebuild(content: &Content, app: &App) {
    let (content, app) = (content.clone(), app.clone());
    match tokio::task::spawn_blocking(move || app.rebuild(&content)).await {
        Ok(Ok(())) => tracing::info!("site rebuilt for new releases"),
        Ok(Err(failure)) => {
            tracing::warn!(%failure, "site rebuild for new releases failed; still serving the previous version");
        }
        Err(failure) => tracing::error!(%failure, "rebuilding the site panicked"),
    }
}
