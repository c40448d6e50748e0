//! Group commit: one task takes all queued writes, stores them in one transaction, and replies to each caller after the
//! commit. In PostgreSQL it may write two batches at the same time.
//!
//! There is no timer: the next batch collects while the current one is being committed. A write is stored even if its
//! caller is cancelled, unless it was still queued when its time was up. The queue is bounded by the expected wait; beyond that a write fails at once.

mod batch;
mod pace;
mod state;
mod task;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use prometheus_client::metrics::histogram::Histogram;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout_at};

use self::state::WriterState;
use self::task::Shared;
use super::{Database, SignupRecord, Store, StoreFailure};
use crate::domain::contact::ReceivedMessage;
use crate::domain::signup::KnownBefore;

/// Most queued writes, whatever the expected wait.
const QUEUE_CAPACITY: usize = 16 * 1024;
/// A write is accepted only if its expected wait is at most this.
const MAX_EXPECTED_WAIT: Duration = Duration::from_secs(2);
/// For one write. A request gets its response within five seconds.
const WRITE_TIMEOUT: Duration = Duration::from_millis(4500);

/// A handle to the writer task. Cheap to clone; the task ends when the last handle is dropped.
#[derive(Clone, Debug)]
pub struct Writer {
    queue: mpsc::Sender<Job>,
    state: Arc<WriterState>,
    new_messages: Arc<Notify>,
    new_confirmations: Arc<Notify>,
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
    /// When the caller stops waiting.
    deadline: Instant,
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
    pub fn start(
        database: &Database,
        migration_error: Option<StoreFailure>,
    ) -> Result<(Self, JoinHandle<()>), StoreFailure> {
        let store = Store::open_for_writer(database)?;
        let (queue, jobs) = mpsc::channel(QUEUE_CAPACITY);
        let state = Arc::new(WriterState::default());
        let migrated = migration_error.is_none();
        *state.last_error() = migration_error;
        let shared = Shared::new(store, jobs, state, migrated);
        let writer = Self::new(queue, &shared);
        Ok((writer, tokio::spawn(task::run(shared))))
    }

    fn new(queue: mpsc::Sender<Job>, shared: &Shared) -> Self {
        Self {
            queue,
            state: Arc::clone(&shared.state),
            new_messages: Arc::clone(&shared.new_messages),
            new_confirmations: Arc::clone(&shared.new_confirmations),
        }
    }

    /// The number of writes that are queued or being written.
    pub fn waiting(&self) -> usize {
        self.state.waiting.load(Ordering::Relaxed)
    }

    /// How many writes were refused because too many were queued.
    pub fn refused(&self) -> u64 {
        self.state.refused.load(Ordering::Relaxed)
    }

    /// A histogram of the number of writes per transaction.
    pub fn batch_sizes(&self) -> Histogram {
        self.state.batch_sizes.clone()
    }

    /// Returns why a write would fail now, if it would.
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

    /// Waits until the database file could not be synced. The process then has to end without closing the database.
    pub async fn unsynced(&self) {
        self.state.unsynced.cancelled().await;
    }

    /// Is notified after contact messages were stored.
    pub fn new_messages(&self) -> Arc<Notify> {
        Arc::clone(&self.new_messages)
    }

    /// Is notified after opt-ins were stored that wait for their confirmation.
    pub fn new_confirmations(&self) -> Arc<Notify> {
        Arc::clone(&self.new_confirmations)
    }

    /// Records a download or a join and returns what was known of the address before. Returns `None` if there is no
    /// release to download; then nothing was recorded.
    pub async fn record_signup(&self, record: SignupRecord) -> Result<Option<KnownBefore>, StoreFailure> {
        self.write(record, Job::Signup).await
    }

    /// Stores a contact message.
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
        let ((reply, result), deadline) = (oneshot::channel(), Instant::now() + WRITE_TIMEOUT);
        self.state.waiting.fetch_add(1, Ordering::Relaxed);
        if let Err(error) = self.queue.try_send(job(QueuedWrite { record, reply, deadline })) {
            self.state.waiting.fetch_sub(1, Ordering::Relaxed);
            return Err(if matches!(error, TrySendError::Closed(_)) { stopped() } else { overloaded() });
        }
        match timeout_at(deadline, result).await {
            Ok(Ok(result)) => result,
            Ok(Err(_)) => Err(stopped()),
            Err(_) => Err(StoreFailure::Unavailable("the write timed out".to_owned())),
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::domain::contact::ContactMessage;
    use crate::domain::email::EmailAddress;
    use crate::domain::text::MessageText;
    use crate::domain::time::Timestamp;

    pub(in crate::store::writer) fn message() -> ReceivedMessage {
        let contact = ContactMessage {
            name: None,
            email: EmailAddress::parse("ada@example.com").unwrap(),
            text: MessageText::parse("Hello").unwrap(),
        };
        ReceivedMessage { id: Uuid::nil(), contact, at: Timestamp::from_unix_millis(0) }
    }

    #[tokio::test]
    async fn a_write_that_would_wait_too_long_is_refused_and_counted() {
        let (queue, _jobs) = mpsc::channel(1);
        let state = Arc::new(state::tests::state(Duration::from_secs(3), 1));
        let writer = Writer { queue, state, new_messages: Arc::default(), new_confirmations: Arc::default() };
        assert!(matches!(writer.record_message(message()).await, Err(StoreFailure::Unavailable(_))));
        assert_eq!((writer.refused(), writer.waiting()), (1, 1));
    }
}
