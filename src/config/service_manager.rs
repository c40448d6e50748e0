//! Variables that a service manager such as systemd sets for the processes that it starts.

use super::resolve::environment;

/// The names of the sockets that it passes on, in their order.
pub(crate) fn socket_names() -> Vec<String> {
    let names = environment("LISTEN_FDNAMES").unwrap_or_default();
    names.split(':').map(str::to_owned).collect()
}

/// Where it wants to be told about the state of the service.
pub(crate) fn notify_socket() -> Option<String> {
    environment("NOTIFY_SOCKET").filter(|path| !path.is_empty())
}
