//! Requests for disk images: a redirect to the newest, and each version at a permanent URL.

use axum::extract::{Request, State};
use axum::response::{IntoResponse as _, Response};
use http::header::{CACHE_CONTROL, CONTENT_RANGE, LOCATION, RANGE, RETRY_AFTER};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use tokio::sync::OwnedSemaphorePermit;

use super::files::{image_path, sample_file_name};
use super::send_image;
use crate::actions::{ImageFailure, ImageStore, NewestImage, latest_path};
use crate::domain::releases::Release;
use crate::web::app::App;
use crate::web::fallback;

/// Redirects to the newest image.
pub(crate) async fn latest(State(app): State<App>, request: Request) -> Response {
    let built = app.built();
    let name = &built.site.facts.name;
    if request.uri().path() != latest_path(name) {
        return fallback::fallback(State(app), request).await;
    }
    let releases = app.service.catalog.cached();
    match (&app.service.newest_image, releases.newest()) {
        (NewestImage::External(url), _) => redirect(url),
        (_, Some(release)) => redirect(release.external_url.as_deref().unwrap_or(&image_path(&release.file))),
        (NewestImage::Preview(_), None) => redirect(&image_path(sample_file_name(name))),
        (NewestImage::Published(_), None) => {
            unavailable("No disk image has been published yet. Please come back later.\n")
        }
    }
}

/// Serves the image of one version.
pub(crate) async fn image(State(app): State<App>, request: Request) -> Response {
    let file = request.uri().path().rsplit('/').next().unwrap_or_default();
    let releases = app.service.catalog.cached();
    let Some(release) = releases.find_file(file).filter(|release| request.uri().path() == image_path(&release.file))
    else {
        return fallback::fallback(State(app), request).await;
    };
    if release.withdrawn.is_some() {
        let latest = app.service.newest_image.url();
        let text = format!("{file} has been withdrawn. The newest version is at {latest}\n");
        return (StatusCode::GONE, text).into_response();
    }
    if let Some(url) = &release.external_url {
        return redirect(url);
    }
    let Some(permit) = app.open_image() else {
        return unavailable("Too many people are downloading just now. Please try again in a moment.\n");
    };
    let images = app.service.catalog.images();
    let response = respond(images, release, request.method(), request.headers(), permit).await;
    match response {
        Ok(response) => {
            if request.method() == Method::GET && starts_download(&response, request.headers()) {
                app.metrics.record_image(&release.version);
                app.service.count_buffer.image_sent(&release.version, app.service.clock.now());
            }
            response
        }
        Err(error) => {
            tracing::warn!(file, %error, "cannot read a published image");
            unavailable("This disk image cannot be read just now. Please try again in a moment.\n")
        }
    }
}

/// Sends the image, or redirects to the bucket that has it.
async fn respond(
    images: &ImageStore,
    release: &Release,
    method: &Method,
    headers: &HeaderMap,
    permit: OwnedSemaphorePermit,
) -> Result<Response, ImageFailure> {
    let redirect_url = images.redirect_url(release);
    let mut response = match &redirect_url {
        Some(url) if method != Method::HEAD => {
            // The bucket's own error would be of no use to a visitor.
            images.check(release).await?;
            redirect(url)
        }
        _ => send_image::respond(images, release, method, headers, permit).await?,
    };
    if redirect_url.is_some() {
        response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
    Ok(response)
}

/// Whether the response contains the start of the image, or redirects to it. A resumed download is not counted again,
/// and neither is a probe for a single byte.
fn starts_download(response: &Response, request: &HeaderMap) -> bool {
    if response.status() == StatusCode::FOUND {
        return !request.contains_key(RANGE);
    }

    let range = response.headers().get(CONTENT_RANGE);
    let is_start = |range: &[u8]| range.starts_with(b"bytes 0-") && !range.starts_with(b"bytes 0-0/");
    response.status() == StatusCode::OK || range.is_some_and(|range| is_start(range.as_bytes()))
}

fn redirect(url: &str) -> Response {
    (StatusCode::FOUND, [(LOCATION, url), (CACHE_CONTROL, "no-cache")]).into_response()
}

fn unavailable(text: &'static str) -> Response {
    (StatusCode::SERVICE_UNAVAILABLE, [(RETRY_AFTER, "60"), (CACHE_CONTROL, "no-store")], text).into_response()
}
