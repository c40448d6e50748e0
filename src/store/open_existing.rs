//! Opens an existing database for reading, without creating or migrating anything.

use std::time::Duration;

use sqlx::sqlite::{SqliteConnectOptions, SqlitePoolOptions};

use super::postgres_pool::PostgresPool;
use super::timeouts::COMMAND_TIMEOUTS;
use super::{Database, Store, StoreFailure};

/// For a connection and for locks: a command may wait.
const TIMEOUT: Duration = Duration::from_secs(30);

impl Store {
    /// Creates the pool for a command that only reads. A SQLite database may be in use, so it is opened read-write like
    /// its other users do: whichever process closes it last removes the WAL.
    pub fn open_existing(database: &Database) -> Result<Self, StoreFailure> {
        let Database::Sqlite(path) = database else { return Self::open(database) };
        let options = SqliteConnectOptions::new().filename(path).create_if_missing(false).busy_timeout(TIMEOUT);
        let pool = SqlitePoolOptions::new().max_connections(2).acquire_timeout(TIMEOUT);
        Ok(Self::Sqlite(pool.connect_lazy_with(options)))
    }

    /// As [`Self::open_existing`], and a PostgreSQL server may be a standby, which takes no writes.
    pub fn open_existing_or_standby(database: &Database) -> Result<Self, StoreFailure> {
        let Database::Postgres(hosts) = database else { return Self::open_existing(database) };
        Ok(Self::Postgres(PostgresPool::open_for_reading(hosts, COMMAND_TIMEOUTS, 2)))
    }
}
