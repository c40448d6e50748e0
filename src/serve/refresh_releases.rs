//! Keeps pages up with what is published, by this machine or another.

use std::time::Duration;

use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::site::Content;
use crate::web::App;

/// How often the database is asked whether anything was published: pages change within a second.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// Makes the site anew whenever there is another release, until the stop.
pub(super) async fn run(content: Content, app: App, stop: CancellationToken) {
    let mut watcher = app.catalogue().watch();
    let mut away = false;
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            () = watcher.changed() => remake(&content, &app).await,
            () = sleep(LOOK_EVERY) => match app.catalogue().refresh().await {
                Ok(()) => away = false,
                Err(failure) if !away => {
                    away = true;
                    tracing::warn!(%failure, "new releases cannot be seen until the database is back");
                }
                Err(_) => {}
            },
        }
    }
}

/// Off the threads that answer requests: making every page takes a moment.
async fn remake(content: &Content, app: &App) {
    let (content, app) = (content.clone(), app.clone());
    match tokio::task::spawn_blocking(move || app.rebuild(&content)).await {
        Ok(Ok(())) => tracing::info!("the releases changed"),
        Ok(Err(failure)) => tracing::warn!(%failure, "the pages do not show the new releases"),
        Err(failure) => tracing::error!(%failure, "the pages could not be made anew"),
    }
}
