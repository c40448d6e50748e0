//! What programs with a token and makers in a browser do alike with releases.

use std::io;
use std::ops::RangeInclusive;
use std::pin::pin;
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use futures_util::future::{Either, FutureExt as _, select};
use futures_util::stream;
use futures_util::{Stream, StreamExt as _, TryStreamExt as _};
use http::HeaderMap;
use http::header::CONTENT_LENGTH;
use tokio::time::{Instant, sleep, timeout, timeout_at};
use tokio_util::io::{StreamReader, SyncIoBridge};
use tokio_util::sync::CancellationToken;

use super::activity::record;
use super::api::problem::{DeskError, DeskProblem};
use crate::actions::{
    ImageStream, NewRelease, PublishFailure, ReleaseStore, Uploaded, authorize_token, find_session, upload_release,
};
use crate::domain::desk::{Actor, Change};
use crate::domain::limits::{MIN_READ_BYTES_PER_SECOND, SLOW_READ_PERIOD};
use crate::domain::sha256::Sha256;
use crate::domain::tokens::{CredentialName, TokenRight, TokenSecret};
use crate::store::StoreFailure;
use crate::web::app::App;
use crate::web::built_site::BuiltSite;

/// Who sends an image.
#[derive(Clone)]
pub(super) enum Credential {
    Token(TokenSecret),
    /// The hash of a cookie.
    Session(Sha256),
}

impl Credential {
    /// Returns whether it was neither revoked nor ended since the image began to arrive.
    async fn validate(self, app: App) -> Result<bool, StoreFailure> {
        let (store, now) = (&app.service.store, app.service.clock.now());
        Ok(match self {
            Self::Token(secret) => authorize_token(store, &secret, TokenRight::Publish, now).await?.is_some(),
            Self::Session(cookie) => find_session(store, &cookie, now).await?.is_some(),
        })
    }
}

/// How often is asked whether whoever sends an image still may.
const PERMISSION_INTERVAL: Duration = Duration::from_secs(5);

/// What arrives of a body, until `stop`. It fails if too little arrives, which the connection does not notice over HTTP/2 if there
/// are other requests.
pub(super) fn chunks(stop: &CancellationToken, body: Body) -> impl Stream<Item = io::Result<Bytes>> + Send + use<> {
    let chunks = body.into_data_stream().map_err(io::Error::other).take_until(stop.clone().cancelled_owned());
    let state = (Box::pin(chunks), Instant::now() + SLOW_READ_PERIOD, 0);
    stream::try_unfold(state, |(mut chunks, mut period_end, mut arrived)| async move {
        loop {
            match timeout_at(period_end, chunks.try_next()).await {
                Ok(chunk) => {
                    return Ok(chunk?.map(|chunk| {
                        arrived += chunk.len() as u64;
                        (chunk, (chunks, period_end, arrived))
                    }));
                }
                Err(_) if arrived < MIN_READ_BYTES_PER_SECOND * SLOW_READ_PERIOD.as_secs() => {
                    return Err(io::ErrorKind::TimedOut.into());
                }
                Err(_) => (period_end, arrived) = (Instant::now() + SLOW_READ_PERIOD, 0),
            }
        }
    })
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
    (by, credential): (&Actor, Credential),
    new_release: NewRelease,
    image: impl Stream<Item = io::Result<Bytes>> + Send + 'static,
    length: RangeInclusive<u64>,
    stop: CancellationToken,
) -> Result<Uploaded, PublishFailure> {
    let bytes = SyncIoBridge::new(StreamReader::new(Box::pin(image)));
    let permission = Some(credential.clone().validate(app.clone()).boxed());
    let image = ImageStream { bytes: Box::new(bytes), length: Some(length), stop: stop.clone(), permission };
    let ask_again = async {
        loop {
            sleep(PERMISSION_INTERVAL).await;
            if matches!(credential.clone().validate(app.clone()).await, Ok(false)) {
                return stop.cancel();
            }
        }
    };
    let (built, now) = (app.built(), app.service.clock.now());
    let store = release_store(app, &built);
    let upload = pin!(upload_release(&store, new_release, image, now));
    let uploaded = match select(upload, pin!(ask_again)).await {
        Either::Left((uploaded, _)) => uploaded,
        Either::Right(((), upload)) => upload.await,
    };
    let uploaded = uploaded.map_err(|failure| match failure {
        PublishFailure::Stopped if !app.stopping.is_cancelled() => PublishFailure::NotAllowed,
        failure => failure,
    })?;
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
