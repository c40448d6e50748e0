//! The opt-in to the monthly letter: where it came from and the wording that the person agreed to.

use super::text::Source;
use super::time::Timestamp;

/// The interface that a request came through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Via {
    /// The forms of the site.
    Site,
    Api,
    Mcp,
    /// A list that the makers imported.
    Import,
}

impl Via {
    pub const ALL: [Self; 4] = [Self::Site, Self::Api, Self::Mcp, Self::Import];

    /// Parses the stored form.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|via| via.as_str() == text)
    }

    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Site => "site",
            Self::Api => "api",
            Self::Mcp => "mcp",
            Self::Import => "import",
        }
    }
}

/// A person's consent to the monthly letter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OptIn {
    pub at: Timestamp,
    pub via: Via,
    pub source: Option<Source>,
    pub wording: i64,
}

/// The text next to the opt-in. When it changes, `WORDING` must be incremented, so that each consent
/// records the text that the person saw.
pub const TEXT: &str = "Send me one email a month about what is new.";
pub const WORDING: i64 = 1;
/// The wording of an opt-in that was given outside this service.
pub const EXTERNAL_WORDING: i64 = 0;
