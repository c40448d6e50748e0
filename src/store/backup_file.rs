//! The database file of a backup: one file and nothing beside it, never changed once it is whole.

use std::path::Path;

use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};
use sqlx::{ConnectOptions, Connection};

use super::{Store, StoreFailure};

impl Store {
    /// Leaves the embedded database at `path`, which nobody has open, as a file that can be read
    /// without writing anything beside it, and looks through it for damage.
    ///
    /// # Errors
    /// When that fails, or there is damage.
    pub async fn seal(path: &Path) -> Result<(), StoreFailure> {
        let options = SqliteConnectOptions::new()
            .filename(path)
            .journal_mode(SqliteJournalMode::Delete)
            .synchronous(SqliteSynchronous::Full);
        let mut connection = options.connect().await?;
        let (verdict,): (String,) = sqlx::query_as("PRAGMA integrity_check").fetch_one(&mut connection).await?;
        connection.close().await?;
        if verdict == "ok" { Ok(()) } else { Err(StoreFailure::Unusable(format!("The file is damaged: {verdict}."))) }
    }

    /// Opens such a file for reading.
    #[must_use]
    pub fn open_sealed(path: &Path) -> Self {
        let options = SqliteConnectOptions::new().filename(path).read_only(true).immutable(true);
        Self::Sqlite(SqlitePoolOptions::new().max_connections(1).connect_lazy_with(options))
    }
}
