//! Opens the listeners that the settings name.

use std::net::SocketAddr;

use tokio::net::TcpListener;

use super::ServeFailure;
use super::connections;
use super::inherited::InheritedListeners;
use crate::config::{OpsListen, Settings};

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
        let mut inherited = InheritedListeners::take();
        let public = open_listeners(&mut inherited, "listen", &settings.listen)?;
        let redirect_listen = settings.tls.as_ref().map_or(&[][..], |tls| &tls.redirect_listen);
        let redirect = open_listeners(&mut inherited, "redirect_listen", redirect_listen)?;
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
    inherited: &mut InheritedListeners,
    setting: &'static str,
    addresses: &[SocketAddr],
) -> Result<Vec<TcpListener>, ServeFailure> {
    let taken = inherited.of(setting);
    if !taken.is_empty() && !addresses.is_empty() {
        let cannot_use = |error| ServeFailure::Listen(setting, addresses[0], error);
        return taken.into_iter().map(|socket| connections::adopt(socket).map_err(cannot_use)).collect();
    }
    let open = |address: &SocketAddr| {
        let only_v6 = addresses.iter().any(|other| other.is_ipv4() && other.port() == address.port());
        connections::listen(*address, only_v6).map_err(|error| ServeFailure::Listen(setting, *address, error))
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
    match connections::listen(address, false) {
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
