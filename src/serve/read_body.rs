//! The body of a request, as its handler reads it: what arrives counts as progress of the client.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::{Bytes, HttpBody};
use hyper::body::{Frame, SizeHint};

use super::connection_timeouts::ConnectionState;

pub(super) struct ReadBody<B> {
    body: B,
    state: Arc<ConnectionState>,
}

impl<B> ReadBody<B> {
    pub(super) const fn new(body: B, state: Arc<ConnectionState>) -> Self {
        Self { body, state }
    }
}

impl<B: HttpBody<Data = Bytes> + Unpin> HttpBody for ReadBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(context);
        let length = |frame: &Frame<Bytes>| frame.data_ref().map_or(0, |data| data.len() as u64);
        self.state.record_body(match &polled {
            Poll::Ready(Some(Ok(frame))) => Poll::Ready(length(frame)),
            Poll::Ready(_) => Poll::Ready(0),
            Poll::Pending => Poll::Pending,
        });
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Nobody waits for the rest.
impl<B> Drop for ReadBody<B> {
    fn drop(&mut self) {
        self.state.record_body(Poll::Ready(0));
    }
}
