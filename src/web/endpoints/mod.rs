//! The JSON endpoints: descriptions and request parsers. The handlers are in `api`.
//!
//! OpenAPI, the MCP tools and the reference page are generated from the descriptions.

mod contact;
mod download;
mod endpoint;
mod waitlist;

use self::download::DOWNLOAD_TO_CONFIRM;
use crate::site::Policies;

pub(crate) use contact::{CONTACT, ContactResult, parse_contact_message};
pub(crate) use download::{DOWNLOAD, DownloadResult, parse_download_order};
pub(crate) use endpoint::Endpoint;
pub(crate) use waitlist::{WAITLIST, WaitlistResult, parse_waitlist_order};

/// The version of the API, as the OpenAPI document states it.
pub(crate) const API_VERSION: &str = "1.0.0";

pub(crate) const ENDPOINTS: [&Endpoint; 3] = [&DOWNLOAD, &WAITLIST, &CONTACT];

/// The endpoints, described as the settings have it.
pub(crate) const fn endpoints(policies: &Policies) -> [&'static Endpoint; ENDPOINTS.len()] {
    if policies.confirm_updates { [&DOWNLOAD_TO_CONFIRM, &WAITLIST, &CONTACT] } else { ENDPOINTS }
}
