//! HTTP/1.1 on a connection.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use http::header::CONNECTION;
use http::{HeaderValue, Method, Request};
use hyper::body::{Body, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};

use super::connection_life::ConnectionLife;
use super::connections::{End, FIRST_REQUEST_TIMEOUT, Requests};
use super::head_timer::HeadTimer;
use super::lingering::Lingering;
use crate::domain::limits;

/// How long a client may take to send the request head. Also bounds idle keep-alive.
const HEADER_READ_TIMEOUT: Duration = Duration::from_secs(10);
/// How long after the stop signal a connection that had requests may send another one.
const LAST_REQUEST_TIMEOUT: Duration = Duration::from_secs(1);

pub(super) async fn serve<S>(stream: S, requests: Requests, end: End)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let Requests { listener, peer } = requests;
    let life = Arc::new(ConnectionLife::begin());
    let stream = Lingering::new(stream, Arc::clone(&life));
    let requests = Arc::clone(&life);
    let service = service_fn(move |request: Request<Incoming>| {
        let is_last = requests.is_last_request();
        let (has_body, is_post) = (!request.body().is_end_stream(), request.method() == Method::POST);
        let life = Arc::clone(&requests);
        listener.handle(peer, request).map(move |mut response| {
            // Only a POST that succeeds has surely been read to its end.
            life.set_unread_body(has_body && !(is_post && response.status().is_success()));
            if is_last || life.is_ending() {
                response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
            }
            Ok::<_, Infallible>(response)
        })
    });
    let connection = http1::Builder::new()
        .timer(HeadTimer::default())
        .header_read_timeout(HEADER_READ_TIMEOUT)
        .max_headers(limits::MAX_HEADERS)
        .max_buf_size(limits::MAX_HEAD_BYTES)
        // A client may close its sending side after the request: the request is handled all the same.
        .half_close(true)
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = std::pin::pin!(connection);
    tokio::select! {
        biased;
        () = end.stopped() => life.end(),
        _ = connection.as_mut() => return,
    }
    // A graceful shutdown closes a connection on which no request is being handled, also if one is on its way. So wait for
    // one, whose response then says that it is the last.
    let timeout = if life.had_requests() { LAST_REQUEST_TIMEOUT } else { FIRST_REQUEST_TIMEOUT };
    tokio::select! {
        biased;
        _ = connection.as_mut() => return,
        () = tokio::time::sleep(timeout) => {}
    }
    connection.as_mut().graceful_shutdown();
    tokio::select! {
        biased;
        _ = connection => {}
        () = end.abort.cancelled() => {}
    }
}
