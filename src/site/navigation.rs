//! Which pages are in the navigation, in which order, and which old addresses lead to new ones.

use super::content::SiteFailure;
use super::facts::SiteFacts;
use super::language::Language;
use super::page::{Nav, PageAddress, PageName, PageSource};
use crate::domain::network::parse_web_url;
use crate::domain::text::did_you_mean;

#[derive(Clone, Debug)]
pub(super) struct NavItem {
    pub link: NavLink,
    /// The only language in whose pages it is shown.
    only_in: Option<Language>,
    translations: Vec<(Language, NavLink)>,
}

#[derive(Clone, Debug)]
pub(super) struct NavLink {
    pub title: NavTitle,
    pub path: String,
}

#[derive(Clone, Debug)]
pub(super) enum NavTitle {
    Written(String),
    /// The word of this name.
    Word(String),
}

impl NavItem {
    /// The link in a page of this language, if it has one there: the translation, or else the page itself.
    pub(super) fn in_language(&self, language: &Language) -> Option<&NavLink> {
        let translation = self.translations.iter().find(|(of, _)| of == language).map(|(_, link)| link);
        translation.or_else(|| self.only_in.as_ref().is_none_or(|only| only == language).then_some(&self.link))
    }
}

/// The pages of the navigation in their order: the place that a page asks for comes before the built-in page that has it. The home
/// page is not among them: the name of the app leads there.
pub(super) fn navigation(facts: &SiteFacts, pages: &[(PageAddress, PageSource)]) -> Result<Vec<NavItem>, SiteFailure> {
    let hidden = &facts.nav.hide;
    let names = || pages.iter().map(|(address, _)| address.name.as_str());
    if let Some(unknown) = hidden.iter().find(|hidden| !names().any(|name| name == *hidden)) {
        let meant = did_you_mean(unknown, names());
        return Err(facts.fault(unknown, &format!("[nav] hides `{unknown}`, and there is no such page.{meant}")));
    }
    let mut placed: Vec<_> = pages
        .iter()
        .filter(|(address, source)| source.translation_of.is_none() && !hidden.contains(&address.name))
        .filter_map(|(address, source)| {
            let main = PageName::parse(&address.name).filter(|page| *page != PageName::Home);
            let default = main.map(|page| Nav::Place(page as u32));
            let Nav::Place(place) = source.nav.or(default)? else { return None };
            let link = |address: &PageAddress, source: &PageSource| {
                let written = || NavTitle::Written(source.title.clone());
                let title = main.map_or_else(written, |page| NavTitle::Word(page.as_str().to_owned()));
                NavLink { title, path: address.path.clone() }
            };
            let translations = pages.iter().filter(|(_, other)| other.translation_of.as_ref() == Some(&address.path));
            let item = NavItem {
                link: link(address, source),
                only_in: Some(source.language.clone()).filter(|of| main.is_none() && *of != facts.language),
                translations: translations.map(|(other, page)| (page.language.clone(), link(other, page))).collect(),
            };
            Some(((place, main.is_some()), item))
        })
        .collect();
    placed.sort_by_key(|(place, _)| *place);
    Ok(placed.into_iter().map(|(_, item)| item).collect())
}

/// The old addresses with what they lead to. None is in use.
pub(super) fn redirects(
    facts: &SiteFacts,
    pages: &[PageAddress],
    is_taken: &dyn Fn(&str) -> bool,
) -> Result<Vec<(String, String)>, SiteFailure> {
    let redirect = |(from, to): (&String, &String)| {
        let is_used = is_taken(from) || pages.iter().any(|page| page.path == *from || page.markdown_path == *from);
        match parse_web_url(to) {
            _ if !is_path(from) => Err(format!("a redirect starts at a path such as /old, not at `{from}`")),
            _ if is_used => Err(format!("{from} is in use, so it cannot lead elsewhere")),
            Ok(url) => Ok((from.clone(), url)),
            Err(_) if is_path(to) => Ok((from.clone(), to.clone())),
            Err(_) => {
                Err(format!("{from} leads to `{to}`, which is neither a path such as /new nor an address on the web"))
            }
        }
        .map_err(|why| facts.fault(from, &why))
    };
    facts.redirects.iter().map(redirect).collect()
}

/// Whether it can be sent in a header as it is.
fn is_path(text: &str) -> bool {
    text.starts_with('/') && !text.starts_with("//") && text.bytes().all(|byte| byte.is_ascii_graphic())
}
