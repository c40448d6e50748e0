//! What pages say of the interface, taken from the code that keeps it, so that the two cannot drift.

use serde_json::{Value, json};

use super::api::{DOWNLOAD, ENDPOINTS, Endpoint, read_download_order};
use super::fields::Fields;
use super::mcp;
use super::problem::ErrorCode;
use super::releases::{newest, offered};
use crate::actions::NewestImage;
use crate::domain::base_url::BaseUrl;
use crate::domain::consent::{self, Via};
use crate::domain::limits;
use crate::domain::release::Releases;

/// The version of the API, as the OpenAPI document has it.
pub(crate) const API_VERSION: &str = "1.0.0";

pub(crate) fn reference(base_url: &BaseUrl, newest_image: &NewestImage, releases: &Releases) -> Value {
    json!({
        "limits": {
            "email": limits::MAX_EMAIL_CHARS,
            "local_part": limits::MAX_LOCAL_PART_BYTES,
            "source": limits::MAX_SOURCE_CHARS,
            "name": limits::MAX_NAME_CHARS,
            "message_min": limits::MIN_MESSAGE_CHARS,
            "message": limits::MAX_MESSAGE_CHARS,
            "body_kib": limits::MAX_BODY_BYTES / 1024,
        },
        "errors": ErrorCode::ALL.iter().map(|code| error(*code)).collect::<Vec<_>>(),
        "problem_example": problem_example(base_url),
        "endpoints": ENDPOINTS.iter().map(|endpoint| describe(endpoint)).collect::<Vec<_>>(),
        "tools": mcp::listing(),
        "mcp_versions": mcp::VERSIONS,
        "api_version": API_VERSION,
        "opt_in_words": consent::WORDS,
        "image_ready": newest_image.is_available(releases),
        "image_url": newest_image.url(),
        "release": newest(releases, base_url),
        "releases": offered(releases, base_url),
        "last_release": releases.offered().map(|release| release.published.date()).max().unwrap_or_default(),
    })
}

/// The answer to a request with a bad address, as it really is.
fn problem_example(base_url: &BaseUrl) -> String {
    let fields = Fields::of_body(br#"{"email":"nobody"}"#);
    let refused = fields.and_then(|fields| read_download_order(fields, Via::Api)).err();
    refused.map(|problem| problem.json(base_url, DOWNLOAD.path)).unwrap_or_default()
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

fn describe(endpoint: &Endpoint) -> Value {
    json!({
        "operation_id": endpoint.operation_id,
        "method": "POST",
        "path": endpoint.path,
        "summary": endpoint.summary,
        "description": endpoint.description,
        "deprecated": endpoint.deprecated,
        "request": { "name": endpoint.request.name, "fields": endpoint.request.listing() },
        "result": { "name": endpoint.result.name, "fields": endpoint.result.listing() },
        "errors": endpoint.codes().map(ErrorCode::as_str).collect::<Vec<_>>(),
    })
}
