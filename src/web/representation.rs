//! Response bodies that are built once and sent many times, each content encoding with its own `ETag`.

use std::io::Write;
use std::sync::OnceLock;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use http::header::{
    ACCEPT_RANGES, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_RANGE, CONTENT_TYPE, ETAG, HeaderName, IF_NONE_MATCH,
    RANGE, VARY,
};
use http::{HeaderMap, HeaderValue, Method, StatusCode};

use super::headers::add_security_headers;
use super::negotiate::{self, Encoding};
use super::ranges::RequestedRange;
use crate::blocking::blocking;
use crate::domain::sha256::Sha256;
use crate::domain::statistics::Reading;

/// One representation of a resource. Each content encoding is compressed when it is first requested,
/// and kept: most are never requested, and startup need not wait for them.
#[derive(Debug)]
pub(crate) struct Representation {
    unencoded: UnencodedResponse,
    plain: Encoded,
    compressed: [(Encoding, OnceLock<Option<Encoded>>); 3],
}

#[derive(Debug)]
struct Encoded {
    headers: HeaderMap,
    body: Bytes,
}

/// What is larger is sent as it is: the first request would wait too long for the compression.
const MAX_COMPRESSED_BYTES: usize = 16 * 1024 * 1024;

pub(crate) const HTML: &str = "text/html; charset=utf-8";
pub(crate) const MARKDOWN: &str = "text/markdown; charset=utf-8";

/// A response before its body is compressed and its `ETag` computed.
#[derive(Debug)]
pub(crate) struct UnencodedResponse {
    pub status: StatusCode,
    pub content_type: &'static str,
    pub cache_control: &'static str,
    /// Whether the response depends on `Accept`.
    pub varies_by_accept: bool,
    /// What a request for it reads, if that is counted.
    pub reading: Option<Reading>,
    pub headers: Vec<(HeaderName, String)>,
    pub body: Bytes,
    /// The hash of the body.
    pub hash: Sha256,
}

impl UnencodedResponse {
    /// A file that a cache must revalidate, because the next release or a change of the site changes it.
    pub(crate) fn file(content_type: &'static str, body: impl Into<Bytes>) -> Self {
        let body = body.into();
        let hash = Sha256::of(&body);
        Self::hashed_file(content_type, body, hash)
    }

    /// As [`Self::file`], for a body whose hash is known.
    pub(crate) const fn hashed_file(content_type: &'static str, body: Bytes, hash: Sha256) -> Self {
        Self {
            status: StatusCode::OK,
            content_type,
            cache_control: "no-cache",
            varies_by_accept: false,
            reading: None,
            headers: Vec::new(),
            body,
            hash,
        }
    }

    /// A page, whose reads are counted.
    pub(crate) fn page(content_type: &'static str, reading: Reading, body: impl Into<Bytes>) -> Self {
        Self { reading: Some(reading), ..Self::file(content_type, body) }
    }

    /// A file that tells programs about the site.
    pub(crate) fn briefing(content_type: &'static str, body: impl Into<Bytes>) -> Self {
        Self::page(content_type, Reading::Briefing, body)
    }

    pub(crate) fn with_header(mut self, name: HeaderName, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }
}

impl From<UnencodedResponse> for Representation {
    fn from(unencoded: UnencodedResponse) -> Self {
        Self {
            plain: Encoded::new(&unencoded, Encoding::Identity, unencoded.body.clone(), &unencoded.hash),
            compressed: Encoding::COMPRESSED.map(|encoding| (encoding, OnceLock::new())),
            unencoded,
        }
    }
}

impl Encoded {
    fn new(unencoded: &UnencodedResponse, encoding: Encoding, body: Bytes, hash: &Sha256) -> Self {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(unencoded.content_type));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static(unencoded.cache_control));
        let vary = if unencoded.varies_by_accept { "Accept, Accept-Encoding" } else { "Accept-Encoding" };
        headers.insert(VARY, HeaderValue::from_static(vary));
        for (name, value) in &unencoded.headers {
            if let Ok(value) = HeaderValue::from_str(value) {
                headers.insert(name, value);
            }
        }
        if unencoded.status == StatusCode::OK
            && let Ok(etag) = HeaderValue::from_str(&etag(hash))
        {
            headers.insert(ETAG, etag);
            headers.insert(ACCEPT_RANGES, HeaderValue::from_static("bytes"));
        }
        if encoding != Encoding::Identity {
            headers.insert(CONTENT_ENCODING, HeaderValue::from_static(encoding.as_str()));
        }
        // Here and not for every request: a map that is cloned complete costs less than one that grows.
        add_security_headers(&mut headers);
        Self { headers, body }
    }
}

impl Representation {
    pub(crate) const fn reading(&self) -> Option<Reading> {
        self.unencoded.reading
    }

