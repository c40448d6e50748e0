//! Reads request bodies, limited in size and time.

use std::time::Duration;

use axum::body::{Body, HttpBody};
use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use http::header::{CONTENT_LENGTH, EXPECT};
use http_body_util::BodyExt;

use crate::domain::limits::{MAX_BODY_BYTES, MAX_DISCARDED_BODY_BYTES};

/// How long a client may take to send the whole body.
const BODY_TIMEOUT: Duration = Duration::from_secs(10);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BodyError {
    TooLarge,
    TimedOut,
    /// The connection was lost, or the framing was invalid.
    Incomplete,
}

pub(crate) async fn read(headers: &HeaderMap, body: Body) -> Result<Bytes, BodyError> {
    let length = headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    // A client that waits for `100 Continue` has not sent anything that would have to be discarded.
    let max = if headers.contains_key(EXPECT) { MAX_BODY_BYTES } else { MAX_DISCARDED_BODY_BYTES };
    if length.is_some_and(|length| length > max as u64) {
        return Err(BodyError::TooLarge);
    }
    tokio::time::timeout(BODY_TIMEOUT, collect(body)).await.unwrap_or(Err(BodyError::TimedOut))
}

/// Reads what is left of a body after the response, as far as it is not too large and arrives in time.
pub async fn discard_body<B: HttpBody<Data = Bytes> + Unpin>(mut body: B) {
    let mut length = 0;
    let discard = async {
        while let Some(Ok(frame)) = body.frame().await
            && length <= MAX_DISCARDED_BODY_BYTES
        {
            length += frame.data_ref().map_or(0, Bytes::len);
        }
    };
    // Whether all of it arrived makes no difference.
    let _ = tokio::time::timeout(BODY_TIMEOUT, discard).await;
}

async fn collect(mut body: Body) -> Result<Bytes, BodyError> {
    let mut collected = BytesMut::new();
    let mut length = 0;
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(|_| BodyError::Incomplete)?.into_data() else { continue };
        length += data.len();
        if length > MAX_DISCARDED_BODY_BYTES {
            break;
        }
        if length <= MAX_BODY_BYTES {
            collected.extend_from_slice(&data);
        }
    }
    if length > MAX_BODY_BYTES { Err(BodyError::TooLarge) } else { Ok(collected.freeze()) }
}
