//! Values and tables of `site.toml` that have a form of their own.

use serde::{Deserialize, Deserializer, de};

use super::language::Language;
use crate::domain::network::parse_web_url;
use crate::domain::releases::MacosVersion;
use crate::domain::time::Day;

/// Characters of the notice above all pages.
const MAX_NOTICE_CHARS: usize = 300;

/// `[nav]` in `site.toml`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NavFacts {
    /// Names of pages that are not in the navigation, whatever they say.
    #[serde(default)]
    pub hide: Vec<String>,
}

pub(super) fn language<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Language, D::Error> {
    Language::parse(&String::deserialize(deserializer)?).map_err(de::Error::custom)
}

pub(super) fn web_url<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    parse_web_url(&String::deserialize(deserializer)?).map(Some).map_err(de::Error::custom)
}

pub(super) fn macos_version<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let version = MacosVersion::parse(&String::deserialize(deserializer)?);
    version.map(|version| Some(version.to_string())).map_err(de::Error::custom)
}

pub(super) fn day<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    Day::parse(&String::deserialize(deserializer)?).map(|day| Some(day.date())).map_err(de::Error::custom)
}

/// One line. An empty one is none.
pub(super) fn notice<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let text = String::deserialize(deserializer)?;
    let line = text.trim();
    if line.chars().any(char::is_control) {
        return Err(de::Error::custom("the notice is one line"));
    }
    if line.chars().count() > MAX_NOTICE_CHARS {
        return Err(de::Error::custom(format!("the notice has more than {MAX_NOTICE_CHARS} characters")));
    }
    Ok(Some(line.to_owned()).filter(|line| !line.is_empty()))
}
