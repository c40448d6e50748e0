//! Checks the state of the database without changing its contents.

use super::connect::check_durability;
use super::statement::in_transaction;
use super::{MigrationState, Store, StoreFailure};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Health {
    pub migrations: MigrationState,
    /// A PostgreSQL setting that is off and that durability depends on.
    pub durability_risk: Option<&'static str>,
}

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
    /// When it cannot, or this program may not run on its schema.
    pub async fn health(&self) -> Result<Health, StoreFailure> {
        let migrations = self.migration_state().await?;
        if migrations != MigrationState::None {
            self.probe_write().await?;
        }
        Ok(Health { migrations, durability_risk: self.durability_risk().await? })
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
