//! Uploads an object, and verifies that the bucket has it.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::StreamExt as _;
use http::header::{CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderName, Method};
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::Frame;
use tokio::fs::File;
use tokio::io::AsyncReadExt as _;
use tokio::time::timeout;
use tokio_util::io::ReaderStream;

use crate::bucket::{Bucket, BucketFailure, CHECKSUM, IDLE_TIMEOUT, Object, accept, no_answer, other_sha256};
use crate::domain::releases::{MEDIA_TYPE, attachment};
use crate::domain::sha256::Sha256Hasher;

/// How long the service may take to answer after the last byte of an upload: it copies and checks the image then.
const STORE_TIMEOUT: Duration = Duration::from_mins(1);
const CHUNK_SIZE: usize = 64 * 1024;
/// Asks the service to keep the checksum, so that it can be compared later.
const CHECKSUM_ALGORITHM: HeaderName = HeaderName::from_static("x-amz-sdk-checksum-algorithm");

impl Bucket {
    /// Uploads an object, unless it is there already, and verifies it. `progress` gets the number of bytes sent.
    pub async fn upload(
        &self,
        file: &Path,
        object: impl Into<Object>,
        progress: impl FnMut(u64) + Send + 'static,
    ) -> Result<(), BucketFailure> {
        let object = object.into();
        // This also finds out whether the key is accepted, before a long upload.
        match self.check_object(&object).await {
            Err(BucketFailure::Missing | BucketFailure::Changed(_)) | Ok(false) => {}
            known => return known.map(drop),
        }
        self.put(file, &object, progress).await?;
        if self.check_object(&object).await? {
            return Ok(());
        }
        self.read_back(&object).await
    }

    async fn put(
        &self,
        file: &Path,
        object: &Object,
        mut progress: impl FnMut(u64) + Send + 'static,
    ) -> Result<(), BucketFailure> {
        let unreadable = |error: io::Error| BucketFailure::Unavailable(format!("{}: {error}", file.display()));
        let source = File::open(file).await.map_err(unreadable)?;
        let sent = Arc::new(AtomicU64::default());
        let chunks = ReaderStream::with_capacity(source.take(object.length), CHUNK_SIZE);
        let counted = {
            let sent = Arc::clone(&sent);
            chunks.map(move |chunk| {
                let chunk = chunk?;
                let count = chunk.len() as u64;
                let sent = sent.fetch_add(count, Ordering::Relaxed) + count;
                progress(sent);
                Ok(Frame::data(chunk))
            })
        };
        let (length, checksum) = (object.length.to_string(), object.sha256.base64());
        let (media_type, disposition) = match &object.file {
            Some(file) => (MEDIA_TYPE, attachment(file)),
            None => ("application/octet-stream", "attachment".to_owned()),
        };
        let headers = [
            (CONTENT_TYPE, media_type),
            (CONTENT_DISPOSITION, disposition.as_str()),
            (CONTENT_LENGTH, length.as_str()),
            (CHECKSUM, checksum.as_str()),
            (CHECKSUM_ALGORITHM, "SHA256"),
        ];
        let body = StreamBody::new(counted).boxed_unsync();
        let url = self.object_url(&object.key);
        let request = self.request(Method::PUT, &url, &[], &headers, body);
        let response = self.0.client.send(request);
        tokio::pin!(response);
        let mut last = 0;
        let response = loop {
            let wait = if sent.load(Ordering::Relaxed) == object.length { STORE_TIMEOUT } else { IDLE_TIMEOUT };
            match timeout(wait, &mut response).await {
                Ok(response) => break response.map_err(BucketFailure::Unavailable)?,
                Err(_) if sent.load(Ordering::Relaxed) > last => last = sent.load(Ordering::Relaxed),
                Err(_) => return Err(no_answer()),
            }
        };
        accept(response).await.map(drop)
    }

    /// Compares the SHA-256 of an object by reading it.
    pub async fn read_back(&self, object: &Object) -> Result<(), BucketFailure> {
        let failed = |error: io::Error| BucketFailure::Unavailable(error.to_string());
        let mut chunks = std::pin::pin!(self.read(IDLE_TIMEOUT, object.clone(), 0, object.length).await?);
        let mut hasher = Sha256Hasher::default();
        while let Some(chunk) = chunks.next().await {
            hasher.update(&chunk.map_err(failed)?);
        }
        if hasher.finish() == object.sha256 { Ok(()) } else { Err(other_sha256()) }
    }
}
