//! The pages of the site.

/// The pages that every site has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageName {
    Home,
    About,
    Privacy,
    Developers,
    Contact,
    Releases,
}

impl PageName {
    pub const ALL: [Self; 6] =
        [Self::Home, Self::About, Self::Privacy, Self::Developers, Self::Contact, Self::Releases];

    /// The pages that are in the navigation and that agents can read by name.
    pub const MAIN: [Self; 5] = [Self::Home, Self::About, Self::Privacy, Self::Developers, Self::Contact];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Home => "home",
            Self::About => "about",
            Self::Privacy => "privacy",
            Self::Developers => "developers",
            Self::Contact => "contact",
            Self::Releases => "releases",
        }
    }

    /// Returns the main page of that name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::MAIN.into_iter().find(|page| page.as_str() == name)
    }

    /// The URL path of the page.
    pub const fn path(self) -> &'static str {
        match self {
            Self::Home => "/",
            Self::About => "/about",
            Self::Privacy => "/privacy",
            Self::Developers => "/developers",
            Self::Contact => "/contact",
            Self::Releases => "/releases",
        }
    }

    /// The URL path that serves Markdown regardless of `Accept`.
    pub const fn markdown_path(self) -> &'static str {
        match self {
            Self::Home => "/index.md",
            Self::About => "/about.md",
            Self::Privacy => "/privacy.md",
            Self::Developers => "/developers.md",
            Self::Contact => "/contact.md",
            Self::Releases => "/releases.md",
        }
    }
}

/// One page, rendered in both formats.
#[derive(Clone, Debug)]
pub struct Page {
    pub title: String,
    pub description: String,
    /// A date such as `2026-11-15`.
    pub last_updated: String,
    pub markdown: String,
    pub html: String,
    /// Kept to render the page again when its form is refused.
    pub(super) template: String,
    pub(super) context: serde_json::Value,
}
