//! The database behind a service under test, with access to what no public interface shows.

use std::collections::BTreeMap;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::sync::Arc;

use serde_json::Value;
use sqlx::{AssertSqlSafe, Connection, Executor, PgConnection, Row, SqliteConnection};

use porchlight::store::{Database as StoredIn, Store};
use tokio::sync::{MappedMutexGuard, Mutex, MutexGuard, OnceCell};

use super::wait::wait_until;
use super::{folder, postgres};

/// Cheap to clone; the clones are one database.
#[derive(Clone)]
pub struct Database {
    url: String,
    kind: Kind,
}

#[derive(Clone)]
enum Kind {
    /// The folder is removed with the last clone.
    Sqlite(#[expect(dead_code, reason = "removes the folder when dropped")] Arc<tempfile::TempDir>),
    /// The connection that all statements of a test share: to connect takes the server longer than most statements.
    Postgres(Arc<Mutex<Option<PgConnection>>>),
}

impl std::fmt::Debug for Database {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self.kind {
            Kind::Sqlite(_) => "SQLite",
            Kind::Postgres(_) => "PostgreSQL",
        })
    }
}

/// Two databases made from one template have the same key for hashing addresses; a real one never shares it.
const NEW_KEY: &str = "UPDATE secrets SET value = '{KEY}' WHERE name = 'addresses'";

impl Database {
    /// An empty database: the service under test has to create its tables.
    pub fn sqlite() -> Self {
        let folder = folder::new();
        let url = format!("sqlite:{}", folder.path().join("porchlight.db").display());
        Self { url, kind: Kind::Sqlite(Arc::new(folder)) }
    }

    /// The database of a program that was started in a folder of its own.
    pub fn sqlite_at(file: &std::path::Path) -> Self {
        let folder = Arc::new(tempfile::tempdir().expect("a folder"));
        Self { url: format!("sqlite:{}", file.display()), kind: Kind::Sqlite(folder) }
    }

    /// An empty database: the service under test has to create its tables.
    pub async fn postgres() -> Self {
        Self::postgres_at(&postgres::new_database(postgres::EMPTY).await)
    }

    /// The only database that is used on its server.
    pub fn on_a_server_of_its_own() -> (Self, postgres::Server) {
        let server = postgres::start(postgres::new_folder(), &[]);
        (Self::postgres_at(&format!("postgres://tests@127.0.0.1:{}/postgres", server.port)), server)
    }

    /// A database with all tables, as a service leaves it behind that was started once.
    pub async fn migrated_sqlite() -> Self {
        static TEMPLATE: OnceCell<Vec<u8>> = OnceCell::const_new();
        let template = TEMPLATE.get_or_init(async || {
            let template = Self::sqlite();
            template.migrate().await;
            std::fs::read(template.file()).expect("the template")
        });
        let database = Self::sqlite();
        let mut file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(database.file());
        file.as_mut().expect("a file").write_all(template.await).expect("a copy of the template");
        database.replace_key().await;
        database
    }

    /// A database with all tables, as a service leaves it behind that was started once.
    pub async fn migrated_postgres() -> Self {
        static TEMPLATE: OnceCell<Database> = OnceCell::const_new();
        let template = TEMPLATE.get_or_init(async || {
            let template = Self::postgres().await;
            template.migrate().await;
            template
        });
        let database = Self::postgres_at(&postgres::new_database(template.await.name()).await);
        database.replace_key().await;
        database
    }

    async fn migrate(&self) {
        let store = self.store();
        store.migrate().await.expect("all migrations to be applied");
        store.close().await;
    }

    async fn replace_key(&self) {
        let key = format!("{}{}", uuid::Uuid::now_v7().simple(), uuid::Uuid::now_v7().simple());
        self.execute(&NEW_KEY.replace("{KEY}", &key)).await;
    }

    /// SQLite alone: where the database is.
    fn file(&self) -> &std::path::Path {
        std::path::Path::new(self.url.strip_prefix("sqlite:").expect("a file"))
    }

    /// A PostgreSQL database that exists already.
    pub fn postgres_at(url: &str) -> Self {
        Self { url: url.to_owned(), kind: Kind::Postgres(Arc::default()) }
    }

    pub fn url(&self) -> &str {
        &self.url
    }

    pub fn store(&self) -> Store {
        Store::open(&StoredIn::parse(&self.url).expect("a database")).expect("a store")
    }

