//! The connection of the last batch. The pool asks every connection that it hands out or gets back whether it works, which
//! takes a round trip each time.

use std::time::{Duration, Instant};

use sqlx::Database;
use sqlx::pool::PoolConnection;

/// A connection that was not used for longer goes back to the pool, which checks it and closes it when it is old.
const KEPT_FOR: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(super) struct KeptConnection<DB: Database>(Option<Kept<DB>>);

#[derive(Debug)]
struct Kept<DB: Database> {
    connection: PoolConnection<DB>,
    used: Instant,
    host_number: u64,
}

impl<DB: Database> Default for KeptConnection<DB> {
    fn default() -> Self {
        Self(None)
    }
}

impl<DB: Database> KeptConnection<DB> {
    /// Returns the connection, unless another host was chosen since: `host_number` counts the choices.
    pub(super) fn take(&mut self, host_number: u64) -> Option<PoolConnection<DB>> {
        let kept = self.0.take().filter(|kept| kept.host_number == host_number && kept.used.elapsed() < KEPT_FOR)?;
        Some(kept.connection)
    }

    /// Keeps the connection, unless the statement failed.
    pub(super) fn keep<T>(
        &mut self,
        connection: PoolConnection<DB>,
        host_number: u64,
        result: &Result<T, sqlx::Error>,
    ) {
        self.0 = result.is_ok().then(|| Kept { connection, used: Instant::now(), host_number });
    }
}
