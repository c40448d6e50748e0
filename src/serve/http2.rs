//! HTTP/2 on a connection, within bounds: streams, headers, resets, and how long a client may say or take nothing.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use axum::response::Response;
use futures_util::FutureExt;
use http::header::CONTENT_LENGTH;
use http::{Method, Request};
use hyper::body::{Frame, Incoming, SizeHint};
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};

use super::connection_timeouts::{ConnectionTimeout, FIRST_REQUEST_TIMEOUT, Watch};
use super::context::ConnectionContext;
use super::read_body::ReadBody;
use crate::domain::limits;
use crate::domain::network::Peer;
use crate::web;

/// Streams that a client opened and reset, and errors of streams, before the connection is closed.
const MAX_RESETS: usize = 64;
/// What is received of bodies before their handlers read it. All bodies but those of disk images are small, and one of these may
/// have all of it: a client sends as much per round trip.
const WINDOW: u32 = 256 * 1024;
/// What is buffered for one stream.
const SEND_BUFFER: usize = 64 * 1024;
/// Longest body of a request in flight beyond the limit that is read, so that the response can name its id or keep what was typed.
const MAX_REFUSED_BODY_BYTES: usize = 4096;
/// How long before the end of its silence a client is told that the connection ends, so that no request is on its way then.
const GOAWAY_TIMEOUT: Duration = Duration::from_secs(3);

pub(super) async fn serve<S>(stream: S, peer: Peer, context: ConnectionContext, mut watch: Watch)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (state, listener) = (Arc::clone(&watch.state), context.listener.clone());
    let service = service_fn(move |request: Request<Incoming>| {
        let (in_flight, is_head) = (state.begin_request(), request.method() == Method::HEAD);
        let (mut request, unread) = share_body(request);
        let slot = match listener.app().limits.open_request(peer) {
            Ok(slot) => Some(slot),
            Err(over_limit) => {
                if !has_short_body(&request) {
                    // A handler that would collect the body answers without it.
                    *request.body_mut() = RequestBody(None);
                }
                request.extensions_mut().insert(over_limit);
                None
            }
        };
        let request = request.map(|body| ReadBody::new(body, Arc::clone(&state)));
        listener.handle(peer, request).map(move |response| {
            if !unread.is_end_stream() {
                tokio::spawn(web::discard_body(unread));
            }
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
        .initial_stream_window_size(WINDOW)
        .initial_connection_window_size(WINDOW)
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
        why = watch.timed_out(GOAWAY_TIMEOUT) => {
            match why {
                ConnectionTimeout::TooSlow => return,
                ConnectionTimeout::MakesRoom => context.listener.record_made_room(),
                ConnectionTimeout::Silent => {}
            }
        }
    }
    connection.as_mut().graceful_shutdown();
    tokio::select! {
        biased;
        _ = connection => {}
        _ = watch.timed_out(Duration::ZERO) => {}
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

/// Whether the body is so short that it is read although its client has too many requests in flight.
fn has_short_body<B>(request: &Request<B>) -> bool {
    let length = request.headers().get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<usize>().ok());
    length.is_some_and(|length| length <= MAX_REFUSED_BODY_BYTES)
}

/// The body of a request, which can be read to its end after the handler has dropped it. `None` is an empty one.
///
/// If a body is dropped before its end, hyper resets the stream, and clients such as curl 7.88 lose the response.
#[derive(Clone)]
struct RequestBody(Option<Arc<Mutex<Incoming>>>);

fn share_body(request: Request<Incoming>) -> (Request<RequestBody>, RequestBody) {
    let (head, body) = request.into_parts();
    let body = RequestBody((!body.is_end_stream()).then(|| Arc::new(Mutex::new(body))));
    (Request::from_parts(head, body.clone()), body)
}

impl RequestBody {
    fn lock(&self) -> Option<MutexGuard<'_, Incoming>> {
        self.0.as_ref().map(|body| body.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl HttpBody for RequestBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        self.lock().map_or(Poll::Ready(None), |mut body| Pin::new(&mut *body).poll_frame(context))
    }

    fn is_end_stream(&self) -> bool {
        self.lock().is_none_or(|body| body.is_end_stream())
    }

    fn size_hint(&self) -> SizeHint {
        self.lock().map_or_else(|| SizeHint::with_exact(0), |body| body.size_hint())
    }
}
