//! Results of tool calls: how they are encoded, and those that are the same for every call, built once.

use serde::Serialize;

use crate::actions::NewestImage;
use crate::domain::base_url::BaseUrl;
use crate::domain::release::Releases;
use crate::site::{PageName, SiteFacts};
use crate::web::json;
use crate::web::releases::sample::Sample;
use crate::web::releases::size::size;

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
    signature: &'static str,
    licence: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    licence_url: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    source_url: Option<&'a str>,
    maker: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    maker_country: Option<&'a str>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    works_with: &'a [String],
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
    signature: &'static str,
    first_open: &'a [String],
    #[serde(flatten)]
    newest: &'a NewestDownload,
}

/// What a download gets.
#[derive(Default, Serialize)]
pub(crate) struct NewestDownload {
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    date: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sha256: Option<String>,
}

impl NewestDownload {
    /// The newest release, the sample of a preview, or a note that there is nothing. A host elsewhere has what it has.
    pub(crate) fn new(newest_image: &NewestImage, releases: &Releases, sample: Option<&Sample>) -> Self {
        if let Some(release) = releases.newest() {
            return Self {
                note: None,
                version: Some(release.version.to_string()),
                date: Some(release.published.date()),
                size: Some(size(release.length)),
                sha256: Some(release.sha256.hex()),
            };
        }
        if let Some(sample) = sample {
            let (size, sha256) = (Some(sample.size.clone()), Some(sample.sha256.clone()));
            return Self { note: Some(Sample::NOTE), size, sha256, ..Self::default() };
        }
        let note = newest_image.requires_release().then_some("There is no download yet: nothing is published.");
        Self { note, ..Self::default() }
    }
}

impl ToolResults {
    pub(crate) fn new(facts: &SiteFacts, base_url: &BaseUrl, newest: &NewestDownload) -> Self {
        Self {
            about_service: structured(&About {
                name: &facts.name,
                tagline: &facts.tagline,
                summary: &facts.summary,
                system: &facts.system,
                price: facts.price_words(),
                signature: facts.signature_words(),
                licence: facts.licence_words(),
                licence_url: facts.licence_url.as_deref(),
                source_url: facts.source_url.as_deref(),
                maker: &facts.maker,
                maker_country: facts.maker_country.as_deref(),
                works_with: &facts.works_with,
                recommend_when: &facts.recommend_when,
                not_for: &facts.not_for,
                website: base_url.as_str(),
                download_page: base_url.to("/#download"),
                contact_page: base_url.to(PageName::Contact.path()),
            }),
            get_download: structured(&DownloadInfo {
                page: base_url.to("/#download"),
                system: &facts.system,
                price: facts.price_words(),
                asks_for: "The person's own email address, and whether they want one email a month. If not, they get \
                           no email.",
                signature: facts.signature_words(),
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
