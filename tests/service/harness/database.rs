//! The database behind a service under test, and a look into it where no public face shows what
//! was stored.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;
use sqlx::{AssertSqlSafe, Connection, Executor, PgConnection, Row, SqliteConnection};

use super::postgres;
use super::wire::WATCHDOG;

/// Cheap to copy; the copies are one database.
#[derive(Clone)]
pub struct Database {
    url: String,
    kind: Kind,
}

#[derive(Clone)]
enum Kind {
    /// The folder goes with the last copy.
    Sqlite(#[expect(dead_code, reason = "held for its end")] Arc<tempfile::TempDir>),
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
        Self { url, kind: Kind::Sqlite(Arc::new(folder)) }
    }

    /// The database of a program that was started in a folder of its own.
    pub fn sqlite_at(file: &std::path::Path) -> Self {
        let folder = Arc::new(tempfile::tempdir().expect("a folder"));
        Self { url: format!("sqlite:{}", file.display()), kind: Kind::Sqlite(folder) }
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

    /// How many rows a table has.
    pub async fn count(&self, table: &str) -> i64 {
        self.number(&format!("SELECT COUNT(*) FROM {table}")).await
    }

    /// Waits until a table has so many rows; only rows that never come end it otherwise.
    pub async fn comes_to(&self, table: &str, rows: i64) {
        let arrival = async {
            while self.count(table).await < rows {
                tokio::task::yield_now().await;
            }
        };
        let arrived = tokio::time::timeout(WATCHDOG, arrival).await.is_ok();
        assert!(arrived, "{table} has {} rows, never {rows}", self.count(table).await);
    }

    /// Rows in all tables together: zero as long as nothing has left a trace.
    pub async fn traces(&self) -> i64 {
        let mut traces = 0;
        for table in [
            "people",
            "events",
            "consents",
            "messages",
            "message_digests",
            "outbox",
            "withdrawals",
            "suppressions",
            "counts",
            "sources",
        ] {
            traces += self.count(table).await;
        }
        traces
    }

    /// All tables with all their rows, the same for the same data on either database.
    pub async fn everything(&self) -> BTreeMap<String, Vec<String>> {
        let (tables, columns, array) = match self.kind {
            Kind::Sqlite(_) => (
                "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%'",
                "SELECT name FROM pragma_table_info('TABLE') ORDER BY name",
                "json_array",
            ),
            Kind::Postgres => (
                "SELECT table_name::text FROM information_schema.tables WHERE table_schema = 'public'",
                "SELECT column_name::text FROM information_schema.columns WHERE table_name = 'TABLE' \
                 ORDER BY column_name::text COLLATE \"C\"",
                "json_build_array",
            ),
        };
        let mut everything = BTreeMap::new();
        for table in self.texts(tables).await.into_iter().filter(|table| table != "_sqlx_migrations") {
            let columns = self.texts(&columns.replace("TABLE", &table)).await.join(", ");
            let rows = self.texts(&format!("SELECT CAST({array}({columns}) AS TEXT) FROM {table}")).await;
            let read = |row: &String| serde_json::from_str::<Value>(row).expect("JSON").to_string();
            let mut rows: Vec<_> = rows.iter().map(read).collect();
            rows.sort();
            everything.insert(table, rows);
        }
        everything
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

    /// Does something to the data that no public face can do.
    pub async fn execute(&self, statements: &str) {
        let statements = AssertSqlSafe(statements);
        match self.kind {
            Kind::Sqlite(_) => drop(self.sqlite_connection().await.execute(statements).await.expect("to be done")),
            Kind::Postgres => drop(self.postgres_connection().await.execute(statements).await.expect("to be done")),
        }
    }

    /// Makes the database refuse poison@example.com in a table, as a fault of ours might.
    pub async fn refuse_poison_in(&self, table: &str) {
        let when = "(NEW.address = 'poison@example.com')";
        let trigger = match self.kind {
            Kind::Sqlite(_) => format!(
                "CREATE TRIGGER refuse BEFORE INSERT ON {table} WHEN {when} BEGIN SELECT RAISE(ABORT, 'hunter2'); END"
            ),
            Kind::Postgres => format!(
                "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'hunter2'; END $$; \
                 CREATE TRIGGER refuse BEFORE INSERT ON {table} FOR EACH ROW WHEN {when} EXECUTE FUNCTION refuse()"
            ),
        };
        self.execute(&trigger).await;
    }

    /// Whether the database does not let that happen.
    pub async fn refuses(&self, statement: &str) -> bool {
        let statement = AssertSqlSafe(statement);
        match self.kind {
            Kind::Sqlite(_) => self.sqlite_connection().await.execute(statement).await.is_err(),
            Kind::Postgres => self.postgres_connection().await.execute(statement).await.is_err(),
        }
    }

    /// Keeps everybody else from writing until it is released.
    pub async fn lock(&self) -> Lock {
        self.lock_tables("people, message_digests").await
    }

    /// Keeps everybody else from publishing until it is released.
    pub async fn lock_releases(&self) -> Lock {
        self.lock_tables("releases IN SHARE MODE").await
    }

    /// PostgreSQL alone: lets everybody read a table, and nobody write to it until it is released.
    pub async fn lock_for_writing(&self, table: &str) -> Lock {
        self.lock_tables(&format!("{table} IN SHARE MODE")).await
    }

    async fn lock_tables(&self, tables: &str) -> Lock {
        match self.kind {
            Kind::Sqlite(_) => {
                let mut connection = self.sqlite_connection().await;
                connection.execute("BEGIN IMMEDIATE").await.expect("the only writer's place");
                Lock::Sqlite(connection)
            }
            Kind::Postgres => {
                let mut connection = self.postgres_connection().await;
                let lock = AssertSqlSafe(format!("BEGIN; LOCK TABLE {tables}"));
                connection.execute(lock).await.expect("the tables alone");
                Lock::Postgres(connection)
            }
        }
    }

    /// PostgreSQL alone: ends every connection and lets nobody in.
    pub async fn close_the_door(&self) {
        let name = self.name();
        postgres::at(self.url(), &format!("ALTER DATABASE {name} ALLOW_CONNECTIONS false")).await;
        let rest = format!("SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity WHERE datname = '{name}'");
        postgres::at(self.url(), &rest).await;
    }

    pub async fn open_the_door(&self) {
        postgres::at(self.url(), &format!("ALTER DATABASE {} ALLOW_CONNECTIONS true", self.name())).await;
    }

    /// What PostgreSQL calls this database.
    pub fn name(&self) -> &str {
        self.url.rsplit('/').next().expect("a name")
    }

    pub async fn sqlite_connection(&self) -> SqliteConnection {
        SqliteConnection::connect(&self.url).await.expect("the embedded database")
    }

    pub async fn postgres_connection(&self) -> PgConnection {
        PgConnection::connect(&self.url).await.expect("the database server")
    }
}

/// Writes wait as long as this is held.
pub enum Lock {
    Sqlite(SqliteConnection),
    Postgres(PgConnection),
}

impl Lock {
    pub async fn release(self) {
        match self {
            Self::Sqlite(mut connection) => connection.execute("ROLLBACK").await.map(drop),
            Self::Postgres(mut connection) => connection.execute("ROLLBACK").await.map(drop),
        }
        .expect("to let go");
    }
}
