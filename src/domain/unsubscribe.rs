//! Unsubscribing from the monthly letter: the token in the link, and the two kinds of request.

use super::link_token::LinkToken;

/// The path of all unsubscribe pages, up to the token.
pub const UNSUBSCRIBE_PATH: &str = "/unsubscribe/";

/// The last path segment of an unsubscribe link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnsubscribeToken(LinkToken);

impl UnsubscribeToken {
    pub const fn new(token: LinkToken) -> Self {
        Self(token)
    }

    /// Parses a token. Returns `None` if `text` does not have the form of one.
    pub fn parse(text: &str) -> Option<Self> {
        LinkToken::parse(text).map(Self)
    }

    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// The path of the unsubscribe page.
    pub fn path(&self) -> String {
        format!("{UNSUBSCRIBE_PATH}{}", self.as_str())
    }
}

/// What the recipient of a letter asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnsubscribeKind {
    /// No letters until the person opts in again.
    Unsubscribe,
    /// Another person entered the address: no letters ever, not even after an opt-in.
    NotMe,
}

impl UnsubscribeKind {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Unsubscribe => "unsubscribe",
            Self::NotMe => "not-me",
        }
    }
}
