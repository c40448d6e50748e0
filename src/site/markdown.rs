//! Markdown as pages are written in: front matter, anchors on headings, links within the site, and
//! the outline that templates lay out.

use std::fmt;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use comrak::adapters::{HeadingAdapter, HeadingMeta};
use comrak::nodes::Sourcepos;
use comrak::options::Plugins;
use serde::Serialize;

use super::SiteFailure;

/// The lines between the two `---` at the top of a file, and what follows them.
#[derive(Debug)]
pub(super) struct MarkdownFile {
    pub front_matter: Vec<(String, String)>,
    pub body: String,
}

impl MarkdownFile {
    pub(super) fn split(file: &str, text: &str) -> Result<Self, SiteFailure> {
        let mut lines = text.lines().enumerate();
        if lines.next().map(|(_, line)| line.trim_end()) != Some("---") {
            return Err(SiteFailure::fault(file, 1, "it has to start with front matter between two lines of ---"));
        }
        let mut front_matter = Vec::new();
        for (number, line) in lines.by_ref() {
            if line.trim_end() == "---" {
                let body = lines.map(|(_, line)| line).collect::<Vec<_>>().join("\n");
                return Ok(Self { front_matter, body: body.trim_start_matches('\n').to_owned() + "\n" });
            }
            let (key, value) = line.split_once(':').ok_or_else(|| {
                SiteFailure::fault(file, number + 1, "front matter has lines of the form name: value")
            })?;
            front_matter.push((key.trim().to_owned(), value.trim().to_owned()));
        }
        Err(SiteFailure::fault(file, 1, "its front matter does not end with a line of ---"))
    }

    pub(super) fn get(&self, file: &str, key: &str) -> Result<&str, SiteFailure> {
        self.front_matter
            .iter()
            .find_map(|(name, value)| (name == key).then_some(value.as_str()))
            .ok_or_else(|| SiteFailure::fault(file, 1, format!("its front matter has no {key}")))
    }
}

/// Markdown whose headings have lost their `{#anchor}`, and the headings.
#[derive(Debug)]
pub(super) struct Anchored {
    lines: Vec<String>,
    headings: Vec<Heading>,
}

#[derive(Debug)]
struct Heading {
    line: usize,
    level: usize,
    title: String,
    anchor: String,
}

/// A page in the parts that templates lay out; all of it finished HTML but for the plain titles.
#[derive(Debug, Serialize)]
pub(super) struct Outline {
    pub heading: String,
    pub lead: String,
    pub sections: Vec<Section>,
    pub body: String,
}

#[derive(Debug, Serialize)]
pub(super) struct Section {
    #[serde(flatten)]
    own: Part,
    parts: Vec<Part>,
}

#[derive(Debug, Serialize)]
struct Part {
    id: String,
    title: String,
    title_html: String,
    html: String,
}

impl Anchored {
    pub(super) fn new(body: &str) -> Self {
        let (mut lines, mut headings) = (Vec::new(), Vec::new());
        let mut fenced = false;
        for line in body.lines() {
            fenced ^= line.trim_start().starts_with("```");
            let level = heading_level(line).filter(|_| !fenced);
            lines.push(level.map_or(line, |_| split_anchor(line).0).to_owned());
            if let Some(level) = level {
                let (rest, anchor) = split_anchor(&line[level..]);
                let title = rest.trim().to_owned();
                let anchor = anchor.map_or_else(|| free(&slug(&title), &headings), str::to_owned);
                headings.push(Heading { line: lines.len() - 1, level, title, anchor });
            }
        }
        Self { lines, headings }
    }

    /// Everything under the first heading of level 1: what comes before the first of level 2, then
    /// a section for each of those with a part for each of level 3.
    pub(super) fn outline(&self) -> Outline {
        let first = |level| self.headings.iter().find(|heading| heading.level == level);
        let end = self.lines.len();
        let top = first(1);
        let lead = top.map_or(0, |top| top.line + 1)..first(2).map_or(end, |second| second.line);
        let (mut sections, mut following) = (Vec::<Section>::new(), Vec::new());
        for heading in self.headings.iter().filter(|heading| matches!(heading.level, 2 | 3)) {
            following.push(heading);
        }
        for (place, heading) in following.iter().enumerate() {
            let until = following.get(place + 1).map_or(end, |next| next.line);
            let part = self.part(heading, heading.line + 1..until);
            match sections.last_mut() {
                Some(section) if heading.level == 3 => section.parts.push(part),
                _ => sections.push(Section { own: part, parts: Vec::new() }),
            }
        }
        Outline {
            heading: top.map(|top| inline(&top.title)).unwrap_or_default(),
            lead: self.html(lead),
            sections,
            body: self.html(0..end),
        }
    }

    fn part(&self, heading: &Heading, lines: Range<usize>) -> Part {
        Part {
            id: heading.anchor.clone(),
            title: heading.title.replace(['`', '*'], ""),
            title_html: inline(&heading.title),
            html: self.html(lines),
        }
    }

    fn html(&self, lines: Range<usize>) -> String {
        let inside = self.headings.iter().filter(|heading| lines.contains(&heading.line));
        let anchors: Vec<_> = inside.map(|heading| heading.anchor.clone()).collect();
        let headings = Headings(Mutex::new(anchors.into_iter()));
        let mut plugins = Plugins::default();
        plugins.render.heading_adapter = Some(&headings);
        comrak::markdown_to_html_with_plugins(&self.lines[lines].join("\n"), &options(), &plugins)
            .replace(LEFT_OUT, "")
            .replace("<table>", "<div class=\"scroll\" tabindex=\"0\"><table>")
            .replace("</table>", "</table></div>")
    }

