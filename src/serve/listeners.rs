//! Opens the listeners that the settings name, or takes them from the service manager (`LISTEN_FDS`), so that a restart refuses
//! nobody. Also says how many connections and disk images may be open, given how many files the process may open.
//! Also notifies the service manager (`sd_notify`).

use std::collections::HashMap;
use std::net::SocketAddr;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr as UnixAddress, UnixDatagram};

use listenfd::ListenFd;
use rustix::process::{Resource, getrlimit};
use tokio::net::TcpListener;

use super::accept;
use super::failure::ServeFailure;
use crate::config::{OpsListen, Settings, notify_socket, socket_names};
use crate::domain::limits::{MAX_CONNECTIONS, MAX_OPS_CONNECTIONS};
use crate::domain::text::quantity;

/// The listeners for visitors.
pub(super) struct Listeners {
    /// The first address of `public`.
    pub address: SocketAddr,
    pub public: Vec<TcpListener>,
    /// Plain HTTP that redirects to https.
    pub redirect: Vec<TcpListener>,
}

impl Listeners {
    pub(super) fn open(settings: &Settings) -> Result<Self, ServeFailure> {
        let mut inherited = inherited_listeners();
        let public = open_listeners(inherited.remove("listen"), "listen", &settings.listen)?;
        let redirect_listen = settings.tls.as_ref().map_or(&[][..], |tls| &tls.redirect_listen);
        let redirect = open_listeners(inherited.remove("redirect_listen"), "redirect_listen", redirect_listen)?;
        let address = public[0].local_addr();
        let address = address.map_err(|error| ServeFailure::Listen("listen", settings.listen[0], error))?;
        Ok(Self { address, public, redirect })
    }

    pub(super) fn redirect_addresses(&self) -> Vec<SocketAddr> {
        self.redirect.iter().filter_map(|listener| listener.local_addr().ok()).collect()
    }
}

/// Opens the addresses of a setting, or takes the sockets that the service manager opened for it.
fn open_listeners(
    inherited: Option<Vec<std::net::TcpListener>>,
    setting: &'static str,
    addresses: &[SocketAddr],
) -> Result<Vec<TcpListener>, ServeFailure> {
    if let Some(taken) = inherited.filter(|_| !addresses.is_empty()) {
        let cannot_use = |error| ServeFailure::Listen(setting, addresses[0], error);
        return taken.into_iter().map(|socket| accept::adopt(socket).map_err(cannot_use)).collect();
    }
    let open = |address: &SocketAddr| {
        let only_v6 = addresses.iter().any(|other| other.is_ipv4() && other.port() == address.port());
        accept::listen(*address, only_v6).map_err(|error| ServeFailure::Listen(setting, *address, error))
    };
    let opened = addresses.iter().map(open).filter(|opened| match opened {
        // A system without IPv6 has the other address.
        Err(ServeFailure::Listen(_, address, error)) => {
            let is_unsupported = error.raw_os_error() == Some(rustix::io::Errno::AFNOSUPPORT.raw_os_error());
            !(is_unsupported && address.is_ipv6() && addresses.iter().any(SocketAddr::is_ipv4))
        }
        _ => true,
    });
    opened.collect()
}

/// Returns `None` if the ops listener is off, or, with a hint, if its default address cannot be used.
pub(super) fn ops_listener(listen: OpsListen, hints: &mut Vec<String>) -> Result<Option<TcpListener>, ServeFailure> {
    let (OpsListen::IfFree(address) | OpsListen::At(address)) = listen else { return Ok(None) };
    match accept::listen(address, false) {
        Ok(listener) => Ok(Some(listener)),
        Err(error) if listen == OpsListen::At(address) => Err(ServeFailure::Listen("ops_listen", address, error)),
        Err(error) => {
            hints.push(format!(
                "There is no ops listener: cannot listen on {address}: {error}. \
                 Set `ops_listen` to another address, or `off`."
            ));
            Ok(None)
        }
    }
}

/// The settings that sockets without a name stand for, in this order.
const SETTINGS: [&str; 2] = ["listen", "redirect_listen"];

/// Takes the sockets of the service manager, if they are meant for this process, by the setting whose addresses they replace.
/// Their names (`LISTEN_FDNAMES`) say which one that is; without such a name their order does.
fn inherited_listeners() -> HashMap<&'static str, Vec<std::net::TcpListener>> {
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
            tracing::warn!(index, "a socket of the service manager is not used; name it `listen` or `redirect_listen`");
        }
    }
    listeners
}

/// Tells the service manager, if there is one, about a state such as `READY=1`.
pub fn notify_service_manager(state: &str) {
    let Some(path) = notify_socket() else { return };
    let address = match path.strip_prefix('@') {
        Some(name) => UnixAddress::from_abstract_name(name),
        None => UnixAddress::from_pathname(&path),
    };
    let sent = address.and_then(|address| UnixDatagram::unbound()?.send_to_addr(state.as_bytes(), &address));
    if let Err(error) = sent {
        tracing::warn!(%error, "cannot notify the service manager");
    }
}

/// Files that are kept free for the database, the mail server, the site and the standard streams.
const RESERVED_FILES: usize = 64;
/// Below this many connections, there is a hint at startup.
const FEW_CONNECTIONS: usize = 1024;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OpenFileCaps {
    /// Connections of visitors.
    pub public: usize,
    /// Connections to the ops listener.
    pub ops: usize,
    /// Disk images that are being sent. One connection may ask for many over HTTP/2, so they have a cap of their own.
    pub images: usize,
}

impl OpenFileCaps {
    /// The caps under the file limit of this process.
    pub(super) fn of_process() -> Self {
        let limit = getrlimit(Resource::Nofile).current;
        Self::new(limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX)))
    }

    fn new(max_files: usize) -> Self {
        let available = max_files.saturating_sub(RESERVED_FILES);
        let ops = (available / 8).clamp(1, MAX_OPS_CONNECTIONS);
        let public = (available.saturating_sub(ops) / 2).clamp(1, MAX_CONNECTIONS);
        Self { public, ops, images: public }
    }

    /// Returns a setup hint if there are few.
    pub(super) fn hint(self) -> Option<String> {
        (self.public < FEW_CONNECTIONS).then(|| {
            format!(
                "At most {} open at once, because this process may open few files. Raise the limit: `LimitNOFILE` of \
                 systemd, or `ulimit -n`.",
                quantity(self.public as u64, "connection is", "connections are")
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_and_images_leave_files_for_everything_else() {
        for max_files in [0, 64, 65, 100, 256, 1024, 4096, 16_384, 65_536, usize::MAX] {
            let OpenFileCaps { public, ops, images } = OpenFileCaps::new(max_files);
            assert!((1..=MAX_CONNECTIONS).contains(&public) && (1..=MAX_OPS_CONNECTIONS).contains(&ops) && images >= 1);
            let is_minimum = (public, ops, images) == (1, 1, 1);
            assert!(is_minimum || public + images + ops + RESERVED_FILES <= max_files, "{max_files}");
        }
        assert_eq!(OpenFileCaps::new(1024), OpenFileCaps { public: 448, ops: 64, images: 448 });
        assert_eq!(OpenFileCaps::new(1_048_576).public, MAX_CONNECTIONS);
    }
}
