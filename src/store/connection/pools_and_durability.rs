//! [`Store`]: a pool of connections to either database. Opens it with the timeouts of its use and with the settings that
//! durability depends on.

use std::fs::{File, OpenOptions, TryLockError};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqlitePoolOptions, SqliteSynchronous};
use sqlx::{ConnectOptions, Connection};
use tokio::time::sleep;

use super::database::Database;
use super::failure::StoreFailure;
use super::postgres_pool::PostgresPool;
use super::timeouts::{COMMAND_TIMEOUTS, OPS_TIMEOUTS, REQUEST_TIMEOUTS, Timeouts};

/// The largest number of connections of a pool. SQLite has one writer at a time anyway.
#[derive(Clone, Copy)]
struct PoolSize {
    sqlite: u32,
    postgres: u32,
    /// After how many pages a commit also checkpoints the WAL of SQLite, as far as that blocks nobody; 0 for never.
    wal_autocheckpoint: u32,
}

/// If no service is running, no other process checkpoints the WAL of a long command.
const COMMAND_POOL: PoolSize = PoolSize { sqlite: 4, postgres: 8, wal_autocheckpoint: 1000 };
/// In a service, a background task runs [`Store::maintain`], so that no request waits for it.
const REQUEST_POOL: PoolSize = PoolSize { sqlite: 4, postgres: 8, wal_autocheckpoint: 0 };
/// One: SQLite reads the pages that a connection has cached again after the commit of another one. The driver tests a connection
/// before it can be taken again, so several sessions of PostgreSQL would alternate, which costs a tenth of the writes per second.
const WRITER_POOL: PoolSize = PoolSize { sqlite: 1, postgres: 1, wal_autocheckpoint: 0 };
const SMALL_POOL: PoolSize = PoolSize { sqlite: 2, postgres: 2, wal_autocheckpoint: 0 };

/// Enough for the inner pages of the indexes of ten million people, which a command that reads them all meets for each of them.
const READER_CACHE_KIB: u32 = 16 << 10;

/// A WAL that a long transaction or reader has made larger than this is truncated to it later.
const MAX_KEPT_WAL_BYTES: u32 = 256 << 20;

/// How often a service tries to get the lock of its database, and the pause in between: fifteen seconds, because the service
/// before it has ten to stop.
const LOCK_ATTEMPTS: u32 = 150;
const LOCK_PAUSE: Duration = Duration::from_millis(100);

#[derive(Debug, thiserror::Error)]
pub enum MaintenanceFailure {
    /// SQLite called fsync, and it failed. The kernel drops the pages that it could not write, and the next call succeeds.
    /// The next checkpoint would copy only what no earlier one has copied, and the WAL would be overwritten. So there must
    /// be none in this process; another one copies the whole WAL again.
    #[error(transparent)]
    Unsynced(StoreFailure),
    #[error(transparent)]
    Other(StoreFailure),
}

/// A pool of connections to the database. Cheap to clone; clones share the pool.
#[derive(Clone, Debug)]
pub enum Store {
    Sqlite(SqlitePool),
    Postgres(PostgresPool),
}

impl Database {
    /// Locks an embedded database against other services until the file is dropped, and waits for one that is about to end.
    /// Commands need no lock. `None`: it can be shared, or files cannot be locked there.
    pub async fn lock_for_service(&self) -> Result<Option<File>, StoreFailure> {
        let Self::Sqlite(path) = self else { return Ok(None) };
        // What keeps the file from being created is reported with the database.
        let Ok(file) = open_lock_file(path) else { return Ok(None) };
        for attempt in 0..LOCK_ATTEMPTS {
            match file.try_lock() {
                Ok(()) => return Ok(Some(file)),
                Err(TryLockError::Error(_)) => return Ok(None),
                Err(TryLockError::WouldBlock) if attempt == 0 => {
                    tracing::info!("another service uses the database; waiting for its end");
                }
                Err(TryLockError::WouldBlock) => {}
            }
            sleep(LOCK_PAUSE).await;
        }
        Err(StoreFailure::Unusable(format!(
            "another `porchlight serve` uses the database ({self}); stop that one, or set another `data_dir`"
        )))
    }
}

impl Store {
    /// Creates a pool for a command. Connections are opened on first use.
    pub fn open(database: &Database) -> Result<Self, StoreFailure> {
        Self::open_with(database, COMMAND_TIMEOUTS, COMMAND_POOL)
    }

