//! The syntax of all Markdown: pages, release notes and letters. Everything is found in comrak's syntax tree, so code and
//! comments are never taken for headings, links or images.

use comrak::arena_tree::NodeEdge;
use comrak::nodes::NodeValue;
use comrak::{Arena, Node, Options};

use super::parse::Invalid;

/// Of pages and release notes.
pub fn options() -> Options<'static> {
    let mut options = Options::default();
    options.extension.table = true;
    options.parse.smart = true;
    options
}

/// Of letters, which also have footnotes, and links that are written as their URL alone.
pub fn letter_options() -> Options<'static> {
    let mut options = options();
    options.extension.autolink = true;
    options.extension.footnotes = true;
    options
}

/// Parses Markdown, and leaves raw HTML and comments out.
pub fn parse<'a>(arena: &'a Arena<'a>, markdown: &str, options: &Options) -> Node<'a> {
    let root = comrak::parse_document(arena, markdown, options);
    let is_html = |node: &Node| matches!(node.data().value, NodeValue::HtmlBlock(_) | NodeValue::HtmlInline(_));
    let raw_html: Vec<_> = root.descendants().filter(is_html).collect();
    for node in raw_html {
        node.detach();
    }
    root
}

/// The most levels of the syntax tree. Rendering a letter as text is recursive.
const MAX_DEPTH: usize = 100;

/// Refuses Markdown that is nested so deeply that rendering it would overflow the stack.
pub fn check_depth(markdown: &str, options: &Options) -> Result<(), Invalid> {
    let (arena, mut depth) = (Arena::new(), 0);
    for edge in comrak::parse_document(&arena, markdown, options).traverse() {
        match edge {
            NodeEdge::Start(_) => depth += 1,
            NodeEdge::End(_) => depth -= 1,
        }
        if depth > MAX_DEPTH {
            return Err(Invalid::new(format!(
                "quotes, lists or emphasis are nested too deeply, more than {MAX_DEPTH} levels"
            )));
        }
    }
    Ok(())
}

/// Splits `## Title {#anchor}` into the line without the anchor, and the anchor. A closed heading
/// may end in `#` too.
pub fn split_anchor(line: &str, closed: bool) -> Option<(String, String)> {
    let line = line.trim_end();
    let (text, closing) = line.split_at(if closed { line.trim_end_matches('#').len() } else { line.len() });
    let (title, anchor) = text.trim_end().strip_suffix('}')?.rsplit_once(" {#")?;
    let is_anchor = !anchor.is_empty() && !anchor.contains(|c: char| c.is_whitespace() || "{}".contains(c));
    let line = format!("{} {closing}", title.trim_end()).trim_end().to_owned();
    (is_anchor && !line.is_empty()).then(|| (line, anchor.to_owned()))
}

/// Removes an anchor that the heading names itself. Returns the text that is left.
pub fn without_anchor(heading: Node) -> String {
    if let Some(last) = heading.last_child()
        && let NodeValue::Text(text) = &mut last.data_mut().value
        && let Some((title, _)) = split_anchor(&format!(". {text}"), false)
    {
        *text = title[1..].trim_start().to_owned().into();
    }
    heading.collect_text()
}
