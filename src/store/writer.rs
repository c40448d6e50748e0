//! Group commit: one task takes all queued writes, stores them in one transaction, and replies to each caller after the
//! commit.
//!
//! There is no timer: the next batch collects while the current one is being committed. A write is stored even if its
//! caller is cancelled. The queue is bounded by the expected wait; beyond that a write fails at once.

mod batch;
mod state;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use prometheus_client::metrics::histogram::Histogram;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};

use self::batch::{BatchDeadline, write_batch};
use self::state::WriterState;
use super::{Database, SignupRecord, Store, StoreFailure};
use crate::domain::contact::ReceivedMessage;
use crate::domain::signup::KnownBefore;

/// Most writes in one transaction.
const MAX_BATCH: usize = 1024;
/// Most queued writes, whatever the expected wait.
const QUEUE_CAPACITY: usize = 16 * 1024;
/// A write is accepted only if its expected wait is at most this.
const MAX_EXPECTED_WAIT: Duration = Duration::from_secs(2);
/// For one write. A request gets its response within five seconds.
const WRITE_TIMEOUT: Duration = Duration::from_millis(4500);
/// How often the database is probed after a write failed.
const PROBE_INTERVAL: Duration = Duration::from_secs(1);
/// Shortest interval between two checkpoints of the WAL.
const CHECKPOINT_INTERVAL: Duration = Duration::from_secs(1);

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

    /// Stores the whole batch in one transaction and returns one output per record, in the same order. Idempotent.
    fn insert(store: &Store, batch: &[Self]) -> impl Future<Output = Result<Vec<Self::Output>, sqlx::Error>> + Send;
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

async fn run(
    store: Store,
    mut queue: mpsc::Receiver<Job>,
    state: Arc<WriterState>,
    new_messages: Arc<Notify>,
    mut migrated: bool,
) {
    let written = Arc::new(Notify::new());
    let checkpoints = tokio::spawn(checkpoint_after_writes(store.clone(), Arc::clone(&written)));
    let mut jobs = Vec::with_capacity(MAX_BATCH);
    loop {
        let failing = state.last_error().is_some();
        let receive = queue.recv_many(&mut jobs, MAX_BATCH);
        match if failing { timeout(PROBE_INTERVAL, receive).await } else { Ok(receive.await) } {
            Ok(0) => break,
            Ok(_) => {}
            // Without requests no write would notice that the database is back, so it is probed.
            Err(_) => {
                let result = probe(&store, &mut migrated).await;
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
        let result = match migrate(&store, &mut migrated).await {
            Ok(()) => {
                let stored = write_batch(&store, signups, deadline).await;
                stored.and(write_batch(&store, messages, deadline).await)
            }
            Err(failure) => {
                fail_all(signups, &failure);
                fail_all(messages, &failure);
                Err(failure)
            }
        };
        // The database may accept one kind of write and refuse the other.
        let result = match result {
            Ok(()) if failing => probe(&store, &mut migrated).await,
            other => other,
        };
        state.waiting.fetch_sub(count, Ordering::Relaxed);
        state.batch_sizes.observe(f64::from(u32::try_from(count).unwrap_or(u32::MAX)));
        match &result {
            Ok(()) => state.record_batch_duration(began.elapsed()),
            Err(failure) => fail_queue(&mut queue, &state, failure),
        }
        *state.last_error() = result.err();
        written.notify_one();
        if has_messages {
            new_messages.notify_one();
        }
    }
    checkpoints.abort();
    store.close().await;
}

/// Runs [`Store::migrate`] unless it has succeeded before.
async fn migrate(store: &Store, migrated: &mut bool) -> Result<(), StoreFailure> {
    if !*migrated {
        store.migrate().await?;
        *migrated = true;
    }
    Ok(())
}

/// Checks whether the database accepts writes again.
async fn probe(store: &Store, migrated: &mut bool) -> Result<(), StoreFailure> {
    migrate(store, migrated).await?;
    store.probe_write().await
}

/// Fails all queued writes, so that they do not wait for an unavailable database one batch after another.
fn fail_queue(queue: &mut mpsc::Receiver<Job>, state: &WriterState, failure: &StoreFailure) {
    while let Ok(job) = queue.try_recv() {
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

async fn checkpoint_after_writes(store: Store, written: Arc<Notify>) {
    loop {
        written.notified().await;
        let store = store.clone();
        // A task of its own: after a panic the next write is followed by a checkpoint all the same.
        match tokio::spawn(async move { store.checkpoint().await }).await {
            Ok(Ok(())) => {}
            Ok(Err(failure)) => tracing::warn!(%failure, "checkpoint failed"),
            Err(failure) => tracing::error!(%failure, "a checkpoint panicked"),
        }
        tokio::time::sleep(CHECKPOINT_INTERVAL).await;
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
