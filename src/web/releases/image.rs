//! Sends a disk image from disk: whole or in parts, a piece at a time, to those who have it not yet.

use std::io::{self, SeekFrom};
use std::vec;

use axum::body::Body;
use axum::response::Response;
use bytes::{Bytes, BytesMut};
use futures_util::stream;
use http::header::{
    ACCEPT_RANGES, CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, ETAG, HeaderName,
    IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE, LAST_MODIFIED, RANGE,
};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use tokio::fs::File;
use tokio::io::{AsyncReadExt, AsyncSeekExt};

use super::files::{DISK_IMAGE, attachment};
use crate::domain::release::Release;
use crate::web::http_date;
use crate::web::multipart::Multipart;
use crate::web::ranges::{self, Asked, ByteRange};
use crate::web::representation::etag_matches;

/// How much is read at once: all that a download holds in memory.
const PIECE: u64 = 64 * 1024;

pub(super) fn respond(file: File, release: &Release, method: &Method, headers: &HeaderMap) -> Response {
    let (digest, modified) = (release.sha256.hex(), release.published.unix_seconds());
    let etag = format!("\"{digest}\"");
    let mut answer = Answer(Response::new(Body::empty()));
    answer.say(ETAG, &etag);
    answer.say(LAST_MODIFIED, &http_date::format(modified));
    answer.say(CACHE_CONTROL, "public, max-age=31536000, immutable");
    answer.say(ACCEPT_RANGES, "bytes");
    answer.say(HeaderName::from_static("repr-digest"), &format!("sha-256=:{}:", release.sha256.base64()));
    if is_had(headers, &answer.0.headers()[ETAG], modified) {
        return answer.with(StatusCode::NOT_MODIFIED, Body::empty());
    }
    answer.say(CONTENT_DISPOSITION, &attachment(&release.file));
    let total = release.length;
    let wanted = if method == Method::GET { wanted(headers, &etag, modified, total) } else { Asked::Whole };
    let (status, content_type, content_length, parts, end) = match wanted {
        Asked::Whole => {
            let parts = total.checked_sub(1).map(|last| (String::new(), ByteRange { first: 0, last }));
            (StatusCode::OK, DISK_IMAGE.to_owned(), total, Vec::from_iter(parts), String::new())
        }
        Asked::Part(range) => {
            answer.say(CONTENT_RANGE, &range.content_range(total));
            let parts = vec![(String::new(), range)];
            (StatusCode::PARTIAL_CONTENT, DISK_IMAGE.to_owned(), range.length(), parts, String::new())
        }
        Asked::Parts(ranges) => {
            let framed = Multipart::new(DISK_IMAGE, &digest, &ranges, total);
            let Multipart { content_type, content_length, parts, end } = framed;
            (StatusCode::PARTIAL_CONTENT, content_type, content_length, parts, end)
        }
        Asked::Unsatisfiable => {
            answer.say(CONTENT_RANGE, &ranges::unsatisfied_content_range(total));
            answer.0.headers_mut().remove(CONTENT_DISPOSITION);
            return answer.with(StatusCode::RANGE_NOT_SATISFIABLE, Body::empty());
        }
    };
    answer.say(CONTENT_TYPE, &content_type);
    answer.say(CONTENT_LENGTH, &content_length.to_string());
    answer.with(status, Sending { file, parts: parts.into_iter(), left: 0, end }.body())
}

struct Answer(Response);

impl Answer {
    fn say(&mut self, name: HeaderName, value: &str) {
        if let Ok(value) = HeaderValue::from_str(value) {
            self.0.headers_mut().insert(name, value);
        }
    }

    fn with(self, status: StatusCode, body: Body) -> Response {
        let mut response = self.0.map(|_| body);
        *response.status_mut() = status;
        response
    }
}

/// Whether the caller has the image already. A tag says more than a date.
fn is_had(headers: &HeaderMap, etag: &HeaderValue, modified: i64) -> bool {
    if headers.contains_key(IF_NONE_MATCH) {
        return etag_matches(headers, etag);
    }
    let since = headers.get(IF_MODIFIED_SINCE).and_then(|date| http_date::parse(date.to_str().ok()?));
    since.is_some_and(|since| modified <= since)
}

/// The parts that the caller wants, if it has parts of this very image.
fn wanted(headers: &HeaderMap, etag: &str, modified: i64, total: u64) -> Asked {
    let mut ranges = headers.get_all(RANGE).into_iter();
    let (Some(range), None) = (ranges.next(), ranges.next()) else { return Asked::Whole };
    let unchanged =
        headers.get(IF_RANGE).is_none_or(|had| had.to_str().is_ok_and(|had| ranges::is_unchanged(had, etag, modified)));
    match range.to_str() {
        Ok(range) if unchanged => ranges::asked(range, total),
        _ => Asked::Whole,
    }
}

/// A file on its way: parts of it, with words before each and after the last.
struct Sending {
    file: File,
    parts: vec::IntoIter<(String, ByteRange)>,
    /// Of the part that is being sent.
    left: u64,
    end: String,
}

impl Sending {
    fn body(self) -> Body {
        Body::from_stream(stream::try_unfold(self, async |mut sending: Self| {
            Ok::<_, io::Error>(sending.next().await?.map(|piece| (piece, sending)))
        }))
    }

    async fn next(&mut self) -> io::Result<Option<Bytes>> {
        while self.left == 0 {
            let Some((words, range)) = self.parts.next() else {
                let end = std::mem::take(&mut self.end);
                return Ok((!end.is_empty()).then(|| end.into()));
            };
            self.file.seek(SeekFrom::Start(range.first)).await?;
            self.left = range.length();
            if !words.is_empty() {
                return Ok(Some(words.into()));
            }
        }
        let most = self.left.min(PIECE);
        let mut piece = BytesMut::with_capacity(usize::try_from(most).unwrap_or_default());
        let read = (&mut self.file).take(most).read_buf(&mut piece).await?;
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.left -= read as u64;
        Ok(Some(piece.freeze()))
    }
}