    /// Creates a pool for requests, with short timeouts.
    pub fn open_for_requests(database: &Database) -> Result<Self, StoreFailure> {
        Self::open_with(database, REQUEST_TIMEOUTS, REQUEST_POOL)
    }

    /// Creates the pool of the writer, so that requests that read never take its connection.
    pub(in crate::store) fn open_for_writer(database: &Database) -> Result<Self, StoreFailure> {
        Self::open_with(database, REQUEST_TIMEOUTS, WRITER_POOL)
    }

    /// Creates a small pool for the dashboard, the metrics and checkpoints.
    pub fn open_for_ops(database: &Database) -> Result<Self, StoreFailure> {
        Self::open_with(database, OPS_TIMEOUTS, SMALL_POOL)
    }

    /// Creates the pool for a command that only reads. A SQLite database may be in use, so it is opened read-write like
    /// its other users do: whichever process closes it last removes the WAL. A PostgreSQL server may be a standby.
    pub fn open_existing(database: &Database) -> Self {
        let path = match database {
            Database::Postgres(hosts) => return Self::Postgres(PostgresPool::open(hosts, COMMAND_TIMEOUTS, 2, true)),
            Database::Sqlite(path) => path,
        };
        let options = SqliteConnectOptions::new()
            .filename(path)
            .create_if_missing(false)
            .pragma("cache_size", format!("-{READER_CACHE_KIB}"))
            .busy_timeout(COMMAND_TIMEOUTS.lock);
        let pool = SqlitePoolOptions::new().max_connections(2).acquire_timeout(COMMAND_TIMEOUTS.lock);
        Self::Sqlite(pool.connect_lazy_with(options))
    }

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

    fn open_with(database: &Database, timeouts: Timeouts, size: PoolSize) -> Result<Self, StoreFailure> {
        match database {
            Database::Sqlite(path) => open_sqlite(path, timeouts, size),
            Database::Postgres(hosts) => Ok(Self::Postgres(PostgresPool::open(hosts, timeouts, size.postgres, false))),
        }
    }

    /// Creates the file of an embedded database, readable by its owner alone, unless it exists. Connecting would create it, too,
    /// but readable by all.
    pub(in crate::store) fn create_private_file(&self) -> Result<(), StoreFailure> {
        match self {
            Self::Sqlite(pool) => make_private_file(pool.connect_options().get_filename()),
            Self::Postgres(_) => Ok(()),
        }
    }

    /// Checkpoints the WAL of a SQLite database. A passive checkpoint never blocks the writer, but under constant load the
    /// writer goes on appending to the WAL. So if the WAL has grown large, a second checkpoint blocks the writer and waits for
    /// readers; the next commit then overwrites the WAL from its beginning. To truncate it would take some file systems a
    /// tenth of a second, and commits to an empty file take longer.
    pub(in crate::store) async fn checkpoint(&self) -> Result<(), sqlx::Error> {
        const LARGE_WAL_PAGES: i64 = 16_384;
        if let Self::Sqlite(pool) = self {
            let (_, wal_pages, checkpointed): (i64, i64, i64) =
                sqlx::query_as("PRAGMA wal_checkpoint(PASSIVE)").fetch_one(pool).await?;
            if wal_pages > LARGE_WAL_PAGES && checkpointed == wal_pages {
                sqlx::query("PRAGMA wal_checkpoint(RESTART)").execute(pool).await?;
            }
        }
        Ok(())
    }

    /// Runs a checkpoint in SQLite. A service calls it every second.
    pub async fn maintain(&self) -> Result<(), MaintenanceFailure> {
        self.checkpoint().await.map_err(|error| {
            let is_failed_sync = StoreFailure::is_failed_sync(&error);
            let failure = StoreFailure::from(error);
            if is_failed_sync { MaintenanceFailure::Unsynced(failure) } else { MaintenanceFailure::Other(failure) }
        })
    }

    /// The host that takes writes and is used, such as `db2.example:5432`, if `database_url` names several.
    pub fn host_in_use(&self) -> Option<String> {
        match self {
            Self::Sqlite(_) => None,
            Self::Postgres(pool) => pool.host_in_use(),
        }
    }

    pub async fn close(&self) {
        match self {
            Self::Sqlite(pool) => pool.close().await,
            Self::Postgres(pool) => pool.close().await,
        }
    }
}

