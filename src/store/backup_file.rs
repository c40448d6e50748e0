//! The database file of a backup: one file and nothing beside it, never changed once it is whole.

use std::path::Path;

use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqlitePoolOptions, SqliteSynchronous};
use sqlx::{ConnectOptions, Connection};

use super::{Store, StoreFailure};

impl Store {
    /// Leaves the embedded database at `path`, which nobody has open, as a file that can be read
    /// without writing anything beside it, and looks through it for damage.
    ///
    /// # Errors
    /// When that fails, or there is damage.
    pub async fn finalize_backup_file(path: &Path) -> Result<(), StoreFailure> {
        let options = SqliteConnectOptions::new()
            .filename(path)
            .journal_mode(SqliteJournalMode::Delete)
            .synchronous(SqliteSynchronous::Full);
        let mut connection = options.connect().await?;
        let (verdict,): (String,) = sqlx::query_as("PRAGMA integrity_check").fetch_one(&mut connection).await?;
        connection.close().await?;
        if verdict == "ok" { Ok(()) } else { Err(StoreFailure::Damaged(verdict)) }
    }

    /// Opens such a file for reading.
    #[must_use]
    pub fn open_backup_file(path: &Path) -> Self {
        let options = SqliteConnectOptions::new().filename(path).read_only(true).immutable(true);
        Self::Sqlite(SqlitePoolOptions::new().max_connections(1).connect_lazy_with(options))
    }

    /// An empty database in the system's folder for temporary files, where SQLite takes the name of its file away as soon
    /// as it is open: nobody else can read it, and the system frees it when the one connection ends.
    pub(super) fn without_a_name() -> (Self, SqlitePool) {
        let options = SqliteConnectOptions::new().filename("").create_if_missing(true);
        let pool = SqlitePoolOptions::new().max_connections(1).idle_timeout(None).max_lifetime(None);
        let pool = pool.connect_lazy_with(options);
        (Self::Sqlite(pool.clone()), pool)
    }
}
