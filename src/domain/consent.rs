//! The opt-in to the monthly email: through what it was given, and under which wording.

use super::text::Source;
use super::time::Timestamp;

/// The face of the service that a request came through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Via {
    /// The site's own forms.
    Site,
    Api,
    Mcp,
    /// A list that the makers brought along.
    Import,
}

impl Via {
    pub const ALL: [Self; 4] = [Self::Site, Self::Api, Self::Mcp, Self::Import];

    /// Reads it back; anything else is none.
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

/// Somebody asked for the monthly email.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OptIn {
    pub at: Timestamp,
    pub via: Via,
    pub source: Option<Source>,
    pub wording: i64,
}

/// What somebody agrees to who asks for the monthly email. A change of the words raises `WORDING`,
/// so that each opt-in tells which words it was given under.
pub const WORDS: &str = "Send me one email a month about what is new.";
pub const WORDING: i64 = 1;
/// For an opt-in that was given elsewhere, under words that are not ours.
pub const WORDING_ELSEWHERE: i64 = 0;
