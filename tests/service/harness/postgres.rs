//! PostgreSQL servers, each on a port of its own. Most tests share one.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use sqlx::{AssertSqlSafe, Connection, Executor, PgConnection};

use super::free_port::free_port;

/// A server that runs until this is dropped.
pub struct Server {
    pub port: u16,
    /// Stops the server when its standard input closes, which happens however this program ends.
    _supervisor: Child,
}

/// Runs a server in a folder of its own until standard input closes, and removes the folder. PostgreSQL refuses to
/// run as root, so root switches to the user that Debian creates for it. Text is collated by the rules of a language,
/// as on most servers.
const SUPERVISOR: &str = r#"
set -eu
bin=$1 port=$2 folder=$3
shift 3
trap 'cd /; rm -rf "$folder"' EXIT
chmod -R go= "$folder"
if [ "$(id -u)" = 0 ]; then chown -R postgres "$folder"; as="runuser -u postgres --"; else as=""; fi
cd "$folder"
$as "$bin/initdb" -D "$folder/data" -U tests -A trust -E UTF8 --locale-provider=icu --icu-locale=en-US --no-sync >"$folder/initdb.log" 2>&1 ||
    { cat "$folder/initdb.log" >&2; exit 1; }
$as "$bin/postgres" -D "$folder/data" -p "$port" -h 127.0.0.1 -k "$folder" \
    -c max_connections=300 -c log_min_messages=fatal "$@" >"$folder/server.log" 2>&1 &
server=$!
trap 'read -r pid <"$folder/data/postmaster.pid"; kill -INT "$pid"; wait $server; cd /; rm -rf "$folder"' EXIT
tries=0
until "$bin/pg_isready" -q -h 127.0.0.1 -p "$port"; do
    tries=$((tries + 1))
    [ $tries -lt 600 ] && kill -0 $server 2>/dev/null || { cat "$folder/server.log" >&2; exit 1; }
    sleep 0.05
done
echo ready
cat >/dev/null
"#;

/// The template of an empty database.
pub const EMPTY: &str = "template1";

/// Creates a copy of another database and returns its URL.
pub async fn new_database(template: &str) -> String {
    static SERVER: OnceLock<Server> = OnceLock::new();
    static CREATED: AtomicU32 = AtomicU32::new(0);
    let server = SERVER.get_or_init(|| start(new_folder(), &[]));
    let name = format!("test_{}", CREATED.fetch_add(1, Ordering::Relaxed));
    let url = format!("postgres://tests@127.0.0.1:{}/{name}", server.port);
    at(&url, &format!("CREATE DATABASE {name} TEMPLATE {template} STRATEGY FILE_COPY")).await;
    url
}

/// Executes a statement about the database at `url` from outside of it.
pub async fn at(url: &str, statement: &str) {
    let (server, _) = url.rsplit_once('/').expect("a server and a database");
    let mut connection = PgConnection::connect(&format!("{server}/postgres")).await.expect("the database server");
    connection.execute(AssertSqlSafe(statement)).await.expect("to be done");
}

/// A folder that the supervisor removes.
pub fn new_folder() -> PathBuf {
    tempfile::tempdir_in(crate::postgres_parent()).expect("a folder").keep()
}

/// Starts a server with its data in this folder and with these options. The files in the folder will belong to the server.
pub fn start(folder: PathBuf, options: &[String]) -> Server {
    let port = free_port();
    let mut supervisor = Command::new("sh")
        .args(["-c", SUPERVISOR, "supervisor"])
        .arg(programs())
        .arg(port.to_string())
        .arg(folder)
        .args(crate::POSTGRES_OPTIONS)
        .args(options)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("a shell");
    let mut line = String::new();
    BufReader::new(supervisor.stdout.take().expect("its output")).read_line(&mut line).expect("a line");
    assert_eq!(line.trim(), "ready", "PostgreSQL did not start");
    Server { port, _supervisor: supervisor }
}

/// Debian keeps the server's programs out of the path, in a folder for each version.
pub fn programs() -> PathBuf {
    let mut versions: Vec<_> = std::fs::read_dir("/usr/lib/postgresql")
        .expect("PostgreSQL is not installed: run ./test, which installs it")
        .filter_map(|entry| Some(entry.ok()?.path().join("bin")))
        .filter(|folder| folder.join("initdb").exists())
        .collect();
    versions.sort();
    versions.pop().expect("PostgreSQL's server is not installed: run ./test, which installs it")
}
