//! The variables that every template gets: limits, errors, endpoints, tools and releases.

use serde_json::{Value, json};

use super::endpoints::{API_VERSION, DOWNLOAD, Endpoint, parse_download_request};
use super::fields::Fields;
use super::problem::ErrorCode;
use super::refusal::ClientLimit;
use crate::actions::NewestImage;
use crate::domain::limits;
use crate::domain::network::{BaseUrl, host_of};
use crate::domain::releases::{Release, Releases};
use crate::domain::signups::OPT_IN_TEXT;
use crate::domain::signups::Via;
use crate::domain::time::Timestamp;
use crate::site::{Policies, SiteFacts};
use crate::web::mcp::server_info::VERSIONS;
use crate::web::mcp::tools::tools;
use crate::web::releases::feeds::{Sample, release_view, withdrawn_views};

/// What every template of the site can use besides `site.toml`.
pub(crate) fn build(
    facts: &SiteFacts,
    endpoints: &[Endpoint],
    base_url: &BaseUrl,
    newest_image: &NewestImage,
    releases: &Releases,
    sample: Option<&Sample>,
    policies: &Policies,
) -> Value {
    let view = |release| release_view(release, base_url);
    let last_change =
        |release: &Release| release.withdrawn.as_ref().map_or(release.published, |withdrawal| withdrawal.at);
    json!({
        "limits": {
            "email": limits::MAX_EMAIL_CHARS,
            "local_part": limits::MAX_LOCAL_PART_BYTES,
            "source": limits::MAX_SOURCE_CHARS,
            "name": limits::MAX_NAME_CHARS,
            "message_min": limits::MIN_MESSAGE_CHARS,
            "message": limits::MAX_MESSAGE_CHARS,
            "body_kib": limits::MAX_BODY_BYTES / 1024,
            "confirmation_days": limits::CONFIRMATION_PERIOD.as_secs() / 86_400,
            "connections": limits::MAX_CONNECTIONS_PER_CLIENT,
        },
        "client_limits": ClientLimit::ALL.into_iter().filter(|limit| limit.applies(policies)).map(|limit| client_limit(limit, policies)).collect::<Vec<_>>(),
        "errors": ErrorCode::ALL.map(error),
        "problem_example": problem_example(base_url),
        "endpoints": endpoints.iter().map(endpoint).collect::<Value>(),
        "tools": tools(facts).map(|tool| tool.listing(facts)).collect::<Value>(),
        "mcp_versions": VERSIONS,
        "api_version": API_VERSION,
        "opt_in_words": OPT_IN_TEXT,
        "image_ready": newest_image.is_available(releases),
        "image_url": newest_image.url(),
        "image_host": image_host(base_url, newest_image, releases, policies),
        "release": releases.newest().map(view),
        "releases": releases.by_channel().into_iter().map(view).collect::<Vec<_>>(),
        "withdrawn": withdrawn_views(releases),
        "last_release": releases.iter().map(last_change).max().map(Timestamp::date).unwrap_or_default(),
        "sample": sample,
    })
}

fn client_limit(limit: ClientLimit, policies: &Policies) -> Value {
    json!({
        "what": limit.title(policies),
        "rate": limit.rate().per_period(),
        "burst": limit.rate().burst,
        "per_day": limit.per_day(),
    })
}

fn error(code: ErrorCode) -> Value {
    json!({
        "code": code.as_str(),
        "status": code.status().as_u16(),
        "title": code.title(),
        "anchor": code.anchor(),
        "condition": code.condition(),
        "resolution": code.resolution(),
    })
}

fn endpoint(endpoint: &Endpoint) -> Value {
    let mut listed = json!(endpoint);
    listed["method"] = "POST".into();
    listed["errors"] = endpoint.error_codes().map(ErrorCode::as_str).collect();
    listed
}

/// The host that sends the newest image, if it is not that of the site.
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
    let refused = fields.and_then(|fields| parse_download_request(fields, Via::Api)).err();
    refused.map(|problem| problem.json(base_url, DOWNLOAD.path)).unwrap_or_default()
}
