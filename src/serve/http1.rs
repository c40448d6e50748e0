//! HTTP/1.1 on a connection.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use http::header::CONNECTION;
use http::{HeaderValue, Method, Request, StatusCode};
use hyper::body::{Body, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};

use super::connection_timeouts::{ConnectionTimeout, FIRST_REQUEST_TIMEOUT, LAST_REQUEST_TIMEOUT, Watch};
use super::context::{ConnectionContext, Listener};
use super::read_body::ReadBody;
use crate::domain::limits;
use crate::domain::network::Peer;
use crate::web;

pub(super) async fn serve<S>(stream: S, peer: Peer, context: ConnectionContext, mut watch: Watch)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (state, listener) = (Arc::clone(&watch.state), context.listener.clone());
    state.expect_heads();
    let service = service_fn(move |request: Request<Incoming>| {
        let (in_flight, state) = (state.begin_request(), Arc::clone(&state));
        let (has_body, sends) =
            (!request.body().is_end_stream(), [Method::POST, Method::PUT].contains(request.method()));
        let request = request.map(|body| ReadBody::new(body, Arc::clone(&state)));
        listener.handle(peer, request).map(move |mut response| {
            // Only a POST or PUT that succeeds has surely been read to its end.
            state.set_unread_body(has_body && !(sends && response.status().is_success()));
            if state.retired().is_cancelled() {
                response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
            }
            Ok::<_, Infallible>(response.map(|body| in_flight.until_end_of(body, None)))
        })
    });
    let connection = http1::Builder::new()
        .header_read_timeout(None)
        .max_buf_size(limits::MAX_HEAD_BYTES)
        // A client may close its sending side after the request: the request is handled all the same.
        .half_close(true)
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = std::pin::pin!(connection);
    tokio::select! {
        biased;
        () = context.stopped() => watch.state.retire(),
        ended = connection.as_mut() => return log_refused_head(&context, ended),
        why = watch.timed_out(Duration::ZERO) => {
            if why == ConnectionTimeout::MakesRoom {
                context.listener.record_made_room();
            }
            return;
        }
    }
    // A graceful shutdown closes a connection on which no request is being handled, also if one is on its way. So wait for
    // one, whose response then says that it is the last.
    let timeout = if watch.state.had_requests() { LAST_REQUEST_TIMEOUT } else { FIRST_REQUEST_TIMEOUT };
    tokio::select! {
        biased;
        ended = connection.as_mut() => return log_refused_head(&context, ended),
        () = tokio::time::sleep(timeout) => {}
    }
    connection.as_mut().graceful_shutdown();
    tokio::select! {
        biased;
        _ = connection => {}
        () = context.abort.cancelled() => {}
    }
}

/// Counts and logs a request to the site that hyper answered, because its head is too large or malformed. Over HTTP/2, the like
/// is not reported.
fn log_refused_head(context: &ConnectionContext, ended: Result<(), hyper::Error>) {
    let (Err(error), Listener::Public(app, _)) = (ended, &context.listener) else { return };
    if error.is_parse_too_large() {
        web::record_refused_head(app, StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE);
    } else if error.is_parse() {
        web::record_refused_head(app, StatusCode::BAD_REQUEST);
    }
}