fn open_sqlite(path: &Path, timeouts: Timeouts, size: PoolSize) -> Result<Store, StoreFailure> {
    make_folder_of(path).map_err(|error| {
        let folder = path.parent().unwrap_or(path).display();
        StoreFailure::Unusable(format!("the folder {folder} could not be created: {error}"))
    })?;
    let options = SqliteConnectOptions::new()
        .filename(path)
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full)
        // Otherwise a large batch is written to a temporary file, too, so that its statements can be undone.
        .pragma("temp_store", "MEMORY")
        .pragma("wal_autocheckpoint", size.wal_autocheckpoint.to_string())
        .pragma("journal_size_limit", MAX_KEPT_WAL_BYTES.to_string())
        .pragma("secure_delete", "ON")
        .busy_timeout(timeouts.lock)
        .disable_statement_logging();
    let pool = SqlitePoolOptions::new()
        .max_connections(size.sqlite)
        .acquire_timeout(timeouts.connect)
        // On a full disk SQLite rolls back on its own, and the driver still believes that a transaction is open.
        .before_acquire(|connection, _| Box::pin(async { Ok(!connection.is_in_transaction()) }));
    Ok(Store::Sqlite(pool.connect_lazy_with(options)))
}

/// A file of its own, because to close any file descriptor of the database would end the locks of SQLite.
fn open_lock_file(database: &Path) -> std::io::Result<File> {
    make_folder_of(database)?;
    OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(database.with_added_extension("lock"))
}

fn make_folder_of(file: &Path) -> std::io::Result<()> {
    file.parent().filter(|folder| !folder.as_os_str().is_empty()).map_or(Ok(()), make_private_folder)
}

/// Creates a folder with mode 0700.
pub fn make_private_folder(folder: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

/// Creates the database file with mode 0600. SQLite would make it world-readable, and an existing folder may be public.
fn make_private_file(path: &Path) -> Result<(), StoreFailure> {
    match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
            Err(StoreFailure::Unusable(format!("the file {} could not be created: {error}", path.display())))
        }
        _ => Ok(()),
    }
}

/// Verifies that a commit is on disk before it is confirmed.
pub(in crate::store) async fn check_durability(pool: &SqlitePool) -> Result<(), StoreFailure> {
    const FULL: i64 = 2;
    let mut connection = pool.acquire().await?;
    let (journal,): (String,) = sqlx::query_as("PRAGMA journal_mode").fetch_one(&mut *connection).await?;
    let (synchronous,): (i64,) = sqlx::query_as("PRAGMA synchronous").fetch_one(&mut *connection).await?;
    if journal == "wal" && synchronous == FULL {
        return Ok(());
    }
    Err(StoreFailure::Unusable(format!(
        "the database would not be durable (journal_mode {journal}, synchronous {synchronous} instead of wal and {FULL}); \
         put it on a file system that supports WAL"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::connection::database::Database;

    #[tokio::test(start_paused = true)]
    async fn a_second_service_on_an_embedded_database_waits_and_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let database = Database::Sqlite(folder.path().join("data/porchlight.db"));
        let first = database.lock_for_service().await.unwrap();
        assert!(first.is_some());
        let refused = database.lock_for_service().await.unwrap_err().to_string();
        assert!(refused.starts_with("another `porchlight serve` uses the database (SQLite, "), "{refused}");

        let (second, ()) = tokio::join!(database.lock_for_service(), async {
            sleep(LOCK_PAUSE).await;
            drop(first);
        });
        assert!(second.unwrap().is_some());
    }

    #[tokio::test]
    async fn a_large_wal_is_overwritten_instead_of_growing_further() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("porchlight.db");
        let store = Store::open_for_writer(&Database::Sqlite(path.clone())).unwrap();
        let Store::Sqlite(pool) = &store else { unreachable!("a SQLite database") };
        sqlx::query("CREATE TABLE pages (content BLOB)").execute(pool).await.unwrap();
        let write = "INSERT INTO pages SELECT zeroblob(8 * 1024 * 1024)";
        let wal = || std::fs::metadata(path.with_extension("db-wal")).unwrap().len();
        for _ in 0..9 {
            sqlx::query(write).execute(pool).await.unwrap();
        }
        let large = wal();

        store.checkpoint().await.unwrap();
        for _ in 0..2 {
            sqlx::query(write).execute(pool).await.unwrap();
        }
        assert_eq!(wal(), large);
    }
}
