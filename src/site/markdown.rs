//! Markdown as pages are written in: front matter, anchors on headings, links within the site.

use std::fmt;
use std::sync::{Mutex, PoisonError};

use comrak::adapters::{HeadingAdapter, HeadingMeta};
use comrak::nodes::Sourcepos;
use comrak::options::Plugins;

use super::SiteFailure;

/// The lines between the two `---` at the top of a file, and what follows them.
#[derive(Debug)]
pub(super) struct Source {
    pub front_matter: Vec<(String, String)>,
    pub body: String,
}

impl Source {
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

/// Markdown whose headings have lost their `{#anchor}`, and the anchors in order.
#[derive(Debug)]
pub(super) struct Anchored {
    pub text: String,
    anchors: Vec<String>,
}

impl Anchored {
    pub(super) fn new(body: &str) -> Self {
        let mut anchors = Vec::new();
        let mut fenced = false;
        let mut text = String::with_capacity(body.len());
        for line in body.lines() {
            fenced ^= line.trim_start().starts_with("```");
            let mut line = line;
            if !fenced && is_heading(line) {
                let (title, anchor) = split_anchor(line);
                anchors.push(anchor.map_or_else(|| slug(title), str::to_owned));
                line = title;
            }
            text.push_str(line);
            text.push('\n');
        }
        Self { text, anchors }
    }

    pub(super) fn to_html(&self) -> String {
        let mut options = comrak::Options::default();
        options.extension.table = true;
        let headings = Headings(Mutex::new(self.anchors.clone().into_iter()));
        let mut plugins = Plugins::default();
        plugins.render.heading_adapter = Some(&headings);
        comrak::markdown_to_html_with_plugins(&self.text, &options, &plugins)
            .replace("<table>", "<div class=\"scroll\" tabindex=\"0\"><table>")
            .replace("</table>", "</table></div>")
    }

    /// The Markdown with links within the site made absolute.
    pub(super) fn with_absolute_links(&self, base_url: &str) -> String {
        self.text.replace("](/", &format!("]({base_url}/"))
    }
}

fn is_heading(line: &str) -> bool {
    let level = line.bytes().take_while(|b| *b == b'#').count();
    (1..=6).contains(&level) && line[level..].starts_with(' ')
}

fn split_anchor(line: &str) -> (&str, Option<&str>) {
    line.trim_end()
        .strip_suffix('}')
        .and_then(|line| line.rsplit_once(" {#"))
        .map_or((line, None), |(title, anchor)| (title.trim_end(), Some(anchor)))
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
        let source = Source::split("a.md", "---\ntitle: One: two\n---\n\n# Hi\n").unwrap();
        assert_eq!(source.get("a.md", "title").unwrap(), "One: two");
        assert_eq!(source.body, "# Hi\n");
    }

    #[test]
    fn faults_name_file_and_line() {
        let fault = Source::split("a.md", "---\ntitle: x\nnonsense\n---\n").unwrap_err();
        assert_eq!(
            fault.to_string(),
            "The site's file a.md has a fault in line 3: front matter has lines of the form name: value."
        );
        assert!(Source::split("a.md", "# Hi").is_err());
        assert!(Source::split("a.md", "---\ntitle: x\n").is_err());
    }

    #[test]
    fn headings_get_their_own_or_a_made_anchor() {
        let page =
            Anchored::new("# Hello, World\n\n```sh\n# no heading\n```\n\n## `invalid_json` {#errors-invalid-json}\n");
        let html = page.to_html();
        assert!(html.contains("<h1 id=\"hello-world\">Hello, World</h1>"), "{html}");
        assert!(html.contains("<h2 id=\"errors-invalid-json\"><code>invalid_json</code></h2>"), "{html}");
        assert!(!page.text.contains("{#"));
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
        assert!(!Anchored::new("a <script>alert(1)</script>").to_html().contains("<script"));
    }
}
