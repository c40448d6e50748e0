//! Objects in a bucket of an S3-compatible service: disk images and backups. The only module with its protocol.
//!
//! The name of an object has the start of its image's SHA-256. So an object never changes: two makers who publish the
//! same version at the same time write two objects, and the release that is recorded leads to its own.
//!
//! Nothing here knows visitors, or which release is the newest.

mod list;
mod signature;
mod verified_upload;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures_util::{Stream, stream};
use http::header::{CONTENT_LENGTH, CONTENT_RANGE, RANGE};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Limited};
use hyper::body::Incoming;
use tokio::time::timeout;
use url::Url;

use crate::clock::Clock;
use crate::config::{BucketSettings, InvalidSettings};
use crate::domain::limits::SIGNED_URL_LIFE;
use crate::domain::releases::Release;
use crate::domain::sha256::Sha256;
use crate::http_client::{HttpClient, RequestBody, cause, empty_body, system_roots};
use signature::Signer;

/// How long the service may take to begin an answer, for which a visitor waits.
pub const ANSWER_TIMEOUT: Duration = Duration::from_secs(3);
/// How long the service may take to go on with an answer or an upload.
pub const IDLE_TIMEOUT: Duration = Duration::from_secs(10);
/// How much of an error is read.
const MAX_ERROR_BYTES: usize = 16 * 1024;

const CHECKSUM: HeaderName = HeaderName::from_static("x-amz-checksum-sha256");
const CHECKSUM_MODE: HeaderName = HeaderName::from_static("x-amz-checksum-mode");

/// A phrase that continues "the bucket cannot be used".
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BucketFailure {
    #[error("it is not in the bucket")]
    Missing,
    #[error("the object in the bucket is another one: {0}")]
    Changed(String),
    #[error("the bucket is full ({0})")]
    Full(String),
    #[error("the bucket refused the request ({0}); check its name, the access key and what that key may do")]
    Refused(String),
    #[error("the bucket is unavailable: {0}")]
    Unavailable(String),
}

/// An object, and what its content has to be.
#[derive(Clone, Debug)]
pub struct Object {
    pub key: String,
    pub length: u64,
    pub sha256: Sha256,
    /// The name under which a browser saves a disk image. `None`: it is something else.
    file: Option<String>,
}

impl Object {
    pub fn new(key: String, length: u64, sha256: Sha256) -> Self {
        Self { key, length, sha256, file: None }
    }
}

/// The image of the release.
impl From<&Release> for Object {
    fn from(release: &Release) -> Self {
        let file = Some(release.file.to_string());
        Self { file, ..Self::new(object_key(release), release.length, release.sha256) }
    }
}

/// A bucket with images or backups. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Bucket(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    name: String,
    url: Url,
    prefix: String,
    signer: Signer,
    client: HttpClient,
    proxy: bool,
    clock: Clock,
}

impl Bucket {
    /// Connects to nothing yet.
    pub fn open(settings: &BucketSettings, clock: Clock) -> Result<Self, InvalidSettings> {
        let access = settings.access.clone()?;
        let client = HttpClient::new(system_roots()).map_err(|error| InvalidSettings::new(settings.setting, error))?;
        Ok(Self(Arc::new(Inner {
            name: settings.name.clone(),
            url: access.url,
            prefix: access.prefix,
            signer: Signer { key: access.key, region: access.region },
            client,
            proxy: settings.proxy,
            clock,
        })))
    }

    /// Whether images are sent by this service. Otherwise downloads are redirected to the bucket.
    pub fn is_proxied(&self) -> bool {
        self.0.proxy
    }

    /// The setting without its options.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// The name of the object with the image of a release, such as `s3://bucket/prefix/0123456789abcdef/Troupe-1.4.0.dmg`.
    pub fn object_name(&self, release: &Release) -> String {
        format!("{}/{}", self.0.name, object_key(release))
    }

