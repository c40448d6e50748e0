//! What all Markdown is parsed with. Everything is found in comrak's syntax tree, so code and comments are never taken for
//! headings or links.

use std::collections::HashSet;

use comrak::nodes::NodeValue;
use comrak::{Arena, Node, Options};

/// Renders Markdown as HTML for other programs: feed readers and mail programs.
pub fn markdown_to_html(markdown: &str) -> String {
    let (arena, mut html) = (Arena::new(), String::new());
    // Writing to a `String` cannot fail.
    let _ = comrak::format_html(parse(&arena, markdown), &options(), &mut html);
    html
}

pub(super) fn options() -> Options<'static> {
    let mut options = Options::default();
    options.extension.table = true;
    options.parse.smart = true;
    options
}

pub(super) fn parse<'a>(arena: &'a Arena<'a>, markdown: &str) -> Node<'a> {
    parse_with(arena, markdown, &options())
}

/// Parses Markdown, and leaves raw HTML out.
pub(super) fn parse_with<'a>(arena: &'a Arena<'a>, markdown: &str, options: &Options) -> Node<'a> {
    let root = comrak::parse_document(arena, markdown, options);
    let is_html = |node: &Node| matches!(node.data().value, NodeValue::HtmlBlock(_) | NodeValue::HtmlInline(_));
    let raw_html: Vec<_> = root.descendants().filter(is_html).collect();
    for node in raw_html {
        node.detach();
    }
    root
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

/// Splits `## Title {#anchor}` into the line without the anchor, and the anchor. A closed heading
/// may end in `#` too.
pub(super) fn split_anchor(line: &str, closed: bool) -> Option<(String, String)> {
    let line = line.trim_end();
    let (text, closing) = line.split_at(if closed { line.trim_end_matches('#').len() } else { line.len() });
    let (title, anchor) = text.trim_end().strip_suffix('}')?.rsplit_once(" {#")?;
    let is_anchor = !anchor.is_empty() && !anchor.contains(|c: char| c.is_whitespace() || "{}".contains(c));
    let line = format!("{} {closing}", title.trim_end()).trim_end().to_owned();
    (is_anchor && !line.is_empty()).then(|| (line, anchor.to_owned()))
}

/// Returns the words in lower case, joined by hyphens.
pub(super) fn slug(title: &str) -> String {
    let title = title.to_lowercase();
    let words = title.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join("-")
}
