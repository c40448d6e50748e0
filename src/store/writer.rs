//! The one writer: takes what is waiting, records it in one transaction, and answers each caller
//! after the commit.
//!
//! There is no timer: while one batch is on its way to the disk the next one gathers. A caller who
//! goes away does not take the write along. The queue is bounded by how long it would take to
//! reach its end; beyond that a caller is refused at once.

mod load;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use prometheus_client::metrics::histogram::Histogram;
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};

use self::load::Load;
use super::{SignupRecord, Store, StoreFailure};
use crate::domain::contact::ReceivedMessage;
use crate::domain::signup::KnownBefore;

/// Most writes in one transaction.
const BATCH: usize = 1024;
/// Most writes waiting, whatever the estimate says.
const QUEUE: usize = 16 * 1024;
/// Longest wait that a new write may be facing.
const LONGEST_WAIT: Duration = Duration::from_secs(2);
/// Longest time for one batch, and for one caller. A caller is answered within five seconds.
const BATCH_WITHIN: Duration = Duration::from_secs(4);
const ANSWER_WITHIN: Duration = Duration::from_millis(4500);
/// How often a transaction that ran into another one is tried.
const TRIES: usize = 5;
/// How often it is tried whether writes are taken again after they were not.
const TRY_AGAIN_EVERY: Duration = Duration::from_secs(1);
/// Shortest pause between two checkpoints of an embedded database.
const CHECKPOINT_PAUSE: Duration = Duration::from_secs(1);

/// A handle to the writer, cheap to copy. The writer ends when the last one is dropped.
#[derive(Clone, Debug)]
pub struct Writer {
    queue: mpsc::Sender<Job>,
    load: Arc<Load>,
    new_messages: Arc<Notify>,
}

#[derive(Debug)]
enum Job {
    Signup(Waiting<SignupRecord>),
    Message(Waiting<ReceivedMessage>),
}

/// A write and the caller who waits for it.
#[derive(Debug)]
struct Waiting<R: Record> {
    record: R,
    caller: oneshot::Sender<Result<R::Answer, StoreFailure>>,
}

/// What the writer knows of a kind of write: how to store many of them at once.
pub(super) trait Record: Sized {
    type Answer: Send;

    /// Stores all of them or none, and answers each in its place.
    fn record(store: &Store, batch: &[Self]) -> impl Future<Output = Result<Vec<Self::Answer>, sqlx::Error>> + Send;
}

impl Writer {
    /// Starts the writer. `away` says why the store could not be brought up to date yet, if so; then
    /// the writer sees to it. The handle that comes back ends once everything is written.
    #[must_use]
    pub fn start(store: Store, away: Option<StoreFailure>) -> (Self, JoinHandle<()>) {
        let (queue, jobs) = mpsc::channel(QUEUE);
        let (load, new_messages) = (Arc::new(Load::default()), Arc::new(Notify::new()));
        let prepared = away.is_none();
        *load.trouble() = away;
        let task = tokio::spawn(run(store, jobs, Arc::clone(&load), Arc::clone(&new_messages), prepared));
        (Self { queue, load, new_messages }, task)
    }

    /// How many writes wait.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.load.waiting.load(Ordering::Relaxed)
    }

    /// How many writes were stored together, each time.
    #[must_use]
    pub fn batch_sizes(&self) -> Histogram {
        self.load.batch_sizes.clone()
    }

    /// Why a write would be refused now, if it would be.
    #[must_use]
    pub fn problem(&self) -> Option<String> {
        if self.queue.is_closed() {
            return Some("the writer has stopped".to_owned());
        }
        if let Some(failure) = self.load.trouble().as_ref() {
            return Some(format!("nothing can be written: {failure}"));
        }
        (self.load.expected_wait() > LONGEST_WAIT)
            .then(|| format!("{} writes wait, which is more than can be written soon", self.waiting()))
    }

    /// Rings after messages to the makers were stored.
    #[must_use]
    pub fn new_messages(&self) -> Arc<Notify> {
        Arc::clone(&self.new_messages)
    }

    /// Records a download or a join and says what was known of the address before. `None`: there is
    /// no release to download, and nothing was recorded.
    ///
    /// # Errors
    /// `Unavailable`: it may or may not have been stored, and may be sent again. `Refused`: it was not.
    pub async fn record_signup(&self, record: SignupRecord) -> Result<Option<KnownBefore>, StoreFailure> {
        self.write(record, Job::Signup).await
    }

    /// Stores a message to the makers.
    ///
    /// # Errors
    /// As [`Self::record_signup`].
    pub async fn record_message(&self, record: ReceivedMessage) -> Result<(), StoreFailure> {
        self.write(record, Job::Message).await
    }

    async fn write<R: Record>(
        &self,
        record: R,
        job: impl FnOnce(Waiting<R>) -> Job,
    ) -> Result<R::Answer, StoreFailure> {
        let overloaded = || StoreFailure::Unavailable("more is waiting to be written than can be soon".to_owned());
        if self.load.expected_wait() > LONGEST_WAIT {
            return Err(overloaded());
        }
        let (caller, answer) = oneshot::channel();
        self.load.waiting.fetch_add(1, Ordering::Relaxed);
        if self.queue.try_send(job(Waiting { record, caller })).is_err() {
            self.load.waiting.fetch_sub(1, Ordering::Relaxed);
            return Err(overloaded());
        }
        match timeout(ANSWER_WITHIN, answer).await {
            Ok(Ok(result)) => result,
            Ok(Err(_)) => Err(StoreFailure::Unavailable("the writer has stopped".to_owned())),
            Err(_) => Err(StoreFailure::Unavailable("the write took too long".to_owned())),
        }
    }
}

