//! Starts the real program with either database, without settings from the environment.

use std::fs::File;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use sqlx::{AssertSqlSafe, Connection, Executor, PgConnection, SqliteConnection};
use tempfile::TempDir;

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

    /// Returns a command of the program that uses this database.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_porchlight"));
        command.args(arguments).args(["--database-url", &self.url()]).current_dir(self.folder()).stdin(Stdio::null());
        for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("PORCHLIGHT_")) {
            command.env_remove(name);
        }
        command
    }

    pub async fn execute(&self, statements: &str) {
        let statements = AssertSqlSafe(statements);
        match self {
            Self::Sqlite(_) => {
                let mut connection = SqliteConnection::connect(&self.url()).await.expect("the embedded database");
                connection.execute("PRAGMA synchronous = OFF").await.expect("a pragma");
                connection.execute(statements).await.expect("statements that succeed");
                // The last connection to close runs a checkpoint, which locks the database while it runs.
                connection.close().await.expect("a checkpoint");
            }
            Self::Postgres(_, url) => {
                let mut connection = PgConnection::connect(url).await.expect("the database server");
                connection.execute(statements).await.expect("statements that succeed");
                connection.close().await.expect("a closed connection");
            }
        }
    }
}

/// A server process, killed on drop.
pub struct Server {
    child: Child,
    pub address: SocketAddr,
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
        Self { child, address }
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
    TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a free port")
}
