//! Background tasks: counts are flushed, the database is maintained, what has expired is deleted, the makers are alerted, backups are
//! made, and the site is built again when its files, the releases or the letters in the archive change.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::actions::{Alerts, BucketBackupStep, BucketBackups, Pruner, Service, keeps_waitlist};
use crate::domain::time::Day;
use crate::store::{MaintenanceFailure, Revision, Store};
use crate::web::App;

const FLUSH_INTERVAL: Duration = Duration::from_secs(5);
const MAINTENANCE_INTERVAL: Duration = Duration::from_secs(1);
const PRUNE_INTERVAL: Duration = Duration::from_hours(1);
/// After a failure.
const PRUNE_AGAIN: Duration = Duration::from_mins(10);
/// After a start, messages are forwarded that waited for it, and a first certificate is ordered.
const FIRST_ALERT_CHECK: Duration = Duration::from_mins(5);
const ALERT_CHECK_INTERVAL: Duration = Duration::from_hours(1);
/// After a mail. Longer than a day, so that the next one comes from another instance, which may see something else.
const PAUSE_AFTER_MAIL: Duration = Duration::from_hours(26);

/// Writes the buffered counts to the database.
pub(super) async fn flush_counts(Service { count_buffer, store, .. }: Service, stop: CancellationToken) {
    while stop.run_until_cancelled(sleep(FLUSH_INTERVAL)).await.is_some() {
        if let Err(failure) = count_buffer.flush(&store).await {
            tracing::warn!(%failure, "failed to flush the counts; they are kept in memory");
        }
    }
}

/// Maintains the database until its file could not be synced, and cancels `unsynced` then.
pub(super) async fn maintain((store, unsynced): (Store, CancellationToken), stop: CancellationToken) {
    let mut is_failing = false;
    while stop.run_until_cancelled(sleep(MAINTENANCE_INTERVAL)).await.is_some() {
        let result = store.maintain().await;
        match &result {
            Err(failure @ MaintenanceFailure::Unsynced(_)) => {
                tracing::error!(%failure, "the database file could not be synced");
                unsynced.cancel();
                return stop.cancelled().await;
            }
            Err(failure) if !is_failing => tracing::warn!(%failure, "maintenance of the database fails"),
            Ok(()) | Err(_) => {}
        }
        is_failing = result.is_err();
    }
}

/// Runs the [`Pruner`] at startup and every hour.
pub(super) async fn prune(pruner: Pruner, stop: CancellationToken) {
    let prune = async {
        if let Err(failure) = pruner.start().await {
            tracing::warn!(%failure, "failed to delete expired hashes; trying again in an hour");
        }
        loop {
            let mut pause = PRUNE_INTERVAL;
            match pruner.step().await {
                Ok(0) => {}
                Ok(deleted) => tracing::info!(deleted, "deleted messages that were forwarded long ago"),
                Err(failure) => {
                    tracing::warn!(%failure, "failed to delete what has expired; trying again in ten minutes");
                    pause = PRUNE_AGAIN;
                }
            }
            sleep(pause).await;
        }
    };
    stop.run_until_cancelled(prune).await;
}

/// Checks every hour what needs attention.
pub(super) async fn alert(alerts: Alerts, new_mail: Arc<Notify>, stop: CancellationToken) {
    let mut pause = FIRST_ALERT_CHECK;
    while stop.run_until_cancelled(sleep(pause)).await.is_some() {
        pause = ALERT_CHECK_INTERVAL;
        match stop.run_until_cancelled(Box::pin(alerts.step())).await {
            None => return,
            Some(Ok(0)) => {}
            Some(Ok(troubles)) => {
                tracing::info!(troubles, "alert queued");
                new_mail.notify_one();
                pause = PAUSE_AFTER_MAIL;
            }
            Some(Err(failure)) => {
                tracing::warn!(%failure, "failed to check what needs attention; retrying in an hour");
            }
        }
    }
}

/// How often is looked whether a backup has to be made.
const BACKUP_INTERVAL: Duration = Duration::from_mins(5);

