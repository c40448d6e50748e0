//! HTTP/2 on a connection, within bounds: streams, headers, resets, and how long a client may say or take nothing.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, HttpBody};
use axum::response::Response;
use futures_util::FutureExt;
use futures_util::future::{Either, ready};
use http::header::CONTENT_LENGTH;
use http::{Method, Request};
use hyper::body::Incoming;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};

use super::connection_timeouts::{ConnectionTimeout, FIRST_REQUEST_TIMEOUT, MAX_SILENCE, Watch};
use super::context::ConnectionContext;
use crate::domain::limits;
use crate::domain::network::Peer;
use crate::web;

/// Streams that a client opened and reset, and errors of streams, before the connection is closed.
const MAX_RESETS: usize = 64;
/// Request bodies are small, so a client never needs larger windows.
const STREAM_WINDOW: u32 = 64 * 1024;
const CONNECTION_WINDOW: u32 = 256 * 1024;
/// What is buffered for one stream.
const SEND_BUFFER: usize = 64 * 1024;
/// How long before the end of its silence a client is told that the connection ends, so that no request is on its way then.
const GOAWAY_TIMEOUT: Duration = Duration::from_secs(3);

pub(super) async fn serve<S>(stream: S, peer: Peer, context: ConnectionContext, mut watch: Watch)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (state, listener) = (Arc::clone(&watch.state), context.listener.clone());
    let service = service_fn(move |request: Request<Incoming>| {
        let (in_flight, is_head) = (state.begin_request(), request.method() == Method::HEAD);
        let response = match listener.app().limits.open_request(peer) {
            Some(slot) => Either::Left(listener.handle(peer, request).map(|response| (response, Some(slot)))),
            None => Either::Right(ready((web::refuse_in_flight(listener.app(), &request), None))),
        };
        response.map(move |(response, slot)| {
            let response = if is_head { without_body(response) } else { response };
            Ok::<_, Infallible>(response.map(|body| in_flight.until_end_of(body, slot)))
        })
    });
    let connection = http2::Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .max_concurrent_streams(limits::MAX_STREAMS)
        .max_header_list_size(limits::MAX_HEADER_LIST_BYTES)
        .max_pending_accept_reset_streams(MAX_RESETS)
        .max_local_error_reset_streams(MAX_RESETS)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_send_buf_size(SEND_BUFFER)
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = std::pin::pin!(connection);
    let retired = watch.state.retired().clone();
    tokio::select! {
        biased;
        _ = connection.as_mut() => return,
        () = retired.cancelled() => {}
        () = context.stopped() => {
            // A shutdown closes a connection on which nothing has arrived yet, so wait for a first request.
            if !watch.state.had_requests() {
                tokio::select! {
                    biased;
                    _ = connection.as_mut() => return,
                    () = tokio::time::sleep(FIRST_REQUEST_TIMEOUT) => {}
                }
            }
        }
        why = watch.timed_out(MAX_SILENCE.saturating_sub(GOAWAY_TIMEOUT)) => {
            if why == ConnectionTimeout::SlowReader {
                return;
            }
        }
    }
    connection.as_mut().graceful_shutdown();
    tokio::select! {
        biased;
        _ = connection => {}
        _ = watch.timed_out(MAX_SILENCE) => {}
        () = context.abort.cancelled() => {}
    }
}

/// Leaves the length of the body that `GET` would have got. Over HTTP/1.1 hyper does this itself.
fn without_body(response: Response) -> Response {
    let (mut head, body) = response.into_parts();
    if let Some(length) = body.size_hint().exact().filter(|length| *length > 0) {
        head.headers.entry(CONTENT_LENGTH).or_insert(length.into());
    }
    Response::from_parts(head, Body::empty())
}
