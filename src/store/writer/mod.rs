//! Group commit: one task takes all queued writes, stores them in one transaction, and replies to each caller after the
//! commit.
//!
//! There is no timer: the next batch collects while the current one is being committed. A write is stored even if its
//! caller is cancelled, unless it was still queued when its time was up. The queue is bounded by the expected wait; beyond
//! that a write fails at once.

mod batch;
mod pace;
mod queue;
mod state;
mod task;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use prometheus_client::metrics::histogram::Histogram;
use tokio::runtime::Builder;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout_at};

use super::connection::{Database, MAX_EXPECTED_WAIT, Store, StoreFailure, WRITE_TIMEOUT};
use crate::domain::contact::ReceivedMessage;
use crate::domain::signups::{KnownBefore, SignupRecord};
use queue::{Job, QueuedWrite, Record};
use state::WriterState;

/// Most queued writes, whatever the expected wait.
const QUEUE_CAPACITY: usize = 16 * 1024;

/// A handle to the writer task. Cheap to clone; the task ends when the last handle is dropped.
#[derive(Clone, Debug)]
pub struct Writer {
    queue: mpsc::Sender<Job>,
    state: Arc<WriterState>,
}

impl Writer {
    /// Starts the writer task, which has its own connections, and its own thread: on one that handles requests, each answer of
    /// the database would wait for all requests that arrived before it. If [`Store::migrate`] failed at startup with
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
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| StoreFailure::Unusable(format!("the writer cannot start: {error}")))?;
        let task = task::run(store, jobs, Arc::clone(&state), migrated);
        let task = tokio::task::spawn_blocking(move || runtime.block_on(task));
        Ok((Self { queue, state }, task))
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

    /// Is notified after something was stored that needs a mail.
    pub fn new_mail(&self) -> Arc<Notify> {
        Arc::clone(&self.state.new_mail)
    }

    /// Records a download or a join and returns what was known of the address before.
    pub async fn record_signup(&self, record: SignupRecord) -> Result<KnownBefore, StoreFailure> {
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
mod tests {
    use std::time::Duration;

    use uuid::Uuid;

    use super::*;
    use crate::domain::contact::ContactMessage;
    use crate::domain::mail::EmailAddress;
    use crate::domain::text::MessageText;
    use crate::domain::time::Timestamp;

    fn message() -> ReceivedMessage {
        let contact = ContactMessage {
            name: None,
            email: EmailAddress::parse("ada@example.com").unwrap(),
            text: MessageText::parse("Hello").unwrap(),
        };
        ReceivedMessage { id: Uuid::nil(), contact, at: Timestamp::from_unix_millis(0) }
    }

    fn state(batch_duration: Duration, waiting: usize) -> WriterState {
        let state = WriterState::default();
        for _ in 0..100 {
            let began = Instant::now();
            state.pace().end(began, began + batch_duration, 1024, true);
        }
        state.waiting.store(waiting, Ordering::Relaxed);
        state
    }

    #[tokio::test]
    async fn a_write_that_would_wait_too_long_is_refused_and_counted() {
        let (queue, _jobs) = mpsc::channel(1);
        let writer = Writer { queue, state: Arc::new(state(Duration::from_secs(3), 1)) };
        assert!(matches!(writer.record_message(message()).await, Err(StoreFailure::Unavailable(_))));
        assert_eq!((writer.refused(), writer.waiting()), (1, 1));
    }

    #[test]
    fn a_burst_on_a_slow_disk_is_no_overload() {
        assert!(state(Duration::from_millis(50), 1024).expected_wait() < MAX_EXPECTED_WAIT);
    }

    #[test]
    fn more_than_can_be_written_in_time_is_overload() {
        assert!(state(Duration::from_millis(250), 10 * 1024).expected_wait() > MAX_EXPECTED_WAIT);
        assert!(state(Duration::from_secs(3), 1).expected_wait() > MAX_EXPECTED_WAIT);
    }
}
