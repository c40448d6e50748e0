//! The real program on a database of either kind, with nothing of ours in its environment.

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
    /// The folder is for what is no database.
    Postgres(TempDir, String),
}

impl Database {
    pub fn sqlite() -> Self {
        Self::Sqlite(tempfile::tempdir().expect("a folder"))
    }

    pub async fn postgres() -> Self {
        Self::Postgres(tempfile::tempdir().expect("a folder"), postgres::new_database().await)
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

    /// A command of the program on this database.
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
                connection.execute("PRAGMA synchronous = OFF").await.expect("no waiting for the disk");
                connection.execute(statements).await.expect("to be done");
                // Whoever closes last moves a long log into the file, and lets nobody in meanwhile.
                connection.close().await.expect("to be closed");
            }
            Self::Postgres(_, url) => {
                let mut connection = PgConnection::connect(url).await.expect("the database server");
                connection.execute(statements).await.expect("to be done");
                connection.close().await.expect("to be closed");
            }
        }
    }
}

/// A process that serves until this is dropped.
pub struct Serving {
    child: Child,
    pub address: SocketAddr,
}

impl Serving {
    pub fn start(database: &Database) -> Self {
        Self::start_with(database, &["--ops-listen", "off"])
    }

    /// The real program. Its log goes to a file, as that of a service does.
    pub fn start_with(database: &Database, arguments: &[&str]) -> Self {
        let address = free_address();
        let mut command = database.command(&["serve", "--listen", &address.to_string()]);
        command.args(arguments).stderr(File::create(database.folder().join("log")).expect("a log"));
        Self::spawn(command, address)
    }

    /// Whatever will answer at an address.
    pub fn spawn(mut command: Command, address: SocketAddr) -> Self {
        let mut child = command.stdout(Stdio::null()).spawn().expect("the program");
        while TcpStream::connect(address).is_err() {
            assert!(child.try_wait().expect("its state").is_none(), "it ended instead of serving");
            std::thread::sleep(Duration::from_millis(1));
        }
        Self { child, address }
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Nobody listens there, and nobody else was just told so.
pub fn free_address() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a free port")
}
