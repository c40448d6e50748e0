//! The number of connections of a client, in a network where clients have public addresses.

use crate::harness::{
    Connection, PUBLIC_ADDRESSES, Service, connect_from, in_network_namespace, on_one_database_with, wait_until,
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
    connection.read_to_end().await.starts_with("HTTP/1.1 200")
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
