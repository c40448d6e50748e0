//! A letter as a page of the site.

use comrak::nodes::{AstNode, NodeHeading, NodeValue};
use comrak::{Arena, Node};

use super::document::Document;
use super::letter::{starts_with_words, words};
use super::nested::{avoid_misreading, set_level};
use super::parse::heading_level;
use crate::domain::letters::Letter;
use crate::domain::markdown::{letter_options, options, parse, without_anchor};
use crate::domain::network::BaseUrl;

/// The level of the highest headings, below the subject.
const FIRST_LEVEL: u8 = 2;

/// A letter below its subject as the heading of level 1. Links within the site and images start with a slash.
#[derive(Debug)]
pub(in crate::site) struct ArchivedMarkdown {
    pub document: Document,
    /// The first words after the headings.
    pub first_words: String,
}

impl ArchivedMarkdown {
    /// It is written anew from the syntax tree, so raw HTML and comments are left out.
    pub(in crate::site) fn new(letter: &Letter, base_url: &BaseUrl) -> Self {
        let mut options = letter_options();
        options.render.prefer_fenced = true;
        let arena = Arena::new();
        let root = parse(&arena, &letter.body, &options);
        let first_words = root.descendants().find(|node| starts_with_words(node)).map(words).unwrap_or_default();
        root.descendants().for_each(avoid_misreading);
        adjust_headings(root, &letter.subject);
        let subject =
            arena.alloc(AstNode::from(NodeValue::Heading(NodeHeading { level: 1, ..NodeHeading::default() })));
        subject.append(arena.alloc(AstNode::from(NodeValue::Text(letter.subject.clone().into()))));
        root.prepend(subject);
        for node in root.descendants() {
            let value = &mut node.data_mut().value;
            match value {
                NodeValue::Link(link) => {
                    let url = base_url.absolute(&link.url);
                    let path = url.strip_prefix(base_url.as_str()).filter(|path| path.starts_with('/'));
                    link.url = path.map_or(url.clone(), str::to_owned);
                }
                NodeValue::Image(link) => match letter.image(&link.url) {
                    Some(image) => link.url = letter.image_path(image),
                    // It was damaged in the database. What it shows stays.
                    None => *value = NodeValue::Emph,
                },
                _ => {}
            }
        }
        let mut markdown = String::new();
        // Writing to a `String` cannot fail.
        let _ = comrak::format_commonmark(root, &options, &mut markdown);
        // What was a link by its URL alone is written as a link.
        options.extension.autolink = false;
        Self { document: Document::with_options(&markdown, options), first_words }
    }
}

/// Removes the heading that is the subject, and puts the others below it.
fn adjust_headings(root: Node, subject: &str) {
    let headings = root.descendants().filter(|node| heading_level(node).is_some()).collect::<Vec<_>>().into_iter();
    let (empty, mut headings): (Vec<_>, Vec<_>) =
        headings.partition(|heading| without_anchor(heading).trim().is_empty());
    let is_subject = |heading: &Node| {
        let has_image = heading.descendants().any(|node| matches!(node.data().value, NodeValue::Image(_)));
        !has_image && heading.collect_text().split_whitespace().eq(subject.split_whitespace())
    };
    let shown = headings.first().is_some_and(is_subject).then(|| headings.remove(0));
    empty.iter().chain(&shown).for_each(|heading| heading.detach());
    let highest = headings.iter().filter_map(|heading| heading_level(heading)).min().unwrap_or(FIRST_LEVEL);
    for heading in headings {
        let level = heading_level(heading).unwrap_or(highest);
        set_level(heading, level - highest + FIRST_LEVEL);
    }
}

