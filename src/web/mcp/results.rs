//! Results of tool calls: how they are encoded, and those that are the same for every call, built once.

use serde::Serialize;

use super::server_info::price;
use crate::domain::base_url::BaseUrl;
use crate::domain::release::Releases;
use crate::site::{PageName, SiteFacts};
use crate::web::json;
use crate::web::releases::listing::size;

/// The encoded results of the tools that have no arguments.
#[derive(Debug)]
pub(crate) struct ToolResults {
    pub about_service: String,
    pub get_download: String,
}

/// The result of a call, as the protocol defines it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CallResult<'a, T> {
    content: [TextContent<'a>; 1],
    is_error: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    structured_content: Option<T>,
}

#[derive(Serialize)]
struct TextContent<'a> {
    r#type: &'static str,
    text: &'a str,
}

/// What `about_service` returns.
#[derive(Serialize)]
struct About<'a> {
    name: &'a str,
    tagline: &'a str,
    summary: &'a str,
    system: &'a str,
    price: String,
    recommend_when: &'a [String],
    not_for: &'a [String],
    website: &'a str,
    download_page: String,
    contact_page: String,
}

/// What `get_download` returns.
#[derive(Serialize)]
struct DownloadInfo<'a> {
    page: String,
    system: &'a str,
    price: String,
    asks_for: &'static str,
    first_open: &'a [String],
    #[serde(flatten)]
    newest: Option<NewestRelease>,
}

#[derive(Serialize)]
struct NewestRelease {
    version: String,
    date: String,
    size: String,
    sha256: String,
}

impl ToolResults {
    pub(crate) fn new(facts: &SiteFacts, base_url: &BaseUrl, releases: &Releases) -> Self {
        let newest = releases.newest().map(|release| NewestRelease {
            version: release.version.to_string(),
            date: release.published.date(),
            size: size(release.length),
            sha256: release.sha256.hex(),
        });
        Self {
            about_service: structured(&About {
                name: &facts.name,
                tagline: &facts.tagline,
                summary: &facts.summary,
                system: &facts.system,
                price: price(facts),
                recommend_when: &facts.recommend_when,
                not_for: &facts.not_for,
                website: base_url.as_str(),
                download_page: base_url.to("/#download"),
                contact_page: base_url.to(PageName::Contact.path()),
            }),
            get_download: structured(&DownloadInfo {
                page: base_url.to("/#download"),
                system: &facts.system,
                price: price(facts),
                asks_for: "The person's own email address, and whether they want one email a month. If not, they get \
                           no email.",
                first_open: &facts.first_open,
                newest,
            }),
        }
    }
}

/// Structured content, and the same JSON as text for clients that only support text.
pub(super) fn structured(content: &impl Serialize) -> String {
    encode(&json::encode(content), false, Some(content))
}

pub(super) fn text_result(text: &str, is_error: bool) -> String {
    encode(text, is_error, None::<()>)
}

fn encode(text: &str, is_error: bool, structured_content: Option<impl Serialize>) -> String {
    json::encode(&CallResult { content: [TextContent { r#type: "text", text }], is_error, structured_content })
}
