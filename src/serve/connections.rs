//! Connections: taken one by one, each bounded in time and size from its first byte.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::write_timeout::WriteTimeout;
use crate::domain::limits;
use crate::web::ops::{self, Access};
use crate::web::{self, App};

/// How long the head of a request may take, and how long a connection may idle between two.
const HEAD_WITHIN: Duration = Duration::from_secs(10);
/// How long after a stop a connection that has not asked for anything yet may still do so.
const ASK_WITHIN: Duration = Duration::from_secs(3);
/// How long a caller may take nothing of an answer before the connection is closed.
const STALL: Duration = Duration::from_secs(30);

/// What every connection needs.
#[derive(Clone)]
pub(super) struct ConnectionContext {
    pub listener: Listener,
    pub stop: CancellationToken,
    pub abort: CancellationToken,
    pub tasks: TaskTracker,
}

/// Who is spoken to.
#[derive(Clone)]
pub(super) enum Listener {
    Public(App, Router),
    Ops(App, Access),
}

impl Listener {
    async fn answer(self, request: Request) -> Response {
        match self {
            Self::Public(app, router) => web::handle(app, router, request).await,
            Self::Ops(app, access) => ops::handle(app, access, request).await,
        }
    }
}

pub(super) async fn accept(listener: TcpListener, context: ConnectionContext) {
    let room = Arc::new(Semaphore::new(limits::MAX_CONNECTIONS));
    let next = async || {
        let place = Arc::clone(&room).acquire_owned().await;
        (listener.accept().await, place)
    };
    loop {
        let (accepted, place) = tokio::select! {
            biased;
            () = context.stop.cancelled() => break,
            next = next() => next,
        };
        match accepted {
            Ok((stream, _)) => {
                let talk = serve_connection(stream, context.clone());
                context.tasks.spawn(async move {
                    let _place = place;
                    talk.await;
                });
            }
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
    }
    answer_backlog(listener, &context);
}

/// Those who had connected before the stop are answered still.
fn answer_backlog(listener: TcpListener, context: &ConnectionContext) {
    let Ok(listener) = listener.into_std() else { return };
    while let Ok((stream, _)) = listener.accept() {
        if stream.set_nonblocking(true).is_ok()
            && let Ok(stream) = TcpStream::from_std(stream)
        {
            context.tasks.spawn(serve_connection(stream, context.clone()));
        }
    }
}

async fn serve_connection(stream: TcpStream, context: ConnectionContext) {
    let ConnectionContext { listener, stop, abort, .. } = context;
    let _ = stream.set_nodelay(true);
    let asked = Arc::new(Notify::new());
    let asks = Arc::clone(&asked);
    let service = service_fn(move |request: hyper::Request<hyper::body::Incoming>| {
        asks.notify_one();
        let answer = listener.clone().answer(request.map(Body::new));
        async move { Ok::<_, Infallible>(answer.await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_WITHIN)
        .max_headers(limits::MAX_HEADERS)
        .max_buf_size(limits::MAX_HEAD_BYTES)
        // Whoever has sent a whole request may hang up: it is carried out all the same.
        .half_close(true)
        .serve_connection(TokioIo::new(WriteTimeout::new(stream, STALL)), service);
    let mut connection = std::pin::pin!(connection);
    // The connection goes first: a request that has arrived by now is read before we say goodbye.
    tokio::select! {
        biased;
        _ = connection.as_mut() => return,
        () = stop.cancelled() => {}
    }
    // Saying goodbye to a connection that has not asked for anything yet would hang up on it.
    tokio::select! {
        biased;
        _ = connection.as_mut() => return,
        () = asked.notified() => {}
        () = tokio::time::sleep(ASK_WITHIN) => {}
    }
    connection.as_mut().graceful_shutdown();
    tokio::select! {
        biased;
        _ = connection => {}
        () = abort.cancelled() => {}
    }
}
