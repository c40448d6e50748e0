//! Group commit: one task takes all queued writes, stores them in one transaction, and replies to each caller after the
//! commit. In PostgreSQL it may write two batches at the same time.
//!
//! There is no timer: the next batch collects while the current one is being committed. A write is stored even if its
//! caller is cancelled. The queue is bounded by the expected wait; beyond that a write fails at once.

mod batch;
mod state;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use prometheus_client::metrics::histogram::Histogram;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{Mutex, Notify, mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};

use self::batch::{BatchDeadline, write_batch};
use self::state::WriterState;
use super::signups::SignupMemory;
use super::{Database, SignupRecord, Store, StoreFailure};
use crate::domain::contact::ReceivedMessage;
use crate::domain::signup::KnownBefore;

/// Most writes in one transaction.
const MAX_BATCH: usize = 1024;
/// Fewest writes in a batch that is begun while another one is in flight. A batch costs as much as about twenty writes, so
/// small ones are not worth it.
const MIN_SECOND_BATCH: usize = 32;
/// Most queued writes, whatever the expected wait.
const QUEUE_CAPACITY: usize = 16 * 1024;
/// A write is accepted only if its expected wait is at most this.
const MAX_EXPECTED_WAIT: Duration = Duration::from_secs(2);
/// For one write. A request gets its response within five seconds.
const WRITE_TIMEOUT: Duration = Duration::from_millis(4500);
/// How often the database is probed after a write failed.
const PROBE_INTERVAL: Duration = Duration::from_secs(1);
/// Shortest interval between two calls of [`Store::maintain`].
const MAINTENANCE_INTERVAL: Duration = Duration::from_secs(1);

/// A handle to the writer task. Cheap to clone; the task ends when the last handle is dropped.
#[derive(Clone, Debug)]
pub struct Writer {
    queue: mpsc::Sender<Job>,
    state: Arc<WriterState>,
    new_messages: Arc<Notify>,
}

#[derive(Debug)]
enum Job {
    Signup(QueuedWrite<SignupRecord>),
    Message(QueuedWrite<ReceivedMessage>),
}

/// A write and the channel for its result.
#[derive(Debug)]
struct QueuedWrite<R: Record> {
    record: R,
    reply: Reply<R>,
}

type Reply<R> = oneshot::Sender<Result<<R as Record>::Output, StoreFailure>>;

/// A kind of write that can be stored in batches.
pub(super) trait Record: Sized {
    type Output: std::fmt::Debug + Send;
    /// What is remembered from batch to batch.
    type Memory: Default + Send;

    /// Stores the whole batch in one transaction and returns one output per record, in the same order. Idempotent.
    fn insert(
        store: &Store,
        memory: &mut Self::Memory,
        batch: &[Self],
    ) -> impl Future<Output = Result<Vec<Self::Output>, sqlx::Error>> + Send;
}

impl Writer {
    /// Starts the writer task, which has its own connections. If [`Store::migrate`] failed at startup with
    /// `migration_error`, the task retries it before the first write. The task ends once the last handle is dropped and
    /// everything is written.
    ///
    /// # Errors
    /// As [`Store::open`].
    pub fn start(
        database: &Database,
        migration_error: Option<StoreFailure>,
    ) -> Result<(Self, JoinHandle<()>), StoreFailure> {
        let store = Store::open_for_writer(database)?;
        let (queue, jobs) = mpsc::channel(QUEUE_CAPACITY);
        let (state, new_messages) = (Arc::new(WriterState::default()), Arc::new(Notify::new()));
        let migrated = migration_error.is_none();
        *state.last_error() = migration_error;
        let task = tokio::spawn(run(store, jobs, Arc::clone(&state), Arc::clone(&new_messages), migrated));
        Ok((Self { queue, state, new_messages }, task))
    }

    /// The number of writes that are queued or being written.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.state.waiting.load(Ordering::Relaxed)
    }

    /// How many writes were refused because too many were queued.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.state.refused.load(Ordering::Relaxed)
    }

    /// A histogram of the number of writes per transaction.
    #[must_use]
    pub fn batch_sizes(&self) -> Histogram {
        self.state.batch_sizes.clone()
    }

    /// Returns why a write would fail now, if it would.
    #[must_use]
    pub fn unavailable_reason(&self) -> Option<String> {
        if self.queue.is_closed() {
            return Some("the writer has stopped".to_owned());
        }
        if let Some(failure) = self.state.last_error().as_ref() {
            return Some(format!("writes fail: {failure}"));
        }
        (self.state.expected_wait() > MAX_EXPECTED_WAIT)
            .then(|| format!("overloaded: {} writes are queued", self.waiting()))
    }

    /// Is notified after contact messages were stored.
    #[must_use]
    pub fn new_messages(&self) -> Arc<Notify> {
        Arc::clone(&self.new_messages)
    }

    /// Records a download or a join and returns what was known of the address before. Returns `None` if there is no
    /// release to download; then nothing was recorded.
    ///
    /// # Errors
    /// When it may or may not have been stored, and may be repeated. `Rejected`: it was not stored.
    pub async fn record_signup(&self, record: SignupRecord) -> Result<Option<KnownBefore>, StoreFailure> {
        self.write(record, Job::Signup).await
    }

    /// Stores a contact message.
    ///
    /// # Errors
    /// As [`Self::record_signup`].
    pub async fn record_message(&self, record: ReceivedMessage) -> Result<(), StoreFailure> {
        self.write(record, Job::Message).await
    }

    async fn write<R: Record>(
        &self,
        record: R,
        job: impl FnOnce(QueuedWrite<R>) -> Job,
    ) -> Result<R::Output, StoreFailure> {
        let stopped = || StoreFailure::Unavailable("the writer has stopped".to_owned());
        let overloaded = || {
            self.state.refused.fetch_add(1, Ordering::Relaxed);
            StoreFailure::Unavailable("too many writes are queued".to_owned())
        };
        if self.state.expected_wait() > MAX_EXPECTED_WAIT {
            return Err(overloaded());
        }
        let (reply, result) = oneshot::channel();
        self.state.waiting.fetch_add(1, Ordering::Relaxed);
        if let Err(error) = self.queue.try_send(job(QueuedWrite { record, reply })) {
            self.state.waiting.fetch_sub(1, Ordering::Relaxed);
            return Err(if matches!(error, TrySendError::Closed(_)) { stopped() } else { overloaded() });
        }
        match timeout(WRITE_TIMEOUT, result).await {
            Ok(Ok(result)) => result,
            Ok(Err(_)) => Err(stopped()),
            Err(_) => Err(StoreFailure::Unavailable("the write timed out".to_owned())),
        }
    }
}

