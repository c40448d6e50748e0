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

use super::patience::Patience;
use crate::web::ops::{self, Access};
use crate::web::{self, App};

/// Most connections at once; more wait in the system's queue until one ends.
const MOST_CONNECTIONS: usize = 16 * 1024;
/// How long the head of a request may take, and how long a connection may idle between two.
const HEAD_WITHIN: Duration = Duration::from_secs(10);
const MOST_HEADERS: usize = 64;
const LARGEST_HEAD: usize = 16 * 1024;
/// How long after a stop a connection that has not asked for anything yet may still do so.
const ASK_WITHIN: Duration = Duration::from_secs(3);
/// How long a caller may take nothing of an answer before the connection is closed.
const STALL: Duration = Duration::from_secs(30);

/// What every connection needs.
#[derive(Clone)]
pub(super) struct House {
    pub face: Face,
    pub stop: CancellationToken,
    pub give_up: CancellationToken,
    pub tasks: TaskTracker,
}

/// Who is spoken to.
#[derive(Clone)]
pub(super) enum Face {
    Everybody(App, Router),
    Makers(App, Access),
}

impl Face {
    async fn answer(self, request: Request) -> Response {
        match self {
            Self::Everybody(app, router) => web::exchange(app, router, request).await,
            Self::Makers(app, access) => ops::exchange(app, access, request).await,
        }
    }
}

pub(super) async fn accept(listener: TcpListener, house: House) {
    let room = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    let next = async || {
        let place = Arc::clone(&room).acquire_owned().await;
        (listener.accept().await, place)
    };
    loop {
        let (accepted, place) = tokio::select! {
            biased;
            () = house.stop.cancelled() => break,
            next = next() => next,
        };
        match accepted {
            Ok((stream, _)) => {
                let talk = converse(stream, house.clone());
                house.tasks.spawn(async move {
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
    answer_backlog(listener, &house);
}

/// Those who had connected before the stop are answered still.
fn answer_backlog(listener: TcpListener, house: &House) {
    let Ok(listener) = listener.into_std() else { return };
    while let Ok((stream, _)) = listener.accept() {
        if stream.set_nonblocking(true).is_ok()
            && let Ok(stream) = TcpStream::from_std(stream)
        {
            house.tasks.spawn(converse(stream, house.clone()));
        }
    }
}

async fn converse(stream: TcpStream, house: House) {
    let House { face, stop, give_up, .. } = house;
    let _ = stream.set_nodelay(true);
    let asked = Arc::new(Notify::new());
    let asks = Arc::clone(&asked);
    let service = service_fn(move |request: hyper::Request<hyper::body::Incoming>| {
        asks.notify_one();
        let answer = face.clone().answer(request.map(Body::new));
        async move { Ok::<_, Infallible>(answer.await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_WITHIN)
        .max_headers(MOST_HEADERS)
        .max_buf_size(LARGEST_HEAD)
        // Whoever has sent a whole request may hang up: it is carried out all the same.
        .half_close(true)
        .serve_connection(TokioIo::new(Patience::new(stream, STALL)), service);
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
        () = give_up.cancelled() => {}
    }
}
