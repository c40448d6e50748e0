//! Settings of https: the certificate, the redirect listener and further host names.

use std::net::SocketAddr;
use std::path::PathBuf;

use super::{InvalidSettings, parse_addresses};
use crate::domain::base_url::BaseUrl;
use crate::domain::host_name::HostName;

/// Without it, the service speaks plain HTTP, and a proxy speaks https.
#[derive(Clone, Debug)]
pub struct Tls {
    pub certificate: CertificateFiles,
    /// Plain HTTP listeners that redirect to https.
    pub redirect_listen: Vec<SocketAddr>,
}

/// A certificate of one's own, in PEM files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateFiles {
    /// The certificate, followed by those of its issuers.
    pub chain: PathBuf,
    pub key: PathBuf,
}

const HTTPS_PORT: u16 = 443;
const HTTP_PORT: u16 = 80;

impl Tls {
    /// `listen` are the addresses of the public listener, if they are set.
    pub(super) fn parse(
        text_of: &mut impl FnMut(&str) -> Option<String>,
        base_url: Option<&BaseUrl>,
        listen: Option<&[SocketAddr]>,
    ) -> Result<Option<Self>, InvalidSettings> {
        let (chain, key) = (text_of("tls_cert"), text_of("tls_key"));
        let redirect_listen = text_of("redirect_listen");
        let certificate = match (chain, key) {
            (Some(chain), Some(key)) => CertificateFiles { chain: chain.into(), key: key.into() },
            (Some(_), None) => return Err(InvalidSettings::new("tls_cert", "it needs `tls_key` as well")),
            (None, Some(_)) => return Err(InvalidSettings::new("tls_key", "it needs `tls_cert` as well")),
            (None, None) => match redirect_listen {
                Some(text) if text != OFF => {
                    return Err(InvalidSettings::new(
                        "redirect_listen",
                        "it redirects to https, which needs `tls_cert` and `tls_key`",
                    ));
                }
                _ => return Ok(None),
            },
        };
        check_base_url(base_url)?;
        let listen = listen.map_or_else(Self::default_listen, <[_]>::to_vec);
        let redirect_listen = match redirect_listen {
            None => default_redirect(&listen),
            Some(text) if text == OFF => Vec::new(),
            Some(text) => parse_addresses("redirect_listen", &text)?,
        };
        Ok(Some(Self { certificate, redirect_listen }))
    }

    /// All addresses of the machine, at the port of https.
    pub(super) fn default_listen() -> Vec<SocketAddr> {
        vec![SocketAddr::from(([0, 0, 0, 0], HTTPS_PORT)), SocketAddr::from(([0_u16; 8], HTTPS_PORT))]
    }
}

const OFF: &str = "off";

/// Port 80 beside every address that listens on 443.
fn default_redirect(listen: &[SocketAddr]) -> Vec<SocketAddr> {
    let public = listen.iter().filter(|address| address.port() == HTTPS_PORT);
    public.map(|address| SocketAddr::new(address.ip(), HTTP_PORT)).collect()
}

/// Links would lead to another scheme, or browsers would not accept the certificate.
fn check_base_url(base_url: Option<&BaseUrl>) -> Result<(), InvalidSettings> {
    let reason = match base_url {
        None => "with `tls_cert` it has to be set to the https URL of the site",
        Some(url) if !url.is_https() => "with `tls_cert` it has to start with https://",
        Some(url) if url.is_ip_address() && !url.is_loopback() => {
            "with `tls_cert` it needs a host name instead of an IP address"
        }
        Some(_) => return Ok(()),
    };
    Err(InvalidSettings::new("base_url", reason))
}

/// Parses `also_hosts`, host names separated by commas.
pub(super) fn parse_hosts(name: &'static str, text: &str) -> Result<Vec<HostName>, InvalidSettings> {
    let hosts = text.split(',').map(str::trim).filter(|host| !host.is_empty());
    hosts.map(|host| HostName::parse(host).map_err(|why| InvalidSettings::new(name, why))).collect()
}
