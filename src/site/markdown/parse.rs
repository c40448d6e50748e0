//! What all Markdown of pages and release notes is parsed with.

use std::collections::HashMap;

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

/// The anchors of a document that are taken, each with the last number that was tried after it.
#[derive(Debug, Default)]
pub(super) struct AnchorNames(HashMap<String, u32>);

impl AnchorNames {
    /// Takes the anchor, with a number after it if another heading has it.
    pub(super) fn unused(&mut self, anchor: &str) -> String {
        let mut unused = anchor.to_owned();
        // Numbers that were tried before are taken, so that as many headings as there are lines take no longer each.
        let mut number = self.0.get(anchor).copied().unwrap_or(1);
        while self.0.contains_key(&unused) {
            number += 1;
            unused = format!("{anchor}-{number}");
        }
        self.0.insert(anchor.to_owned(), number);
        self.0.entry(unused.clone()).or_insert(1);
        unused
    }
}

/// Returns the words in lower case, joined by hyphens.
pub(super) fn slug(title: &str) -> String {
    let title = title.to_lowercase();
    let words = title.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join("-")
}
