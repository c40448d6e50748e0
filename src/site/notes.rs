//! What makers may want to change in the files of their site although it can be served: files that are not used, and links,
//! anchors and files of other hosts that lead nowhere. Nothing here stops a build.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fmt;

use super::assets::extension;
use super::built_in::{built_in, built_in_names};
use super::content::Content;
use super::page::{Page, PageAddress};
use crate::domain::network::BaseUrl;
use crate::domain::text::did_you_mean;

const TEMPLATES: &str = "templates/";
/// Files that the site has beside the built-in ones, and files that a folder may have for other reasons.
const OTHER_FILES: [&str; 7] =
    ["words.toml", "appcast.xml", "porchlight.toml", "README.md", "LICENSE", "LICENSE.md", "LICENSE.txt"];

/// A sentence about a place in the files of the site.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SiteNote {
    file: String,
    line: Option<usize>,
    /// What follows the file in the sentence, without the full stop.
    what: String,
}

impl SiteNote {
    pub(super) fn unused(file: impl Into<String>, why: impl fmt::Display) -> Self {
        Self { file: file.into(), line: None, what: format!("is not used: {why}") }
    }

    /// Why this file is not used, if that is what the note says.
    pub(super) fn why_unused(&self, file: &str) -> Option<&str> {
        self.what.strip_prefix("is not used: ").filter(|_| self.file == file)
    }
}

impl fmt::Display for SiteNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if let Some(line) = self.line {
            write!(f, ", line {line},")?;
        }
        write!(f, " {}{}", self.what, if self.what.ends_with('?') { "" } else { "." })
    }
}

/// Files of the makers outside of `pages/` and `assets/` that nothing reads. `named` are the templates that pages name.
pub(super) fn unused_files(content: &Content, named: &HashSet<&str>) -> Vec<SiteNote> {
    let built_in_files: Vec<_> = built_in_names().collect();
    let known = || built_in_files.iter().map(String::as_str).chain(OTHER_FILES);
    let folders: BTreeSet<_> =
        built_in_files.iter().filter_map(|name| name.split_once('/')).map(|(folder, _)| folder).collect();
    let templates: Vec<_> = content.names(TEMPLATES).iter().filter_map(|file| content.text(file).ok()).collect();
    let is_used_template = |name: &str| {
        let quoted = [format!("\"{name}\""), format!("'{name}'")];
        named.contains(name) || templates.iter().any(|text| quoted.iter().any(|quoted| text.contains(quoted)))
    };
    let note = |file: &str| {
        let unknown_folder = file.split_once('/').filter(|(folder, _)| !folders.contains(folder));
        if built_in(file).is_some()
            || OTHER_FILES.contains(&file)
            || ["pages/", "assets/"].iter().any(|folder| file.starts_with(folder))
        {
            None
        } else if let Some((folder, _)) = unknown_folder {
            let meant = did_you_mean(folder, folders.iter().copied());
            Some(SiteNote::unused(format!("{folder}/"), format!("a site has no such folder.{meant}")))
        } else if let Some(name) = file.strip_prefix(TEMPLATES) {
            let why = "no page and no other template names it";
            (!is_used_template(name)).then(|| SiteNote::unused(file, format!("{why}.{}", did_you_mean(file, known()))))
        } else {
            Some(SiteNote::unused(file, format!("a site has no such file.{}", did_you_mean(file, known()))))
        }
    };
    content.own_names("").iter().filter_map(|file| note(file)).collect::<BTreeSet<_>>().into_iter().collect()
}

/// What the pages refer to and cannot reach. `exists` tells whether the service answers at a path.
pub(super) fn broken_links(
    content: &Content,
    base_url: &BaseUrl,
    pages: &[(&PageAddress, &Page)],
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
            let (file, line) = place(content, &page.file, &link);
            SiteNote { file, line, what: what.trim_end_matches('.').to_owned() }
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
            notes.extend(foreign.map(|address| SiteNote {
                file: file.clone(),
                line: Some(number),
                what: of_another_host(address),
            }));
        }
    }
    notes
}

/// The file and line in which a link is written: in that of the page, or in a template of the makers.
fn place(content: &Content, page: &str, link: &str) -> (String, Option<usize>) {
    let files = std::iter::once(page.to_owned()).chain(content.own_names(TEMPLATES));
    let mut lines = files.filter_map(|file| {
        let text = content.text(&file).ok()?;
        let before = text.lines().position(|line| line.contains(link))?;
        Some((file, Some(before + 1)))
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
