//! How the database is, found out without changing anything that it holds.

use sqlx::migrate::{MigrateError, Migrator};

use super::connect::check_durability;
use super::migrations::{POSTGRES_MIGRATIONS, SQLITE_MIGRATIONS};
use super::statement::{Statement, in_transaction, on_pool};
use super::{Store, StoreFailure};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Health {
    /// The number of the newest migration, if there has been any.
    pub schema: Option<i64>,
    /// How many migrations the next start will make.
    pub pending_migrations: usize,
    /// A setting of the server under which a power cut may lose what was confirmed.
    pub durability_risk: Option<&'static str>,
}

/// How far the migrations have come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Schema {
    /// There is nothing of ours.
    None,
    /// Up to this migration, and there are newer ones.
    Older(i64),
    /// As far as this program knows, which is up to this one.
    Current(i64),
}

const COUNT_MIGRATION_TABLES: Statement = Statement {
    sqlite: "SELECT COUNT(*) FROM sqlite_schema WHERE type = 'table' AND name = '_sqlx_migrations'",
    postgres: "SELECT COUNT(*) FROM pg_class WHERE oid = to_regclass('_sqlx_migrations')",
};

const SELECT_MIGRATIONS: &str = "SELECT version FROM _sqlx_migrations WHERE success ORDER BY version";

/// Change nothing, and have to be written to the disk all the same: the first wants a table that
/// others may have locked, the second touches a row.
const TRY_WRITING: [&str; 2] = [
    "UPDATE people SET email = email WHERE address = ''",
    "UPDATE _sqlx_migrations SET success = success WHERE version = 1",
];

const RISKS: [(&str, &str); 2] = [("SHOW fsync", "fsync"), ("SHOW full_page_writes", "full_page_writes")];

impl Store {
    /// # Errors
    /// When it cannot be reached or written to, or belongs to a newer program.
    pub async fn health(&self) -> Result<Health, StoreFailure> {
        let applied = self.applied_migrations().await?;
        if !applied.is_empty() {
            self.try_writing().await?;
        }
        Ok(Health {
            schema: applied.last().copied(),
            pending_migrations: self.known_migrations().iter().count().saturating_sub(applied.len()),
            durability_risk: self.durability_risk().await?,
        })
    }

    /// # Errors
    /// When it cannot be reached, or belongs to a newer program.
    pub async fn schema(&self) -> Result<Schema, StoreFailure> {
        let applied = self.applied_migrations().await?;
        Ok(match applied.last() {
            None => Schema::None,
            Some(last) if applied.len() < self.known_migrations().iter().count() => Schema::Older(*last),
            Some(last) => Schema::Current(*last),
        })
    }

    /// # Errors
    /// When nothing can be written just now.
    pub(super) async fn try_writing(&self) -> Result<(), StoreFailure> {
        in_transaction!(self, |tx, _words| {
            for statement in TRY_WRITING {
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

    /// None where there is no database yet; a failure where one is of a newer program.
    async fn applied_migrations(&self) -> Result<Vec<i64>, StoreFailure> {
        let tables: i64 = match self {
            Self::Sqlite(pool) => sqlx::query_scalar(COUNT_MIGRATION_TABLES.sqlite).fetch_one(pool).await?,
            Self::Postgres(pool) => sqlx::query_scalar(COUNT_MIGRATION_TABLES.postgres).fetch_one(pool).await?,
        };
        if tables == 0 {
            return Ok(Vec::new());
        }
        let applied: Vec<i64> = on_pool!(self, |pool| sqlx::query_scalar(SELECT_MIGRATIONS).fetch_all(pool).await?);
        match applied.iter().find(|version| !knows(self.known_migrations(), **version)) {
            Some(newer) => Err(MigrateError::VersionMissing(*newer).into()),
            None => Ok(applied),
        }
    }

    async fn durability_risk(&self) -> Result<Option<&'static str>, StoreFailure> {
        match self {
            Self::Sqlite(pool) => check_durability(pool).await.map(|()| None),
            Self::Postgres(pool) => {
                for (show, name) in RISKS {
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

fn knows(migrations: &Migrator, version: i64) -> bool {
    migrations.iter().any(|migration| migration.version == version)
}
