//! Writes one batch, and finds the writes in it that the database rejects.

use tokio::time::{Instant, timeout_at};

use super::queue::{QueuedWrite, Record, Reply};
use crate::store::connection::{MAX_ATTEMPTS, Store, StoreFailure};

/// Writes and the channels for their results, in the same order.
struct Batch<R: Record> {
    records: Vec<R>,
    replies: Vec<Reply<R>>,
}

impl<R: Record> Batch<R> {
    fn new(writes: Vec<QueuedWrite<R>>) -> Self {
        let (records, replies) = writes.into_iter().map(|write| (write.record, write.reply)).unzip();
        Self { records, replies }
    }

    fn succeed(self, outputs: Vec<R::Output>) {
        for (reply, output) in self.replies.into_iter().zip(outputs) {
            let _ = reply.send(Ok(output));
        }
    }

    fn fail(self, failure: &StoreFailure) {
        for reply in self.replies {
            let _ = reply.send(Err(failure.clone()));
        }
    }

    fn halves(mut self) -> [Self; 2] {
        let middle = self.records.len() / 2;
        let second = Self { records: self.records.split_off(middle), replies: self.replies.split_off(middle) };
        [self, second]
    }
}

/// Writes a batch and replies to its callers.
///
/// If the database rejects the batch, but accepts other writes, the batch is split in halves until the rejected writes are
/// alone: one of 1024 takes about twenty transactions. Writes that are not finished at the deadline fail. If the database accepts
/// none, `on_outage` is called before the callers are answered: a client that is refused finds the service unready, and what it
/// sends next is not refused with what was queued before.
pub(super) async fn write_batch<R: Record>(
    store: &Store,
    writes: Vec<QueuedWrite<R>>,
    deadline: Instant,
    on_outage: impl FnOnce(&StoreFailure) + Send,
) -> Result<(), StoreFailure> {
    let (mut batches, mut accepts_writes) = (vec![Batch::new(writes)], false);
    while let Some(batch) = batches.pop() {
        let rejection = match insert_with_retries(store, &batch.records, deadline).await {
            Ok(outputs) => {
                batch.succeed(outputs);
                accepts_writes = true;
                continue;
            }
            Err(failure) => failure,
        };
        let outage = match &rejection {
            StoreFailure::Rejected(_) if accepts_writes => None,
            StoreFailure::Rejected(_) => Box::pin(probe(store, deadline)).await.err(),
            failure => Some(failure.clone()),
        };
        if let Some(failure) = outage {
            let is_late = accepts_writes && Instant::now() >= deadline;
            if !is_late {
                on_outage(&failure);
            }
            for batch in batches.into_iter().chain([batch]) {
                batch.fail(&failure);
            }
            return if is_late { Ok(()) } else { Err(failure) };
        }
        accepts_writes = true;
        match batch.records.len() {
            1 => batch.fail(&rejection),
            _ => batches.extend(batch.halves()),
        }
    }
    Ok(())
}

/// Checks whether the database accepts other writes.
async fn probe(store: &Store, deadline: Instant) -> Result<(), StoreFailure> {
    timeout_at(deadline, store.probe_write()).await.unwrap_or_else(|_| Err(StoreFailure::timed_out()))
}

async fn insert_with_retries<R: Record>(
    store: &Store,
    records: &[R],
    deadline: Instant,
) -> Result<Vec<R::Output>, StoreFailure> {
    let attempts = async {
        for _ in 1..MAX_ATTEMPTS {
            match R::insert(store, records).await {
                Err(StoreFailure::Conflict(_)) => {}
                result => return result,
            }
        }
        R::insert(store, records).await
    };
    // `timeout_at` alone would begin another transaction after the deadline.
    if Instant::now() >= deadline {
        return Err(StoreFailure::timed_out());
    }
    timeout_at(deadline, attempts).await.unwrap_or_else(|_| Err(StoreFailure::timed_out()))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::sync::oneshot;

    use super::*;
    use crate::store::connection::Database;

    static TRANSACTIONS: AtomicUsize = AtomicUsize::new(0);

    /// A write that counts transactions; a poisonous one breaks a constraint of the database.
    struct Counted {
        number: usize,
        is_poison: bool,
    }

    impl Record for Counted {
        type Output = usize;

        async fn insert(store: &Store, batch: &[Self]) -> Result<Vec<usize>, StoreFailure> {
            TRANSACTIONS.fetch_add(1, Ordering::Relaxed);
            if batch.iter().any(|record| record.is_poison) {
                store.run("INSERT INTO people (address) VALUES (NULL)", &[]).await?;
            }
            Ok(batch.iter().map(|record| record.number).collect())
        }
    }

    async fn store() -> (Store, tempfile::TempDir) {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open_for_writer(&Database::Sqlite(folder.path().join("porchlight.db"))).unwrap();
        store.migrate().await.unwrap();
        (store, folder)
    }

    /// Returns whether the database was taken to be unavailable, each caller's reply, and the number of transactions.
    async fn write(
        store: &Store,
        is_poison: impl Fn(usize) -> bool,
        deadline: Instant,
    ) -> (Result<(), StoreFailure>, Vec<Result<usize, StoreFailure>>, usize) {
        let before = TRANSACTIONS.load(Ordering::Relaxed);
        let (writes, replies): (Vec<_>, Vec<_>) = (0..1024)
            .map(|number| {
                let (reply, result) = oneshot::channel();
                let record = Counted { number, is_poison: is_poison(number) };
                (QueuedWrite { record, reply, deadline }, result)
            })
            .unzip();
        let written = write_batch(store, writes, deadline, |_| {}).await;
        let mut results = Vec::new();
        for reply in replies {
            results.push(reply.await.unwrap());
        }
        (written, results, TRANSACTIONS.load(Ordering::Relaxed) - before)
    }

    // One test, because the transactions of all are counted together.
    #[tokio::test]
    async fn rejected_writes_are_found_by_halves_and_only_if_others_are_accepted() {
        let (store, _folder) = store().await;
        let later = Instant::now() + std::time::Duration::from_mins(10);
        for poison in [0, 511, 700, 1023] {
            let (written, results, transactions) = write(&store, |number| number == poison, later).await;
            assert!(written.is_ok());
            for (number, result) in results.into_iter().enumerate() {
                match result {
                    Ok(own) => assert!(own == number && number != poison),
                    Err(failure) => assert!(number == poison && matches!(failure, StoreFailure::Rejected(_))),
                }
            }
            assert_eq!(transactions, 21);
        }

        let passed = Instant::now();
        let (written, results, transactions) = write(&store, |number| number == 700, passed).await;
        assert!(matches!(written, Err(StoreFailure::Unavailable(_))), "nothing was stored in time: {written:?}");
        assert!(results.iter().all(|result| matches!(result, Err(StoreFailure::Unavailable(_)))));
        assert_eq!(transactions, 0);

        let trigger = "CREATE TRIGGER refuse BEFORE INSERT ON outbox BEGIN SELECT RAISE(ABORT, 'no writes today'); END";
        store.run(trigger, &[]).await.unwrap();
        let (written, results, transactions) = write(&store, |_| true, later).await;
        assert!(written.unwrap_err().to_string().contains("no writes today"));
        assert!(results.iter().all(Result::is_err));
        assert_eq!(transactions, 1, "the batch is not split");
    }
}