/// Writes a text as Markdown that reads as this text.
pub(in crate::site) fn text_as_markdown(text: &str) -> String {
    let (arena, mut markdown) = (Arena::new(), String::new());
    let paragraph = arena.alloc(AstNode::from(NodeValue::Paragraph));
    paragraph.append(arena.alloc(AstNode::from(NodeValue::Text(text.to_owned().into()))));
    // Writing to a `String` cannot fail.
    let _ = comrak::format_commonmark(paragraph, &options(), &mut markdown);
    markdown.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::site::markdown::markdown_to_html;

    fn archived(markdown: &str) -> ArchivedMarkdown {
        let gif = b"GIF89a\x20\x03\x90\x01";
        let letter = Letter::parse_with_images(markdown, |_| Ok(gif.to_vec())).unwrap();
        ArchivedMarkdown::new(&letter, &BaseUrl::parse("https://troupe.example").unwrap())
    }

    #[test]
    fn a_page_has_the_subject_as_its_only_heading_of_level_1() {
        for (letter, page) in [
            ("# What is *new*\n\nText\n\n# More\n\n### Deep\n", "# What is new\n\nText\n\n## More\n\n#### Deep\n"),
            ("Hello,\n\n### A {#a}\n\n### B\n", "# A\n\nHello,\n\n## B\n"),
            ("---\nsubject: S *x*\n---\n# A\n", "# S \\*x\\*\n\n## A\n"),
            ("#\n\nTwo\nlines\n===\n\nB\\\nC\n---\n", "# Two lines\n\n## B C\n"),
            ("# A ![b](c.gif)\n", "# A b\n\n## A ![b](/letters/a-b-ID/IMAGE.gif)\n"),
        ] {
            let markdown = archived(letter).document.with_anchors_and_absolute_links("");
            let page = match markdown.split_once("/letters/a-b-") {
                Some((_, path)) => page.replace("ID/IMAGE", path.split('.').next().unwrap()),
                None => page.to_owned(),
            };
            assert_eq!(markdown, page, "{letter}");
        }
    }

    #[test]
    fn a_page_says_what_the_letter_says_and_nothing_that_was_left_out_of_it() {
        let page = archived(
            "# A\n\nText <!-- private --> <b>bold</b>[^n] [here](releases?a#b) [there](https://b.example/) \
             https://c.example/x_y_z me@a.example {{ secret }}\n\n<!--\nprivate\n-->\n\n![x](y.gif)\n\n[^n]: The [note](/n).\n",
        );
        let html = page.document.render().body;
        for part in [
            "<h1 id=\"a\">A</h1>",
            "Text  bold",
            "<a href=\"/releases?a#b\">here</a>",
            "<a href=\"https://b.example/\">there</a>",
            "<a href=\"https://c.example/x_y_z\">https://c.example/x_y_z</a>",
            "<a href=\"mailto:me@a.example\">me@a.example</a>",
            "{{ secret }}",
            "href=\"#fn-n\"",
            "The <a href=\"/n\">note</a>.",
            ".gif\" alt=\"x\" />",
        ] {
            assert!(html.contains(part), "{part}: {html}");
        }
        let markdown = page.document.with_anchors_and_absolute_links("https://troupe.example");
        for part in ["(https://troupe.example/releases?a#b)", "[^n]:\n    The [note](https://troupe.example/n)."] {
            assert!(markdown.contains(part), "{part}: {markdown}");
        }
        assert!(!html.contains("private") && !markdown.contains("private"), "{html} {markdown}");
        assert!(page.first_words.starts_with("Text"), "{}", page.first_words);
    }

    #[test]
    fn any_text_can_stand_in_markdown() {
        for text in ["*a* _b_ [c](d) <b>e</b> `f` ![g](h) & &amp; \\", "# a", "- a", "1. a", "{{ a }}", "a | b"] {
            let html = markdown_to_html(&text_as_markdown(text));
            let escaped = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
            assert_eq!(html.trim_end(), format!("<p>{escaped}</p>"), "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn a_page_of_any_letter_starts_with_its_subject(markdown in "([-#>*_`\\[\\]()!|^:/w.<\"' \n]|http|a|ß|1\\. ){0,60}") {
            if let Ok(letter) = Letter::parse(&format!("---\nsubject: S\n---\n{markdown}")) {
                let page = ArchivedMarkdown::new(&letter, &BaseUrl::parse("https://troupe.example").unwrap());
                let html = page.document.render().body;
                proptest::prop_assert!(html.starts_with("<h1 id=\"s\">S</h1>\n"), "{}", html);
                proptest::prop_assert_eq!(html.matches("<h1").count(), 1, "{}", html);
            }
        }
    }
}
