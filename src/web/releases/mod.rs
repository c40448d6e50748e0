//! The disk images: where the newest is, each version for good, and lists of them for people, Sparkle,
//! feed readers and programs.

mod feeds;
pub(crate) mod files;
mod image;
pub(crate) mod listing;

use axum::body::Body;
use axum::extract::{Path, Request, State};
use axum::response::Response;
use http::header::{CACHE_CONTROL, CONTENT_RANGE, LOCATION, RETRY_AFTER};
use http::{HeaderValue, Method, StatusCode};

use super::app::App;
use super::pages;
use super::response::text_response;
use crate::actions::{NewestImage, latest_path};

/// Leads to the newest image, whichever that is.
pub(crate) async fn latest(State(app): State<App>, request: Request) -> Response {
    let made = app.built();
    let name = &made.site.facts.name;
    if request.uri().path() != latest_path(name) {
        return pages::unknown(State(app), request).await;
    }
    let releases = app.service().catalogue.current().await;
    match (&app.service().newest_image, releases.newest()) {
        (NewestImage::External(url), _) => lead_to(url),
        (_, Some(release)) => lead_to(release.elsewhere.as_deref().unwrap_or(&listing::path(release))),
        (NewestImage::Preview(_), None) => lead_to(&format!("/releases/{}", files::sample_name(name))),
        (NewestImage::Published(_), None) => not_yet("No disk image has been published yet. Please come back later.\n"),
    }
}

/// The image of one version.
pub(crate) async fn image(State(app): State<App>, Path(file): Path<String>, request: Request) -> Response {
    let releases = app.service().catalogue.current().await;
    let Some(release) = releases.with_file(&file).filter(|release| request.uri().path() == listing::path(release))
    else {
        return pages::unknown(State(app), request).await;
    };
    if release.withdrawn.is_some() {
        let latest = app.service().newest_image.url();
        return text_response(
            StatusCode::GONE,
            format!("{file} has been withdrawn. The newest version is at {latest}\n"),
        );
    }
    if let Some(url) = &release.elsewhere {
        return lead_to(url);
    }
    match app.service().catalogue.open(release).await {
        Ok(opened) => {
            let response = image::respond(opened, release, request.method(), request.headers());
            if request.method() == Method::GET && has_the_beginning(&response) {
                app.metrics().image_sent(&release.version);
                app.service().count_buffer.image_sent(&release.version, app.service().clock.now());
            }
            response
        }
        Err(why) => {
            tracing::warn!(file, %why, "a published image cannot be read");
            not_yet("This disk image cannot be read just now. Please try again in a moment.\n")
        }
    }
}

/// Whoever goes on with a download that broke off is not counted again.
fn has_the_beginning(response: &Response) -> bool {
    let range = response.headers().get(CONTENT_RANGE);
    let begins = |range: &[u8]| range.starts_with(b"bytes 0-") && !range.starts_with(b"bytes 0-0/");
    response.status() == StatusCode::OK || range.is_some_and(|range| begins(range.as_bytes()))
}

fn lead_to(address: &str) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::FOUND;
    if let Ok(address) = HeaderValue::from_str(address) {
        response.headers_mut().insert(LOCATION, address);
    }
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    response
}

fn not_yet(words: &'static str) -> Response {
    let mut response = text_response(StatusCode::SERVICE_UNAVAILABLE, words);
    response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("60"));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
