//! Starts every part of the service, and stops them in order.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::certificate_reload::ServedCertificate;
use super::context::{ConnectionContext, Listener};
use super::failure::ServeFailure;
use super::listeners::{Listeners, OpenFileCaps, ops_listener};
use super::task_supervisor::Supervisor;
use super::{accept, background, mailing};
use crate::acme::check_ca_file;
use crate::actions::{
    Alerts, BucketBackups, CachedSummary, CachedTotals, CertificateOrders, CountBuffer, ImageStore, LetterArchive,
    NewestImage, Pruner, ReleaseCatalog, Service, claim_database, delete_certificate_copy, empty_database_warning,
    keeps_waitlist,
};
use crate::bucket::Bucket;
use crate::clock::Clock;
use crate::config::{CertificateSource, InvalidSettings, Secret, Settings};
use crate::domain::limits::BACKUP_PIECE_BYTES;
use crate::domain::mail::Relay;
use crate::domain::network::BaseUrl;
use crate::site::{Content, Policies, SiteFacts};
use crate::store::{Database, Store, StoreFailure, Writer};
use crate::web::ops::OpsAuth;
use crate::web::{self, App, AppState};

/// How long requests in progress may take after the stop signal.
const REQUESTS_TIMEOUT: Duration = Duration::from_millis(6500);
/// How long the whole shutdown may take, with the last counts and writes. The log is flushed after that, and all of it
/// is over within ten seconds.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_millis(8500);

/// A running service. Dropped without `stop`, it runs until the runtime ends.
#[derive(Debug)]
pub struct RunningService {
    pub address: SocketAddr,
    /// The addresses that redirect to https.
    pub redirect_addresses: Vec<SocketAddr>,
    /// The address of the ops listener, if there is one.
    pub ops_address: Option<SocketAddr>,
    /// Where a browser reaches the desk.
    pub desk: Option<String>,
    pub base_url: BaseUrl,
    pub data_dir: PathBuf,
    pub database: Database,
    /// The configured mail server.
    pub relay: Option<Relay>,
    /// What does not work as it could, one sentence each.
    pub notes: Vec<String>,
    /// What makers still have to do, in order, one sentence each.
    pub setup_steps: Vec<String>,
    stop: CancellationToken,
    abort: CancellationToken,
    unsynced: CancellationToken,
    tasks: TaskTracker,
    supervisor: Supervisor,
    writer: JoinHandle<()>,
    app: App,
}

/// Opens the database, builds the site and starts listening.
pub async fn start(settings: Settings, clock: Clock) -> Result<RunningService, ServeFailure> {
    let (database, store, migration_error) = open_database(&settings).await?;
    let listeners = Listeners::open(&settings)?;
    let (address, redirect_addresses) = (listeners.address, listeners.redirect_addresses());
    let base_url = settings.base_url.clone().unwrap_or_else(|| BaseUrl::from_listen_address(address));

    let certificate = served_certificate(&settings, &base_url, &database, &store, &clock).await?;
    let tls = certificate.as_ref().map(ServedCertificate::acceptor).transpose()?;
    let content = Content::from_settings(&settings)?;
    let SiteFacts { name, .. } = SiteFacts::read(&content)?;
    let newest_image = NewestImage::choose(settings.download_url.as_deref(), &base_url, &name);
    let catalog = read_releases(&settings, &store, &clock).await?;
    let letters = read_letters(&settings, &store).await;
    let mut notes = settings.warnings();
    let (stop, abort, tasks) = (CancellationToken::new(), CancellationToken::new(), TaskTracker::new());
    let (writer, writer_task) = Writer::start(&database, migration_error)?;
    let new_mail = writer.new_mail();
    let ops_pool = Store::open_for_ops(&database)?;
    let pruner = Pruner { store: store.clone(), clock: clock.clone(), keep_messages: settings.keep_messages };
    let service = Service {
        store,
        ops_pool,
        writer,
        clock,
        newest_image,
        catalog,
        letters,
        certificate: certificate.as_ref().map(|certificate| certificate.status.clone()),
        count_buffer: CountBuffer::default(),
        cached_summary: CachedSummary::default(),
        cached_totals: CachedTotals::default(),
        confirm_updates: settings.confirm_updates,
        backs_up: settings.backup.is_some(),
        forwards_messages: settings.mail.is_some(),
    };
    let caps = OpenFileCaps::of_process();
    let keeps_waitlist = Box::pin(keeps_waitlist(&service.store, &content)).await;
    let policies = Policies::from_settings(&settings, keeps_waitlist);
    let app = AppState::build(&settings, policies, base_url.clone(), service, &content, caps.images)?;

    notes.extend(caps.hint());
    let supervisor = Supervisor::new(stop.clone(), tasks.clone(), app.metrics.clone());
    let writer = supervisor.watch("writer", writer_task);
    let context_of = |listener, tls| ConnectionContext {
        listener,
        tls,
        stop: stop.clone(),
        abort: abort.clone(),
        tasks: tasks.clone(),
    };
    let permits = Arc::new(Semaphore::new(caps.public));
    let router = web::router(&app);
    for listener in listeners.public {
        let public = context_of(Listener::Public(app.clone(), router.clone()), tls.clone());
        supervisor.spawn_essential("listen", accept::accept(listener, Arc::clone(&permits), public));
    }
    for listener in listeners.redirect {
        let redirect = context_of(Listener::Redirect(app.clone()), None);
        supervisor.spawn_essential("redirect_listen", accept::accept(listener, Arc::clone(&permits), redirect));
    }
    if let Some(warning) = empty_database_warning(&app.service.store, &base_url).await {
        tracing::warn!("{warning}");
    }
    let mut ops_address = None;
    if let Some(listener) = ops_listener(settings.ops.listen, &mut notes)? {
        ops_address = listener.local_addr().ok();
        let auth = OpsAuth::new(settings.ops.token.as_ref().map(Secret::expose));
        let ops = context_of(Listener::Ops(app.clone(), auth), None);
        let permits = Arc::new(Semaphore::new(caps.ops));
        supervisor.spawn_essential("ops_listen", accept::accept(listener, permits, ops));
    }
    let unsynced = CancellationToken::new();
    maintain(&supervisor, &app, &unsynced, pruner);
    if let Some(certificate) = certificate {
        supervisor.spawn_restarting("certificate", move |stop| certificate.clone().follow(stop));
    }
    follow_site(&supervisor, &app, settings.watches_site);
    back_up(&supervisor, &app, &settings, &database)?;
    if let Some(sender) = mailing::outbox_sender(&settings, &app)? {
        let letters = mailing::letters(&settings, &app)?;
        mailing::spawn(&supervisor, (sender, letters), alerts(&settings, &app, name), &new_mail, &abort);
    }
    Ok(RunningService {
        address,
        redirect_addresses,
        ops_address,
        desk: settings.desk.url(&base_url, ops_address),
        base_url,
        data_dir: std::path::absolute(&settings.data_dir).unwrap_or(settings.data_dir),
        database,
        relay: settings.mail.map(|mail| mail.relay),
        notes,
        setup_steps: app.setup_steps(),
        stop,
        abort,
        unsynced,
        tasks,
        supervisor,
        writer,
        app,
    })
}

