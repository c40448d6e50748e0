//! Checks the state of the database without changing its contents.

use super::connection::{MigrationState, Store, StoreFailure, check_durability};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Health {
    pub migrations: MigrationState,
    /// A PostgreSQL setting that is off and that durability depends on.
    pub durability_risk: Option<&'static str>,
}

/// What the writer inserts, so that missing permissions and triggers are noticed. No address, id or day is like these.
const INSERT_PROBE_ROWS: [&str; 8] = [
    "INSERT INTO people (address, email, first_seen_at) VALUES ('', '', 0) \
     ON CONFLICT (address) DO UPDATE SET email = excluded.email",
    "INSERT INTO signups (id, address, kind, at, via) VALUES ('', '', 'download', 0, '')",
    "INSERT INTO consents (id, address, at, via, wording) VALUES ('', '', 0, '', 0)",
    "INSERT INTO message_hashes (hash, message, at) VALUES ('', '', 0) \
     ON CONFLICT (hash) DO UPDATE SET at = excluded.at",
    "INSERT INTO messages (id, address, email, body, at) VALUES ('', '', '', '', 0)",
    "INSERT INTO outbox (id, kind, state, at) VALUES ('', 'message', 'waiting', 0)",
    "INSERT INTO sources (day, source, downloads, new_people, opt_ins, joins) VALUES (-1, '', 0, 0, 0, 0) \
     ON CONFLICT (day, source) DO UPDATE SET downloads = excluded.downloads",
    "INSERT INTO counts (day, kind, via, name, times) VALUES (-1, 'download', '', '', 0) \
     ON CONFLICT (day, kind, via, name) DO UPDATE SET times = excluded.times",
];

/// Rewrites one row with the same value: unlike a rollback, the commit needs the disk.
const REWRITE_ROW: &str = "UPDATE _sqlx_migrations SET success = success WHERE version = 1";

/// Not counts, because the first request for a page is one.
const SELECT_RECORD: &str = "SELECT CAST(1 AS BIGINT) FROM people UNION ALL SELECT CAST(1 AS BIGINT) FROM messages \
     UNION ALL SELECT CAST(1 AS BIGINT) FROM releases LIMIT 1";

const DURABILITY_SETTINGS: [(&str, &str); 2] = [("SHOW fsync", "fsync"), ("SHOW full_page_writes", "full_page_writes")];

impl Store {
    /// Checks that the database can be read and, if it has a schema, written.
    pub async fn health(&self) -> Result<Health, StoreFailure> {
        let migrations = self.migration_state().await?;
        if migrations != MigrationState::None {
            self.probe_write().await?;
        }
        Ok(Health { migrations, durability_risk: self.durability_risk().await? })
    }

    /// Whether nobody has ever signed up or written, and nothing was published; also after all of that was deleted.
    pub async fn is_empty(&self) -> Result<bool, StoreFailure> {
        Ok(self.run(SELECT_RECORD, &[]).await?.column::<i64>()?.is_empty())
    }

    pub async fn ping(&self) -> Result<(), StoreFailure> {
        self.run("SELECT 1", &[]).await.map(drop)
    }

    /// Runs a transaction that inserts what the writer inserts, and changes nothing.
    pub(in crate::store) async fn probe_write(&self) -> Result<(), StoreFailure> {
        let mut tx = self.begin().await?;
        tx.run("SAVEPOINT probe", &[]).await?;
        for statement in INSERT_PROBE_ROWS {
            tx.run(statement, &[]).await?;
        }
        tx.run("ROLLBACK TO SAVEPOINT probe", &[]).await?;
        tx.run(REWRITE_ROW, &[]).await?;
        tx.commit().await
    }

    async fn durability_risk(&self) -> Result<Option<&'static str>, StoreFailure> {
        match self {
            Self::Sqlite(pool) => check_durability(pool).await.map(|()| None),
            Self::Postgres(_) => {
                for (show, name) in DURABILITY_SETTINGS {
                    let (value,): (String,) = self.run(show, &[]).await?.one()?;
                    if value != "on" {
                        return Ok(Some(name));
                    }
                }
                Ok(None)
            }
        }
    }
}
