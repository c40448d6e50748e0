//! The Markdown of pages and letters: headings with their anchors, links, and the HTML that templates lay out.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Write as _};

use comrak::html::{ChildRendering, Context, format_document_with_formatter, format_node_default};
use comrak::nodes::{NodeValue, Sourcepos};
use comrak::options::Plugins;
use comrak::{Arena, Node, Options};
use serde::Serialize;

use super::parse::{AnchorNames, heading_level, slug};
use crate::domain::markdown::{options, parse, split_anchor};

/// Markdown, the same without the `{#anchor}` of its headings, and their anchors.
#[derive(Debug)]
pub(in crate::site) struct Document {
    options: Options<'static>,
    with_anchors: String,
    pub(super) source: String,
    anchors: Anchors,
}

/// The anchor of each heading, by the line on which the heading starts. Lines count from 1.
type Anchors = BTreeMap<usize, String>;

/// A document as templates get it: everything is HTML except the plain titles.
#[derive(Debug, Serialize)]
pub(in crate::site) struct RenderedDocument {
    /// The text of the first heading of level 1.
    pub heading: String,
    /// What follows that heading, up to the first section.
    pub lead: String,
    pub sections: Vec<Section>,
    /// The whole document.
    pub body: String,
}

/// A heading of level 2 with its content, and the headings of level 3 below it.
#[derive(Debug, Serialize)]
pub(in crate::site) struct Section {
    #[serde(flatten)]
    content: SectionContent,
    #[serde(rename = "parts")]
    subsections: Vec<SectionContent>,
}

#[derive(Debug, Serialize)]
struct SectionContent {
    id: String,
    title: String,
    title_html: String,
    html: String,
}

impl Document {
    pub(in crate::site) fn parse(markdown: &str) -> Self {
        Self::with_options(markdown, options())
    }

    /// A heading's anchor is its `{#anchor}`, or else made from its text.
    pub(super) fn with_options(markdown: &str, options: Options<'static>) -> Self {
        // Line numbers have to be comrak's, which ends a line at a lone carriage return too.
        let mut source = markdown.replace("\r\n", "\n").replace('\r', "\n");
        if !source.ends_with('\n') {
            source.push('\n');
        }
        let mut lines: Vec<_> = source.lines().map(str::to_owned).collect();
        let (arena, mut anchors, mut names) = (Arena::new(), Anchors::new(), AnchorNames::default());
        let mut without_anchor = Vec::new();
        for node in parse(&arena, &source, &options).descendants() {
            let NodeValue::Heading(heading) = node.data().value else { continue };
            let Sourcepos { start, end } = node.data().sourcepos;
            let last_line = &mut lines[if heading.setext { end.line - 2 } else { start.line - 1 }];
            if let Some((title, anchor)) = split_anchor(last_line, heading.closed) {
                *last_line = title;
                anchors.insert(start.line, names.unused(&anchor));
            } else {
                without_anchor.push((start.line, slug(&node.collect_text())));
            }
        }
        // Only now, so that no text takes an anchor that a later heading names.
        anchors.extend(without_anchor.into_iter().map(|(line, slug)| (line, names.unused(&slug))));
        Self { options, source: lines.join("\n") + "\n", with_anchors: source, anchors }
    }

    pub(in crate::site) fn render(&self) -> RenderedDocument {
        let arena = Arena::new();
        let root = parse(&arena, &self.source, &self.options);
        let blocks: Vec<_> = root.children().collect();
        let starts_section = |block: Node| matches!(heading_level(block), Some(2 | 3));
        let is_top = |block: &Node| heading_level(block) == Some(1);

        let first_section = blocks.iter().position(|block| starts_section(block)).unwrap_or(blocks.len());
        let (before, after) = blocks.split_at(first_section);
        let lead = before.iter().position(is_top).map_or(0, |top| top + 1);
        let mut sections = Vec::<Section>::new();
        for blocks in after.chunk_by(|_, next| !starts_section(next)) {
            let content = self.section(blocks);
            match sections.last_mut() {
                Some(section) if heading_level(blocks[0]) == Some(3) => section.subsections.push(content),
                _ => sections.push(Section { content, subsections: Vec::new() }),
            }
        }
        RenderedDocument {
            heading: blocks.iter().find(|block| is_top(block)).map(|top| self.html(top.children())).unwrap_or_default(),
            lead: self.html(before[lead..].iter().copied()),
            sections,
            body: self.html([root]),
        }
    }

    /// `blocks` starts with the section's heading.
    fn section(&self, blocks: &[Node]) -> SectionContent {
        let heading = blocks[0];
        SectionContent {
            id: self.anchors.get(&heading.data().sourcepos.start.line).cloned().unwrap_or_default(),
            title: heading.collect_text(),
            title_html: self.html(heading.children()),
            html: self.html(blocks[1..].iter().copied()),
        }
    }

