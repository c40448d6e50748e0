//! Sockets that the service manager opened and passes on (`LISTEN_FDS`), so that a restart refuses nobody, and the
//! notifications that it wants in return.

use std::collections::HashMap;
use std::net::TcpListener;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

use listenfd::ListenFd;

use crate::config::{notify_socket, socket_names};

/// Listeners by the setting whose addresses they replace.
#[derive(Debug, Default)]
pub(super) struct InheritedListeners(HashMap<&'static str, Vec<TcpListener>>);

/// The settings that sockets without a name stand for, in this order.
const SETTINGS: [&str; 2] = ["listen", "redirect_listen"];

impl InheritedListeners {
    /// Takes the sockets, if they are meant for this process. Their names (`LISTEN_FDNAMES`) say which setting they replace;
    /// without such a name their order does.
    pub(super) fn take() -> Self {
        let mut sockets = ListenFd::from_env();
        let socket_names = socket_names();
        let mut listeners = HashMap::<_, Vec<_>>::new();
        for index in 0..sockets.len() {
            let named = socket_names.get(index).and_then(|name| SETTINGS.into_iter().find(|setting| setting == name));
            let setting = named.or_else(|| SETTINGS.get(index).copied());
            if let (Some(setting), Ok(Some(listener))) = (setting, sockets.take_tcp_listener(index)) {
                listeners.entry(setting).or_default().push(listener);
            } else {
                // What was taken is closed, so that nobody connects to a socket that is not served.
                tracing::warn!(
                    index,
                    "a socket of the service manager is not used; name it `listen` or `redirect_listen`"
                );
            }
        }
        Self(listeners)
    }

    /// The listeners for this setting, or none if its addresses have to be opened.
    pub(super) fn of(&mut self, setting: &'static str) -> Vec<TcpListener> {
        self.0.remove(setting).unwrap_or_default()
    }
}

/// Tells the service manager, if there is one, about a state such as `READY=1`.
pub fn notify_service_manager(state: &str) {
    let Some(path) = notify_socket() else { return };
    let address = match path.strip_prefix('@') {
        Some(name) => SocketAddr::from_abstract_name(name),
        None => SocketAddr::from_pathname(&path),
    };
    let sent = address.and_then(|address| UnixDatagram::unbound()?.send_to_addr(state.as_bytes(), &address));
    if let Err(error) = sent {
        tracing::warn!(%error, "cannot notify the service manager");
    }
}
