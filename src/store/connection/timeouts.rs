//! How long things in the database may take.
//!
//! A request gets its response within five seconds, whatever happens to the database. These limits add up to that: a
//! statement has [`REQUEST_TIMEOUTS`], `connect` and `statement` and [`MARGIN`] together; a write waits in the queue for the
//! batch before it and is stored with the next one, in [`WRITE_TIMEOUT`].

use std::time::Duration;

/// How long a statement may wait for a connection, for a lock, or run. SQLite has no `statement` timeout; PostgreSQL
/// counts lock waits towards it.
#[derive(Clone, Copy, Debug)]
pub(in crate::store) struct Timeouts {
    pub connect: Duration,
    pub lock: Duration,
    pub statement: Duration,
}

pub(in crate::store) const REQUEST_TIMEOUTS: Timeouts = Timeouts {
    connect: Duration::from_millis(1500),
    lock: Duration::from_millis(1500),
    statement: Duration::from_millis(2500),
};

/// A command may wait, and statements over long lists take time.
pub(in crate::store) const COMMAND_TIMEOUTS: Timeouts =
    Timeouts { connect: Duration::from_secs(10), lock: Duration::from_secs(30), statement: Duration::from_mins(10) };

/// Charts over years take seconds.
pub(in crate::store) const OPS_TIMEOUTS: Timeouts =
    Timeouts { connect: Duration::from_secs(5), lock: Duration::from_millis(1500), statement: Duration::from_secs(20) };

/// Our own limit for a statement in PostgreSQL is longer than the server's by this, so that the server's error, which says
/// more, comes first.
pub(in crate::store) const MARGIN: Duration = Duration::from_millis(500);

/// How long a caller waits for its write.
pub(in crate::store) const WRITE_TIMEOUT: Duration = Duration::from_millis(4500);
/// For everything that the writer took from its queue at once, including retries and smaller batches.
pub(in crate::store) const BATCH_TIMEOUT: Duration = Duration::from_secs(4);
/// A batch that takes longer is made smaller.
pub(in crate::store) const MAX_BATCH_DURATION: Duration = Duration::from_secs(1);
/// A write is accepted only if its expected wait is at most this.
pub(in crate::store) const MAX_EXPECTED_WAIT: Duration = Duration::from_secs(2);
