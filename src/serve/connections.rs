//! Accepts connections and serves HTTP/1.1 on them, with limits on time and size from the first byte.

use std::convert::Infallible;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use futures_util::FutureExt;
use futures_util::future::Either;
use http::header::CONNECTION;
use http::{HeaderValue, Request};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{Notify, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::connection_life::ConnectionLife;
use super::minimum_rate::{MinimumRate, ReadRate, limit_unsent_bytes};
use crate::domain::client::Peer;
use crate::domain::limits;
use crate::web::ops::{self, OpsAuth};
use crate::web::{self, App};

/// How long a client may take to send the request head. Also bounds idle keep-alive.
const HEADER_READ_TIMEOUT: Duration = Duration::from_secs(10);
/// How long after the stop signal a connection without a request may still send its first one.
const FIRST_REQUEST_TIMEOUT: Duration = Duration::from_secs(3);
/// How fast a client has to read a response.
const READ_RATE: ReadRate =
    ReadRate { bytes_per_second: limits::MIN_READ_BYTES_PER_SECOND, period: limits::SLOW_READ_PERIOD };
/// Most connections that wait in the kernel's backlog. The kernel may allow fewer (`net.core.somaxconn`).
const MAX_BACKLOG: u32 = 4096;
/// Pause after `accept` failed, for example because the process is out of file descriptors.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(20);

/// What every connection task needs. Cheap to clone.
#[derive(Clone)]
pub(super) struct ConnectionContext {
    pub listener: Listener,
    /// Cancelled when the service stops: responses in progress are still sent.
    pub stop: CancellationToken,
    /// Cancelled when the time for that is up: connections are dropped.
    pub abort: CancellationToken,
    pub tasks: TaskTracker,
}

/// Which listener accepted the connection, and what handles its requests.
#[derive(Clone)]
pub(super) enum Listener {
    Public(App),
    Ops(App, OpsAuth),
}

impl Listener {
    const fn app(&self) -> &App {
        match self {
            Self::Public(app) | Self::Ops(app, _) => app,
        }
    }

    /// Every connection has room for the future that is returned, also one that never sends a request.
    fn handle(&self, peer: Peer, request: Request<Incoming>) -> impl Future<Output = Response> + Send + use<> {
        match self {
            Self::Public(app) => Either::Left(web::handle(app, peer, request)),
            Self::Ops(app, auth) => {
                Either::Right(Box::pin(ops::handle(app.clone(), auth.clone(), request.map(Body::new))))
            }
        }
    }
}

/// Listens on an address. The backlog is larger than that of [`TcpListener::bind`], which is full after 128 connections and
/// delays a burst.
///
/// # Errors
/// When the address cannot be used.
pub(super) fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    // A restarted service may listen while connections of the previous one are still being closed.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(MAX_BACKLOG)
}

/// Accepts connections until shutdown starts. Beyond `max_connections` they wait in the kernel's backlog.
pub(super) async fn accept(listener: TcpListener, max_connections: usize, context: ConnectionContext) {
    limit_unsent_bytes(&listener);
    let connections = Arc::new(Semaphore::new(max_connections));
    let mut failing = false;
    let next = async || {
        let permit = Arc::clone(&connections).acquire_owned().await;
        (listener.accept().await, permit)
    };
    loop {
        let (accepted, permit) = tokio::select! {
            biased;
            () = context.stop.cancelled() => break,
            next = next() => next,
        };
        match accepted {
            Ok((stream, address)) => {
                failing = false;
                spawn_connection(stream, address, permit, &context);
            }
            Err(error) => {
                // Logged once until it works again: what fails here fails many times a second.
                if !failing {
                    tracing::warn!(%error, "failed to accept a connection");
                }
                failing = true;
                tokio::time::sleep(ACCEPT_RETRY_DELAY).await;
            }
        }
    }
    context.abort.run_until_cancelled(drain_backlog(listener, &connections, &context)).await;
}

/// Serves the clients that had connected before shutdown started and were not accepted yet.
async fn drain_backlog(listener: TcpListener, connections: &Arc<Semaphore>, context: &ConnectionContext) {
    let Ok(listener) = listener.into_std() else { return };
    loop {
        let permit = Arc::clone(connections).acquire_owned().await;
        match listener.accept() {
            Ok((stream, address)) => {
                if stream.set_nonblocking(true).is_ok()
                    && let Ok(stream) = TcpStream::from_std(stream)
                {
                    spawn_connection(stream, address, permit, context);
                }
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => return,
            Err(_) => tokio::time::sleep(ACCEPT_RETRY_DELAY).await,
        }
    }
}

fn spawn_connection<P: Send + 'static>(stream: TcpStream, address: SocketAddr, permit: P, context: &ConnectionContext) {
    let peer = Peer::new(address.ip());
    // Over the limit per client, the connection is closed at once.
    let Some(slot) = context.listener.app().open_connection(peer) else { return };
    context.tasks.spawn(serve_connection(stream, peer, context.clone(), (permit, slot)));
}

/// Drops `_guards` when the connection has ended.
async fn serve_connection<G>(stream: TcpStream, peer: Peer, context: ConnectionContext, _guards: G) {
    let ConnectionContext { listener, stop, abort, .. } = context;
    let _ = stream.set_nodelay(true);
    let request_received = Arc::new(Notify::new());
    let notify = Arc::clone(&request_received);
    let life = ConnectionLife::begin();
    let service = service_fn(move |request| {
        notify.notify_one();
        let is_last = life.is_last_request();
        listener.handle(peer, request).map(move |mut response| {
            if is_last {
                response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
            }
            Ok::<_, Infallible>(response)
        })
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_READ_TIMEOUT)
        .max_headers(limits::MAX_HEADERS)
        .max_buf_size(limits::MAX_HEAD_BYTES)
        // A client may close its sending side after the request: the request is handled all the same.
        .half_close(true)
        .serve_connection(TokioIo::new(MinimumRate::new(stream, READ_RATE)), service);
    let mut connection = std::pin::pin!(connection);
    // The connection is polled first, so that a request that has arrived is read before the shutdown.
    tokio::select! {
        biased;
        _ = connection.as_mut() => return,
        () = stop.cancelled() => {}
    }
    // A graceful shutdown closes a connection on which no request has arrived yet, so wait for one.
    tokio::select! {
        biased;
        _ = connection.as_mut() => return,
        () = request_received.notified() => {}
        () = tokio::time::sleep(FIRST_REQUEST_TIMEOUT) => {}
    }
    connection.as_mut().graceful_shutdown();
    tokio::select! {
        biased;
        _ = connection => {}
        () = abort.cancelled() => {}
    }
}
