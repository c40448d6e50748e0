//! The task of the writer: takes queued writes, stores them in batches, and notices when the database is back.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use tokio::sync::{Mutex, Notify, mpsc};
use tokio::time::{Instant, timeout};

use super::batch::{BatchDeadline, write_batch};
use super::state::WriterState;
use super::{Job, QueuedWrite, Record};
use crate::store::connect::MaintenanceFailure;
use crate::store::signups::SignupMemory;
use crate::store::{Store, StoreFailure};

/// Fewest writes in a batch that is begun while another one is in flight. A batch has a fixed cost, so smaller
/// ones are not worth it.
const MIN_SECOND_BATCH: usize = 16;
/// After so long without a write, the connection of the last batch goes back to its pool, which checks it and closes it when it is
/// old or leads to a host that is no longer used. The database is probed then if the last write failed.
const IDLE_INTERVAL: Duration = Duration::from_secs(1);
/// Shortest interval between two calls of [`Store::maintain`].
const MAINTENANCE_INTERVAL: Duration = Duration::from_secs(1);

/// What the batches in flight share.
pub(super) struct Shared {
    store: Store,
    pub(super) state: Arc<WriterState>,
    queue: Mutex<mpsc::Receiver<Job>>,
    migrated: AtomicBool,
    pub(super) new_messages: Arc<Notify>,
    pub(super) new_confirmations: Arc<Notify>,
    written: Arc<Notify>,
    /// The number of batches that are being written.
    in_flight: AtomicUsize,
    /// Is notified when a batch has been written.
    landed: Notify,
}

/// Writes until the queue is closed and empty.
pub(super) async fn run(shared: Shared) {
    let maintenance = tokio::spawn(maintain_after_writes(
        shared.store.clone(),
        Arc::clone(&shared.state),
        Arc::clone(&shared.written),
    ));
    join_all((0..shared.store.concurrent_batches()).map(|_| write_batches(&shared))).await;
    maintenance.abort();
    // So that an older program, which does not know of pending counts, reads them all.
    if let Err(failure) = shared.store.settle_counts().await {
        tracing::warn!(%failure, "the last counts were not settled; a later start does it");
    }
    shared.store.close().await;
}

/// Writes one batch after another until the queue is closed.
async fn write_batches(shared: &Shared) {
    let Shared { store, state, .. } = shared;
    let (mut jobs, mut signup_memory) = (Vec::new(), SignupMemory::default());
    loop {
        let failing = state.last_error().is_some();
        let received = {
            let mut receive = pin!(shared.receive(&mut jobs));
            match timeout(IDLE_INTERVAL, &mut receive).await {
                Err(_) if !failing => {
                    signup_memory.release_connection();
                    Ok(receive.await)
                }
                received => received,
            }
        };
        match received {
            Ok(false) => break,
            Ok(true) => {}
            // Without requests no write would notice that the database is back, so it is probed.
            Err(_) => {
                signup_memory.release_connection();
                let result = shared.probe().await;
                *state.last_error() = result.err();
                continue;
            }
        }
        let (count, began) = (jobs.len(), Instant::now());
        state.pace().begin(began);
        let deadline = BatchDeadline::starting_at(began);
        let (mut signups, mut messages) = (Vec::new(), Vec::new());
        for job in jobs.drain(..) {
            match job {
                // The caller of a write that has timed out may have repeated it already.
                Job::Signup(write) if write.deadline > began => signups.push(write),
                Job::Message(write) if write.deadline > began => messages.push(write),
                Job::Signup(_) | Job::Message(_) => {}
            }
        }
        let (in_time, has_messages) = (signups.len() + messages.len(), !messages.is_empty());
        let awaits_confirmation = signups.iter().any(|write| write.record.awaits_confirmation());
        let result = match shared.migrate().await {
            Ok(()) => {
                let mut result = Ok(());
                if !signups.is_empty() {
                    result = write_batch(store, &mut signup_memory, signups, deadline).await;
                }
                if has_messages {
                    result = result.and(write_batch(store, &mut (), messages, deadline).await);
                }
                result
            }
            Err(failure) => {
                fail_all(signups, &failure);
                fail_all(messages, &failure);
                Err(failure)
            }
        };
        // The database may accept one kind of write and refuse the other.
        let result = match result {
            Ok(()) if state.last_error().is_some() => shared.probe().await,
            other => other,
        };
        state.waiting.fetch_sub(count, Ordering::Relaxed);
        state.batch_sizes.observe(f64::from(u32::try_from(count).unwrap_or(u32::MAX)));
        state.pace().end(began, Instant::now(), in_time, result.is_ok());
        if let Err(failure) = &result {
            shared.fail_queue(failure);
        }
        *state.last_error() = result.err();
        shared.in_flight.fetch_sub(1, Ordering::Relaxed);
        shared.landed.notify_one();
        shared.written.notify_one();
        if has_messages {
            shared.new_messages.notify_one();
        }
        if awaits_confirmation {
            shared.new_confirmations.notify_one();
        }
    }
}

