//! What waits for the writer: a record, and the channel for the reply to its caller.

use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::domain::contact::ReceivedMessage;
use crate::domain::signups::{KnownBefore, SignupRecord};
use crate::store::connection::{Store, StoreFailure};

#[derive(Debug)]
pub(super) enum Job {
    Signup(QueuedWrite<SignupRecord>),
    Message(QueuedWrite<ReceivedMessage>),
}

/// A write and the channel for its result.
#[derive(Debug)]
pub(super) struct QueuedWrite<R: Record> {
    pub(super) record: R,
    pub(super) reply: Reply<R>,
    /// When the caller stops waiting.
    pub(super) deadline: Instant,
}

pub(super) type Reply<R> = oneshot::Sender<Result<<R as Record>::Output, StoreFailure>>;

/// A kind of write that can be stored in batches.
pub(super) trait Record: Sized {
    type Output: std::fmt::Debug + Send;

    /// Stores the whole batch in one transaction and returns one output per record, in the same order.
    fn insert(store: &Store, batch: &[Self]) -> impl Future<Output = Result<Vec<Self::Output>, StoreFailure>> + Send;
}

impl Record for SignupRecord {
    type Output = KnownBefore;

    async fn insert(store: &Store, batch: &[Self]) -> Result<Vec<KnownBefore>, StoreFailure> {
        store.insert_signups(batch).await
    }
}

impl Record for ReceivedMessage {
    type Output = ();

    async fn insert(store: &Store, batch: &[Self]) -> Result<Vec<()>, StoreFailure> {
        store.insert_messages(batch).await
    }
}
