//! Sends a published disk image: conditional requests, a single range, or the whole file.

use std::time::{Duration, SystemTime};

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use futures_util::StreamExt as _;
use http::header::{
    ACCEPT_RANGES, CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, ETAG, HeaderName,
    IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE, LAST_MODIFIED, RANGE,
};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use tokio::sync::OwnedSemaphorePermit;

use crate::actions::{ImageFailure, ImageStore};
use crate::domain::releases::{MEDIA_TYPE, Release, attachment};
use crate::domain::time::Timestamp;
use crate::web::ranges::RequestedRange;
use crate::web::representation::etag_matches;

/// The last second that an HTTP date can express: the end of the year 9999.
const MAX_HTTP_DATE: u64 = 253_402_300_799;

/// `permit` is held for as long as the image is open.
pub(super) async fn respond(
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
        (CACHE_CONTROL, "public, max-age=31536000, immutable".to_owned()),
        (ACCEPT_RANGES, "bytes".to_owned()),
        (HeaderName::from_static("repr-digest"), format!("sha-256=:{}:", release.sha256.base64())),
    ];
    if is_not_modified(headers, &etag, modified) {
        return Ok((StatusCode::NOT_MODIFIED, common).into_response());
    }
    let requested = if method == Method::GET {
        requested_range(headers, &[&etag, &last_modified], total)
    } else {
        RequestedRange::Whole
    };
    let (status, first, length, content_range) = match requested {
        RequestedRange::Whole => (StatusCode::OK, 0, total, None),
        RequestedRange::Part(range) => {
            let (first, last) = range.into_inner();
            let content_range = format!("bytes {first}-{last}/{total}");
            (StatusCode::PARTIAL_CONTENT, first, last - first + 1, Some([(CONTENT_RANGE, content_range)]))
        }
        RequestedRange::Unsatisfiable => {
            let content_range = [(CONTENT_RANGE, format!("bytes */{total}"))];
            return Ok((StatusCode::RANGE_NOT_SATISFIABLE, common, content_range).into_response());
        }
    };
    let body = if method == Method::HEAD {
        images.check(release).await?;
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
    Ok((status, common, content, content_range, body).into_response())
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

/// Ignores `Range` if it is repeated, or if `If-Range` names none of the `validators` of the file.
fn requested_range(headers: &HeaderMap, validators: &[&str], total: u64) -> RequestedRange {
    let mut ranges = headers.get_all(RANGE).into_iter();
    let (Some(range), None) = (ranges.next(), ranges.next()) else { return RequestedRange::Whole };
    let unchanged = headers.get(IF_RANGE).is_none_or(|value| validators.iter().any(|validator| value == *validator));
    match range.to_str() {
        Ok(range) if unchanged => RequestedRange::parse(range, total),
        _ => RequestedRange::Whole,
    }
}
