//! The task of the writer: takes queued writes, stores them in batches, and notices when the database is back.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};

use super::batch::write_batch;
use super::queue::{Job, QueuedWrite, Record};
use super::state::WriterState;
use crate::domain::contact::ReceivedMessage;
use crate::domain::signups::SignupRecord;
use crate::store::connection::{BATCH_TIMEOUT, Store, StoreFailure};

/// How often the database is probed after a write failed. Without requests no write would notice that it is back.
const PROBE_INTERVAL: Duration = Duration::from_secs(1);

struct WriterTask {
    store: Store,
    state: Arc<WriterState>,
    queue: mpsc::Receiver<Job>,
    migrated: bool,
}

/// Writes until the queue is closed and empty.
pub(super) async fn run(store: Store, queue: mpsc::Receiver<Job>, state: Arc<WriterState>, migrated: bool) {
    let mut task = WriterTask { store, state: Arc::clone(&state), queue, migrated };
    let mut jobs = Vec::new();
    loop {
        let (limit, is_failing) = (state.pace().limit(), state.last_error().is_some());
        let receive = task.queue.recv_many(&mut jobs, limit);
        let received = if is_failing { timeout(PROBE_INTERVAL, receive).await } else { Ok(receive.await) };
        match received {
            Ok(0) => break,
            Ok(_) => {}
            Err(_) => {
                let result = task.probe().await;
                *state.last_error() = result.err();
                continue;
            }
        }
        let result = task.write(&mut jobs).await;
        *state.last_error() = result.err();
    }
    task.store.close().await;
}

impl WriterTask {
    /// Writes a batch, replies to its callers, and notifies who waits for what it stored.
    async fn write(&mut self, jobs: &mut Vec<Job>) -> Result<(), StoreFailure> {
        let (count, began) = (jobs.len(), Instant::now());
        self.state.pace().begin(began);
        let (mut signups, mut messages) = (Vec::new(), Vec::new());
        for job in jobs.drain(..) {
            match job {
                // The caller of a write that has timed out may have repeated it already.
                Job::Signup(write) if write.deadline > began => signups.push(write),
                Job::Message(write) if write.deadline > began => messages.push(write),
                Job::Signup(_) | Job::Message(_) => {}
            }
        }
        let in_time = signups.len() + messages.len();
        let needs_mail = !messages.is_empty() || signups.iter().any(|write| write.record.awaits_confirmation());
        let mut result = self.store_both(signups, messages, began + BATCH_TIMEOUT).await;
        // The database may accept one kind of write and refuse the other.
        if result.is_ok() && self.state.last_error().is_some() {
            result = self.probe().await;
        }
        self.state.waiting.fetch_sub(count, Ordering::Relaxed);
        self.state.batch_sizes.observe(f64::from(u32::try_from(count).unwrap_or(u32::MAX)));
        self.state.pace().end(began, Instant::now(), in_time, result.is_ok());
        if needs_mail {
            self.state.new_mail.notify_one();
        }
        result
    }

    async fn store_both(
        &mut self,
        signups: Vec<QueuedWrite<SignupRecord>>,
        messages: Vec<QueuedWrite<ReceivedMessage>>,
        deadline: Instant,
    ) -> Result<(), StoreFailure> {
        if let Err(failure) = self.migrate().await {
            note_outage(&mut self.queue, &self.state, &failure);
            fail_all(signups, &failure);
            fail_all(messages, &failure);
            return Err(failure);
        }
        let Self { store, state, queue, .. } = self;
        let mut on_outage = |failure: &StoreFailure| note_outage(queue, state, failure);
        let signups =
            if signups.is_empty() { Ok(()) } else { write_batch(store, signups, deadline, &mut on_outage).await };
        let messages =
            if messages.is_empty() { Ok(()) } else { write_batch(store, messages, deadline, &mut on_outage).await };
        signups.and(messages)
    }

    /// Runs [`Store::migrate`] unless it has succeeded before.
    async fn migrate(&mut self) -> Result<(), StoreFailure> {
        if !self.migrated {
            self.store.migrate().await?;
            self.migrated = true;
        }
        Ok(())
    }

    /// Checks whether the database accepts writes again.
    async fn probe(&mut self) -> Result<(), StoreFailure> {
        self.migrate().await?;
        self.store.probe_write().await
    }
}

/// Fails what is queued, so that it does not wait for an unavailable database one batch after another.
fn note_outage(queue: &mut mpsc::Receiver<Job>, state: &WriterState, failure: &StoreFailure) {
    *state.last_error() = Some(failure.clone());
    // All at once: a caller that is answered may send its next write before the others are.
    let queued: Vec<_> = std::iter::from_fn(|| queue.try_recv().ok()).collect();
    for job in queued {
        state.waiting.fetch_sub(1, Ordering::Relaxed);
        match job {
            Job::Signup(write) => fail_all([write], failure),
            Job::Message(write) => fail_all([write], failure),
        }
    }
}

fn fail_all<R: Record>(writes: impl IntoIterator<Item = QueuedWrite<R>>, failure: &StoreFailure) {
    for write in writes {
        let _ = write.reply.send(Err(failure.clone()));
    }
}
