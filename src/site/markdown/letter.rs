//! A letter in both forms that a mail has.

use std::fmt::{self, Write as _};

use comrak::html::{ChildRendering, Context, format_document_with_formatter, format_node_default};
use comrak::nodes::{NodeValue, TableAlignment};
use comrak::options::Plugins;
use comrak::{Arena, Node};

use super::letter_text::blocks;
use crate::domain::letters::Letter;
use crate::domain::markdown::{letter_options, parse, without_anchor};
use crate::domain::network::BaseUrl;

/// How much of its first words mail programs show beside the subject.
const PREVIEW_CHARS: usize = 120;

/// The body of a letter. All links in it are absolute.
#[derive(Debug)]
pub(in crate::site) struct RenderedLetter {
    pub html: String,
    pub text: String,
    /// The first words after the headings.
    pub first_words: String,
}

impl RenderedLetter {
    pub(in crate::site) fn new(letter: &Letter, base_url: &BaseUrl) -> Self {
        let arena = Arena::new();
        let root = parse(&arena, &letter.body, &letter_options());
        for node in root.descendants() {
            let is_heading = matches!(node.data().value, NodeValue::Heading(_));
            if is_heading {
                without_anchor(node);
            }
            match &mut node.data_mut().value {
                NodeValue::Link(link) => link.url = base_url.absolute(&link.url),
                // Mail programs centre the headers of other columns.
                NodeValue::Table(table) => {
                    let others = table.alignments.iter_mut().filter(|alignment| **alignment == TableAlignment::None);
                    others.for_each(|alignment| *alignment = TableAlignment::Left);
                }
                _ => {}
            }
        }
        let first_words = root.descendants().find(|node| starts_with_words(node)).map(words).unwrap_or_default();
        Self { html: html(root, letter), text: blocks(root), first_words }
    }
}

/// Whether a node is a paragraph, and not one of an image alone.
pub(super) fn starts_with_words(node: Node) -> bool {
    let is_image = |node: Node| matches!(node.data().value, NodeValue::Image(_));
    matches!(node.data().value, NodeValue::Paragraph) && !node.first_child().is_some_and(is_image)
}

/// The first words of a paragraph.
pub(super) fn words(paragraph: Node) -> String {
    let text = paragraph.collect_text();
    let Some((end, _)) = text.char_indices().nth(PREVIEW_CHARS) else { return text };
    let whole_words = text[..end].rsplit_once(' ').map_or(&text[..end], |(words, _)| words);
    format!("{whole_words}…")
}

fn html(root: Node, letter: &Letter) -> String {
    let (mut html, options, plugins) = (String::new(), letter_options(), Plugins::default());
    // Writing to a `String` cannot fail.
    let _ = format_document_with_formatter(root, &options, &mut html, &plugins, format_node, letter);
    html
}

/// Embeds the images, and lets wide tables scroll.
fn format_node(context: &mut Context<&Letter>, node: Node, entering: bool) -> Result<ChildRendering, fmt::Error> {
    let data = node.data();
    match &data.value {
        NodeValue::Image(link) => {
            if entering {
                write_image(context, &link.url, node.collect_text().trim())?;
            }
            return Ok(ChildRendering::Skip);
        }
        NodeValue::Table(_) if entering => {
            context.cr()?;
            context.write_str("<div style=\"overflow-x:auto\">")?;
            format_node_default(context, node, entering)?;
        }
        NodeValue::Table(_) => {
            format_node_default(context, node, entering)?;
            context.write_str("</div>\n")?;
        }
        _ => return format_node_default(context, node, entering),
    }
    Ok(ChildRendering::HTML)
}

