//! The listener for the makers' own eyes.

use std::net::SocketAddr;

use super::InvalidSettings;
use crate::domain::limits::MIN_OPS_TOKEN_BYTES;

/// The listener for the makers' own eyes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ops {
    pub listen: OpsListen,
    pub token: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpsListen {
    Off,
    /// Nobody asked for it: it is left out if the port is taken.
    IfFree(SocketAddr),
    At(SocketAddr),
}

impl Ops {
    pub(super) fn parse(
        listen: Option<(&'static str, String)>,
        token: Option<(&'static str, String)>,
    ) -> Result<Self, InvalidSettings> {
        let token = match token {
            Some((name, text)) if text.len() < MIN_OPS_TOKEN_BYTES => {
                return Err(InvalidSettings::of(
                    name,
                    format!("it is shorter than {MIN_OPS_TOKEN_BYTES} characters and could be guessed"),
                ));
            }
            Some((name, text)) if !can_be_sent(&text) => {
                return Err(InvalidSettings::of(name, "it has to be of ASCII characters, without a space at its ends"));
            }
            token => token.map(|(_, text)| text),
        };
        let listen = match listen {
            None => OpsListen::IfFree(SocketAddr::from(([127, 0, 0, 1], 8081))),
            Some((_, text)) if text == "off" => OpsListen::Off,
            Some((name, text)) => {
                let address: SocketAddr = text.parse().map_err(|_| {
                    InvalidSettings::of(name, "it is neither off nor an address such as 127.0.0.1:8081")
                })?;
                if !address.ip().is_loopback() && token.is_none() {
                    return Err(InvalidSettings::of(name, "others could reach it; set `ops_token` as well"));
                }
                OpsListen::At(address)
            }
        };
        Ok(Self { listen, token })
    }
}

/// Not every text can stand in a header as it is.
fn can_be_sent(token: &str) -> bool {
    token.bytes().all(|byte| (b' '..=b'~').contains(&byte)) && token.trim() == token
}
