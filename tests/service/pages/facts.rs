//! HTML and Markdown of a page say the same: no word of the one is missing in the other.

use std::collections::BTreeSet;

use fancy_regex::Regex;
use porchlight::config::RawSettings;

use super::{PAGES, live};
use crate::harness::markup::{main_links, main_text, markdown_links, without_code};
use crate::harness::{Service, on_one_database, on_one_database_with};

/// Words of the interface, which say nothing about the app or the site.
const INTERFACE: &[&str] = &["after", "click", "date", "next", "none", "size", "unless", "yes"];

/// The words of a text, in lower case and without punctuation. Numbers of list items are no words.
fn words(text: &str) -> BTreeSet<String> {
    let anchor = Regex::new(r"\{#[^}]*\}").expect("a pattern");
    anchor
        .replace_all(text, "")
        .replace('’', "'")
        .to_lowercase()
        .split(|c: char| !c.is_alphanumeric() && !"._'-".contains(c))
        .map(|word| word.trim_matches(['.', '\'', '-', '_']).to_owned())
        .filter(|word| word.len() > 1)
        .collect()
}

/// Whether it is a number, or a name such as `api-catalog` or `sitemap.xml`.
fn is_exact(word: &str) -> bool {
    word.contains(|c: char| c.is_ascii_digit() || "._-".contains(c))
}

async fn compare(service: &Service) {
    for (path, twin) in PAGES {
        let html = service.get(path).await.text();
        let markdown = service.get(twin).await.text();
        let (front_matter, body) = markdown.split_once("\n---\n").expect("front matter");
        let (pointer, body) = body.trim_start().split_once('\n').expect("a first line");
        assert!(pointer.starts_with("> For agents"), "{pointer}");
        let links = markdown_links(body);
        let visible = links.iter().fold(without_code(body), |text, link| text.replace(&format!("]({link})"), " "));
        let (in_html, in_markdown) = (words(&main_text(&html)), words(&visible));

        let missing: Vec<_> = in_markdown.difference(&in_html).collect();
        assert!(missing.is_empty(), "{path}: the HTML does not have {missing:?}");
        // The reference page has tables and examples of its own, whose labels are other words.
        let (in_markdown, compared): (_, fn(&str) -> bool) = match path {
            "/developers" => (words(body), is_exact),
            _ => (&in_markdown | &words(front_matter), |word| !INTERFACE.contains(&word)),
        };
        let missing: Vec<_> = in_html.difference(&in_markdown).filter(|word| compared(word)).collect();
        assert!(missing.is_empty(), "{path}: the Markdown does not have {missing:?}");

        let base_url = service.base_url();
        let local = |link: String| link.strip_prefix(base_url).map_or(link.clone(), str::to_owned);
        let in_markdown: BTreeSet<_> = links.into_iter().map(local).collect();
        let in_html: BTreeSet<_> = main_links(&html).into_iter().map(local).collect();
        assert!(in_markdown.is_subset(&in_html), "{path}: {in_markdown:?} of {in_html:?}");
    }
}

#[tokio::test]
async fn a_preview_says_the_same_in_html_and_markdown() {
    on_one_database(compare).await;
}

#[tokio::test]
async fn a_site_without_a_release_says_the_same_in_html_and_markdown() {
    on_one_database_with(live(), compare).await;
}

#[tokio::test]
async fn a_site_with_a_release_and_with_every_fact_says_the_same_in_html_and_markdown() {
    let folder = crate::site::with_every_fact();
    let written = RawSettings { site_dir: Some(folder.path().display().to_string()), ..live() };
    on_one_database_with(written, async |service| {
        service.publish("1.4.0");
        service.wait_for_text("/index.md", "1.4.0").await;
        compare(service).await;
    })
    .await;
}
