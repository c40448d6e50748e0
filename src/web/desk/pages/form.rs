//! What a form of the desk sends: its fields, and a file that may follow them.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Poll, ready};

use axum::body::Body;
use bytes::Bytes;
use futures_util::stream::{self, BoxStream, Stream, StreamExt as _, TryStreamExt as _};
use http::HeaderMap;
use http::header::CONTENT_TYPE;
use multer::{Multipart, parse_boundary};
use url::form_urlencoded;

use super::failure::DeskFailure;
use crate::domain::limits::MAX_FORM_BYTES;
use crate::web::body;

/// The fields, in their order.
#[derive(Clone, Debug, Default)]
pub(super) struct Form(Vec<(String, String)>);

/// How many bytes of the fields the parser gets at a time.
const FIELD_CHUNK: usize = 1024;
/// Of the file, which has limits of its own.
const NO_LIMIT: u64 = u64::MAX;

/// A file, while it arrives.
pub(super) type SentFile = BoxStream<'static, io::Result<Bytes>>;

impl Form {
    pub(super) async fn read(headers: &HeaderMap, body: Body) -> Result<Self, DeskFailure> {
        if boundary(headers).is_some() {
            let chunks = body.into_data_stream().map_err(io::Error::other);
            return Ok(Self::read_to_file(headers, chunks).await?.0);
        }
        let body = body::read(headers, body).await.map_err(|_| incomplete())?;
        Ok(Self::of_pairs(form_urlencoded::parse(&body).into_owned()))
    }

    /// Reads the fields of `multipart/form-data`. What follows the file is not read.
    pub(super) async fn read_to_file(
        headers: &HeaderMap,
        chunks: impl Stream<Item = io::Result<Bytes>> + Send + 'static,
    ) -> Result<(Self, Option<SentFile>), DeskFailure> {
        let allowed = Arc::new(AtomicU64::new(MAX_FORM_BYTES));
        let mut parts = parts(headers, chunks, Arc::clone(&allowed))?;
        let mut fields = Vec::new();
        while let Some(part) = parts.next_field().await.map_err(|_| incomplete())? {
            // A browser sends a file without a name if none was chosen.
            if part.file_name().is_some_and(|name| !name.is_empty()) {
                allowed.store(NO_LIMIT, Ordering::Relaxed);
                return Ok((Self::of_pairs(fields), Some(part.map_err(io::Error::other).boxed())));
            }
            let name = part.name().unwrap_or_default().to_owned();
            let value = part.bytes().await.map_err(|_| incomplete())?;
            fields.push((name, String::from_utf8_lossy(&value).into_owned()));
        }
        Ok((Self::of_pairs(fields), None))
    }

    /// Reads the query of an address in the same way.
    pub(super) fn of_query(query: Option<&str>) -> Self {
        let pairs = form_urlencoded::parse(query.unwrap_or_default().as_bytes());
        Self(pairs.into_owned().collect())
    }

    pub(super) fn of_pairs(pairs: impl IntoIterator<Item = (String, String)>) -> Self {
        // Browsers submit line breaks as CRLF.
        Self(pairs.into_iter().map(|(name, value)| (name, value.replace("\r\n", "\n"))).collect())
    }

    /// The first field of this name, or an empty text.
    pub(super) fn text(&self, name: &str) -> &str {
        self.0.iter().find(|(key, _)| key == name).map_or("", |(_, value)| value)
    }
}

pub(super) fn incomplete() -> DeskFailure {
    DeskFailure::Invalid("What was sent is incomplete, or too large.".to_owned())
}

/// Returns the parts of `multipart/form-data`, which have no more than is allowed together.
pub(super) fn parts(
    headers: &HeaderMap,
    chunks: impl Stream<Item = io::Result<Bytes>> + Send + 'static,
    allowed: Arc<AtomicU64>,
) -> Result<Multipart<'static>, DeskFailure> {
    Ok(Multipart::new(one_at_a_time(chunks, allowed), boundary(headers).ok_or_else(incomplete)?))
}

fn boundary(headers: &HeaderMap) -> Option<String> {
    parse_boundary(headers.get(CONTENT_TYPE)?.to_str().ok()?).ok()
}

