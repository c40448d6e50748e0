//! Reading request bodies, bounded in size and in time.

use std::time::Duration;

use axum::body::Body;
use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use http::header::{CONTENT_LENGTH, EXPECT};
use http_body_util::BodyExt;

use crate::domain::limits;

/// How long the whole of a body may take to arrive.
const ARRIVES_WITHIN: Duration = Duration::from_secs(10);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BodyFault {
    TooLarge,
    TooSlow,
    /// The connection broke, or the framing was wrong.
    Broken,
}

pub(crate) async fn read(headers: &HeaderMap, body: Body) -> Result<Bytes, BodyFault> {
    let announced = headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    let waits_for_word = headers.contains_key(EXPECT);
    if announced.is_some_and(|length| {
        length > limits::MAX_DISCARDED_BODY_BYTES as u64 || (waits_for_word && length > limits::MAX_BODY_BYTES as u64)
    }) {
        return Err(BodyFault::TooLarge);
    }
    tokio::time::timeout(ARRIVES_WITHIN, gather(body)).await.unwrap_or(Err(BodyFault::TooSlow))
}

async fn gather(mut body: Body) -> Result<Bytes, BodyFault> {
    let mut gathered = BytesMut::new();
    let mut length = 0;
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(|_| BodyFault::Broken)?.into_data() else { continue };
        length += data.len();
        if length > limits::MAX_DISCARDED_BODY_BYTES {
            break;
        }
        if length <= limits::MAX_BODY_BYTES {
            gathered.extend_from_slice(&data);
        }
    }
    if length > limits::MAX_BODY_BYTES { Err(BodyFault::TooLarge) } else { Ok(gathered.freeze()) }
}
