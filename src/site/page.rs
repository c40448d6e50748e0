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

    /// Those that say what there is to say; the others list what has been.
    pub const MAIN: [Self; 5] = [Self::Home, Self::About, Self::Privacy, Self::Developers, Self::Contact];

    #[must_use]
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

    /// One of the five main pages.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::MAIN.into_iter().find(|page| page.as_str() == name)
    }

    /// Where people find it.
    #[must_use]
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

    /// Where its Markdown is, whatever the caller accepts.
    #[must_use]
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

/// One page, finished in both forms.
#[derive(Clone, Debug)]
pub struct Page {
    pub title: String,
    pub description: String,
    /// A date, as `2026-11-15`.
    pub last_updated: String,
    pub markdown: String,
    pub html: String,
    /// What it was printed with, for the day its form comes back.
    pub(super) template: String,
    pub(super) context: serde_json::Value,
}