impl RunningService {
    /// The releases that are served, as last read.
    pub fn catalog(&self) -> &ReleaseCatalog {
        &self.app.service.catalog
    }

    /// Reads the files of the site and builds it again. On failure the present one stays, and the build is tried again.
    pub fn read_site_again(&self) {
        self.app.read_again.notify_one();
    }

    /// Waits until a background task fails that the service cannot run without. The service then has to be stopped; after
    /// `Unsynced` the process has to end at once, without closing the database, see [`MaintenanceFailure::Unsynced`].
    ///
    /// [`MaintenanceFailure::Unsynced`]: crate::store::MaintenanceFailure::Unsynced
    pub async fn failed(&self) -> ServeFailure {
        tokio::select! {
            name = self.supervisor.failed() => ServeFailure::TaskFailed(name),
            () = self.unsynced.cancelled() => ServeFailure::Unsynced,
        }
    }

    /// Shuts down gracefully: accepts no more connections, completes requests in progress, and flushes counts and
    /// writes. All of it has one deadline, whatever clients, database and mail server do.
    pub async fn stop(self) {
        let start = Instant::now();
        self.stop.cancel();
        self.app.stopping.cancel();
        self.tasks.close();
        if timeout_at(start + REQUESTS_TIMEOUT, self.tasks.wait()).await.is_err() {
            self.abort.cancel();
        }
        let Self { app, writer, .. } = self;
        let finish = async {
            let service = app.service.clone();
            if let Err(failure) = service.count_buffer.flush(&service.store).await {
                tracing::warn!(%failure, "failed to flush the last counts");
            }
            let (store, ops_pool) = (service.store.clone(), service.ops_pool.clone());
            // The writer task ends when the last handle to it is dropped.
            drop((service, app));
            let _ = writer.await;
            // One after the other: SQLite removes the WAL with the last connection, but not if two are closed at the same time.
            ops_pool.close().await;
            store.close().await;
        };
        if timeout_at(start + SHUTDOWN_TIMEOUT, finish).await.is_err() {
            tracing::warn!("the last counts and writes did not finish in time");
        }
    }
}

/// Opens and migrates the database. Returns why it could not be migrated yet, if the service starts all the same.
async fn open_database(settings: &Settings) -> Result<(Database, Store, Option<StoreFailure>), ServeFailure> {
    let database = Database::from_settings(settings)?;
    let store = Store::open_for_requests(&database)?;
    let migration_error = match store.migrate().await {
        Ok(()) => {
            claim_database(&store, settings).await?;
            None
        }
        Err(failure @ StoreFailure::Unavailable(_)) if matches!(database, Database::Postgres(_)) => {
            tracing::warn!(%failure, "started without the database: writes get 503 until it is available");
            Some(failure)
        }
        Err(StoreFailure::Unavailable(why) | StoreFailure::Rejected(why) | StoreFailure::InvalidData(why)) => {
            return Err(ServeFailure::Database(database, why));
        }
        Err(damaged @ StoreFailure::Damaged(_)) => return Err(ServeFailure::Damaged(database, damaged)),
        Err(failure) => return Err(failure.into()),
    };
    Ok((database, store, migration_error))
}

