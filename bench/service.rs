//! Starts the real program with either database, without settings from the environment.

use std::fs::File;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use sqlx::{AssertSqlSafe, Connection, Executor, PgConnection, SqliteConnection};
use tempfile::TempDir;

use crate::connection::{self, Transport};
use crate::free_port::free_port;
use crate::postgres;

pub enum Database {
    Sqlite(TempDir),
    /// The folder is for other files.
    Postgres(TempDir, String),
}

impl Database {
    pub fn sqlite() -> Self {
        Self::Sqlite(tempfile::tempdir().expect("a folder"))
    }

    pub async fn postgres() -> Self {
        Self::Postgres(tempfile::tempdir().expect("a folder"), postgres::new_database(postgres::EMPTY).await)
    }

    pub async fn both() -> [Self; 2] {
        [Self::sqlite(), Self::postgres().await]
    }

    pub fn name(&self) -> &'static str {
        match self {
            Self::Sqlite(_) => "SQLite",
            Self::Postgres(..) => "PostgreSQL",
        }
    }

    pub fn folder(&self) -> &Path {
        match self {
            Self::Sqlite(folder) | Self::Postgres(folder, _) => folder.path(),
        }
    }

    pub fn url(&self) -> String {
        match self {
            Self::Sqlite(folder) => format!("sqlite:{}", folder.path().join("porchlight.db").display()),
            Self::Postgres(_, url) => url.clone(),
        }
    }

    /// The same database, reached through a relay.
    pub fn behind(self, relay: &Server) -> Self {
        let Self::Postgres(folder, url) = self else { return self };
        let mut url = url::Url::parse(&url).expect("a URL");
        url.set_port(Some(relay.address.port())).expect("a URL with a host");
        Self::Postgres(folder, url.into())
    }

    /// Returns a command of the program that uses this database.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_porchlight"));
        command.args(arguments).args(["--database-url", &self.url()]).current_dir(self.folder()).stdin(Stdio::null());
        for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("PORCHLIGHT_")) {
            command.env_remove(name);
        }
        command.env("PORCHLIGHT_CONFIG", "/dev/null");
        command
    }

    /// Executes a statement while the service may be running.
    pub async fn execute(&self, statement: &str) {
        let statement = AssertSqlSafe(statement);
        match self {
            Self::Sqlite(_) => {
                let mut connection = SqliteConnection::connect(&self.url()).await.expect("the embedded database");
                connection.execute(statement).await.expect("a statement that succeeds");
            }
            Self::Postgres(_, url) => {
                let mut connection = PgConnection::connect(url).await.expect("the database server");
                connection.execute(statement).await.expect("a statement that succeeds");
            }
        }
    }

    /// Executes statements one after another without syncing to disk before the end. Nobody else may use the database.
    pub async fn execute_in_bulk(&self, statements: &[String]) {
        let statements = statements.iter().map(|statement| AssertSqlSafe(statement.as_str()));
        match self {
            Self::Sqlite(folder) => {
                let mut connection = SqliteConnection::connect(&self.url()).await.expect("the embedded database");
                let fast = "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = -200000";
                connection.execute(fast).await.expect("pragmas");
                for statement in statements {
                    connection.execute(statement).await.expect("a statement that succeeds");
                }
                connection.execute("PRAGMA journal_mode = WAL").await.expect("a pragma");
                connection.close().await.expect("a closed connection");
                let file = File::open(folder.path().join("porchlight.db")).expect("the file");
                file.sync_all().expect("a synced file");
            }
            Self::Postgres(_, url) => {
                let mut connection = PgConnection::connect(url).await.expect("the database server");
                for statement in statements {
                    connection.execute(statement).await.expect("a statement that succeeds");
                }
                for statement in ["VACUUM ANALYZE", "CHECKPOINT"] {
                    connection.execute(statement).await.expect("a statement that succeeds");
                }
                connection.close().await.expect("a closed connection");
            }
        }
    }

    /// Frees the disk space.
    pub async fn discard(self) {
        if let Self::Postgres(_, url) = &self {
            let (_, name) = url.rsplit_once('/').expect("a database");
            postgres::at(url, &format!("DROP DATABASE {name} WITH (FORCE)")).await;
        }
    }
}

/// A server process, killed on drop.
pub struct Server {
    child: Child,
    pub address: SocketAddr,
    transport: Transport,
}

impl Server {
    pub fn start(database: &Database) -> Self {
        Self::start_with(database, &["--ops-listen", "off"])
    }

    /// Starts the real program. Its log goes to a file, as in production.
    pub fn start_with(database: &Database, arguments: &[&str]) -> Self {
        let address = free_address();
        let mut command = database.command(&["serve", "--listen", &address.to_string()]);
        command.args(arguments).stderr(File::create(database.folder().join("log")).expect("a log"));
        Self::spawn(command, address)
    }

    /// Starts a server and waits until it accepts connections at the address.
    pub fn spawn(mut command: Command, address: SocketAddr) -> Self {
        let mut child = command.stdout(Stdio::null()).spawn().expect("the program");
        while TcpStream::connect(address).is_err() {
            assert!(child.try_wait().expect("its state").is_none(), "the server exited");
            std::thread::sleep(Duration::from_millis(1));
        }
        Self { child, address, transport: Transport::default() }
    }

    /// Lets clients connect in this way.
    pub fn over(mut self, transport: Transport) -> Self {
        self.transport = transport;
        self
    }

    pub async fn connect(&self) -> connection::Connection {
        connection::Connection::open(self.address, &self.transport).await
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns an address with a free port.
pub fn free_address() -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()))
}
