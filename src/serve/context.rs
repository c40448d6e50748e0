//! What a connection belongs to: its listener, and the shutdown of the service.

use axum::body::{Body, Bytes, HttpBody};
use axum::response::Response;
use futures_util::StreamExt;
use futures_util::future::Either;
use futures_util::stream::FuturesUnordered;
use http::Request;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::domain::network::Peer;
use crate::web::ops::{self, OpsAuth};
use crate::web::{self, App, ClientSlot, Router, WaitForPlace};

/// What every connection task needs. Cheap to clone.
#[derive(Clone)]
pub(super) struct ConnectionContext {
    pub listener: Listener,
    /// `None`: plain HTTP.
    pub tls: Option<TlsAcceptor>,
    /// Cancelled when the service stops: responses in progress are still sent.
    pub stop: CancellationToken,
    /// Cancelled when the time for that is up: connections are dropped.
    pub abort: CancellationToken,
    pub tasks: TaskTracker,
}

impl ConnectionContext {
    /// Completes when the service stops.
    ///
    /// A connection polls this whenever something wakes it. The token takes locks then that all connections share, so it is
    /// polled only if it was the token that woke the task.
    pub(super) async fn stopped(&self) {
        FuturesUnordered::from_iter([self.stop.cancelled()]).next().await;
    }
}

/// Which listener accepted the connection, and what handles its requests.
#[derive(Clone)]
pub(super) enum Listener {
    Public(App, Router),
    /// Plain HTTP that redirects to https.
    Redirect(App),
    Ops(App, OpsAuth),
}

impl Listener {
    pub(super) const fn app(&self) -> &App {
        match self {
            Self::Public(app, _) | Self::Redirect(app) | Self::Ops(app, _) => app,
        }
    }

    /// Returns `None` if the peer has as many connections as it may have.
    pub(super) fn open_connection(&self, peer: Peer) -> Option<ClientSlot> {
        match self {
            Self::Public(app, _) | Self::Redirect(app) => app.limits.open_connection(peer),
            Self::Ops(app, _) => app.limits.open_ops_connection(peer),
        }
    }

    /// All places for connections are taken: idle connections make room until the returned value is dropped.
    pub(super) fn wait_for_place(&self) -> Option<WaitForPlace> {
        match self {
            Self::Public(app, _) | Self::Redirect(app) => Some(app.limits.wait_for_place()),
            Self::Ops(..) => None,
        }
    }

    /// An idle connection is closed to make room.
    pub(super) fn record_made_room(&self) {
        self.app().limits.record_made_room();
    }

    /// Every connection has room for the future that is returned, also one that never sends a request.
    pub(super) fn handle<B>(
        &self,
        peer: Peer,
        mut request: Request<B>,
    ) -> impl Future<Output = Response> + Send + use<B>
    where
        B: HttpBody<Data = Bytes, Error: Into<axum::BoxError>> + Send + 'static,
    {
        match self {
            Self::Public(app, router) => Either::Left(web::handle(app, router, peer, request)),
            Self::Redirect(app) => Either::Right(Either::Left(Box::pin(web::redirect_to_https(app.clone(), request)))),
            Self::Ops(app, auth) => {
                request.extensions_mut().insert(peer);
                Either::Right(Either::Right(Box::pin(ops::handle(app.clone(), auth.clone(), request.map(Body::new)))))
            }
        }
    }
}
