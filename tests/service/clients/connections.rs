//! The number of connections of a client, in a network where clients have public addresses.

use std::process::Command;

use rustix::process::Signal;

use crate::harness::{
    Connection, PUBLIC_ADDRESSES, Program, Service, connect_from, in_network_namespace, on_one_database_with,
    wait_until,
};
use crate::ops::{ask, watched};

const LIMIT: usize = 256;
const GET: &str = "GET /robots.txt HTTP/1.1\r\nHost: x\r\n\r\n";
const LAST: &str = "GET /robots.txt HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";

async fn open(service: &Service, from: &str) -> Connection {
    Connection::new(connect_from(from, service.address()).await)
}

/// Whether a request on the connection is answered.
async fn is_served(connection: &mut Connection) -> bool {
    connection.send(LAST).await;
    connection.read_to_end().await.contains("HTTP/1.1 200")
}

/// Opens as many connections as a client may have, and sends a request on each, so that all are accepted.
async fn open_all(service: &Service, from: &str) -> Vec<Connection> {
    let mut connections = Vec::new();
    for _ in 0..LIMIT {
        let mut connection = open(service, from).await;
        connection.send(GET).await;
        connection.read_until("\r\n\r\n").await;
        connections.push(connection);
    }
    connections
}

#[tokio::test]
async fn idle_connections_of_the_largest_holder_make_room_when_all_are_taken() {
    if !in_network_namespace(
        "clients::connections::idle_connections_of_the_largest_holder_make_room_when_all_are_taken",
    )
    .await
    {
        return;
    }
    let [ada, bob] = PUBLIC_ADDRESSES;
    let folder = tempfile::tempdir().expect("a folder");
    let serve = Program::command(folder.path(), &["serve", "--listen", "127.0.0.1:0", "--ops-listen", "off"]);
    let mut limited = Command::new("sh");
    limited.args(["-c", "ulimit -n 128 && exec \"$@\"", "sh"]).arg(serve.get_program()).args(serve.get_args());
    limited.current_dir(folder.path());
    let program = Program::start(limited, "connections are open at once");
    assert!(program.output().contains("At most 28 connections"), "{}", program.output());

    let mut of_bob = Connection::new(connect_from(bob, program.address()).await);
    of_bob.send(GET).await;
    of_bob.read_until("\r\n\r\n").await;
    let mut of_ada = Vec::new();
    for _ in 0..27 {
        let mut connection = Connection::new(connect_from(ada, program.address()).await);
        connection.send(GET).await;
        connection.read_until("\r\n\r\n").await;
        of_ada.push(connection);
    }
    let mut other = Connection::new(connect_from("127.0.0.1", program.address()).await);
    assert!(is_served(&mut other).await, "somebody else, while all places were taken");
    assert!(is_served(&mut of_bob).await, "the only connection of its client");
    program.signal(Signal::TERM);
    let (_, log) = program.end();
    let lines = log.lines().filter(|line| line.contains("Idle ones of the clients that have most are closed"));
    assert_eq!(lines.count(), 1, "{log}");
}

#[tokio::test]
async fn further_connections_of_a_client_are_closed() {
    if !in_network_namespace("clients::connections::further_connections_of_a_client_are_closed").await {
        return;
    }
    let [ada, bob] = PUBLIC_ADDRESSES;
    on_one_database_with(watched(), async |service| {
        let mut connections = open_all(service, ada).await;
        assert!(!is_served(&mut open(service, ada).await).await);
        assert!(is_served(&mut open(service, bob).await).await, "another client");
        assert!(is_served(&mut open(service, "127.0.0.1").await).await, "a local peer");
        let (_, _, metrics) = ask(service, "/metrics", &[]).await;
        assert!(metrics.contains("porchlight_refused_total{reason=\"connections_per_client\"} 1"), "{metrics}");
        // A connection that ends makes room for another.
        drop(connections.pop());
        wait_until("room for another connection", async || is_served(&mut open(service, ada).await).await).await;
    })
    .await;
}
