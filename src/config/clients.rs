//! Settings of the limits per client, and of the proxies that name clients.

use super::InvalidSettings;
use super::switch::CLIENT_LIMITS;
use crate::domain::client::{TrustedProxies, parse_header_name, parse_networks};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientSettings {
    /// `None`: the client is the peer.
    pub proxies: Option<TrustedProxies>,
    /// Whether clients are limited.
    pub limits: bool,
}

impl ClientSettings {
    pub(super) fn parse(mut text_of: impl FnMut(&str) -> Option<String>) -> Result<Self, InvalidSettings> {
        const HEADER: &str = "client_ip_header";
        const NETWORKS: &str = "trusted_proxies";
        let header = text_of(HEADER)
            .map(|text| parse_header_name(&text).map_err(|error| InvalidSettings::new(HEADER, error)))
            .transpose()?;
        let networks = text_of(NETWORKS)
            .map(|text| parse_networks(&text).map_err(|error| InvalidSettings::new(NETWORKS, error)))
            .transpose()?;
        let missing = |name, other| {
            InvalidSettings::new(name, format!("it is missing, but `{other}` needs it; set both or neither"))
        };
        let proxies = match (header, networks) {
            (Some(header), Some(networks)) => Some(TrustedProxies::new(header, networks)),
            (None, None) => None,
            (Some(_), None) => return Err(missing(NETWORKS, HEADER)),
            (None, Some(_)) => return Err(missing(HEADER, NETWORKS)),
        };
        Ok(Self { proxies, limits: CLIENT_LIMITS.parse(text_of("client_limits"))? })
    }
}