impl Shared {
    pub(super) fn new(store: Store, queue: mpsc::Receiver<Job>, state: Arc<WriterState>, migrated: bool) -> Self {
        Self {
            store,
            state,
            queue: Mutex::new(queue),
            migrated: migrated.into(),
            new_messages: Arc::default(),
            new_confirmations: Arc::default(),
            written: Arc::default(),
            in_flight: AtomicUsize::new(0),
            landed: Notify::new(),
        }
    }

    /// Takes what is queued, at least one write. While another batch is in flight, waits for enough to be worth a second one,
    /// and fails what it has collected if that batch fails. Returns false if the queue is closed.
    async fn receive(&self, jobs: &mut Vec<Job>) -> bool {
        let mut queue = self.queue.lock().await;
        let is_enough = |jobs: &Vec<Job>, limit: usize| match self.in_flight.load(Ordering::Relaxed) {
            0 => !jobs.is_empty(),
            _ => jobs.len() >= MIN_SECOND_BATCH.min(limit),
        };
        loop {
            let limit = self.state.pace().limit();
            if is_enough(jobs, limit) {
                break;
            }
            tokio::select! {
                received = queue.recv_many(jobs, limit - jobs.len()) => if received == 0 { break },
                () = self.landed.notified() => {
                    if let Some(failure) = self.state.last_error().clone() {
                        self.fail(jobs.drain(..), &failure);
                    }
                }
            }
        }
        if jobs.is_empty() {
            return false;
        }
        self.in_flight.fetch_add(1, Ordering::Relaxed);
        true
    }

    /// Runs [`Store::migrate`] unless it has succeeded before.
    async fn migrate(&self) -> Result<(), StoreFailure> {
        if !self.migrated.load(Ordering::Relaxed) {
            self.store.migrate().await?;
            self.migrated.store(true, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Checks whether the database accepts writes again.
    async fn probe(&self) -> Result<(), StoreFailure> {
        self.migrate().await?;
        self.store.probe_write().await
    }

    /// Fails all queued writes, so that they do not wait for an unavailable database one batch after another.
    fn fail_queue(&self, failure: &StoreFailure) {
        // If another batch is being collected, the queue is empty, and `receive` fails that batch.
        let Ok(mut queue) = self.queue.try_lock() else { return };
        self.fail(std::iter::from_fn(|| queue.try_recv().ok()), failure);
    }

    fn fail(&self, jobs: impl Iterator<Item = Job>, failure: &StoreFailure) {
        for job in jobs {
            self.state.waiting.fetch_sub(1, Ordering::Relaxed);
            match job {
                Job::Signup(write) => fail_all([write], failure),
                Job::Message(write) => fail_all([write], failure),
            }
        }
    }
}

fn fail_all<R: Record>(writes: impl IntoIterator<Item = QueuedWrite<R>>, failure: &StoreFailure) {
    for write in writes {
        let _ = write.reply.send(Err(failure.clone()));
    }
}

async fn maintain_after_writes(store: Store, state: Arc<WriterState>, written: Arc<Notify>) {
    loop {
        written.notified().await;
        let store = store.clone();
        // A task of its own, so that a panic does not end the maintenance after later writes.
        match tokio::spawn(async move { store.maintain().await }).await {
            Ok(Ok(())) => {}
            Ok(Err(failure @ MaintenanceFailure::Unsynced(_))) => {
                tracing::error!(%failure, "the database file could not be synced");
                state.unsynced.cancel();
                return;
            }
            Ok(Err(failure)) => tracing::warn!(%failure, "maintenance after writes failed"),
            Err(failure) => tracing::error!(%failure, "maintenance after writes panicked"),
        }
        tokio::time::sleep(MAINTENANCE_INTERVAL).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Database;
    use crate::store::writer::Writer;
    use crate::store::writer::tests::message;

    #[tokio::test]
    async fn writes_collected_while_a_batch_is_in_flight_fail_with_it() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open_for_writer(&Database::Sqlite(folder.path().join("porchlight.db"))).unwrap();
        let (queue, jobs) = mpsc::channel(1);
        let shared = Shared::new(store, jobs, Arc::default(), true);
        let writer = Writer::new(queue, &shared);
        shared.in_flight.fetch_add(1, Ordering::Relaxed);

        let mut collected = Vec::new();
        let second = async {
            let mut receive = std::pin::pin!(shared.receive(&mut collected));
            let mut write = std::pin::pin!(writer.record_message(message()));
            assert!(futures_util::poll!(&mut write).is_pending() && futures_util::poll!(&mut receive).is_pending());
            *shared.state.last_error() = Some(StoreFailure::timed_out());
            shared.in_flight.fetch_sub(1, Ordering::Relaxed);
            shared.landed.notify_one();
            tokio::select! {
                _ = receive => panic!("the write begins a batch of its own"),
                result = write => result,
            }
        };
        assert!(matches!(second.await, Err(StoreFailure::Unavailable(_))));
        assert_eq!((collected.len(), writer.waiting()), (0, 0));
    }
}
