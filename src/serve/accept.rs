//! Accepts connections, with limits on time and size from the first byte. What is spoken on them is in `http1` and `http2`.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_rustls::TlsAcceptor;

use super::client_stream::{ClientStream, limit_unsent_bytes};
use super::connection_timeouts::Watch;
use super::context::ConnectionContext;
use super::{http1, http2};
use crate::domain::network::Peer;

/// Most connections that wait in the kernel's backlog. The kernel may allow fewer (`net.core.somaxconn`).
const MAX_BACKLOG: u32 = 4096;
/// Pause after `accept` failed, for example because the process is out of file descriptors.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(20);

/// Listens on an address. The backlog is larger than that of [`TcpListener::bind`], which is full after 128 connections and
/// delays a burst. With `only_v6`, an IPv6 address leaves IPv4 on the same port to another listener.
pub(super) fn listen(address: SocketAddr, only_v6: bool) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    // A restarted service may listen while connections of the previous one are still being closed.
    socket.set_reuseaddr(true)?;
    if only_v6 && address.is_ipv6() {
        socket2::SockRef::from(&socket).set_only_v6(true)?;
    }
    socket.bind(address)?;
    socket.listen(MAX_BACKLOG)
}

/// Uses a socket that another process opened.
pub(super) fn adopt(socket: std::net::TcpListener) -> io::Result<TcpListener> {
    socket.set_nonblocking(true)?;
    TcpListener::from_std(socket)
}

/// Accepts connections until shutdown starts. As long as there are no places left, they wait in the kernel's backlog.
pub(super) async fn accept(listener: TcpListener, connections: Arc<Semaphore>, context: ConnectionContext) {
    limit_unsent_bytes(&listener);
    let mut failing = false;
    let next = async || {
        let permit = take_place(&connections, &context).await;
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

/// Waits for a place. While all are taken, idle connections make room.
async fn take_place(connections: &Arc<Semaphore>, context: &ConnectionContext) -> Option<OwnedSemaphorePermit> {
    if let Ok(permit) = Arc::clone(connections).try_acquire_owned() {
        return Some(permit);
    }
    let _waiting = context.listener.wait_for_place();
    Arc::clone(connections).acquire_owned().await.ok()
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
    let Some(slot) = context.listener.open_connection(peer) else { return };
    let watch = Watch::begin(slot, context.listener.app().limits.is_near(peer));
    context.tasks.spawn(serve_connection(stream, peer, context.clone(), watch, permit));
}

/// Speaks TLS where the listener has a certificate, and the version of HTTP that was negotiated. Drops `_permit` when the
/// connection has ended.
async fn serve_connection<P>(stream: TcpStream, peer: Peer, mut context: ConnectionContext, watch: Watch, _permit: P) {
    let _ = stream.set_nodelay(true);
    let stream = ClientStream::new(stream, Arc::clone(&watch.state));
    match context.tls.take() {
        None => http1::serve(stream, peer, context, watch).await,
        // Boxed: a connection without TLS must not have room for it.
        Some(tls) => Box::pin(serve_tls(stream, tls, peer, context, watch)).await,
    }
}

async fn serve_tls(
    stream: ClientStream<TcpStream>,
    tls: TlsAcceptor,
    peer: Peer,
    context: ConnectionContext,
    mut watch: Watch,
) {
    // A client that refuses the certificate, or speaks no TLS, is not worth a line in the log.
    let handshake = tokio::select! {
        accepted = tls.accept(stream) => accepted.ok(),
        _ = watch.timed_out(Duration::ZERO) => None,
        () = context.abort.cancelled() => None,
    };
    let Some(stream) = handshake else { return };
    match stream.get_ref().1.alpn_protocol() {
        Some(b"h2") => http2::serve(stream, peer, context, watch).await,
        _ => http1::serve(stream, peer, context, watch).await,
    }
}
