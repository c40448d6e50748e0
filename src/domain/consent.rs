//! The opt-in to the monthly email: through what it was given, and under which wording.

/// The face of the service that a request came through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Via {
    /// The site's own forms.
    Site,
    Api,
    Mcp,
}

impl Via {
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Site => "site",
            Self::Api => "api",
            Self::Mcp => "mcp",
        }
    }
}

/// What somebody agrees to who asks for the monthly email. A change of the words raises `WORDING`,
/// so that each opt-in tells which words it was given under.
pub const WORDS: &str = "Send me one email a month about what is new.";
pub const WORDING: i64 = 1;