fn write_image(context: &mut Context<&Letter>, destination: &str, alternative: &str) -> fmt::Result {
    let Some(image) = context.user.image(destination) else {
        // It was damaged in the database.
        return context.escape(&format!("[{alternative}]"));
    };
    let (width, height) = image.shown_size();
    write!(context, "<img src=\"cid:{}\" width=\"{width}\" height=\"{height}\"", image.content_id())?;
    context.write_str(" style=\"max-width:100%;height:auto\" alt=\"")?;
    context.escape(alternative)?;
    context.write_str("\">")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn render(markdown: &str) -> RenderedLetter {
        let gif = b"GIF89a\xb0\x04\x58\x02";
        let letter =
            Letter::parse_with_images(&format!("---\nsubject: S\n---\n{markdown}"), |_| Ok(gif.to_vec())).unwrap();
        RenderedLetter::new(&letter, &BaseUrl::parse("https://troupe.example").unwrap())
    }

    /// Markdown, text and HTML.
    const FORMS: [(&str, &str, &str); 20] = [
        ("# One *title*", "One title\n=========", "<h1>One <em>title</em></h1>"),
        ("Two\n---\n\n### Three {#x}", "Two\n---\n\nThree", "<h2>Two</h2>\n<h3>Three</h3>"),
        (
            "a **b** *c* `d_e`\nf\\\ng",
            "a b c d_e f\ng",
            "<p>a <strong>b</strong> <em>c</em> <code>d_e</code>\nf<br />\ng</p>",
        ),
        ("5 \\* 3 &lt; 16", "5 * 3 < 16", "<p>5 * 3 &lt; 16</p>"),
        (
            "[read *on*](/releases)",
            "read on <https://troupe.example/releases>",
            "<p><a href=\"https://troupe.example/releases\">read <em>on</em></a></p>",
        ),
        (
            "[a](b/../c?d#e) [f](#g)",
            "a <https://troupe.example/c?d#e> f <https://troupe.example/#g>",
            "<p><a href=\"https://troupe.example/c?d#e\">a</a> <a href=\"https://troupe.example/#g\">f</a></p>",
        ),
        (
            "[a][b]\n\n[b]: HTTPS://Elsewhere.example/{x}",
            "a <HTTPS://Elsewhere.example/{x}>",
            "<p><a href=\"HTTPS://Elsewhere.example/%7Bx%7D\">a</a></p>",
        ),
        (
            "See https://a.example/b--c_d_e... Now",
            "See https://a.example/b--c_d_e… Now",
            "<p>See <a href=\"https://a.example/b--c_d_e\">https://a.example/b--c_d_e</a>… Now</p>",
        ),
        (
            "www.a.example, me@a.example",
            "www.a.example, me@a.example",
            "<p><a href=\"http://www.a.example\">www.a.example</a>, <a href=\"mailto:me@a.example\">me@a.example</a></p>",
        ),
        ("- a\n- b\n  1. c\n  2. d\n\n         code", "- a\n- b\n  1. c\n\n  2. d\n\n         code", ""),
        ("- a\n  - b\n- c", "- a\n  - b\n- c", "<ul>\n<li>a\n<ul>\n<li>b</li>\n</ul>\n</li>\n<li>c</li>\n</ul>"),
        ("3. a\n4. b", "3. a\n4. b", "<ol start=\"3\">\n<li>a</li>\n<li>b</li>\n</ol>"),
        (
            "> a\n>\n> > b",
            "> a\n>\n> > b",
            "<blockquote>\n<p>a</p>\n<blockquote>\n<p>b</p>\n</blockquote>\n</blockquote>",
        ),
        (
            "```sh\n# a\n\nb <!-- c -->\n```",
            "    # a\n\n    b <!-- c -->",
            "<pre><code class=\"language-sh\"># a\n\nb &lt;!-- c --&gt;\n</code></pre>",
        ),
        (
            "| a | *b* |\n|---|--:|\n| long | [c](/d) |",
            "a     b\n----  ----------------------------\nlong  c <https://troupe.example/d>",
            "",
        ),
        ("a[^n] b[^n]\n\n[^n]: The *note*.\n\n    More.", "a[1] b[1]\n\n[1] The note.\n\n    More.", ""),
        ("a <!-- private --> b <b>c</b>\n\n<div>d</div>\n\n<!--\n\nprivate\n-->", "a b c", "<p>a  b c</p>"),
        (
            "![Two *lamps*](a.gif)",
            "[Two lamps]",
            "<p><img src=\"cid:CID\" width=\"600\" height=\"300\" style=\"max-width:100%;height:auto\" alt=\"Two lamps\"></p>",
        ),
        ("[![A \"lamp\"](a.gif)](/x)", "[A “lamp”] <https://troupe.example/x>", ""),
        ("a\n\n***\n\nb", "a\n\n--------------------\n\nb", "<p>a</p>\n<hr />\n<p>b</p>"),
    ];

    #[test]
    fn both_parts_say_the_same() {
        for (markdown, text, html) in FORMS {
            let rendered = render(markdown);
            assert_eq!(rendered.text, text, "{markdown}");
            let (before, after) = rendered.html.trim_end().split_once("cid:").unwrap_or((rendered.html.trim_end(), ""));
            let after = after.split_once('"').map(|(_, rest)| format!("cid:CID\"{rest}")).unwrap_or_default();
            assert!(html.is_empty() || before.to_owned() + &after == html, "{markdown}: {}", rendered.html);
        }
    }

    #[test]
    fn a_footnote_is_linked_in_both_directions() {
        let html = render("a[^n]\n\n[^n]: The note.").html;
        for part in ["href=\"#fn-n\"", "id=\"fnref-n\"", "id=\"fn-n\"", "href=\"#fnref-n\"", "The note."] {
            assert!(html.contains(part), "{part}: {html}");
        }
    }

    #[test]
    fn columns_are_aligned_as_written_and_else_to_the_left() {
        let html = render("| a | b |\n|---|--:|\n| c | d |").html;
        assert!(html.starts_with("<div style=\"overflow-x:auto\">\n<table>"), "{html}");
        assert!(html.contains("<th align=\"left\">a</th>\n<th align=\"right\">b</th>"), "{html}");
    }

    #[test]
    fn a_wide_table_is_written_row_by_row() {
        let cell = "word ".repeat(10);
        let text = render(&format!("| a | b |\n|---|---|\n| {cell} | {cell} |\n| c | |")).text;
        assert_eq!(text, format!("a: {0}\nb: {0}\n\na: c", cell.trim_end()));
    }

    #[test]
    fn the_preview_line_is_made_of_the_first_whole_words() {
        assert_eq!(render("# A\n\n![An image](a.gif)\n\n> *Bots* [answer](/x).\n\nMore").first_words, "Bots answer.");
        let words = render(&"größer ".repeat(30)).first_words;
        assert!(words.ends_with("größer…") && words.chars().count() <= 121, "{words}");
        assert_eq!(render("# A").first_words, "");
    }

    proptest::proptest! {
        #[test]
        fn any_markdown_can_be_rendered(markdown in "([-#>*_`\\[\\]()!|^:/w.<\"' \n]|http|a|ß|1\\. ){0,60}") {
            if let Ok(letter) = Letter::parse(&format!("---\nsubject: S\n---\n{markdown}")) {
                RenderedLetter::new(&letter, &BaseUrl::parse("https://troupe.example").unwrap());
            }
        }
    }
}
