//! Settings of the ops listener, of the desk, of the limits per client, and of the proxies that name clients.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use super::secret::Secret;
use super::text::{InvalidSettings, Texts, both};
use crate::domain::limits::MIN_OPS_TOKEN_CHARS;
use crate::domain::network::{BaseUrl, TrustedProxies, parse_header_name, parse_networks};
use crate::domain::parse::word_enum;

/// A second, private HTTP listener for the dashboard, metrics and health.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ops {
    pub listen: OpsListen,
    pub token: Option<Secret>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpsListen {
    Off,
    /// The default address: the service starts without the listener if the port is in use.
    IfFree(SocketAddr),
    At(SocketAddr),
}

impl Ops {
    /// The address in the settings. `None`: there is no listener.
    pub const fn address(&self) -> Option<SocketAddr> {
        match self.listen {
            OpsListen::Off => None,
            OpsListen::IfFree(address) | OpsListen::At(address) => Some(address),
        }
    }

    pub(super) fn parse(texts: &mut Texts) -> Result<Self, InvalidSettings> {
        let token = texts.parse("ops_token", parse_token)?;
        let listen = texts.parse("ops_listen", |text| match (text, text.parse::<SocketAddr>()) {
            ("off", _) => Ok(OpsListen::Off),
            (_, Err(_)) => Err("it is neither `off` nor an address such as 127.0.0.1:8081"),
            (_, Ok(address)) if !address.ip().is_loopback() && token.is_none() => {
                Err("other machines could reach it; set `ops_token` as well")
            }
            (_, Ok(address)) => Ok(OpsListen::At(address)),
        })?;
        let default = OpsListen::IfFree(SocketAddr::from(([127, 0, 0, 1], 8081)));
        Ok(Self { listen: listen.unwrap_or(default), token })
    }
}

fn parse_token(text: &str) -> Result<Secret, String> {
    if text.chars().count() < MIN_OPS_TOKEN_CHARS {
        return Err(format!("it is shorter than {MIN_OPS_TOKEN_CHARS} characters and could be guessed"));
    }
    // Clients send it unchanged in a header.
    if text.trim() != text || !text.bytes().all(|byte| (b' '..=b'~').contains(&byte)) {
        return Err("it must be printable ASCII without surrounding spaces".to_owned());
    }
    Ok(Secret::new(text.to_owned()))
}

word_enum! {
    /// Where the desk is, besides the ops listener.
    pub enum Desk {
        /// Nowhere else.
        Private = "private",
        /// At `base_url`, for requests with a token alone.
        Api = "api",
        /// At `base_url`.
        Public = "public",
    }
}

/// Where a browser on this machine reaches the ops listener, if it does.
pub fn loopback_address(listener: SocketAddr) -> Option<SocketAddr> {
    match listener.ip() {
        ip if ip.is_loopback() => Some(listener),
        ip if ip.is_unspecified() && ip.is_ipv4() => Some((Ipv4Addr::LOCALHOST, listener.port()).into()),
        ip if ip.is_unspecified() => Some((Ipv6Addr::LOCALHOST, listener.port()).into()),
        _ => None,
    }
}

impl Desk {
    /// Where a browser reaches the desk. `None`: nowhere, because the ops listener has no address of this machine alone.
    pub fn url(self, base_url: &BaseUrl, ops_listener: Option<SocketAddr>) -> Option<String> {
        match self {
            Self::Public => Some(base_url.to("/desk")),
            Self::Private | Self::Api => {
                ops_listener.and_then(loopback_address).map(|address| format!("http://{address}/desk"))
            }
        }
    }

    pub(super) fn parse_setting(texts: &mut Texts, base_url: Option<&BaseUrl>) -> Result<Self, InvalidSettings> {
        let desk = texts.parse("desk", |text| Self::parse(text).ok_or("it is none of private, api and public"))?;
        match desk.unwrap_or(Self::Private) {
            desk @ (Self::Api | Self::Public) if !base_url.is_some_and(BaseUrl::is_https) => {
                let why = format!("`{}` lets in who has a token, so it needs a `base_url` with https", desk.as_str());
                Err(InvalidSettings::new("desk", why))
            }
            desk => Ok(desk),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientSettings {
    /// `None`: the client is the peer.
    pub proxies: Option<TrustedProxies>,
    /// Whether clients are limited.
    pub limits: bool,
}

impl ClientSettings {
    pub(super) fn parse(texts: &mut Texts) -> Result<Self, InvalidSettings> {
        let header = texts.parse("client_ip_header", parse_header_name)?;
        let networks = texts.parse("trusted_proxies", parse_networks)?;
        let proxies = both(("client_ip_header", header), ("trusted_proxies", networks))?;
        let proxies = proxies.map(|(header, networks)| TrustedProxies::new(header, networks));
        Ok(Self { proxies, limits: texts.switch("client_limits")? })
    }
}