/// The parser looks several times for each field, and takes all that is there into memory, however much it is. So whenever it
/// looks, it gets one chunk: a small one as long as it reads fields, of which there are no more bytes than allowed.
fn one_at_a_time(
    chunks: impl Stream<Item = io::Result<Bytes>> + Send + 'static,
    allowed: Arc<AtomicU64>,
) -> impl Stream<Item = io::Result<Bytes>> + Send + 'static {
    let (mut chunks, mut rest, mut has_given) = (Box::pin(chunks), Bytes::new(), false);
    stream::poll_fn(move |context| {
        if std::mem::take(&mut has_given) {
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        if rest.is_empty() {
            match ready!(chunks.poll_next_unpin(context)) {
                Some(Ok(chunk)) => rest = chunk,
                end => return Poll::Ready(end),
            }
        }
        has_given = true;
        let left = allowed.load(Ordering::Relaxed);
        if left == NO_LIMIT {
            return Poll::Ready(Some(Ok(std::mem::take(&mut rest))));
        }
        let chunk = rest.split_to(rest.len().min(FIELD_CHUNK));
        Poll::Ready(Some(match left.checked_sub(chunk.len() as u64) {
            None => Err(io::Error::other("the fields are too large")),
            Some(left) => {
                allowed.store(left, Ordering::Relaxed);
                Ok(chunk)
            }
        }))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "--x\r\nContent-Disposition: form-data; name=\"notes\"\r\n\r\na\r\nb\r\n--x\r\n\
        Content-Disposition: form-data; name=\"file\"; filename=\"a \\\"b\\\".dmg\"\r\n\r\n";

    /// Reads what is always there: there is never a reason to wait.
    async fn read(text: Vec<u8>, chunk: usize) -> Result<(Form, Option<SentFile>), DeskFailure> {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, "multipart/form-data; boundary=x".parse().unwrap());
        let chunks: Vec<_> = text.chunks(chunk).map(|chunk| Ok(Bytes::copy_from_slice(chunk))).collect();
        Form::read_to_file(&headers, stream::iter(chunks)).await
    }

    #[tokio::test]
    async fn fields_come_first_and_the_file_is_given_on_as_it_arrives() {
        // Much that begins like its end.
        let content = b"\r\n--y\r\r\n--\r\n-x\n".repeat(20_000);
        for chunk in [1, 2, 7, 4096, usize::MAX] {
            let (form, file) = read([HEAD.as_bytes(), &content, b"\r\n--x--\r\n"].concat(), chunk).await.unwrap();
            assert_eq!(form.text("notes"), "a\nb");
            let chunks: Vec<_> = file.unwrap().try_collect().await.unwrap();
            assert!(chunks.concat() == content, "{chunk}");
            assert!(chunks.iter().all(|given| given.len() <= chunk.saturating_add(8 * FIELD_CHUNK)), "{chunk}");
        }
    }

    #[tokio::test]
    async fn an_image_that_arrives_with_its_fields_does_not_count_as_one_of_them() {
        let field = "--x\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\nb\r\n".repeat(20);
        let content = vec![b'x'; 3_000_000];
        let body = [field.as_bytes(), HEAD.as_bytes(), &content, b"\r\n--x--\r\n"].concat();
        let (_, file) = read(body, 64 * 1024).await.unwrap();
        let chunks: Vec<_> = file.unwrap().try_collect().await.unwrap();
        assert!(chunks.concat() == content);
    }

    #[tokio::test]
    async fn a_file_that_is_cut_is_an_error_and_fields_have_a_limit() {
        let (_, file) = read([HEAD.as_bytes(), b"content\r\n--"].concat(), 4096).await.unwrap();
        assert!(file.unwrap().try_collect::<Vec<_>>().await.is_err());
        let most = usize::try_from(MAX_FORM_BYTES).unwrap();
        for endless in [
            [HEAD.as_bytes().split_at(53).0, &vec![b'x'; most][..], b"\r\n--x--\r\n"].concat(),
            [b"--x\r\nA: ", &vec![b'x'; most][..]].concat(),
            vec![b'x'; most + 1],
            b"--x\r\n".to_vec(),
            Vec::new(),
        ] {
            assert!(read(endless, 4096).await.is_err());
        }
        let none = HEAD.replace("a \\\"b\\\".dmg", "");
        let (form, file) = read([none.as_bytes(), b"\r\n--x--\r\n"].concat(), 4096).await.unwrap();
        assert!(file.is_none() && form.text("file").is_empty());
    }
}