/// Makes the backup of each day in a bucket. On a thread of its own, because copying and encrypting would hold up requests.
pub(super) async fn back_up(backups: BucketBackups, stop: CancellationToken) {
    let mut done = None;
    loop {
        let today = Some(Day::of(backups.clock.now()));
        if done != today {
            let (backups, ended) = (backups.clone(), stop.clone());
            let outcome = spawn_blocking(move || Handle::current().block_on(backups.step(&ended))).await;
            match outcome.map_err(io::Error::other).and_then(|step| step.map_err(io::Error::other)) {
                Ok(BucketBackupStep::Made(problem)) => {
                    tracing::info!(problem, "backup made in the bucket");
                    done = today;
                }
                Ok(BucketBackupStep::Present) => done = today,
                Ok(BucketBackupStep::Waiting) => {}
                Ok(BucketBackupStep::Failed(failure)) => tracing::warn!(failure, "the backup in the bucket failed"),
                Err(failure) => tracing::warn!(%failure, "no backup could be begun; trying again"),
            }
        }
        if stop.run_until_cancelled(sleep(BACKUP_INTERVAL)).await.is_none() {
            return;
        }
    }
}

/// How often the database is polled for releases and letters: pages change within a second.
const RELEASES_INTERVAL: Duration = Duration::from_millis(500);
/// How often the files of a watched site are polled.
const FILES_INTERVAL: Duration = Duration::from_millis(300);
/// After a build that failed.
const REBUILD_AGAIN: Duration = Duration::from_secs(5);

/// Rebuilds the site for new releases and letters, and when it is to be read again, until shutdown starts.
pub(super) async fn follow_releases(app: App, stop: CancellationToken) {
    let Service { store, catalog, letters, .. } = &app.service;
    let mut shown = (catalog.cached(), letters.cached());
    // Whenever somebody has the files read again at the desk.
    let mut site_revision = None;
    let mut failing = false;
    let mut failed_build = None;
    loop {
        let next = timeout(RELEASES_INTERVAL, app.read_again.notified());
        let Some(waited) = stop.run_until_cancelled(next).await else { return };
        // All of them, whether or not another one fails.
        let (of_releases, of_letters) = (catalog.refresh().await, letters.refresh().await);
        let of_site = store.revision(Revision::Site).await;
        let mut is_requested = waited.is_ok();
        match of_releases.and(of_letters).and(of_site) {
            Ok(revision) => {
                failing = false;
                is_requested |= site_revision.replace(revision).is_some_and(|before| before != revision);
            }
            Err(failure) if !failing => {
                failing = true;
                tracing::warn!(%failure, "new releases and letters are not shown until the database is available");
            }
            Err(_) => {}
        }
        let cached = (catalog.cached(), letters.cached());
        let is_same = Arc::ptr_eq(&cached.0, &shown.0) && Arc::ptr_eq(&cached.1, &shown.1);
        shown = cached;
        rebuild_if_due(&app, is_requested || !is_same, &mut failed_build).await;
    }
}

/// Rebuilds the site whenever its files differ from those of the fingerprint `seen`, until shutdown starts.
pub(super) async fn follow_files((app, mut seen): (App, u64), stop: CancellationToken) {
    let mut failed_build = None;
    while stop.run_until_cancelled(sleep(FILES_INTERVAL)).await.is_some() {
        let watched = app.content().clone();
        let Ok(state) = spawn_blocking(move || watched.fingerprint()).await else { continue };
        let is_changed = std::mem::replace(&mut seen, state) != state;
        rebuild_if_due(&app, is_changed, &mut failed_build).await;
    }
}

/// A build that failed: when, and why.
type FailedBuild = (Instant, String);

/// Rebuilds after a change, and a while after a build that failed, until one succeeds; meanwhile the old site stays. On a blocking
/// thread: rendering every page would hold up requests.
async fn rebuild_if_due(app: &App, is_changed: bool, failed: &mut Option<FailedBuild>) {
    if !is_changed && failed.as_ref().is_none_or(|(at, _)| at.elapsed() < REBUILD_AGAIN) {
        return;
    }
    let keeps_waitlist = keeps_waitlist(&app.service.store, app.content()).await;
    let app = app.clone();
    let failure = match spawn_blocking(move || app.rebuild(keeps_waitlist)).await {
        Ok(Ok(())) => {
            tracing::info!("site rebuilt");
            *failed = None;
            return;
        }
        Ok(Err(failure)) => failure.to_string(),
        Err(panicked) => panicked.to_string(),
    };
    if failed.as_ref().is_none_or(|(_, known)| *known != failure) {
        tracing::warn!(failure, "site rebuild failed; still serving the previous version, and trying again");
    }
    *failed = Some((Instant::now(), failure));
}