/// Writes counts, maintains the database, and deletes what has expired.
fn maintain(supervisor: &Supervisor, app: &App, unsynced: &CancellationToken, pruner: Pruner) {
    let service = app.service.clone();
    supervisor.spawn_restarting("flush_counts", move |stop| background::flush_counts(service.clone(), stop));
    let maintenance = (app.service.ops_pool.clone(), unsynced.clone());
    supervisor.spawn_restarting("maintain", move |stop| background::maintain(maintenance.clone(), stop));
    supervisor.spawn_restarting("prune", move |stop| background::prune(pruner.clone(), stop));
}

/// Keeps the site up to date.
fn follow_site(supervisor: &Supervisor, app: &App, watches_files: bool) {
    let site = app.clone();
    supervisor.spawn_restarting("releases", move |stop| background::follow_releases(site.clone(), stop));
    if watches_files {
        // Read here and not in the task, which may first run after a change.
        let files = (app.clone(), app.content().fingerprint());
        supervisor.spawn_restarting("watch", move |stop| background::follow_files(files.clone(), stop));
    }
}

/// Makes backups in a bucket, if there is one in the settings.
fn back_up(
    supervisor: &Supervisor,
    app: &App,
    settings: &Settings,
    database: &Database,
) -> Result<(), InvalidSettings> {
    let Some(backup) = &settings.backup else { return Ok(()) };
    let clock = app.service.clock.clone();
    let backups = BucketBackups {
        database: database.clone(),
        images: ImageStore::open(&settings.images, clock.clone())?,
        bucket: Bucket::open(&backup.bucket, clock.clone())?,
        recipient: backup.recipient.clone(),
        data_dir: settings.data_dir.clone(),
        piece_bytes: BACKUP_PIECE_BYTES,
        clock,
    };
    supervisor.spawn_restarting("backups", move |stop| background::back_up(backups.clone(), stop));
    Ok(())
}

async fn read_releases(settings: &Settings, store: &Store, clock: &Clock) -> Result<ReleaseCatalog, ServeFailure> {
    let catalog = ReleaseCatalog::new(store.clone(), ImageStore::open(&settings.images, clock.clone())?);
    if let Err(failure) = catalog.refresh().await {
        tracing::warn!(%failure, "the releases are unknown until the database is available");
    }
    Ok(catalog)
}

async fn read_letters(settings: &Settings, store: &Store) -> LetterArchive {
    let letters = LetterArchive::new(store.clone(), settings.letters_archive);
    if let Err(failure) = letters.refresh().await {
        tracing::warn!(%failure, "the letters in the archive are unknown until the database is available");
    }
    letters
}

/// Returns the certificate of the public listener, which has to be for every host name of the site.
async fn served_certificate(
    settings: &Settings,
    base_url: &BaseUrl,
    database: &Database,
    store: &Store,
    clock: &Clock,
) -> Result<Option<ServedCertificate>, InvalidSettings> {
    // An embedded database is never unavailable at a start.
    let keeps_copy = settings.uses_acme() && matches!(database, Database::Postgres(_));
    if !keeps_copy {
        delete_certificate_copy(&settings.data_dir);
    }
    let Some(tls) = &settings.tls else { return Ok(None) };
    let hosts = settings.host_names(base_url);
    Ok(Some(match &tls.certificate {
        CertificateSource::Files(files) => ServedCertificate::from_files(files.clone(), hosts, clock.clone())?,
        CertificateSource::Acme(acme) => {
            if let Some(ca_file) = &acme.ca_file {
                check_ca_file(ca_file).map_err(|why| InvalidSettings::new("acme_ca_file", why))?;
            }
            let orders = CertificateOrders::new(acme, hosts, store.clone(), clock.clone());
            let orders = if keeps_copy { orders.with_copy_in(&settings.data_dir) } else { orders };
            ServedCertificate::from_orders(orders).await
        }
    }))
}

fn alerts(settings: &Settings, app: &App, app_name: String) -> Alerts {
    let service = &app.service;
    Alerts {
        store: service.store.clone(),
        ops_pool: service.ops_pool.clone(),
        catalog: service.catalog.clone(),
        newest_image: service.newest_image.clone(),
        certificate: service.certificate.clone(),
        data_dir: settings.data_dir.clone(),
        releases_dir: settings.images.folder().map(Path::to_owned),
        backs_up: service.backs_up,
        base_url: app.base_url.clone(),
        app: app_name,
        machine: rustix::system::uname().nodename().to_string_lossy().into_owned(),
        clock: service.clock.clone(),
    }
}
