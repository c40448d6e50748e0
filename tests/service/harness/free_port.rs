//! Ports for programs that cannot be told to take any free one.

use std::net::{Ipv4Addr, TcpListener};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU16, Ordering};

/// A port on which nothing listens. It is below those that Linux gives to sockets that ask for any port, and no two calls return
/// the same one, so nothing else takes it before the caller's program does.
pub fn free_port() -> u16 {
    static NEXT: LazyLock<AtomicU16> = LazyLock::new(|| {
        // Another process of the tests starts elsewhere.
        let process = u16::try_from(std::process::id() % 100).expect("less than 100");
        AtomicU16::new(20_000 + 100 * process)
    });
    std::iter::repeat_with(|| NEXT.fetch_add(1, Ordering::Relaxed))
        .take_while(|port| *port < 32_768)
        .find(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok())
        .expect("a free port")
}