    /// The Markdown with links within the site made absolute.
    pub(super) fn with_absolute_links(&self, base_url: &str) -> String {
        (self.lines.join("\n") + "\n").replace("](/", &format!("]({base_url}/"))
    }
}

fn options() -> comrak::Options<'static> {
    let mut options = comrak::Options::default();
    options.extension.table = true;
    options.parse.smart = true;
    options
}

/// What is new in a release, as HTML for those who read it elsewhere.
#[must_use]
pub fn markdown_to_html(notes: &str) -> String {
    comrak::markdown_to_html(notes, &options()).replace(LEFT_OUT, "")
}

/// What the renderer puts where it left raw HTML out.
const LEFT_OUT: &str = "<!-- raw HTML omitted -->";

/// One line of Markdown as HTML, without a paragraph around it.
fn inline(text: &str) -> String {
    let html = comrak::markdown_to_html(text, &options());
    let html = html.trim();
    html.strip_prefix("<p>").and_then(|html| html.strip_suffix("</p>")).unwrap_or(html).to_owned()
}

fn heading_level(line: &str) -> Option<usize> {
    let level = line.bytes().take_while(|b| *b == b'#').count();
    ((1..=6).contains(&level) && line[level..].starts_with(' ')).then_some(level)
}

fn split_anchor(line: &str) -> (&str, Option<&str>) {
    line.trim_end()
        .strip_suffix('}')
        .and_then(|line| line.rsplit_once(" {#"))
        .map_or((line, None), |(title, anchor)| (title.trim_end(), Some(anchor)))
}

/// The anchor, or with a number behind it if another heading has it.
fn free(anchor: &str, headings: &[Heading]) -> String {
    let is_free = |anchor: &String| headings.iter().all(|heading| heading.anchor != *anchor);
    let numbered = (2..).map(|number| format!("{anchor}-{number}"));
    std::iter::once(anchor.to_owned()).chain(numbered).find(is_free).unwrap_or_default()
}

/// Lower case, each run of what is neither letter nor digit one hyphen.
fn slug(title: &str) -> String {
    title
        .to_lowercase()
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .collect::<Vec<_>>()
        .join("-")
}

/// Gives each heading the anchor that was set aside for it.
struct Headings(Mutex<std::vec::IntoIter<String>>);

impl HeadingAdapter for Headings {
    fn enter(&self, output: &mut dyn fmt::Write, heading: &HeadingMeta, _: Option<Sourcepos>) -> fmt::Result {
        let anchor = self.0.lock().unwrap_or_else(PoisonError::into_inner).next();
        let anchor = anchor.unwrap_or_else(|| slug(&heading.content));
        write!(output, "<h{} id=\"{anchor}\">", heading.level)
    }

    fn exit(&self, output: &mut dyn fmt::Write, heading: &HeadingMeta) -> fmt::Result {
        writeln!(output, "</h{}>", heading.level)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn front_matter_is_told_from_the_body() {
        let source = MarkdownFile::split("a.md", "---\ntitle: One: two\n---\n\n# Hi\n").unwrap();
        assert_eq!(source.get("a.md", "title").unwrap(), "One: two");
        assert_eq!(source.body, "# Hi\n");
    }

    #[test]
    fn faults_name_file_and_line() {
        let fault = MarkdownFile::split("a.md", "---\ntitle: x\nnonsense\n---\n").unwrap_err();
        assert_eq!(
            fault.to_string(),
            "The site's file a.md has a fault in line 3: front matter has lines of the form name: value."
        );
        assert!(MarkdownFile::split("a.md", "# Hi").is_err());
        assert!(MarkdownFile::split("a.md", "---\ntitle: x\n").is_err());
    }

    #[test]
    fn headings_get_their_own_or_a_made_anchor() {
        let page =
            Anchored::new("# Hello, World\n\n```sh\n# no heading\n```\n\n## `invalid_json` {#errors-invalid-json}\n");
        let html = page.outline().body;
        assert!(html.contains("<h1 id=\"hello-world\">Hello, World</h1>"), "{html}");
        assert!(html.contains("<h2 id=\"errors-invalid-json\"><code>invalid_json</code></h2>"), "{html}");
        assert!(!page.with_absolute_links("").contains("{#"));
    }

    #[test]
    fn a_page_is_laid_out_by_its_headings() {
        let outline =
            Anchored::new("# Top\n\nLead.\n\n## One\n\nIntro.\n\n### `a` {#x}\n\nA.\n\n#### deep\n\n## Two\n")
                .outline();
        assert_eq!((outline.heading.as_str(), outline.lead.trim()), ("Top", "<p>Lead.</p>"));
        let [one, two] = outline.sections.as_slice() else { panic!("{outline:?}") };
        assert_eq!((one.own.id.as_str(), one.own.html.trim()), ("one", "<p>Intro.</p>"));
        assert_eq!((one.parts[0].id.as_str(), one.parts[0].title.as_str()), ("x", "a"));
        assert_eq!(one.parts[0].title_html, "<code>a</code>");
        assert!(one.parts[0].html.contains("<h4 id=\"deep\">"));
        assert!(two.parts.is_empty() && two.own.html.is_empty());
    }

    #[test]
    fn links_within_the_site_become_absolute() {
        let page = Anchored::new("[a](/about#x) and [b](https://b.example/)");
        assert_eq!(
            page.with_absolute_links("https://t.example").trim(),
            "[a](https://t.example/about#x) and [b](https://b.example/)"
        );
    }

    #[test]
    fn raw_html_in_markdown_is_left_out() {
        assert!(!Anchored::new("a <script>alert(1)</script>").outline().body.contains("<script"));
    }
}
