//! The connection of the last batch. The pool asks every connection that it hands out or gets back whether it works, which
//! takes a round trip each time.

use std::time::{Duration, Instant};

use sqlx::Database;
use sqlx::pool::PoolConnection;

/// A connection that was not used for longer goes back to the pool, which checks it and closes it when it is old.
const KEPT_FOR: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(super) struct KeptConnection<DB: Database>(Option<(PoolConnection<DB>, Instant)>);

impl<DB: Database> Default for KeptConnection<DB> {
    fn default() -> Self {
        Self(None)
    }
}

impl<DB: Database> KeptConnection<DB> {
    pub(super) fn take(&mut self) -> Option<PoolConnection<DB>> {
        self.0.take().filter(|(_, used)| used.elapsed() < KEPT_FOR).map(|(connection, _)| connection)
    }

    /// Keeps the connection, unless the statement failed.
    pub(super) fn keep<T>(&mut self, connection: PoolConnection<DB>, result: &Result<T, sqlx::Error>) {
        self.0 = result.is_ok().then(|| (connection, Instant::now()));
    }
}
