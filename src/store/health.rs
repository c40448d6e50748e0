//! Checks the state of the database without changing its contents.

use sqlx::migrate::{MigrateError, Migrator};

use super::connect::check_durability;
use super::migrations::{POSTGRES_MIGRATIONS, SQLITE_MIGRATIONS};
use super::statement::{Statement, in_transaction, on_pool};
use super::{Store, StoreFailure};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Health {
    /// The version of the newest applied migration.
    pub schema_version: Option<i64>,
    /// How many migrations the next start will run.
    pub pending_migrations: usize,
    /// A PostgreSQL setting that is off and that durability depends on.
    pub durability_risk: Option<&'static str>,
}

/// Which migrations have been applied to a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MigrationState {
    /// No migration has been applied.
    None,
    /// This migration is the newest applied one, and newer ones are pending.
    Older(i64),
    /// All migrations have been applied; this is the newest one.
    Current(i64),
}

const COUNT_MIGRATION_TABLES: Statement = Statement {
    sqlite: "SELECT COUNT(*) FROM sqlite_schema WHERE type = 'table' AND name = '_sqlx_migrations'",
    postgres: "SELECT COUNT(*) FROM pg_class WHERE oid = to_regclass('_sqlx_migrations')",
};

const SELECT_MIGRATIONS: &str = "SELECT version FROM _sqlx_migrations WHERE success ORDER BY version";

/// Fails if the database accepts no writes. The first statement matches no row but takes the table lock; the second
/// rewrites one row with the same value.
const WRITE_PROBE: [&str; 2] = [
    "UPDATE people SET email = email WHERE address = ''",
    "UPDATE _sqlx_migrations SET success = success WHERE version = 1",
];

const DURABILITY_SETTINGS: [(&str, &str); 2] = [("SHOW fsync", "fsync"), ("SHOW full_page_writes", "full_page_writes")];

impl Store {
    /// Checks that the database can be read and, if it has a schema, written.
    ///
    /// # Errors
    /// When it cannot, or a newer version of the program has migrated it.
    pub async fn health(&self) -> Result<Health, StoreFailure> {
        let applied = self.applied_migrations().await?;
        if !applied.is_empty() {
            self.probe_write().await?;
        }
        Ok(Health {
            schema_version: applied.last().copied(),
            pending_migrations: self.known_migrations().iter().count().saturating_sub(applied.len()),
            durability_risk: self.durability_risk().await?,
        })
    }

    /// # Errors
    /// When the database is unavailable, or a newer version of the program has migrated it.
    pub async fn migration_state(&self) -> Result<MigrationState, StoreFailure> {
        let applied = self.applied_migrations().await?;
        Ok(match applied.last() {
            None => MigrationState::None,
            Some(last) if applied.len() < self.known_migrations().iter().count() => MigrationState::Older(*last),
            Some(last) => MigrationState::Current(*last),
        })
    }

    /// Runs a transaction that changes nothing.
    ///
    /// # Errors
    /// When the database accepts no writes at the moment.
    pub(super) async fn probe_write(&self) -> Result<(), StoreFailure> {
        in_transaction!(self, |tx, _sql| {
            for statement in WRITE_PROBE {
                sqlx::query(statement).execute(&mut *tx).await?;
            }
        });
        Ok(())
    }

    fn known_migrations(&self) -> &'static Migrator {
        match self {
            Self::Sqlite(_) => &SQLITE_MIGRATIONS,
            Self::Postgres(_) => &POSTGRES_MIGRATIONS,
        }
    }

    /// Returns the versions of the applied migrations; fails if one is unknown to this program.
    async fn applied_migrations(&self) -> Result<Vec<i64>, StoreFailure> {
        let tables: i64 = match self {
            Self::Sqlite(pool) => sqlx::query_scalar(COUNT_MIGRATION_TABLES.sqlite).fetch_one(pool).await?,
            Self::Postgres(pool) => sqlx::query_scalar(COUNT_MIGRATION_TABLES.postgres).fetch_one(pool).await?,
        };
        if tables == 0 {
            return Ok(Vec::new());
        }
        let applied: Vec<i64> = on_pool!(self, |pool| sqlx::query_scalar(SELECT_MIGRATIONS).fetch_all(pool).await?);
        match applied.iter().find(|version| !contains(self.known_migrations(), **version)) {
            Some(unknown) => Err(MigrateError::VersionMissing(*unknown).into()),
            None => Ok(applied),
        }
    }

    async fn durability_risk(&self) -> Result<Option<&'static str>, StoreFailure> {
        match self {
            Self::Sqlite(pool) => check_durability(pool).await.map(|()| None),
            Self::Postgres(pool) => {
                for (show, name) in DURABILITY_SETTINGS {
                    let (value,): (String,) = sqlx::query_as(show).fetch_one(pool).await?;
                    if value != "on" {
                        return Ok(Some(name));
                    }
                }
                Ok(None)
            }
        }
    }
}

fn contains(migrations: &Migrator, version: i64) -> bool {
    migrations.iter().any(|migration| migration.version == version)
}
