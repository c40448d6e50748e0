//! The life of the process: the listener, its connections, the writer, and an orderly stop. Floor 4.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, Semaphore};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::actions::{NewestImage, Service};
use crate::clock::Clock;
use crate::config::{InvalidSettings, Settings};
use crate::domain::base_url::BaseUrl;
use crate::site::{Content, Facts, SiteFailure};
use crate::store::{Database, Store, StoreFailure, Writer};
use crate::web::{self, App};

/// Most connections at once; more wait in the system's queue until one ends.
const MOST_CONNECTIONS: usize = 16 * 1024;
/// How long the head of a request may take, and how long a connection may idle between two.
const HEAD_WITHIN: Duration = Duration::from_secs(10);
const MOST_HEADERS: usize = 64;
const LARGEST_HEAD: usize = 16 * 1024;
/// Of the ten seconds that a stop may take: for requests under way, and for the last writes.
const ANSWER_WITHIN: Duration = Duration::from_secs(8);
const WRITE_WITHIN: Duration = Duration::from_millis(1500);
/// How long after a stop a connection that has not asked for anything yet may still do so.
const ASK_WITHIN: Duration = Duration::from_secs(3);

#[derive(Debug, thiserror::Error)]
pub enum ServeFailure {
    #[error(transparent)]
    Settings(#[from] InvalidSettings),
    #[error(transparent)]
    Store(#[from] StoreFailure),
    #[error("The database ({0}) cannot be used: {1}.")]
    Database(Database, StoreFailure),
    #[error(transparent)]
    Site(#[from] SiteFailure),
    #[error("The setting `listen` cannot be used: {0} cannot be listened on: {1}.")]
    Listen(SocketAddr, io::Error),
}

/// A service that is up. Dropping it without `stop` leaves it to the end of the runtime.
#[derive(Debug)]
pub struct Running {
    address: SocketAddr,
    base_url: BaseUrl,
    data_dir: PathBuf,
    database: Database,
    notes: Vec<String>,
    stop: CancellationToken,
    give_up: CancellationToken,
    tasks: TaskTracker,
    writer: JoinHandle<()>,
}

/// Opens the database, makes the site and listens. The service answers once this returns.
///
/// # Errors
/// With one sentence on what is in the way. A database that is merely away is not: pages are served
/// without it, and writes begin when it is back.
pub async fn start(settings: Settings, clock: Clock) -> Result<Running, ServeFailure> {
    let database = match &settings.database_url {
        Some(url) => Database::parse(url).map_err(|why| InvalidSettings::of("database_url", why))?,
        None => Database::Sqlite(settings.data_dir.join("porchlight.db")),
    };
    let store = Store::open(&database)?;
    let prepared = match store.prepare().await {
        Ok(()) => true,
        Err(StoreFailure::Unavailable(cause)) if matches!(database, Database::Postgres(_)) => {
            tracing::warn!(%cause, "the database is away; pages are served, writes wait until it is back");
            false
        }
        Err(unusable @ StoreFailure::Unusable(_)) => return Err(unusable.into()),
        Err(failure) => return Err(ServeFailure::Database(database, failure)),
    };

    let cannot_listen = |error| ServeFailure::Listen(settings.listen, error);
    let listener = TcpListener::bind(settings.listen).await.map_err(cannot_listen)?;
    let address = listener.local_addr().map_err(cannot_listen)?;
    let base_url = settings.base_url.clone().unwrap_or_else(|| BaseUrl::of_listener(address));

    let facts = Facts::read(Content)?;
    let newest_image = NewestImage::choose(settings.download_url.as_deref(), &base_url, &facts.name);
    let notes = notes(&newest_image, &base_url, &settings);
    let (writer, writer_task) = Writer::start(store, prepared);
    let app = App::new(&settings, base_url.clone(), Service { writer, clock, newest_image })?;

    let (stop, give_up, tasks) = (CancellationToken::new(), CancellationToken::new(), TaskTracker::new());
    let house =
        House { router: web::router(&app), app, stop: stop.clone(), give_up: give_up.clone(), tasks: tasks.clone() };
    tasks.spawn(accept(listener, house));
    Ok(Running {
        address,
        base_url,
        data_dir: std::path::absolute(&settings.data_dir).unwrap_or(settings.data_dir),
        database,
        notes,
        stop,
        give_up,
        tasks,
        writer: writer_task,
    })
}

impl Running {
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    #[must_use]
    pub const fn base_url(&self) -> &BaseUrl {
        &self.base_url
    }

    #[must_use]
    pub fn data_dir(&self) -> &Path {
        &self.data_dir
    }

    #[must_use]
    pub const fn database(&self) -> &Database {
        &self.database
    }

    /// What a maker may want to set up yet, a sentence each.
    #[must_use]
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Takes no more connections, answers what is under way, writes what was promised. Within ten
    /// seconds it is over, whatever callers do.
    pub async fn stop(self) {
        self.stop.cancel();
        self.tasks.close();
        if timeout(ANSWER_WITHIN, self.tasks.wait()).await.is_err() {
            self.give_up.cancel();
        }
        if timeout(WRITE_WITHIN, self.writer).await.is_err() {
            tracing::warn!("the last writes did not end in time");
        }
    }
}

fn notes(newest_image: &NewestImage, base_url: &BaseUrl, settings: &Settings) -> Vec<String> {
    let mut notes = Vec::new();
    if base_url.is_loopback() {
        notes.push("This is a local preview. Set `base_url` to the public address to go live.".to_owned());
    }
    match newest_image {
        NewestImage::Nothing => notes.push(
            "There is no disk image to hand out, so downloads are answered with 503. Set `download_url`.".to_owned(),
        ),
        NewestImage::At(url) if settings.download_url.is_none() => {
            notes.push(format!("Downloads are given {url}, which leads nowhere yet. Set `download_url`."));
        }
        NewestImage::At(_) => {}
    }
    notes.push("Messages to the makers are stored, and not mailed to anybody.".to_owned());
    notes
}

/// What every connection needs.
#[derive(Clone)]
struct House {
    app: App,
    router: Router,
    stop: CancellationToken,
    give_up: CancellationToken,
    tasks: TaskTracker,
}

async fn accept(listener: TcpListener, house: House) {
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

/// One connection, bounded in time and size from its first byte.
async fn converse(stream: TcpStream, house: House) {
    let House { app, router, stop, give_up, .. } = house;
    let _ = stream.set_nodelay(true);
    let asked = Arc::new(Notify::new());
    let asks = Arc::clone(&asked);
    let service = service_fn(move |request: hyper::Request<hyper::body::Incoming>| {
        asks.notify_one();
        let exchange = web::exchange(app.clone(), router.clone(), request.map(Body::new));
        async move { Ok::<_, Infallible>(exchange.await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_WITHIN)
        .max_headers(MOST_HEADERS)
        .max_buf_size(LARGEST_HEAD)
        .serve_connection(TokioIo::new(stream), service);
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
