//! The database behind a service under test, and a look into it where no public face shows what
//! was stored.

use std::path::PathBuf;

use sqlx::{AssertSqlSafe, Connection, Executor, PgConnection, Row, SqliteConnection};

use super::postgres;

pub struct Database {
    url: String,
    kind: Kind,
}

enum Kind {
    /// The folder goes with the value.
    Sqlite(#[expect(dead_code, reason = "held for its end")] tempfile::TempDir),
    Postgres,
}

impl std::fmt::Debug for Database {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self.kind {
            Kind::Sqlite(_) => "SQLite",
            Kind::Postgres => "PostgreSQL",
        })
    }
}

impl Database {
    pub fn sqlite() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let url = format!("sqlite:{}", folder.path().join("porchlight.db").display());
        Self { url, kind: Kind::Sqlite(folder) }
    }

    pub async fn postgres() -> Self {
        Self { url: postgres::new_database().await, kind: Kind::Postgres }
    }

    pub fn url(&self) -> &str {
        &self.url
    }

    pub fn is_postgres(&self) -> bool {
        matches!(self.kind, Kind::Postgres)
    }

    pub fn file(&self) -> PathBuf {
        self.url.trim_start_matches("sqlite:").into()
    }

    /// How many rows a table has.
    pub async fn count(&self, table: &str) -> i64 {
        self.number(&format!("SELECT COUNT(*) FROM {table}")).await
    }

    /// Rows in all tables together: zero as long as nothing has left a trace.
    pub async fn traces(&self) -> i64 {
        let mut traces = 0;
        for table in ["people", "events", "consents", "messages", "message_digests"] {
            traces += self.count(table).await;
        }
        traces
    }

    /// Whether the monthly email is on for an address in its compared form.
    pub async fn has_updates_on(&self, address: &str) -> bool {
        self.number(&format!("SELECT COUNT(*) FROM people WHERE address = '{address}' AND opt_in IS NOT NULL")).await
            == 1
    }

    pub async fn number(&self, query: &str) -> i64 {
        let query = AssertSqlSafe(query);
        match self.kind {
            Kind::Sqlite(_) => sqlx::query_scalar(query).fetch_one(&mut self.sqlite_connection().await).await,
            Kind::Postgres => sqlx::query_scalar(query).fetch_one(&mut self.postgres_connection().await).await,
        }
        .expect("a number")
    }

    /// The first column of all rows, as text; NULL is left out.
    pub async fn texts(&self, query: &str) -> Vec<String> {
        let query = AssertSqlSafe(query);
        match self.kind {
            Kind::Sqlite(_) => {
                let rows = self.sqlite_connection().await.fetch_all(query).await.expect("rows");
                rows.iter().filter_map(|row| row.get::<Option<String>, _>(0)).collect()
            }
            Kind::Postgres => {
                let rows = self.postgres_connection().await.fetch_all(query).await.expect("rows");
                rows.iter().filter_map(|row| row.get::<Option<String>, _>(0)).collect()
            }
        }
    }

    pub async fn sqlite_connection(&self) -> SqliteConnection {
        SqliteConnection::connect(&self.url).await.expect("the embedded database")
    }

    pub async fn postgres_connection(&self) -> PgConnection {
        PgConnection::connect(&self.url).await.expect("the database server")
    }
}