    /// PostgreSQL alone: the same database for a new role that may use all tables and owns none, and the name of the role.
    pub async fn as_limited_role(&self) -> (Self, String) {
        let role = format!("{}_role", self.name());
        let create = format!(
            "CREATE ROLE {role} LOGIN; GRANT ALL ON ALL TABLES IN SCHEMA public TO {role}; \
             GRANT CREATE ON SCHEMA public TO {role}"
        );
        self.execute(&create).await;
        (Self::postgres_at(&self.url.replace("//tests@", &format!("//{role}@"))), role)
    }

    pub fn is_postgres(&self) -> bool {
        matches!(self.kind, Kind::Postgres(_))
    }

    /// How many rows a table has.
    pub async fn count(&self, table: &str) -> i64 {
        self.number(&format!("SELECT COUNT(*) FROM {table}")).await
    }

    /// Waits until a table has so many rows.
    pub async fn wait_for_rows(&self, table: &str, rows: i64) {
        wait_until(&format!("{rows} rows in {table}"), async || self.count(table).await >= rows).await;
    }

    /// Rows in all tables together: zero as long as nothing has been stored.
    pub async fn traces(&self) -> i64 {
        let mut traces = 0;
        for table in [
            "people",
            "signups",
            "consents",
            "messages",
            "message_hashes",
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

    /// All tables with all their rows, the same for the same data on either database. Leaves out when the service did something
    /// last, which changes by itself.
    pub async fn everything(&self) -> BTreeMap<String, Vec<String>> {
        let (tables, columns, array) = match self.kind {
            Kind::Sqlite(_) => (
                "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%'",
                "SELECT name FROM pragma_table_info('TABLE') ORDER BY name",
                "json_array",
            ),
            Kind::Postgres(_) => (
                "SELECT table_name::text FROM information_schema.tables WHERE table_schema = 'public'",
                "SELECT column_name::text FROM information_schema.columns WHERE table_name = 'TABLE' \
                 ORDER BY column_name::text COLLATE \"C\"",
                "json_build_array",
            ),
        };
        let mut everything = BTreeMap::new();
        let left_out = ["_sqlx_migrations", "tasks"];
        for table in self.texts(tables).await.into_iter().filter(|table| !left_out.contains(&table.as_str())) {
            let columns = self.texts(&columns.replace("TABLE", &table)).await.join(", ");
            let rows = self.texts(&format!("SELECT CAST({array}({columns}) AS TEXT) FROM {table}")).await;
            let read = |row: &String| serde_json::from_str::<Value>(row).expect("JSON").to_string();
            let mut rows: Vec<_> = rows.iter().map(read).collect();
            rows.sort();
            everything.insert(table, rows);
        }
        everything
    }

    /// The same without what `restore` or `move` recorded here, once.
    pub async fn everything_copied(&self) -> BTreeMap<String, Vec<String>> {
        let mut everything = self.everything().await;
        let activity = everything.get_mut("activity").expect("a table");
        let is_copy =
            |row: &String| row.contains("restored a backup") || row.contains("moved the data to this database");
        assert_eq!(activity.extract_if(.., |row| is_copy(row)).count(), 1, "{activity:?}");
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
            Kind::Postgres(_) => sqlx::query_scalar(query).fetch_one(&mut *self.shared_connection().await).await,
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
            Kind::Postgres(_) => {
                let rows = self.shared_connection().await.fetch_all(query).await.expect("rows");
                rows.iter().filter_map(|row| row.get::<Option<String>, _>(0)).collect()
            }
        }
    }

    /// Changes the data in ways that no public interface can.
    pub async fn execute(&self, statements: &str) {
        let statements = AssertSqlSafe(statements);
        match self.kind {
            Kind::Sqlite(_) => {
                let mut connection = self.sqlite_connection().await;
                connection.execute(statements).await.expect("to be done");
                // Leaves no WAL behind, unlike a connection that is only dropped.
                connection.close().await.expect("to be closed");
            }
            Kind::Postgres(_) => drop(self.shared_connection().await.execute(statements).await.expect("to be done")),
        }
    }

    /// Makes the database refuse poison@example.com in a table, as a bug in a statement might.
    pub async fn refuse_poison_in(&self, table: &str) {
        let when = "(NEW.address = 'poison@example.com')";
        let trigger = match self.kind {
            Kind::Sqlite(_) => format!(
                "CREATE TRIGGER refuse BEFORE INSERT ON {table} WHEN {when} BEGIN SELECT RAISE(ABORT, 'hunter2'); END"
            ),
            Kind::Postgres(_) => format!(
                "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'hunter2'; END $$; \
                 CREATE TRIGGER refuse BEFORE INSERT ON {table} FOR EACH ROW WHEN {when} EXECUTE FUNCTION refuse()"
            ),
        };
        self.execute(&trigger).await;
    }

    /// Whether the database rejects the statement.
    pub async fn refuses(&self, statement: &str) -> bool {
        let statement = AssertSqlSafe(statement);
        match self.kind {
            Kind::Sqlite(_) => self.sqlite_connection().await.execute(statement).await.is_err(),
            Kind::Postgres(_) => self.shared_connection().await.execute(statement).await.is_err(),
        }
    }

    /// Blocks all writes until it is released.
    pub async fn lock(&self) -> Lock {
        self.lock_tables("people, message_hashes").await
    }

    /// Blocks publishing until it is released.
    pub async fn lock_releases(&self) -> Lock {
        self.lock_tables("releases IN SHARE MODE").await
    }

    /// PostgreSQL alone: blocks writes to a table, but not reads, until it is released.
    pub async fn lock_for_writing(&self, table: &str) -> Lock {
        self.lock_tables(&format!("{table} IN SHARE MODE")).await
    }

    /// Blocks these tables until it is released; in SQLite, all writes.
    pub async fn lock_tables(&self, tables: &str) -> Lock {
        self.open_transaction("BEGIN IMMEDIATE", &format!("BEGIN; LOCK TABLE {tables}")).await
    }

    async fn open_transaction(&self, on_sqlite: &str, on_postgres: &str) -> Lock {
        match self.kind {
            Kind::Sqlite(_) => {
                let mut connection = self.sqlite_connection().await;
                connection.execute(AssertSqlSafe(on_sqlite)).await.expect("a transaction");
                Lock::Sqlite(connection)
            }
            Kind::Postgres(_) => {
                let mut connection = self.postgres_connection().await;
                connection.execute(AssertSqlSafe(on_postgres)).await.expect("a transaction");
                Lock::Postgres(connection)
            }
        }
    }

    /// Begins a transaction that reads a table, as a backup does, and sees it unchanged until it is released.
    pub async fn read_in_a_transaction(&self, table: &str) -> Lock {
        let read = format!("SELECT COUNT(*) FROM {table}");
        self.open_transaction(&format!("BEGIN; {read}"), &format!("BEGIN ISOLATION LEVEL REPEATABLE READ; {read}"))
            .await
    }

    /// PostgreSQL alone: begins a transaction that writes to another database of the server.
    pub async fn write_to_another_database(&self) -> Lock {
        let (server, _) = self.url.rsplit_once('/').expect("a server and a database");
        let mut connection = Self::postgres_at(&format!("{server}/{}", postgres::EMPTY)).postgres_connection().await;
        connection.execute("BEGIN; CREATE TABLE written (value TEXT)").await.expect("to be written");
        Lock::Postgres(connection)
    }

    /// PostgreSQL alone: ends every connection and refuses new ones.
    pub async fn refuse_connections(&self) {
        let name = self.name();
        postgres::at(self.url(), &format!("ALTER DATABASE {name} ALLOW_CONNECTIONS false")).await;
        let rest = format!("SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity WHERE datname = '{name}'");
        postgres::at(self.url(), &rest).await;
    }

    pub async fn accept_connections(&self) {
        postgres::at(self.url(), &format!("ALTER DATABASE {} ALLOW_CONNECTIONS true", self.name())).await;
    }

    /// The name of this database in PostgreSQL.
    pub fn name(&self) -> &str {
        self.url.rsplit('/').next().expect("a name")
    }

    pub async fn sqlite_connection(&self) -> SqliteConnection {
        SqliteConnection::connect(&self.url).await.expect("the embedded database")
    }

    /// PostgreSQL alone: the connection of this test, a new one where the server has closed it.
    async fn shared_connection(&self) -> MappedMutexGuard<'_, PgConnection> {
        let Kind::Postgres(shared) = &self.kind else { panic!("{self:?} has no server") };
        let mut shared = shared.lock().await;
        let alive = match shared.as_mut() {
            Some(connection) => connection.ping().await.is_ok(),
            None => false,
        };
        if !alive {
            *shared = Some(self.postgres_connection().await);
        }
        MutexGuard::map(shared, |connection| connection.as_mut().expect("a connection"))
    }

    pub async fn postgres_connection(&self) -> PgConnection {
        PgConnection::connect(&self.url).await.expect("the database server")
    }
}

/// A transaction that is open as long as this is held.
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
        .expect("to be released");
    }
}
