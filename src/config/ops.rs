//! Settings of the ops listener: a second, private HTTP listener for the dashboard, metrics and health.

use std::net::SocketAddr;

use super::{InvalidSettings, Secret};
use crate::domain::limits::MIN_OPS_TOKEN_CHARS;

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
    pub(super) fn parse(
        listen: Option<(&'static str, String)>,
        token: Option<(&'static str, String)>,
    ) -> Result<Self, InvalidSettings> {
        let token = match token {
            Some((name, text)) if text.chars().count() < MIN_OPS_TOKEN_CHARS => {
                let reason = format!("it is shorter than {MIN_OPS_TOKEN_CHARS} characters and could be guessed");
                return Err(InvalidSettings::new(name, reason));
            }
            Some((name, text)) if !is_header_value(&text) => {
                return Err(InvalidSettings::new(name, "it must be printable ASCII without surrounding spaces"));
            }
            token => token.map(|(_, text)| Secret::new(text)),
        };
        let listen = match listen {
            None => OpsListen::IfFree(SocketAddr::from(([127, 0, 0, 1], 8081))),
            Some((_, text)) if text == "off" => OpsListen::Off,
            Some((name, text)) => {
                let address: SocketAddr = text.parse().map_err(|_| {
                    InvalidSettings::new(name, "it is neither `off` nor an address such as 127.0.0.1:8081")
                })?;
                if !address.ip().is_loopback() && token.is_none() {
                    return Err(InvalidSettings::new(name, "other machines could reach it; set `ops_token` as well"));
                }
                OpsListen::At(address)
            }
        };
        Ok(Self { listen, token })
    }
}

/// Whether clients can send the token unchanged in a header.
fn is_header_value(token: &str) -> bool {
    token.bytes().all(|byte| (b' '..=b'~').contains(&byte)) && token.trim() == token
}