async fn run(
    store: Store,
    mut queue: mpsc::Receiver<Job>,
    load: Arc<Load>,
    new_messages: Arc<Notify>,
    mut prepared: bool,
) {
    let written = Arc::new(Notify::new());
    let checkpoints = tokio::spawn(checkpoint_after_writes(store.clone(), Arc::clone(&written)));
    let mut jobs = Vec::with_capacity(BATCH);
    loop {
        let in_trouble = load.trouble().is_some();
        let gather = queue.recv_many(&mut jobs, BATCH);
        match if in_trouble { timeout(TRY_AGAIN_EVERY, gather).await } else { Ok(gather.await) } {
            Ok(0) => break,
            Ok(_) => {}
            Err(_) => {
                let outcome = try_writing(&store, &mut prepared).await;
                *load.trouble() = outcome.err();
                continue;
            }
        }
        let (count, began) = (jobs.len(), Instant::now());
        let (mut signups, mut messages) = (Vec::new(), Vec::new());
        for job in jobs.drain(..) {
            match job {
                Job::Signup(waiting) => signups.push(waiting),
                Job::Message(waiting) => messages.push(waiting),
            }
        }
        let has_messages = !messages.is_empty();
        let outcome = match prepare(&store, &mut prepared).await {
            Ok(()) => {
                let signed_up = settle(&store, signups).await;
                signed_up.and(settle(&store, messages).await)
            }
            Err(failure) => {
                refuse_all(signups, &failure);
                refuse_all(messages, &failure);
                Err(failure)
            }
        };
        load.waiting.fetch_sub(count, Ordering::Relaxed);
        load.batch_sizes.observe(f64::from(u32::try_from(count).unwrap_or(u32::MAX)));
        match &outcome {
            Ok(()) => load.learn(began.elapsed()),
            Err(failure) => refuse_waiting(&mut queue, &load, failure),
        }
        *load.trouble() = outcome.err();
        written.notify_one();
        if has_messages {
            new_messages.notify_one();
        }
    }
    checkpoints.abort();
    store.close().await;
}

/// Brings the store up to date, if that is not known to have been done.
async fn prepare(store: &Store, prepared: &mut bool) -> Result<(), StoreFailure> {
    if !*prepared {
        store.prepare().await?;
        *prepared = true;
    }
    Ok(())
}

/// Finds out whether writes are taken again, for nobody may come to try.
async fn try_writing(store: &Store, prepared: &mut bool) -> Result<(), StoreFailure> {
    prepare(store, prepared).await?;
    store.try_writing().await
}

/// Writes a batch and answers its callers. What the database refuses is tried again one by one, so
/// that a single bad write fails alone.
///
/// # Errors
/// When the database is not available; the callers have been told.
async fn settle<R: Record>(store: &Store, batch: Vec<Waiting<R>>) -> Result<(), StoreFailure> {
    if batch.is_empty() {
        return Ok(());
    }
    let (records, callers): (Vec<R>, Vec<_>) = batch.into_iter().map(|job| (job.record, job.caller)).unzip();
    match attempt(store, &records).await {
        Ok(answers) => {
            for (caller, answer) in callers.into_iter().zip(answers) {
                let _ = caller.send(Ok(answer));
            }
            Ok(())
        }
        Err(StoreFailure::Refused(_)) if records.len() > 1 => {
            let mut away = Ok(());
            for (one, caller) in records.into_iter().zip(callers) {
                let alone = match &away {
                    Ok(()) => attempt(store, &[one]).await,
                    Err(failure) => Err(StoreFailure::clone(failure)),
                };
                if let Err(failure @ StoreFailure::Unavailable(_)) = &alone {
                    away = Err(failure.clone());
                }
                let _ = caller.send(alone.and_then(|mut answers| {
                    answers.pop().ok_or_else(|| StoreFailure::Refused("no answer came back".to_owned()))
                }));
            }
            away
        }
        Err(failure) => {
            for caller in callers {
                let _ = caller.send(Err(failure.clone()));
            }
            match failure {
                StoreFailure::Refused(_) => Ok(()),
                other => Err(other),
            }
        }
    }
}

async fn attempt<R: Record>(store: &Store, records: &[R]) -> Result<Vec<R::Answer>, StoreFailure> {
    let tries = async {
        for _ in 1..TRIES {
            match R::record(store, records).await {
                Err(error) if StoreFailure::is_conflict(&error) => {}
                outcome => return outcome,
            }
        }
        R::record(store, records).await
    };
    match timeout(BATCH_WITHIN, tries).await {
        Ok(outcome) => outcome.map_err(StoreFailure::from),
        Err(_) => Err(StoreFailure::Unavailable("the database does not answer".to_owned())),
    }
}

/// Whoever has queued behind a database that is away should not wait for it one batch after another.
fn refuse_waiting(queue: &mut mpsc::Receiver<Job>, load: &Load, failure: &StoreFailure) {
    while let Ok(job) = queue.try_recv() {
        load.waiting.fetch_sub(1, Ordering::Relaxed);
        match job {
            Job::Signup(waiting) => refuse_all([waiting], failure),
            Job::Message(waiting) => refuse_all([waiting], failure),
        }
    }
}

fn refuse_all<R: Record>(waiting: impl IntoIterator<Item = Waiting<R>>, failure: &StoreFailure) {
    for job in waiting {
        let _ = job.caller.send(Err(failure.clone()));
    }
}

async fn checkpoint_after_writes(store: Store, written: Arc<Notify>) {
    loop {
        written.notified().await;
        if let Err(failure) = store.checkpoint().await {
            tracing::warn!(%failure, "the log of the database could not be moved into its file");
        }
        tokio::time::sleep(CHECKPOINT_PAUSE).await;
    }
}
