//! Opens an existing database for reading, without creating or migrating anything.

use std::time::Duration;

use sqlx::sqlite::{SqliteConnectOptions, SqlitePoolOptions};

use super::postgres_pool::PostgresPool;
use super::timeouts::COMMAND_TIMEOUTS;
use super::{Database, Store};

/// For a connection and for locks: a command may wait.
const TIMEOUT: Duration = Duration::from_secs(30);

impl Store {
    /// Creates the pool for a command that only reads. A SQLite database may be in use, so it is opened read-write like
    /// its other users do: whichever process closes it last removes the WAL. A PostgreSQL server may be a standby.
    pub fn open_existing(database: &Database) -> Self {
        let path = match database {
            Database::Postgres(hosts) => return Self::Postgres(PostgresPool::open(hosts, COMMAND_TIMEOUTS, 2, true)),
            Database::Sqlite(path) => path,
        };
        let options = SqliteConnectOptions::new().filename(path).create_if_missing(false).busy_timeout(TIMEOUT);
        let pool = SqlitePoolOptions::new().max_connections(2).acquire_timeout(TIMEOUT);
        Self::Sqlite(pool.connect_lazy_with(options))
    }
}
