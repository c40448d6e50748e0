//! What the pages link to and load: whether it is there, and on this host. Nothing here stops a build.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::assets::extension;
use super::content::Content;
use super::notes::{SiteNote, notes_of};
use super::page::{Page, PageAddress};
use crate::domain::network::BaseUrl;
use crate::domain::releases::Releases;
use crate::domain::text::did_you_mean;

const TEMPLATES: &str = "templates/";

/// What the pages refer to and cannot reach. `exists` tells whether the service answers at a path.
pub(super) fn broken_links(
    content: &Content,
    base_url: &BaseUrl,
    pages: &[(&PageAddress, &Page)],
    releases: &Releases,
    exists: &dyn Fn(&str) -> bool,
) -> BTreeSet<SiteNote> {
    let paths = || pages.iter().map(|(address, _)| address.path.as_str());
    let anchors: HashMap<_, HashSet<_>> =
        pages.iter().map(|(address, page)| (address.path.as_str(), attribute(&page.html, "id").collect())).collect();
    let mut notes = BTreeSet::new();
    for (address, page) in pages {
        let links = attribute(&page.html, "href").filter_map(|link| {
            let link = unescaped(link);
            let (path, anchor) = base_url.within_site(&address.path, &link)?;
            let anchors = anchors.get(path.as_str());
            let what = match (anchors, anchor) {
                (None, _) if !exists(&path) => {
                    format!("links to {link}, where nothing is.{}", did_you_mean(&path, paths()))
                }
                (Some(anchors), Some(anchor)) if !anchors.contains(anchor.as_str()) => {
                    let meant = did_you_mean(&anchor, anchors.iter().copied());
                    format!("links to {link}, and {path} has no such anchor.{meant}")
                }
                _ => return None,
            };
            Some((link, what))
        });
        let loaded = ["src", "poster"].iter().flat_map(|name| attribute(&page.html, name)).filter_map(|link| {
            let link = unescaped(link);
            match base_url.within_site(&address.path, &link) {
                Some((path, _)) if !exists(&path) => Some((link.clone(), format!("shows {link}, which is not there"))),
                None if !link.starts_with("data:") => Some((link.clone(), of_another_host(&link))),
                _ => None,
            }
        });
        notes.extend(links.chain(loaded).map(|(link, what)| {
            let (file, line) = place(content, releases, &page.file, &link);
            SiteNote::new(file, line, &what)
        }));
    }
    notes.extend(foreign_in_styles(content));
    notes
}

fn of_another_host(link: &str) -> String {
    format!("loads {link}, and browsers load nothing from other hosts here: put the file into assets/")
}

/// Images, fonts and style sheets of other hosts in the makers' style sheets.
fn foreign_in_styles(content: &Content) -> Vec<SiteNote> {
    let mut notes = Vec::new();
    for file in content.own_names("assets/") {
        if extension(&file) != "css" {
            continue;
        }
        let text = content.text(&file).unwrap_or_default();
        for (line, number) in text.lines().zip(1..) {
            let addresses =
                ["url(", "@import"].into_iter().flat_map(|before| line.split(before).skip(1)).map(|after| {
                    let after = after.trim_start_matches([' ', '"', '\'']);
                    after.split(['"', '\'', ')', ' ', ';']).next().unwrap_or_default()
                });
            let foreign =
                addresses.filter(|address| ["http:", "https:", "//"].iter().any(|start| address.starts_with(start)));
            notes.extend(foreign.map(|address| SiteNote::new(&file, Some(number), &of_another_host(address))));
        }
    }
    notes
}

/// The file and line in which a link is written: in that of the page, in a template of the makers, or in no file but in release
/// notes.
fn place(content: &Content, releases: &Releases, page: &str, link: &str) -> (String, Option<usize>) {
    let files = std::iter::once(page.to_owned()).chain(content.own_names(TEMPLATES));
    let files = files.filter_map(|file| Some((content.text(&file).ok()?, file)));
    let notes = releases.available().map(|release| (release.notes.to_string(), notes_of(release)));
    let mut lines = files.chain(notes).filter_map(|(text, place)| {
        let before = text.lines().position(|line| line.contains(link))?;
        Some((place, Some(before + 1)))
    });
    lines.next().unwrap_or_else(|| (page.to_owned(), None))
}

/// The values of an attribute in HTML of templates and Markdown, which escape quotation marks everywhere else.
fn attribute<'a>(html: &'a str, name: &str) -> impl Iterator<Item = &'a str> {
    html.split(&format!(" {name}=\"")).skip(1).filter_map(|rest| rest.split('"').next()).collect::<Vec<_>>().into_iter()
}

fn unescaped(value: &str) -> String {
    let escaped = [("&#x2f;", "/"), ("&#x27;", "'"), ("&quot;", "\""), ("&amp;", "&")];
    escaped.iter().fold(value.to_owned(), |value, (escaped, character)| value.replace(escaped, character))
}