    fn html<'a>(&self, nodes: impl IntoIterator<Item = Node<'a>>) -> String {
        let (mut html, plugins) = (String::new(), Plugins::default());
        for node in nodes {
            // Writing to a `String` cannot fail.
            let _ =
                format_document_with_formatter(node, &self.options, &mut html, &plugins, format_node, &self.anchors);
        }
        html
    }

    /// The Markdown with the anchors that headings name, in which links within the site start with `base_url`.
    pub(in crate::site) fn with_anchors_and_absolute_links(&self, base_url: &str) -> String {
        make_links_absolute(&self.with_anchors, base_url, &self.options)
    }
}

fn make_links_absolute(source: &str, base_url: &str, options: &Options) -> String {
    let line_starts: Vec<_> =
        [0].into_iter().chain(source.match_indices('\n').map(|(newline, _)| newline + 1)).collect();
    let (arena, mut destinations) = (Arena::new(), BTreeSet::new());
    for node in parse(&arena, source, options).descendants() {
        let data = node.data();
        if let NodeValue::Link(link) | NodeValue::Image(link) = &data.value
            && is_within_site(&link.url)
        {
            // Columns are too low in a table row with escaped pipes, so the whole line is searched.
            let Sourcepos { start, end } = data.sourcepos;
            let start = line_starts[start.line - 1] + start.column - 1;
            let link = source.get(start..line_starts[end.line]).unwrap_or_default();
            let mut found = link.match_indices("](").filter_map(|(bracket, _)| {
                let destination = link[bracket + 2..].trim_start().trim_start_matches('<');
                is_within_site(destination).then_some(start + link.len() - destination.len())
            });
            destinations.extend(found.find(|destination| !destinations.contains(destination)));
        }
    }
    let mut markdown = source.to_owned();
    for destination in destinations.into_iter().rev() {
        markdown.insert_str(destination, base_url);
    }
    markdown
}

