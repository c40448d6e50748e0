//! Migrates a database, and tells which migrations it has and whether this program may run on it.
//!
//! A program is identified by the newest migration that it knows. Each migration inserts a row into `schema_versions` with the
//! oldest program that may still run on its schema. So a newer program can migrate a database while older ones use it.

use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::Duration;

use rustix::fs::{FlockOperation, Mode, OFlags, flock};
use sqlx::migrate::{Migration, Migrator};
use sqlx::sqlite::{SqlitePool, SqlitePoolOptions};
use sqlx::{ConnectOptions, Executor, Row};
use tokio::time::{sleep, timeout};

use super::failure::StoreFailure;
use super::migrations::{POSTGRES_MIGRATIONS, SQLITE_MIGRATIONS};
use super::pools_and_durability::{Store, check_durability};
use super::postgres_pool::PostgresPool;
use super::statement::{Statement, values};

/// For the question whether a server is a standby.
const STANDBY_TIMEOUT: Duration = Duration::from_secs(1);

/// Which migrations have been applied to a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MigrationState {
    /// No migration has been applied.
    None,
    /// This migration is the newest applied one, and newer ones are pending.
    Older(i64),
    /// All migrations have been applied; this is the newest one.
    Current(i64),
    /// A newer program has applied migrations up to this one, which allow this program to run.
    Newer(i64),
}

const COUNT_MIGRATION_TABLES: Statement = Statement {
    sqlite: "SELECT COUNT(*) FROM sqlite_schema WHERE type = 'table' AND name = '_sqlx_migrations'",
    postgres: "SELECT COUNT(*) FROM pg_class WHERE oid = to_regclass('_sqlx_migrations')",
};

const SELECT_MIGRATIONS: &str = "SELECT version, checksum FROM _sqlx_migrations WHERE success ORDER BY version";

const SELECT_OLDEST_COMPATIBLE: &str = "SELECT oldest_compatible FROM schema_versions WHERE version = $1";

/// In PostgreSQL. Whoever called tries again later, if all of them fail.
const MIGRATION_ATTEMPTS: usize = 5;
const MIGRATION_PAUSE: Duration = Duration::from_millis(500);

/// For the connection that migrates a SQLite database: creating the file may take a slow disk a while.
const MIGRATION_CONNECT_TIMEOUT: Duration = Duration::from_secs(30);

impl Store {
    /// Runs pending migrations and verifies the durability settings. Idempotent. A database that a newer program has
    /// migrated is used as it is, if its migrations allow that.
    pub async fn migrate(&self) -> Result<(), StoreFailure> {
        let Self::Sqlite(pool) = self else { return self.run_migrations().await };
        let _lock = lock_folder(pool).await;
        self.create_private_file()?;
        let options = SqlitePoolOptions::new().max_connections(1).acquire_timeout(MIGRATION_CONNECT_TIMEOUT);
        let migration_pool = options.connect_lazy_with(pool.connect_options().as_ref().clone());
        check_durability(&migration_pool).await?;
        let migrated = Self::Sqlite(migration_pool.clone()).run_migrations().await;
        migration_pool.close().await;
        migrated
    }

    async fn run_migrations(&self) -> Result<(), StoreFailure> {
        if self.is_standby().await {
            return Err(StoreFailure::standby());
        }
        // Without a migration nobody waits for a lock.
        if matches!(self.migration_state().await?, MigrationState::Newer(_) | MigrationState::Current(_)) {
            return Ok(());
        }
        match self {
            Self::Sqlite(pool) => SQLITE_MIGRATIONS.run(pool).await?,
            Self::Postgres(pool) => {
                for migration in POSTGRES_MIGRATIONS.iter() {
                    // Another instance may have run it while this one waited.
                    if !self.applied_migrations().await?.contains(&migration.version) {
                        try_migration(pool, migration).await?;
                    }
                }
            }
        }
        // A newer program may have migrated the database since the check above.
        self.migration_state().await.map(drop)
    }

    pub async fn migration_state(&self) -> Result<MigrationState, StoreFailure> {
        match self.read_migration_state().await {
            Err(StoreFailure::Unavailable(_)) if self.is_standby().await => Err(StoreFailure::standby()),
            state => state,
        }
    }

