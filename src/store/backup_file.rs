//! The database file of a backup: one SQLite file without a WAL, never changed once it is complete.

use std::path::Path;

use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};
use sqlx::{ConnectOptions, Connection};

use super::{Store, StoreFailure};

impl Store {
    /// Switches the closed SQLite database at `path` out of WAL mode, so that it can be read without creating files
    /// next to it, and checks its integrity.
    pub async fn finalize_backup_file(path: &Path) -> Result<(), StoreFailure> {
        let options = SqliteConnectOptions::new()
            .filename(path)
            .journal_mode(SqliteJournalMode::Delete)
            .synchronous(SqliteSynchronous::Full);
        let mut connection = options.connect().await?;
        let (result,): (String,) = sqlx::query_as("PRAGMA integrity_check").fetch_one(&mut connection).await?;
        connection.close().await?;
        if result == "ok" { Ok(()) } else { Err(StoreFailure::Damaged(result)) }
    }

    /// Opens the database file of a backup for reading.
    pub fn open_backup_file(path: &Path) -> Self {
        let options = SqliteConnectOptions::new().filename(path).read_only(true).immutable(true);
        Self::Sqlite(SqlitePoolOptions::new().max_connections(1).connect_lazy_with(options))
    }
}
