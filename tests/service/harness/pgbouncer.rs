//! PgBouncer, a real pooler, in transaction mode.

use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use super::database::Database;
use super::free_port::free_port;
use super::wait::wait_until;

pub struct PgBouncer {
    port: u16,
    database: String,
    server: Child,
    _folder: tempfile::TempDir,
}

impl PgBouncer {
    /// A pooler in front of the database, with fewer sessions than its clients have connections.
    pub async fn start(database: &Database) -> Self {
        let (folder, port, name) = (tempfile::tempdir().expect("a folder"), free_port(), database.name().to_owned());
        let (_, server) = database.url().split_once('@').expect("a user");
        let server_port = server.split([':', '/']).nth(1).expect("a port");
        let settings = format!(
            "[databases]\n{name} = host=127.0.0.1 port={server_port} dbname={name} user=tests\n\
             [pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\nauth_type = any\n\
             pool_mode = transaction\ndefault_pool_size = 3\nmax_client_conn = 200\n"
        );
        let file = folder.path().join("pgbouncer.ini");
        std::fs::write(&file, settings).expect("its settings");
        let bouncer = Self { port, database: name, server: spawn(&file), _folder: folder };
        wait_until("PgBouncer accepts connections", async || TcpStream::connect(("127.0.0.1", port)).is_ok()).await;
        bouncer
    }

    pub fn url(&self) -> String {
        format!("postgres://tests@127.0.0.1:{}/{}?pooler=transaction", self.port, self.database)
    }
}

/// PgBouncer refuses to run as root, and reads its settings as another user.
fn spawn(settings: &Path) -> Child {
    use std::os::unix::fs::PermissionsExt;
    let mut command = Command::new("pgbouncer");
    if rustix::process::geteuid().is_root() {
        let folder = settings.parent().expect("a folder");
        std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o755)).expect("a folder for all");
        command = Command::new("setpriv");
        command.args(["--reuid", "postgres", "--regid", "postgres", "--clear-groups", "--", "pgbouncer"]);
    }
    command.arg("--quiet").arg(settings).env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().expect("PgBouncer is not installed: run ./test, which installs it")
}

impl Drop for PgBouncer {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}