    async fn read_migration_state(&self) -> Result<MigrationState, StoreFailure> {
        let applied = self.applied_migrations().await?;
        let known: Vec<i64> = self.known_migrations().iter().map(|migration| migration.version).collect();
        let pending = known.iter().any(|version| !applied.contains(version));
        let unknown = applied.iter().copied().filter(|version| !known.contains(version));
        let newest_known = known.iter().max().copied().unwrap_or_default();
        let mut state = match applied.last() {
            None => MigrationState::None,
            Some(last) if pending => MigrationState::Older(*last),
            Some(last) => MigrationState::Current(*last),
        };
        for version in unknown {
            let oldest = self.oldest_compatible(version).await?;
            if pending || oldest.is_none_or(|oldest| oldest > newest_known) {
                return Err(StoreFailure::Unusable(format!(
                    "the database belongs to a newer porchlight (it has migration {version}, and this version knows \
                     those up to {newest_known}); run that version, or restore an older backup"
                )));
            }
            state = MigrationState::Newer(version);
        }
        Ok(state)
    }

    /// Whether PostgreSQL is a standby. The pool only reports that it got no usable connection in time.
    pub(in crate::store) async fn is_standby(&self) -> bool {
        let Self::Postgres(pool) = self else { return false };
        let ask = async {
            let mut connection = pool.connect_options().await?.connect().await?;
            connection.fetch_one("SELECT pg_is_in_recovery()").await?.try_get(0)
        };
        matches!(timeout(STANDBY_TIMEOUT, ask).await, Ok(Ok::<bool, sqlx::Error>(true)))
    }

    /// Fails if the database has tables or columns that this program does not know: a copy would lack them.
    pub(in crate::store) async fn require_known_schema(&self) -> Result<(), StoreFailure> {
        match self.migration_state().await? {
            MigrationState::Newer(version) => Err(StoreFailure::incomplete_copy(version)),
            MigrationState::None | MigrationState::Older(_) | MigrationState::Current(_) => Ok(()),
        }
    }

    pub(in crate::store) fn known_migrations(&self) -> &'static Migrator {
        match self {
            Self::Sqlite(_) => &SQLITE_MIGRATIONS,
            Self::Postgres(_) => &POSTGRES_MIGRATIONS,
        }
    }

    /// Returns the versions of the applied migrations in ascending order.
    async fn applied_migrations(&self) -> Result<Vec<i64>, StoreFailure> {
        let (tables,): (i64,) = self.run(COUNT_MIGRATION_TABLES, &[]).await?.one()?;
        if tables == 0 {
            return Ok(Vec::new());
        }
        let applied: Vec<(i64, Vec<u8>)> = self.run(SELECT_MIGRATIONS, &[]).await?.all()?;
        for known in self.known_migrations().iter() {
            if applied.iter().any(|(version, checksum)| *version == known.version && **checksum != *known.checksum) {
                return Err(StoreFailure::Unusable(format!(
                    "the database was made by another build of porchlight, whose migration {} is different; run that build",
                    known.version
                )));
            }
        }
        Ok(applied.into_iter().map(|(version, _)| version).collect())
    }

    /// Returns what a migration recorded.
    async fn oldest_compatible(&self, version: i64) -> Result<Option<i64>, StoreFailure> {
        Ok(self.run(SELECT_OLDEST_COMPATIBLE, values![version]).await?.column()?.pop())
    }
}

/// Runs a migration, again after a pause if it did not get a lock, so that others get theirs in between.
async fn try_migration(pool: &PostgresPool, migration: &Migration) -> Result<(), StoreFailure> {
    for _ in 1..MIGRATION_ATTEMPTS {
        match pool.migrate(migration).await {
            Err(StoreFailure::Unavailable(_) | StoreFailure::Conflict(_)) => sleep(MIGRATION_PAUSE).await,
            result => return result,
        }
    }
    pool.migrate(migration).await
}

/// Locks the folder of the database, so that two processes do not migrate the file at once. Where that is not
/// supported, the second process fails and has to be started again.
async fn lock_folder(pool: &SqlitePool) -> Option<OwnedFd> {
    let folder = pool.connect_options().get_filename().parent()?.to_owned();
    let locked = tokio::task::spawn_blocking(move || {
        let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { &folder };
        let folder = rustix::fs::open(folder, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        flock(&folder, FlockOperation::LockExclusive)?;
        Ok::<_, rustix::io::Errno>(folder)
    });
    locked.await.ok()?.ok()
}