/// What the batches in flight share.
struct Shared {
    store: Store,
    state: Arc<WriterState>,
    queue: Mutex<mpsc::Receiver<Job>>,
    migrated: AtomicBool,
    new_messages: Arc<Notify>,
    written: Arc<Notify>,
    /// The number of batches that are being written.
    in_flight: AtomicUsize,
    /// Is notified when a batch has been written.
    landed: Notify,
}

async fn run(
    store: Store,
    queue: mpsc::Receiver<Job>,
    state: Arc<WriterState>,
    new_messages: Arc<Notify>,
    migrated: bool,
) {
    let written = Arc::new(Notify::new());
    let maintenance = tokio::spawn(maintain_after_writes(store.clone(), Arc::clone(&written)));
    let batches = store.concurrent_batches();
    let shared = Shared {
        store,
        state,
        queue: Mutex::new(queue),
        migrated: migrated.into(),
        new_messages,
        written,
        in_flight: AtomicUsize::new(0),
        landed: Notify::new(),
    };
    join_all((0..batches).map(|_| write_batches(&shared))).await;
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
    let (mut jobs, mut signup_memory) = (Vec::with_capacity(MAX_BATCH), SignupMemory::default());
    loop {
        let failing = state.last_error().is_some();
        let receive = shared.receive(&mut jobs);
        match if failing { timeout(PROBE_INTERVAL, receive).await } else { Ok(receive.await) } {
            Ok(false) => break,
            Ok(true) => {}
            // Without requests no write would notice that the database is back, so it is probed.
            Err(_) => {
                let result = shared.probe().await;
                *state.last_error() = result.err();
                continue;
            }
        }
        let (count, began) = (jobs.len(), Instant::now());
        let deadline = BatchDeadline::starting_at(began);
        let (mut signups, mut messages) = (Vec::new(), Vec::new());
        for job in jobs.drain(..) {
            match job {
                Job::Signup(write) => signups.push(write),
                Job::Message(write) => messages.push(write),
            }
        }
        let has_messages = !messages.is_empty();
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
        match &result {
            Ok(()) => state.record_batch_duration(began.elapsed()),
            Err(failure) => shared.fail_queue(failure),
        }
        *state.last_error() = result.err();
        shared.in_flight.fetch_sub(1, Ordering::Relaxed);
        shared.landed.notify_one();
        shared.written.notify_one();
        if has_messages {
            shared.new_messages.notify_one();
        }
    }
}

impl Shared {
    /// Takes what is queued, at least one write. While another batch is in flight, waits for enough to be worth a second one.
    /// Returns false if the queue is closed.
    async fn receive(&self, jobs: &mut Vec<Job>) -> bool {
        let mut queue = self.queue.lock().await;
        let is_enough = |jobs: &Vec<Job>| match self.in_flight.load(Ordering::Relaxed) {
            0 => !jobs.is_empty(),
            _ => jobs.len() >= MIN_SECOND_BATCH,
        };
        while !is_enough(jobs) {
            let limit = MAX_BATCH - jobs.len();
            tokio::select! {
                received = queue.recv_many(jobs, limit) => if received == 0 { break },
                () = self.landed.notified() => {}
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
        // If another batch is being received, the queue is empty.
        let Ok(mut queue) = self.queue.try_lock() else { return };
        while let Ok(job) = queue.try_recv() {
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

async fn maintain_after_writes(store: Store, written: Arc<Notify>) {
    loop {
        written.notified().await;
        let store = store.clone();
        // A task of its own, so that a panic does not end the maintenance after later writes.
        match tokio::spawn(async move { store.maintain().await }).await {
            Ok(Ok(())) => {}
            Ok(Err(failure)) => tracing::warn!(%failure, "maintenance after writes failed"),
            Err(failure) => tracing::error!(%failure, "maintenance after writes panicked"),
        }
        tokio::time::sleep(MAINTENANCE_INTERVAL).await;
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::domain::contact::ContactMessage;
    use crate::domain::email::EmailAddress;
    use crate::domain::text::MessageText;
    use crate::domain::time::Timestamp;

    #[tokio::test]
    async fn a_write_that_would_wait_too_long_is_refused_and_counted() {
        let (queue, _jobs) = mpsc::channel(1);
        let state = Arc::new(state::tests::state(Duration::from_secs(3), 1));
        let writer = Writer { queue, state, new_messages: Arc::default() };
        let contact = ContactMessage {
            name: None,
            email: EmailAddress::parse("ada@example.com").unwrap(),
            text: MessageText::parse("Hello").unwrap(),
        };
        let message = ReceivedMessage { id: Uuid::nil(), contact, at: Timestamp::from_unix_millis(0) };
        assert!(matches!(writer.record_message(message).await, Err(StoreFailure::Unavailable(_))));
        assert_eq!((writer.refused(), writer.waiting()), (1, 1));
    }
}
