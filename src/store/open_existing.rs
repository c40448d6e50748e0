//! A database that is there already, opened so that looking at it neither makes nor changes anything.

use std::time::Duration;

use sqlx::sqlite::{SqliteConnectOptions, SqlitePoolOptions};

use super::{Database, Store, StoreFailure};

/// At a terminal somebody can wait.
const PATIENCE: Duration = Duration::from_secs(30);

impl Store {
    /// Makes the pool of connections for a command that only reads; nothing is connected yet. An embedded database may be
    /// in use, so it is opened as its other users open it: who reads last tidies up the files beside it.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn open_existing(database: &Database) -> Result<Self, StoreFailure> {
        let Database::Sqlite(path) = database else { return Self::open(database) };
        let options = SqliteConnectOptions::new().filename(path).create_if_missing(false).busy_timeout(PATIENCE);
        let pool = SqlitePoolOptions::new().max_connections(2).acquire_timeout(PATIENCE);
        Ok(Self::Sqlite(pool.connect_lazy_with(options)))
    }
}
