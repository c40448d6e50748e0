//! A network of its own for a test that needs peers with public addresses.

use std::net::{IpAddr, SocketAddr};
use std::process::{Command, Stdio};

use tokio::net::{TcpListener, TcpSocket, TcpStream};

use super::Program;

/// Public addresses that this machine has in the network of such a test, and nowhere else.
pub const PUBLIC_ADDRESSES: [&str; 2] = ["203.0.113.7", "203.0.113.8"];

/// Runs its arguments after it has given the loopback interface the addresses. A user that is not root becomes root in
/// a user namespace.
const SCRIPT: &str = r#"
set -eu
if [ "$(id -u)" = 0 ]; then as=""; else as="--map-root-user"; fi
exec unshare $as --net sh -euc '
ip link set lo up
for address in $ADDRESSES; do ip address add "$address/32" dev lo; done
exec "$@"
' sh "$@"
"#;

/// Runs the test `name` (its path) in a network namespace: as a process of this program that runs nothing else.
/// Returns whether this is that process, which has to do the test.
pub async fn in_network_namespace(name: &str) -> bool {
    if TcpListener::bind((PUBLIC_ADDRESSES[0], 0)).await.is_ok() {
        return true;
    }
    let mut command = Command::new("sh");
    command.args(["-c", SCRIPT, "sh"]).arg(std::env::current_exe().expect("this program"));
    command.args(["--exact", name, "--nocapture"]).env("ADDRESSES", PUBLIC_ADDRESSES.join(" ")).stdin(Stdio::null());
    let (code, output) = Program::run(command);
    assert!(code == 0 && output.contains("1 passed"), "{output}");
    false
}

/// Opens a connection from one of the addresses.
pub async fn connect_from(address: &str, to: SocketAddr) -> TcpStream {
    let socket = TcpSocket::new_v4().expect("a socket");
    let address: IpAddr = address.parse().expect("an address");
    socket.bind((address, 0).into()).expect("an address of this machine");
    socket.connect(to).await.expect("a connection")
}
