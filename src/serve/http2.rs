//! HTTP/2 on a connection, within bounds: streams, headers, resets, and how long a client may say or take nothing.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use axum::body::{Body, HttpBody};
use axum::response::Response;
use futures_util::FutureExt;
use futures_util::future::{Either, ready};
use http::header::CONTENT_LENGTH;
use http::{Method, Request};
use hyper::body::Incoming;
use hyper::rt::Executor;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Notify;

use super::connection_activity::{Activity, IDLE_END_TIMEOUT, Silence};
use super::connection_life::ConnectionLife;
use super::connections::{End, FIRST_REQUEST_TIMEOUT, READ_RATE, Requests};
use crate::domain::limits;
use crate::web;

/// Streams that a client opened and reset, and errors of streams, before the connection is closed.
const MAX_RESETS: usize = 64;
/// Request bodies are small, so a client never needs larger windows.
const STREAM_WINDOW: u32 = 64 * 1024;
const CONNECTION_WINDOW: u32 = 256 * 1024;
/// What is buffered for one stream.
const SEND_BUFFER: usize = 64 * 1024;

/// `taken` counts the bytes that the client takes.
pub(super) async fn serve<S>(stream: S, taken: Arc<AtomicU64>, requests: Requests, end: End)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let Requests { listener, peer } = requests;
    let activity = Arc::new(Activity::new(taken));
    let (request_received, retired) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let service = {
        let (activity, request_received, retired) =
            (Arc::clone(&activity), Arc::clone(&request_received), Arc::clone(&retired));
        let life = ConnectionLife::begin();
        service_fn(move |request: Request<Incoming>| {
            request_received.notify_one();
            if life.is_last_request() {
                retired.notify_one();
            }
            let (in_flight, is_head) = (activity.begin_request(), request.method() == Method::HEAD);
            let response = match listener.app().open_request(peer) {
                Some(slot) => Either::Left(listener.handle(peer, request).map(|response| (response, Some(slot)))),
                None => Either::Right(ready((web::refuse_in_flight(listener.app(), &request), None))),
            };
            response.map(move |(response, slot)| {
                let response = if is_head { without_body(response) } else { response };
                Ok::<_, Infallible>(response.map(|body| Body::new(in_flight.until_end_of(body, slot))))
            })
        })
    };
    let connection = http2::Builder::new(StreamTasks)
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
    let mut last_answer_timeout = READ_RATE.period;
    tokio::select! {
        biased;
        _ = connection.as_mut() => return,
        silence = activity.until_silent() => match silence {
            Silence::TakesNothing => return,
            Silence::RequestsNothing => last_answer_timeout = IDLE_END_TIMEOUT,
        },
        () = retired.notified() => {}
        () = end.stopped() => {
            // A shutdown closes a connection on which nothing has arrived yet, so wait for a first request.
            tokio::select! {
                biased;
                _ = connection.as_mut() => return,
                () = request_received.notified() => {}
                () = tokio::time::sleep(FIRST_REQUEST_TIMEOUT) => {}
            }
        }
    }
    connection.as_mut().graceful_shutdown();
    tokio::select! {
        biased;
        _ = connection => {}
        () = activity.until_stalled(last_answer_timeout) => {}
        () = end.abort.cancelled() => {}
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

/// Runs the streams of a connection. They end with it, since it waits for them or drops them.
#[derive(Clone, Copy, Debug)]
struct StreamTasks;

impl<F> Executor<F> for StreamTasks
where
    F: Future<Output: Send> + Send + 'static,
{
    fn execute(&self, stream: F) {
        tokio::spawn(stream);
    }
}
