//! What all Markdown of pages and release notes is parsed with.

use std::collections::HashSet;

use comrak::nodes::NodeValue;
use comrak::{Arena, Node};

use crate::domain::markdown::{self, options};

/// Renders Markdown as HTML for other programs: feed readers and mail programs.
pub fn markdown_to_html(markdown: &str) -> String {
    let (arena, mut html) = (Arena::new(), String::new());
    // Writing to a `String` cannot fail.
    let _ = comrak::format_html(parse(&arena, markdown), &options(), &mut html);
    html
}

pub(super) fn parse<'a>(arena: &'a Arena<'a>, markdown: &str) -> Node<'a> {
    markdown::parse(arena, markdown, &options())
}

pub(super) fn heading_level(node: Node) -> Option<u8> {
    match node.data().value {
        NodeValue::Heading(heading) => Some(heading.level),
        _ => None,
    }
}

/// The anchors of a document that are taken.
#[derive(Debug, Default)]
pub(super) struct AnchorNames(HashSet<String>);

impl AnchorNames {
    /// Takes the anchor, with a number after it if another heading has it.
    pub(super) fn unused(&mut self, anchor: &str) -> String {
        let numbered = (2..).map(|number| format!("{anchor}-{number}"));
        let mut candidates = std::iter::once(anchor.to_owned()).chain(numbered);
        candidates.find(|candidate| self.0.insert(candidate.clone())).unwrap_or_default()
    }
}

/// Returns the words in lower case, joined by hyphens.
pub(super) fn slug(title: &str) -> String {
    let title = title.to_lowercase();
    let words = title.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join("-")
}