    /// A URL that leads everybody to the image for a short time.
    pub fn signed_url(&self, release: &Release) -> String {
        let url = self.object_url(&object_key(release));
        self.0.signer.signed_url(&Method::GET, &url, &[], &[], SIGNED_URL_LIFE, self.0.clock.now())
    }

    /// Checks that the bucket exists and that the key may read it.
    pub async fn probe(&self) -> Result<(), BucketFailure> {
        // Only the answer to a GET request tells a missing bucket from a missing object.
        match self.send(Method::GET, &self.object_url(""), &[], &[], ANSWER_TIMEOUT).await {
            Ok(_) | Err(BucketFailure::Missing) => Ok(()),
            Err(failure) => Err(failure),
        }
    }

    /// Checks that the object is there, with this length and, if the service knows it, this SHA-256.
    pub async fn check(&self, object: impl Into<Object>) -> Result<(), BucketFailure> {
        self.check_object(&object.into()).await.map(drop)
    }

    /// Returns whether the service has compared the SHA-256.
    async fn check_object(&self, object: &Object) -> Result<bool, BucketFailure> {
        let headers = [(CHECKSUM_MODE, "ENABLED")];
        let response = self.send(Method::HEAD, &self.object_url(&object.key), &[], &headers, ANSWER_TIMEOUT).await?;
        let length = header(response.headers(), &CONTENT_LENGTH).and_then(|length| length.parse().ok());
        compare(object, length, response.headers())
    }

    /// Deletes an object, if it is there.
    pub async fn delete(&self, key: &str) -> Result<(), BucketFailure> {
        match self.send(Method::DELETE, &self.object_url(key), &[], &[], IDLE_TIMEOUT).await {
            Ok(_) | Err(BucketFailure::Missing) => Ok(()),
            Err(failure) => Err(failure),
        }
    }

    /// Reads `length` bytes of the object from the position `first`. The service has the time `limit` to begin its answer.
    pub async fn read(
        &self,
        limit: Duration,
        object: impl Into<Object>,
        first: u64,
        length: u64,
    ) -> Result<impl Stream<Item = io::Result<Bytes>> + Send + 'static, BucketFailure> {
        let object = object.into();
        let range = format!("bytes={first}-{}", (first + length).saturating_sub(1));
        let whole = length == object.length;
        let headers = [(CHECKSUM_MODE, "ENABLED"), (RANGE, range.as_str())];
        let headers = if whole { &headers[..1] } else { &headers };
        let response = self.send(Method::GET, &self.object_url(&object.key), &[], headers, limit).await?;
        let headers = response.headers();
        let total = match response.status() {
            StatusCode::PARTIAL_CONTENT => {
                let content_range = header(headers, &CONTENT_RANGE).unwrap_or_default();
                let (sent, total) = content_range.rsplit_once('/').unwrap_or_default();
                if sent != range.replace('=', " ") {
                    return Err(BucketFailure::Unavailable(format!("it sent {content_range:?} instead of {range}")));
                }
                total.parse().ok()
            }
            _ if whole => header(headers, &CONTENT_LENGTH).and_then(|length| length.parse().ok()),
            _ => return Err(BucketFailure::Unavailable("it does not support ranges".to_owned())),
        };
        compare(&object, total, headers)?;
        Ok(stream::try_unfold(response.into_body(), next_chunk))
    }

    async fn send(
        &self,
        method: Method,
        url: &Url,
        query: &[(&str, &str)],
        headers: &[(HeaderName, &str)],
        limit: Duration,
    ) -> Result<Response<Incoming>, BucketFailure> {
        let request = self.request(method, url, query, headers, empty_body());
        let answer = async { accept(self.0.client.send(request).await.map_err(BucketFailure::Unavailable)?).await };
        timeout(limit, answer).await.map_err(|_| no_answer())?
    }

    fn request(
        &self,
        method: Method,
        url: &Url,
        query: &[(&str, &str)],
        headers: &[(HeaderName, &str)],
        body: RequestBody,
    ) -> Request<RequestBody> {
        let mut request = Request::new(body);
        for (name, value) in headers {
            if let Ok(value) = HeaderValue::from_str(value) {
                request.headers_mut().insert(name, value);
            }
        }
        let url = self.0.signer.signed_url(&method, url, query, headers, SIGNED_URL_LIFE, self.0.clock.now());
        *request.method_mut() = method;
        *request.uri_mut() = url.parse().unwrap_or_default();
        request
    }

    fn object_url(&self, key: &str) -> Url {
        // Every character of the key is valid in a path, so this cannot fail.
        self.0.url.join(&format!("{}{key}", self.0.prefix)).unwrap_or_else(|_| self.0.url.clone())
    }
}

