//! Anchors of headings: `{#anchor}` in the Markdown, or made from the text.

use std::collections::HashSet;

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
