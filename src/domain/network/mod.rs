//! Hosts, URLs and clients.

mod base_url;
mod client;
mod host_name;
mod trusted_proxies;

pub use base_url::{BaseUrl, host_of, local_address, parse_origin, parse_web_url};
pub(in crate::domain) use base_url::{dial_host, is_loopback};
pub use client::{Client, Network, Peer};
pub use host_name::{HostList, HostName};
pub use trusted_proxies::{TrustedProxies, parse_header_name, parse_networks};