fn object_key(release: &Release) -> String {
    format!("{}/{}", release.sha256.short(16), release.file)
}

fn header<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

/// Compares what the service says of an object with what it has to be. Returns whether the service knows the SHA-256.
fn compare(object: &Object, length: Option<u64>, headers: &HeaderMap) -> Result<bool, BucketFailure> {
    if let Some(length) = length.filter(|length| *length != object.length) {
        return Err(BucketFailure::Changed(format!("it has {length} bytes instead of {}", object.length)));
    }
    match header(headers, &CHECKSUM) {
        Some(checksum) if checksum == object.sha256.base64() => Ok(true),
        // The checksum of an object that was uploaded in parts is one of parts, not of its content.
        Some(checksum) if STANDARD.decode(checksum).is_ok() => Err(other_sha256()),
        _ => Ok(false),
    }
}

fn other_sha256() -> BucketFailure {
    BucketFailure::Changed("its SHA-256 differs".to_owned())
}

fn no_answer() -> BucketFailure {
    BucketFailure::Unavailable("it does not answer in time".to_owned())
}

async fn next_chunk(mut body: Incoming) -> io::Result<Option<(Bytes, Incoming)>> {
    loop {
        match timeout(IDLE_TIMEOUT, body.frame()).await {
            Err(_) => return Err(io::ErrorKind::TimedOut.into()),
            Ok(None) => return Ok(None),
            Ok(Some(Err(error))) => return Err(io::Error::other(cause(&error))),
            Ok(Some(Ok(frame))) => {
                if let Ok(data) = frame.into_data() {
                    return Ok(Some((data, body)));
                }
            }
        }
    }
}

/// Returns a successful response, or what an error says.
async fn accept(response: Response<Incoming>) -> Result<Response<Incoming>, BucketFailure> {
    let status = response.status();
    if status.is_success() {
        return Ok(response);
    }
    let (head, body) = response.into_parts();
    let body = timeout(IDLE_TIMEOUT, Limited::new(body, MAX_ERROR_BYTES).collect()).await;
    let body = body.ok().and_then(Result::ok).map(http_body_util::Collected::to_bytes).unwrap_or_default();
    let body = String::from_utf8_lossy(&body);
    let code = body.split_once("<Code>").and_then(|(_, rest)| rest.split_once("</Code>")).map(|(code, _)| code);
    let said = code.map_or_else(|| status.to_string(), |code| format!("{status}, {code}"));
    let region = header(&head.headers, &HeaderName::from_static("x-amz-bucket-region"));
    Err(match (status, code) {
        (StatusCode::NOT_FOUND, None | Some("NoSuchKey")) => BucketFailure::Missing,
        (StatusCode::INSUFFICIENT_STORAGE, _) | (_, Some("QuotaExceeded" | "XMinioStorageFull")) => {
            BucketFailure::Full(said)
        }
        _ if status.is_redirection() => BucketFailure::Refused(match region {
            Some(region) => format!("{said}: it is in the region {region}"),
            None => said,
        }),
        _ if status.is_client_error() && status != StatusCode::TOO_MANY_REQUESTS => BucketFailure::Refused(said),
        _ => BucketFailure::Unavailable(format!("it answers {said}")),
    })
}
