//! Results of tool calls: how they are encoded, and those that are the same for every call, built once.

use serde::Serialize;
use serde_json::{Value, json};

use crate::actions::NewestImage;
use crate::domain::network::BaseUrl;
use crate::domain::releases::{Release, Releases};
use crate::site::{PageName, SiteFacts};
use crate::web::json;
use crate::web::releases::feeds::{Sample, size};

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

impl ToolResults {
    pub(crate) fn new(
        facts: &SiteFacts,
        base_url: &BaseUrl,
        newest_image: &NewestImage,
        releases: &Releases,
        sample: Option<&Sample>,
    ) -> Self {
        let mut about = json!({
            "name": facts.name,
            "tagline": facts.tagline,
            "summary": facts.summary,
            "system": facts.system,
            "price": facts.price_words(),
            "signature": facts.signature_words(),
            "licence": facts.licence_words(),
            "licence_url": facts.licence_url,
            "source_url": facts.source_url,
            "maker": facts.maker,
            "maker_country": facts.maker_country,
            "works_with": Some(&facts.works_with).filter(|apps| !apps.is_empty()),
            "recommend_when": facts.recommend_when,
            "not_for": facts.not_for,
            "note": "There is no list for other systems. No tool sends a message or starts a download: the person uses the \
                     contact page and the download page.",
            "website": base_url.as_str(),
            "download_page": base_url.to("/#download"),
            "contact_page": base_url.to(PageName::Contact.path()),
        });
        let release = releases.newest();
        // With `download_url`, nothing is known of the image.
        let note = match (release, sample) {
            (Some(_), _) => None,
            (None, Some(_)) => Some(Sample::NOTE),
            (None, None) => {
                newest_image.requires_release().then_some("There is no download yet: nothing is published.")
            }
        };
        let release_or_sample = |of_release: fn(&Release) -> String, of_sample: fn(&Sample) -> String| {
            release.map(of_release).or_else(|| sample.map(of_sample))
        };
        let mut download = json!({
            "page": base_url.to("/#download"),
            "system": facts.system,
            "price": facts.price_words(),
            "asks_for": "The person's own email address, and whether they want one email a month. If not, they get no \
                         email.",
            "signature": facts.signature_words(),
            "first_open": facts.first_open,
            "note": note,
            "version": release.map(|release| release.version.to_string()),
            "date": release.map(|release| release.published.date()),
            "size": release_or_sample(|release| size(release.length), |sample| sample.size.clone()),
            "sha256": release_or_sample(|release| release.sha256.hex(), |sample| sample.sha256.clone()),
        });
        // What there is nothing to say about is left out.
        for result in [&mut about, &mut download].into_iter().filter_map(Value::as_object_mut) {
            result.retain(|_, value| !value.is_null());
            result.extend(facts.only_if_set().map(|(name, fact)| (name.to_owned(), fact.into())));
        }
        Self { about_service: structured(&about), get_download: structured(&download) }
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
