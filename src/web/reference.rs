//! Template data for the API reference, generated from the code.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Value, json};

use super::endpoints::{API_VERSION, DOWNLOAD, ENDPOINTS, Endpoint, endpoints, parse_download_order};
use super::fields::Fields;
use super::limits::ClientLimit;
use super::mcp::server_info::VERSIONS;
use super::mcp::tools::{TOOLS, Tool};
use super::problem::ErrorCode;
use super::releases::listing::{ReleaseView, available, newest};
use super::releases::sample::Sample;
use crate::actions::NewestImage;
use crate::domain::base_url::{BaseUrl, host_of};
use crate::domain::consent::{self, Via};
use crate::domain::limits;
use crate::domain::release::Releases;
use crate::site::Policies;

/// What every template of the site can use besides `site.toml`.
#[derive(Serialize)]
struct Reference<'a> {
    limits: BTreeMap<&'static str, usize>,
    client_limits: [ClientLimitListing; ClientLimit::ALL.len()],
    errors: [ErrorListing; ErrorCode::ALL.len()],
    problem_example: String,
    endpoints: [EndpointListing; ENDPOINTS.len()],
    tools: [Tool; TOOLS.len()],
    mcp_versions: [&'static str; VERSIONS.len()],
    api_version: &'static str,
    opt_in_words: &'static str,
    image_ready: bool,
    image_url: String,
    /// The host that sends the newest image, if it is not that of the site.
    image_host: Option<String>,
    release: Option<ReleaseView>,
    releases: Vec<ReleaseView>,
    last_release: String,
    sample: Option<&'a Sample>,
}

#[derive(Serialize)]
struct ClientLimitListing {
    what: &'static str,
    rate: String,
    burst: u32,
}

#[derive(Serialize)]
struct ErrorListing {
    code: &'static str,
    status: u16,
    title: &'static str,
    anchor: String,
    condition: &'static str,
    resolution: &'static str,
}

#[derive(Serialize)]
struct EndpointListing {
    #[serde(flatten)]
    endpoint: &'static Endpoint,
    method: &'static str,
    errors: Vec<&'static str>,
}

pub(crate) fn build(
    base_url: &BaseUrl,
    newest_image: &NewestImage,
    releases: &Releases,
    sample: Option<&Sample>,
    policies: &Policies,
) -> Value {
    json!(Reference {
        limits: BTreeMap::from([
            ("email", limits::MAX_EMAIL_CHARS),
            ("local_part", limits::MAX_LOCAL_PART_BYTES),
            ("source", limits::MAX_SOURCE_CHARS),
            ("name", limits::MAX_NAME_CHARS),
            ("message_min", limits::MIN_MESSAGE_CHARS),
            ("message", limits::MAX_MESSAGE_CHARS),
            ("body_kib", limits::MAX_BODY_BYTES / 1024),
            (
                "confirmation_days",
                usize::try_from(limits::CONFIRMATION_PERIOD.as_secs() / 86_400).unwrap_or(usize::MAX)
            ),
            ("connections", limits::MAX_CONNECTIONS_PER_CLIENT),
        ]),
        client_limits: ClientLimit::ALL.map(ClientLimitListing::from),
        errors: ErrorCode::ALL.map(ErrorListing::from),
        problem_example: problem_example(base_url),
        endpoints: endpoints(policies).map(EndpointListing::from),
        tools: TOOLS,
        mcp_versions: VERSIONS,
        api_version: API_VERSION,
        opt_in_words: consent::TEXT,
        image_ready: newest_image.is_available(releases),
        image_url: newest_image.url().to_owned(),
        image_host: image_host(base_url, newest_image, releases, policies),
        release: newest(releases, base_url),
        releases: available(releases, base_url),
        last_release: releases.available().map(|release| release.published.date()).max().unwrap_or_default(),
        sample,
    })
}

fn image_host(
    base_url: &BaseUrl,
    newest_image: &NewestImage,
    releases: &Releases,
    policies: &Policies,
) -> Option<String> {
    let url = match newest_image {
        NewestImage::External(url) => Some(url),
        NewestImage::Preview(_) | NewestImage::Published(_) => releases.newest()?.external_url.as_ref(),
    };
    let host = url.map_or_else(|| policies.bucket_host.clone(), |url| host_of(url));
    host.filter(|host| *host != base_url.host())
}

/// The response to a request with an invalid address, produced by the real parser.
fn problem_example(base_url: &BaseUrl) -> String {
    let fields = Fields::parse_body(br#"{"email":"nobody"}"#);
    let refused = fields.and_then(|fields| parse_download_order(fields, Via::Api)).err();
    refused.map(|problem| problem.json(base_url, DOWNLOAD.path)).unwrap_or_default()
}

impl From<ClientLimit> for ClientLimitListing {
    fn from(limit: ClientLimit) -> Self {
        Self { what: limit.title(), rate: limit.rate().per_period(), burst: limit.rate().burst }
    }
}

impl From<ErrorCode> for ErrorListing {
    fn from(code: ErrorCode) -> Self {
        Self {
            code: code.as_str(),
            status: code.status().as_u16(),
            title: code.title(),
            anchor: code.anchor(),
            condition: code.condition(),
            resolution: code.resolution(),
        }
    }
}

impl From<&'static Endpoint> for EndpointListing {
    fn from(endpoint: &'static Endpoint) -> Self {
        Self { endpoint, method: "POST", errors: endpoint.error_codes().map(ErrorCode::as_str).collect() }
    }
}