    /// The response to `GET` and `HEAD`, for which the server drops the body. Only the uncompressed body has ranges.
    pub(crate) fn respond(&self, method: &Method, request_headers: &HeaderMap) -> Response {
        let has_range = request_headers.contains_key(RANGE);
        let chosen = if has_range { &self.plain } else { self.encoded(negotiate::encoding(request_headers)) };
        let mut response = Response::new(Body::empty());
        *response.headers_mut() = chosen.headers.clone();
        let etag = chosen.headers.get(ETAG);
        if etag.is_some_and(|etag| etag_matches(request_headers, etag)) {
            response.headers_mut().remove(CONTENT_TYPE);
            response.headers_mut().remove(CONTENT_ENCODING);
            *response.status_mut() = StatusCode::NOT_MODIFIED;
            return response;
        }
        let (status, body) = match etag.and_then(|etag| etag.to_str().ok()).filter(|_| has_range) {
            Some(etag) => in_range(method, request_headers, etag, &chosen.body, response.headers_mut()),
            None => (self.unencoded.status, chosen.body.clone()),
        };
        *response.status_mut() = status;
        *response.body_mut() = Body::from(body);
        response
    }

    /// The body in this encoding, or uncompressed if compression does not make it smaller.
    fn encoded(&self, wanted: Encoding) -> &Encoded {
        let slot = self.compressed.iter().find(|(encoding, _)| *encoding == wanted);
        let encoded = slot.and_then(|(encoding, slot)| match slot.get() {
            Some(encoded) => encoded.as_ref(),
            None => blocking(|| slot.get_or_init(|| self.compress(*encoding))).as_ref(),
        });
        encoded.unwrap_or(&self.plain)
    }

    fn compress(&self, encoding: Encoding) -> Option<Encoded> {
        let unencoded = &self.unencoded;
        let is_worth_it = is_text(unencoded.content_type) && unencoded.body.len() <= MAX_COMPRESSED_BYTES;
        let body = is_worth_it.then(|| compress(encoding, &unencoded.body)).flatten()?;
        let hash = Sha256::of(&body);
        (body.len() < unencoded.body.len()).then(|| Encoded::new(unencoded, encoding, body.into(), &hash))
    }
}

/// The part of a body that a request asks for. `headers` are those of the response.
fn in_range(
    method: &Method,
    request_headers: &HeaderMap,
    etag: &str,
    body: &Bytes,
    headers: &mut HeaderMap,
) -> (StatusCode, Bytes) {
    let total = body.len();
    let (status, content_range, part) =
        match RequestedRange::of(method, request_headers, &[etag], u64::try_from(total).unwrap_or(u64::MAX)) {
            RequestedRange::Whole => return (StatusCode::OK, body.clone()),
            RequestedRange::Part(range) => {
                let [first, last] = [range.start(), range.end()].map(|place| usize::try_from(*place).unwrap_or(total));
                (StatusCode::PARTIAL_CONTENT, format!("bytes {first}-{last}/{total}"), body.slice(first..=last))
            }
            RequestedRange::Unsatisfiable => {
                headers.remove(CONTENT_TYPE);
                headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
                (StatusCode::RANGE_NOT_SATISFIABLE, format!("bytes */{total}"), Bytes::new())
            }
        };
    if let Ok(content_range) = HeaderValue::from_str(&content_range) {
        headers.insert(CONTENT_RANGE, content_range);
    }
    (status, part)
}

/// A strong validator: computed from the hash of the encoded bytes, so each content encoding has its own.
fn etag(hash: &Sha256) -> String {
    format!("\"{}\"", hash.short(24))
}

/// Whether `If-None-Match` matches the `ETag`.
pub(crate) fn etag_matches(request_headers: &HeaderMap, etag: &HeaderValue) -> bool {
    request_headers
        .get_all(IF_NONE_MATCH)
        .into_iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .any(|tag| {
            let tag = tag.trim();
            tag == "*" || tag.strip_prefix("W/").unwrap_or(tag).as_bytes() == etag.as_bytes()
        })
}

/// Images and fonts are compressed formats.
fn is_text(content_type: &str) -> bool {
    content_type.starts_with("text/") || ["json", "xml"].iter().any(|kind| content_type.contains(kind))
}

/// The levels are a compromise: the client that requests an encoding first waits for the compression.
fn compress(encoding: Encoding, body: &[u8]) -> Option<Vec<u8>> {
    match encoding {
        Encoding::Identity => None,
        Encoding::Brotli => {
            let mut writer = brotli::CompressorWriter::new(Vec::new(), 4096, 6, 18);
            writer.write_all(body).ok()?;
            Some(writer.into_inner())
        }
        Encoding::Zstd => zstd::bulk::compress(body, 12).ok(),
        Encoding::Gzip => {
            let mut writer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
            writer.write_all(body).ok()?;
            writer.finish().ok()
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    use http::header::ACCEPT_ENCODING;

    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn other_requests_go_on_while_a_large_file_is_compressed() {
        let words = (0..400_000_u64).map(|n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_string());
        let text = words.collect::<Vec<_>>().join(" ");
        let file = Representation::from(UnencodedResponse::file(HTML, text));
        let others = Arc::new(AtomicU64::new(0));
        let counter = Arc::clone(&others);
        let requests = tokio::spawn(async move {
            loop {
                counter.fetch_add(1, Ordering::Relaxed);
                tokio::task::yield_now().await;
            }
        });
        let compressing = tokio::spawn(async move {
            let before = others.load(Ordering::Relaxed);
            let response =
                file.respond(&Method::GET, &HeaderMap::from_iter([(ACCEPT_ENCODING, HeaderValue::from_static("br"))]));
            assert_eq!(response.headers()[CONTENT_ENCODING], "br");
            others.load(Ordering::Relaxed) - before
        });
        assert!(compressing.await.unwrap() > 0, "the only thread was held up");
        requests.abort();
    }
}
