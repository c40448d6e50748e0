//! Markdown of its own inside a page, such as release notes.

use comrak::nodes::{AstNode, NodeValue};
use comrak::{Arena, Node};

use super::document::Document;
use super::parse::{AnchorNames, heading_level, slug};
use crate::domain::markdown::{options, parse, without_anchor};

/// The level of the highest headings, below the title of the page and its sections.
const FIRST_LEVEL: u8 = 3;
const LAST_LEVEL: u8 = 6;

/// Returns Markdown that can stand between the paragraphs of a page without changing how the rest of the page is read.
///
/// It is written anew from the syntax tree, so every fence is closed, links are inline instead of references, and raw
/// HTML is left out. Headings start at the third level. Their anchors start with `scope` and an underscore, so that
/// they are unique if `scope` is.
pub fn nest_markdown(markdown: &str, scope: &str) -> String {
    let mut options = options();
    // The page is parsed again, and then quotes and dashes become typographic.
    options.parse.smart = false;
    options.render.prefer_fenced = true;
    let arena = Arena::new();
    let root = parse(&arena, markdown, &options);
    let mut anchors = AnchorNames::default();
    for node in root.descendants() {
        let is_heading = matches!(node.data().value, NodeValue::Heading(_));
        if is_heading {
            let anchor = anchors.unused(&format!("{scope}_{}", slug(&without_anchor(node))));
            if let Some(level) = heading_level(node) {
                set_level(node, level + FIRST_LEVEL - 1);
            }
            node.append(arena.alloc(AstNode::from(NodeValue::Raw(format!(" {{#{anchor}}}")))));
        } else {
            avoid_misreading(node);
        }
    }
    let mut nested = String::new();
    // Writing to a `String` cannot fail.
    let _ = comrak::format_commonmark(root, &options, &mut nested);
    nested
}

/// Changes the level of a heading, which is written on one line.
pub(super) fn set_level(heading: Node, level: u8) {
    if let NodeValue::Heading(heading) = &mut heading.data_mut().value {
        heading.level = level.min(LAST_LEVEL);
        heading.setext = false;
    }
    for node in heading.descendants() {
        let is_break = matches!(node.data().value, NodeValue::LineBreak);
        if is_break {
            node.data_mut().value = NodeValue::SoftBreak;
        }
    }
}

/// Changes what comrak would write in a way that reads as something else.
pub(super) fn avoid_misreading(node: Node) {
    match &mut node.data_mut().value {
        NodeValue::Link(link) | NodeValue::Image(link) => link.title = link.title.replace('\n', " "),
        NodeValue::CodeBlock(code) => code.info = code.info.replace('\n', " "),
        // In a tight list it follows a text without an empty line between, which makes the text a heading.
        NodeValue::ThematicBreak => {
            for ancestor in node.ancestors().skip(1) {
                if let NodeValue::List(list) = &mut ancestor.data_mut().value {
                    list.tight = false;
                }
            }
        }
        _ => {}
    }
}

/// Renders such Markdown as the page around it does.
pub fn nested_to_html(markdown: &str, scope: &str) -> String {
    Document::parse(&nest_markdown(markdown, scope)).render().body
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn headings_start_at_the_third_level() {
        for (notes, nested) in [
            (
                "# New\ntext\n## Deep\n##### Deeper\n#hash",
                "### New {#v1_new}\n\ntext\n\n#### Deep {#v1_deep}\n\n###### Deeper {#v1_deeper}\n\n\\#hash\n",
            ),
            (
                "Two\nlines\n===\n\nFixed\n---\n- one\n---\n",
                "### Two lines {#v1_two-lines}\n\n#### Fixed {#v1_fixed}\n\n- one\n\n-----\n",
            ),
            (
                "# New\n# New\n# *Own* {#check}\n#\n",
                "### New {#v1_new}\n\n### New {#v1_new-2}\n\n### *Own* {#v1_own}\n\n###  {#v1_}\n",
            ),
            (
                "~~~\n# code\n~~~\n\n    # code\n\n# After",
                "```\n# code\n```\n\n```\n# code\n```\n\n### After {#v1_after}\n",
            ),
            ("    # code\n", "```\n# code\n```\n"),
            ("~~~ sh\n# never closed", "```sh\n# never closed\n```\n"),
            ("<!-- never closed\n# Hidden", ""),
            ("[a] and [a][b]\n\n[a]: /x 'T'\n[b]: /y", "[a](/x \"T\") and [a](/y)\n"),
        ] {
            assert_eq!(nest_markdown(notes, "v1"), nested, "{notes}");
        }
    }

    /// The levels and texts of all headings.
    fn headings(markdown: &str) -> Vec<(u8, String)> {
        let arena = Arena::new();
        let headings = parse(&arena, markdown, &options()).descendants().filter_map(|node| match node.data().value {
            NodeValue::Heading(heading) => Some((heading.level, node.collect_text())),
            _ => None,
        });
        headings.collect()
    }

    fn notes() -> impl Strategy<Value = String> {
        let lines = prop::sample::select(vec![
            "# One",
            "## One {#a}",
            "### `x` [y](/z) {#b}",
            "#",
            "Two",
            "===",
            "---",
            "- ***",
            "  ***",
            "",
            "  ",
            "text *a* **b**",
            "- item",
            "  more",
            "  - nested",
            "1. one",
            "2) two",
            "```",
            "~~~~",
            "~~~ a&#10;# b",
            "````md",
            "    indented",
            "> quote",
            "> ~~~",
            "<!--",
            "-->",
            "<script>",
            "<b>x</b>",
            "[a](/b \"t",
            "u\")",
            "[ref]",
            "[ref]: /url",
            "|a|b|",
            "|-|-|",
            "a\\",
            "\\",
            "&#35; x",
            "{#b}",
            "[](",
            "`` ` ",
            "\t# tab",
        ]);
        prop::collection::vec(
            prop_oneof![4 => lines.prop_map(str::to_owned), 1 => "[ #`~<>!\\[\\]()*_{}|=+.0-9a-z-]{0,12}"],
            0..10,
        )
        .prop_map(|lines| lines.join("\n"))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases.max(2000)))]
        #[test]
        fn notes_change_nothing_of_the_page_around_them(first in notes(), second in notes()) {
            let (nested, other) = (nest_markdown(&first, "v2"), nest_markdown(&second, "v1"));
            let page = format!("# Top\n\n## A {{#a}}\n\n{nested}\n\n## B {{#b}}\n\n{other}\n\n## C {{#c}}\n\nThe end.\n");
            let document = Document::parse(&page);
            for markdown in [page.as_str(), document.source.as_str()] {
                let levels: Vec<_> = headings(markdown).into_iter().filter(|(level, _)| *level < FIRST_LEVEL).collect();
                prop_assert_eq!(levels.iter().map(|(_, text)| &text[..1]).collect::<String>(), "TABC", "{}", markdown);
                prop_assert!(markdown.ends_with("\n\nThe end.\n"));
            }
            let html = document.render().body;
            prop_assert!(html.ends_with(">C</h2>\n<p>The end.</p>\n"), "{}", html);
            let ids: Vec<_> = html.split(" id=\"").skip(1).map(|rest| rest.split('"').next().unwrap()).collect();
            let distinct: BTreeSet<_> = ids.iter().collect();
            prop_assert_eq!(ids.len(), distinct.len(), "{}", html);
            prop_assert!(["a", "b", "c"].iter().all(|id| distinct.contains(id)), "{}", html);
            prop_assert_eq!(headings(&nested).len(), headings(&first).len(), "{}", nested);
        }
    }
}