/// Gives headings their anchors, and lets wide tables scroll.
fn format_node(context: &mut Context<&Anchors>, node: Node, entering: bool) -> Result<ChildRendering, fmt::Error> {
    let data = node.data();
    match data.value {
        NodeValue::Heading(heading) if entering => {
            let anchors = context.user;
            context.cr()?;
            write!(context, "<h{} id=\"", heading.level)?;
            context.escape(anchors.get(&data.sourcepos.start.line).map_or("", String::as_str))?;
            context.write_str("\">")?;
        }
        NodeValue::Table(_) if entering => {
            context.cr()?;
            context.write_str("<div class=\"scroll\" tabindex=\"0\">")?;
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

/// An address such as `/about`, but not `//example.com`, which is another host.
fn is_within_site(address: &str) -> bool {
    address.starts_with('/') && !address.starts_with("//")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::site::markdown::parse::markdown_to_html;

    /// The `id` of each section and of the subsections in it.
    fn sections(markdown: &str) -> Vec<String> {
        let sections = Document::parse(markdown).render().sections;
        let ids = sections.iter().flat_map(|section| [&section.content].into_iter().chain(&section.subsections));
        ids.map(|content| content.id.clone()).collect()
    }

    #[test]
    fn headings_get_their_own_anchor_or_one_made_from_their_text() {
        let document = Document::parse(
            "# Hello, *World*\n\n## `invalid_json` {#errors-invalid-json}\n\n## Closed {#c} ##\n\n\
             ## Don't \"stop\" -- [go](/there)\n\n## Don't stop, go\n\n## Use {#if a} and {/if}\n",
        );
        let html = document.render().body;
        for heading in [
            "<h1 id=\"hello-world\">Hello, <em>World</em></h1>",
            "<h2 id=\"errors-invalid-json\"><code>invalid_json</code></h2>",
            "<h2 id=\"c\">Closed</h2>",
            "<h2 id=\"don-t-stop-go\">",
            "<h2 id=\"don-t-stop-go-2\">",
            "<h2 id=\"use-if-a-and-if\">",
        ] {
            assert!(html.contains(heading), "{heading}: {html}");
        }
        let markdown = document.source.clone();
        assert!(markdown.contains("## `invalid_json`\n") && markdown.contains("## Closed ##\n"), "{markdown}");
        let markdown = document.with_anchors_and_absolute_links("");
        assert!(markdown.contains("json` {#errors-invalid-json}\n") && markdown.contains("## Closed {#c} ##\n"));
    }

    #[test]
    fn an_anchor_is_used_once_and_belongs_to_the_heading_that_names_it() {
        assert_eq!(sections("## Check\n\n## A {#check}\n\n## B {#check}\n"), ["check-3", "check", "check-2"]);
    }

    #[test]
    fn underlined_headings_are_headings() {
        let markdown = "Top {#top}\n===\n\nLead.\n\nTwo\nlines {#two}\n---\n\nText.\n\nPlain\n---\n";
        let document = Document::parse(markdown);
        let rendered = document.render();
        assert_eq!((rendered.heading.as_str(), rendered.lead.as_str()), ("Top", "<p>Lead.</p>\n"));
        assert_eq!(sections(markdown), ["two", "plain"]);
        assert_eq!(rendered.sections[0].content.title, "Two lines");
        assert_eq!(document.source, markdown.replace(" {#top}", "").replace(" {#two}", ""));
    }

    #[test]
    fn code_and_comments_have_no_headings() {
        for hidden in [
            "```\n## No {#no}\n```",
            "~~~\n## No {#no}\n```\n## No {#no}\n~~~",
            "Text.\n\n    ## No {#no}",
            "- Item\n\n  ```\n  ## No {#no}\n  ```",
            "- Item\n\n      ## No {#no}",
            "<!--\n## No {#no}\n-->",
            "`## No {#no}`",
        ] {
            let markdown = format!("# Top\n\n{hidden}\n\n## Yes {{#yes}}\n");
            let document = Document::parse(&markdown);
            assert_eq!(sections(&markdown), ["yes"], "{hidden}");
            assert!(!document.render().body.contains("\"no\""), "{hidden}");
            assert_eq!(document.source, markdown.replace(" {#yes}", ""));
        }
    }

    #[test]
    fn a_heading_in_a_list_or_quote_has_an_anchor_and_makes_no_section() {
        let markdown = "## One\n\n> ## Quoted {#q}\n\n- ## Listed\n\n## Two {#two}\n";
        assert_eq!(sections(markdown), ["one", "two"]);
        let html = Document::parse(markdown).render().body;
        assert!(html.contains("<h2 id=\"q\">Quoted</h2>") && html.contains("<h2 id=\"listed\">Listed</h2>"), "{html}");
    }

    #[test]
    fn headings_divide_a_document_into_sections() {
        let rendered =
            Document::parse("# Top\n\nLead.\n\n## One\n\nIntro.\n\n### `a` {#x}\n\nA.\n\n#### deep\n\n## Two\n")
                .render();
        assert_eq!((rendered.heading.as_str(), rendered.lead.as_str()), ("Top", "<p>Lead.</p>\n"));
        let [one, two] = rendered.sections.as_slice() else { panic!("{rendered:?}") };
        assert_eq!((one.content.id.as_str(), one.content.html.as_str()), ("one", "<p>Intro.</p>\n"));
        assert_eq!((one.subsections[0].id.as_str(), one.subsections[0].title.as_str()), ("x", "a"));
        assert_eq!(one.subsections[0].title_html, "<code>a</code>");
        assert!(one.subsections[0].html.contains("<h4 id=\"deep\">"));
        assert!(two.subsections.is_empty() && two.content.html.is_empty());
        assert_eq!(Document::parse("## First\n\n# Late\n").render().heading, "Late");
    }

    #[test]
    fn links_within_the_site_become_absolute() {
        for (markdown, absolute) in [
            ("[a](/about#x) and [b](https://b.example/)", "[a](BASE/about#x) and [b](https://b.example/)"),
            ("é [a](/a) [![b](/b.png)](/c \"d\")", "é [a](BASE/a) [![b](BASE/b.png)](BASE/c \"d\")"),
            (
                "- one\n  two [a](</a b>)\n\n> q\nlazy [b]( /b )",
                "- one\n  two [a](<BASE/a b>)\n\n> q\nlazy [b]( BASE/b )",
            ),
            ("|a|\n|-|\n| x \\| \\| \\| \\| [p](/p) |", "|a|\n|-|\n| x \\| \\| \\| \\| [p](BASE/p) |"),
            ("[a](//other.example) `[b](/b)`\n\n    [c](/c)\n", "[a](//other.example) `[b](/b)`\n\n    [c](/c)"),
        ] {
            let document = Document::parse(markdown);
            assert_eq!(document.with_anchors_and_absolute_links("BASE").trim_end(), absolute);
        }
    }

    #[test]
    fn raw_html_is_left_out() {
        let markdown = "a <b>x</b>\n\n<script>alert(1)</script>\n\n## <i>T</i>\n";
        let rendered = Document::parse(markdown).render();
        assert_eq!(rendered.lead, "<p>a x</p>\n");
        assert_eq!(rendered.sections[0].content.title_html, "T");
        assert_eq!(markdown_to_html(markdown), "<p>a x</p>\n<h2>T</h2>\n");
    }

    #[test]
    fn tables_scroll() {
        let html = Document::parse("|a|\n|-|\n|b|\n").render().body;
        assert!(html.starts_with("<div class=\"scroll\" tabindex=\"0\">\n<table>"), "{html}");
        assert!(html.ends_with("</table>\n</div>\n"), "{html}");
    }
}
