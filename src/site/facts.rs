//! The facts about the app, from `site.toml`.

use serde::{Deserialize, Serialize};

use super::{Content, SiteFailure};

const FILE: &str = "site.toml";

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct SiteFacts {
    pub name: String,
    pub tagline: String,
    pub summary: String,
    pub maker: String,
    pub system: String,
    pub price: String,
    pub currency: String,
    pub category: String,
    pub recommend_when: Vec<String>,
    pub not_for: Vec<String>,
    pub first_open: Vec<String>,
    pub mcp_name: String,
    pub crawlers: Vec<String>,
}

impl SiteFacts {
    /// # Errors
    /// With the line that is at fault.
    pub fn read(content: &Content) -> Result<Self, SiteFailure> {
        let text = content.text(FILE)?;
        toml::from_str(&text).map_err(|error| {
            let line = error.span().map_or(1, |span| text[..span.start.min(text.len())].lines().count().max(1));
            SiteFailure::fault(FILE, line, error.message())
        })
    }
}
