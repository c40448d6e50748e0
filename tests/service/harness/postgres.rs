//! One PostgreSQL server for the whole test program, on a port of its own.

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use sqlx::{AssertSqlSafe, Connection, Executor, PgConnection};

struct Server {
    port: u16,
    /// Its standard input closes when this program ends, however it ends, and takes the server along.
    _keeper: Child,
}

/// Makes a cluster in a folder of its own, serves it until standard input closes, and cleans up.
/// PostgreSQL does not run as root, so root hands over to the user that Debian makes for it. It puts
/// words in the order of a language, as most servers are set up to.
const KEEPER: &str = r#"
set -eu
bin=$1 port=$2
shift 2
folder=$(mktemp -d)
if [ "$(id -u)" = 0 ]; then chown postgres "$folder"; as="runuser -u postgres --"; else as=""; fi
cd "$folder"
$as "$bin/initdb" -D "$folder/data" -U tests -A trust -E UTF8 --locale-provider=icu --icu-locale=en-US --no-sync >"$folder/initdb.log" 2>&1 ||
    { cat "$folder/initdb.log" >&2; exit 1; }
$as "$bin/postgres" -D "$folder/data" -p "$port" -h 127.0.0.1 -k "$folder" "$@" \
    -c max_connections=200 -c log_min_messages=fatal >"$folder/server.log" 2>&1 &
server=$!
trap 'kill -INT $(head -n 1 "$folder/data/postmaster.pid"); wait $server; cd /; rm -rf "$folder"' EXIT
tries=0
until "$bin/pg_isready" -q -h 127.0.0.1 -p "$port"; do
    tries=$((tries + 1))
    [ $tries -lt 600 ] && kill -0 $server 2>/dev/null || { cat "$folder/server.log" >&2; exit 1; }
    sleep 0.05
done
echo ready
cat >/dev/null
"#;

/// The address of a new, empty database.
pub async fn new_database() -> String {
    static SERVER: OnceLock<Server> = OnceLock::new();
    static MADE: AtomicU32 = AtomicU32::new(0);
    let server = SERVER.get_or_init(start);
    let name = format!("test_{}", MADE.fetch_add(1, Ordering::Relaxed));
    let address = |database: &str| format!("postgres://tests@127.0.0.1:{}/{database}", server.port);
    at(&address(&name), &format!("CREATE DATABASE {name}")).await;
    address(&name)
}

/// Does something to the database at `url` from outside of it.
pub async fn at(url: &str, statement: &str) {
    let (server, _) = url.rsplit_once('/').expect("a server and a database");
    let mut connection = PgConnection::connect(&format!("{server}/postgres")).await.expect("the database server");
    connection.execute(AssertSqlSafe(statement)).await.expect("to be done");
}

fn start() -> Server {
    let port = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a free port").port();
    let mut keeper = Command::new("sh")
        .args(["-c", KEEPER, "keeper"])
        .arg(programs())
        .arg(port.to_string())
        .args(crate::POSTGRES_OPTIONS)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("a shell");
    let mut line = String::new();
    BufReader::new(keeper.stdout.take().expect("its output")).read_line(&mut line).expect("a word from it");
    assert_eq!(line.trim(), "ready", "PostgreSQL did not start");
    Server { port, _keeper: keeper }
}

/// Debian keeps the server's programs out of the path, in a folder for each version.
fn programs() -> PathBuf {
    let mut versions: Vec<_> = std::fs::read_dir("/usr/lib/postgresql")
        .expect("PostgreSQL is not installed: run ./test, which installs it")
        .filter_map(|entry| Some(entry.ok()?.path().join("bin")))
        .filter(|folder| folder.join("initdb").exists())
        .collect();
    versions.sort();
    versions.pop().expect("PostgreSQL's server is not installed: run ./test, which installs it")
}
