//! Requests for disk images: a redirect to the newest, and each version at a permanent URL, whole or in ranges.

use std::time::{Duration, SystemTime};

use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::{IntoResponse as _, Response};
use futures_util::StreamExt as _;
use http::header::{
    ACCEPT_RANGES, CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, ETAG, HeaderName,
    IF_MODIFIED_SINCE, IF_NONE_MATCH, LAST_MODIFIED, LOCATION, RANGE, RETRY_AFTER,
};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use tokio::sync::OwnedSemaphorePermit;

use super::feeds::{image_path, sample_file_name};
use crate::actions::{ImageFailure, ImageStore, NewestImage, latest_path, latest_path_of};
use crate::domain::releases::{Channel, MEDIA_TYPE, Release, attachment};
use crate::domain::time::Timestamp;
use crate::web::app::App;
use crate::web::fallback;
use crate::web::headers::IMMUTABLE;
use crate::web::ranges::RequestedRange;
use crate::web::representation::etag_matches;

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
        (_, Some(release)) => redirect_to_image(release),
        (NewestImage::Preview(_), None) => redirect(&image_path(sample_file_name(name))),
        (NewestImage::Published(_), None) => {
            unavailable("No disk image has been published yet. Please come back later.\n")
        }
    }
}

/// Redirects to the newest image of a channel.
pub(crate) async fn latest_of_channel(State(app): State<App>, request: Request) -> Response {
    let path = request.uri().path();
    let channel = path.rsplit('/').nth(1).and_then(|name| Channel::parse(name).ok());
    let channel = channel.filter(|channel| path == latest_path_of(channel, &app.built().site.facts.name));
    match channel.and_then(|channel| app.service.catalog.cached().newest_of(&channel).map(redirect_to_image)) {
        Some(response) => response,
        None => fallback::fallback(State(app), request).await,
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
        return (StatusCode::GONE, [(CACHE_CONTROL, "no-cache")], text).into_response();
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
        _ => send_image(images, release, method, headers, permit).await?,
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

fn redirect_to_image(release: &Release) -> Response {
    redirect(release.external_url.as_deref().unwrap_or(&image_path(&release.file)))
}

fn redirect(url: &str) -> Response {
    (StatusCode::FOUND, [(LOCATION, url), (CACHE_CONTROL, "no-cache")]).into_response()
}

fn unavailable(text: &'static str) -> Response {
    (StatusCode::SERVICE_UNAVAILABLE, [(RETRY_AFTER, "60"), (CACHE_CONTROL, "no-store")], text).into_response()
}

/// The image of a version never changes.
const CACHED: [(HeaderName, &str); 1] = [(CACHE_CONTROL, IMMUTABLE)];

/// The last second that an HTTP date can express: the end of the year 9999.
const MAX_HTTP_DATE: u64 = 253_402_300_799;

/// Sends the image, or a range of it. `permit` is held for as long as the image is open.
async fn send_image(
    images: &ImageStore,
    release: &Release,
    method: &Method,
    headers: &HeaderMap,
    permit: OwnedSemaphorePermit,
) -> Result<Response, ImageFailure> {
    let total = release.length;
    let modified = http_time(release.published);
    let etag = format!("\"{}\"", release.sha256.hex());
    let last_modified = httpdate::fmt_http_date(modified);
    let common = [
        (ETAG, etag.clone()),
        (LAST_MODIFIED, last_modified.clone()),
        (ACCEPT_RANGES, "bytes".to_owned()),
        (HeaderName::from_static("repr-digest"), format!("sha-256=:{}:", release.sha256.base64())),
    ];
    if is_not_modified(headers, &etag, modified) {
        return Ok((StatusCode::NOT_MODIFIED, CACHED, common).into_response());
    }
    let requested = RequestedRange::of(method, headers, &[&etag, &last_modified], total);
    let (status, first, length, content_range) = match requested {
        RequestedRange::Whole => (StatusCode::OK, 0, total, None),
        RequestedRange::Part(range) => {
            let (first, last) = range.into_inner();
            let content_range = format!("bytes {first}-{last}/{total}");
            (StatusCode::PARTIAL_CONTENT, first, last - first + 1, Some([(CONTENT_RANGE, content_range)]))
        }
        RequestedRange::Unsatisfiable => {
            let content_range = [(CONTENT_RANGE, format!("bytes */{total}")), (CACHE_CONTROL, "no-store".to_owned())];
            return Ok((StatusCode::RANGE_NOT_SATISFIABLE, common, content_range).into_response());
        }
    };
    let body = if method == Method::HEAD {
        // All that is asked is known, and a bucket charges for each request.
        if let ImageStore::Folder(_) = images {
            images.check(release).await?;
        }
        Body::empty()
    } else {
        let chunks = images.read(release, first, length).await?;
        Body::from_stream(chunks.inspect(move |_| {
            let _held_until_the_stream_is_dropped = &permit;
        }))
    };
    let content = [
        (CONTENT_DISPOSITION, attachment(release.file.as_str())),
        (CONTENT_TYPE, MEDIA_TYPE.to_owned()),
        (CONTENT_LENGTH, length.to_string()),
    ];
    Ok((status, CACHED, common, content, content_range, body).into_response())
}

/// The time to the second, clamped to what an HTTP date can express.
fn http_time(time: Timestamp) -> SystemTime {
    let seconds = u64::try_from(time.unix_seconds()).unwrap_or_default().min(MAX_HTTP_DATE);
    SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
}

/// Whether the client's copy is current. `If-None-Match` takes precedence over `If-Modified-Since`.
fn is_not_modified(headers: &HeaderMap, etag: &str, modified: SystemTime) -> bool {
    if headers.contains_key(IF_NONE_MATCH) {
        return HeaderValue::from_str(etag).is_ok_and(|etag| etag_matches(headers, &etag));
    }
    let since = headers.get(IF_MODIFIED_SINCE).and_then(|date| httpdate::parse_http_date(date.to_str().ok()?).ok());
    since.is_some_and(|since| modified <= since)
}
