//! What programs with a token and makers in a browser do alike with releases.

use std::io;
use std::ops::RangeInclusive;
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use futures_util::{Stream, StreamExt as _, TryStreamExt as _};
use http::HeaderMap;
use http::header::CONTENT_LENGTH;
use tokio::time::timeout;
use tokio_util::io::{StreamReader, SyncIoBridge};

use super::activity::record;
use super::api::problem::{DeskError, DeskProblem};
use crate::actions::{ImageStream, NewRelease, PublishFailure, ReleaseStore, Uploaded, upload_release};
use crate::domain::desk::{Actor, Change};
use crate::domain::tokens::CredentialName;
use crate::web::app::App;
use crate::web::built_site::BuiltSite;

/// What arrives of a body, which ends when the service stops.
pub(super) fn chunks(app: &App, body: Body) -> impl Stream<Item = io::Result<Bytes>> + Send + use<> {
    body.into_data_stream().map_err(io::Error::other).take_until(app.stopping.clone().cancelled_owned())
}

pub(super) fn body_length(headers: &HeaderMap) -> Result<u64, DeskProblem> {
    let length = headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
    length.ok_or_else(|| {
        DeskProblem::new(DeskError::LENGTH_REQUIRED, "The request does not say how long the disk image is.")
    })
}

/// Publishes the image that arrives. It is not read before everything else is known to be right.
pub(super) async fn publish(
    app: &App,
    by: &Actor,
    new_release: NewRelease,
    image: impl Stream<Item = io::Result<Bytes>> + Send + 'static,
    length: RangeInclusive<u64>,
) -> Result<Uploaded, PublishFailure> {
    let bytes = SyncIoBridge::new(StreamReader::new(Box::pin(image)));
    let image = ImageStream { bytes: Box::new(bytes), length: Some(length), stop: app.stopping.clone() };
    let built = app.built();
    let uploaded = upload_release(&release_store(app, &built), new_release, image, app.service.clock.now()).await?;
    if let Uploaded::New(release) = &uploaded {
        show_everywhere(app, by, Change::PublishedRelease(release.version.clone())).await;
    }
    Ok(uploaded)
}

pub(super) fn release_store<'a>(app: &'a App, built: &'a BuiltSite) -> ReleaseStore<'a> {
    let service = &app.service;
    ReleaseStore {
        store: &service.store,
        images: service.catalog.images(),
        data_dir: &app.settings.data_dir,
        app: &built.site.facts.name,
    }
}

/// Records a change and shows it here at once. The other instances look for changes twice a second, and so does this one if it
/// fails now.
pub(super) async fn show_everywhere(app: &App, by: &Actor, change: Change) {
    let name = by.name().map(CredentialName::as_str);
    let (token, session) = if matches!(by, Actor::Session(_)) { (None, name) } else { (name, None) };
    tracing::info!(token, session, %change, "a release was changed over HTTP");
    record(app, by, &change).await;
    let _ = app.service.catalog.refresh().await;
    let rebuilt = app.rebuilt.notified();
    app.read_again.notify_one();
    // So that the answer leads to pages that show the change. A site that cannot be built stays as it is.
    let _ = timeout(Duration::from_secs(1), rebuilt).await;
}
