//! The contents of the pages: front matter, headings, links and descriptions.

use super::{PAGES, live};
use crate::harness::markup::{addresses, attributes, markdown_links, texts};
use crate::harness::{on_one_database, on_one_database_with};

const BASE: &str = "https://troupe.example";

#[tokio::test]
async fn markdown_begins_with_front_matter_and_a_line_that_points_to_llms_txt() {
    on_one_database_with(live(), async |service| {
        for (path, twin) in PAGES {
            let text = service.get(twin).await.text();
            let (front, body) = text.strip_prefix("---\n").and_then(|rest| rest.split_once("\n---\n\n")).expect("both");
            let lines: Vec<_> = front.lines().map(|line| line.split_once(": ").expect("name: value")).collect();
            let names: Vec<_> = lines.iter().map(|(name, _)| *name).collect();
            let own: &[_] = if path == "/" { &["requirements"] } else { &[] };
            assert_eq!(names, [&["title", "description", "canonical_url", "last_updated"], own].concat(), "{twin}");
            for (_, quoted) in &lines[..2] {
                assert!(serde_json::from_str::<String>(quoted).is_ok_and(|text| !text.is_empty()), "{quoted}");
            }
            assert_eq!(lines[2].1, format!("{BASE}{path}"));
            assert!(lines[3].1.parse::<jiff::civil::Date>().is_ok(), "{}", lines[3].1);
            let first = body.lines().next().expect("a first line");
            assert!(first.contains(&format!("{BASE}/llms.txt")), "{first}");
        }
    })
    .await;
}

/// A program that reads only the start of a page finds the shorter forms, and then words rather than drawings.
#[tokio::test]
async fn html_begins_with_links_to_its_markdown_and_to_llms_txt_and_has_its_drawings_last() {
    on_one_database_with(live(), async |service| {
        for (path, twin) in PAGES {
            let html = service.get_as(path, "text/html").await.text();
            let head: String = html.chars().take(600).collect();
            assert!(head.contains(&format!("type=\"text/markdown\" href=\"{twin}\"")), "{head}");
            assert!(head.contains("rel=\"describedby\" type=\"text/plain\" href=\"/llms.txt\""), "{head}");
            assert!(
                head.contains("This page as Markdown: the same facts in about a third of its length or less"),
                "{head}"
            );
            let share = service.get(twin).await.body.len() * 100 / html.len();
            assert!(share <= 38, "{twin}: {share} %");
            let (text, drawings) = html.split_once("</main>").expect("the end of the text");
            assert!(!text.contains("<symbol") && drawings.contains("<symbol"), "{path}");
        }
    })
    .await;
}

#[tokio::test]
async fn a_claim_in_markdown_can_be_cited_by_the_anchor_of_its_heading() {
    on_one_database_with(live(), async |service| {
        for (path, twin) in PAGES {
            let (html, markdown) = (service.get(path).await.text(), service.get(twin).await.text());
            let ids = attributes(&html, "*", "id");
            let below = markdown.lines().filter(|line| line.starts_with("## ") || line.starts_with("### "));
            for heading in below.filter(|heading| !heading.ends_with("{#errors-codes}")) {
                let anchor = heading.rsplit_once(" {#").and_then(|(_, anchor)| anchor.strip_suffix('}'));
                assert!(anchor.is_some_and(|anchor| ids.iter().any(|id| id == anchor)), "{heading} of {twin}: {ids:?}");
            }
        }
    })
    .await;
}

#[tokio::test]
async fn pages_say_what_the_monthly_email_is_and_that_it_comes_with_a_download() {
    on_one_database_with(live(), async |service| {
        for path in ["/", "/index.md", "/privacy", "/privacy.md"] {
            let page = service.get(path).await.text();
            assert!(page.contains("comes with a download") && page.contains("says what is new in Troupe"), "{path}");
        }
        for path in ["/about", "/about.md", "/llms.txt"] {
            assert!(service.get(path).await.text().contains("The full text is not on this site"), "{path}");
        }
    })
    .await;
}

#[tokio::test]
async fn markdown_has_at_least_three_headings_and_only_absolute_links() {
    on_one_database_with(live(), async |service| {
        for (_, twin) in PAGES {
            let text = service.get(twin).await.text();
            assert!(text.lines().filter(|line| line.starts_with('#')).count() >= 3, "{twin}");
            assert_eq!(text.lines().filter(|line| line.starts_with("# ")).count(), 1, "{twin}");
            let links = markdown_links(&text);
            assert!(!links.is_empty());
            for link in links {
                assert!(link.starts_with("https://"), "{link} in {twin}");
            }
            assert!(!text.contains("<#") && !text.contains("{{"), "{twin} has signs of the template left");
        }
    })
    .await;
}

#[tokio::test]
async fn markdown_says_where_the_page_is_and_how_many_tokens_it_has() {
    on_one_database_with(live(), async |service| {
        for (path, twin) in PAGES {
            for answer in [service.get(twin).await, service.get_as(path, "text/markdown").await] {
                assert_eq!(answer.header("link"), format!("<{BASE}{path}>; rel=\"canonical\""));
                let tokens: usize = answer.header("x-markdown-tokens").parse().expect("a number");
                let characters = answer.text().chars().count();
                assert!((characters / 6..=characters / 3).contains(&tokens), "{tokens} for {characters}");
            }
        }
    })
    .await;
}

#[tokio::test]
async fn a_page_has_one_heading_of_its_own_a_title_and_a_description() {
    on_one_database(async |service| {
        let mut titles = Vec::new();
        for (path, _) in PAGES {
            let html = service.get(path).await.text();
            assert_eq!(texts(&html, "h1").len(), 1, "{path}");
            assert_eq!(attributes(&html, "html", "lang"), ["en"]);
            titles.extend(texts(&html, "title"));
            let description = attributes(&html, r#"meta name="description""#, "content");
            assert!(description.len() == 1 && description[0].chars().count() >= 50, "{path}: {description:?}");
        }
        titles.sort();
        titles.dedup();
        assert_eq!(titles.len(), PAGES.len(), "{titles:?}");
    })
    .await;
}

#[tokio::test]
async fn html_names_its_own_address_and_its_markdown() {
    on_one_database_with(live(), async |service| {
        for (path, twin) in PAGES {
            let html = service.get(path).await.text();
            assert_eq!(attributes(&html, r#"link rel="canonical""#, "href"), [format!("{BASE}{path}")]);
            assert_eq!(attributes(&html, r#"link rel="alternate" type="text/markdown""#, "href"), [twin]);
        }
    })
    .await;
}

#[tokio::test]
async fn absolute_addresses_come_from_base_url_and_not_from_the_host_header() {
    on_one_database_with(live(), async |service| {
        let files = [
            "/llms.txt",
            "/agents.md",
            "/sitemap.xml",
            "/robots.txt",
            "/openapi.json",
            "/mcp/server-card",
            "/.well-known/api-catalog",
            "/.well-known/ai-catalog.json",
            "/.well-known/security.txt",
            "/nothing-here",
        ];
        for path in PAGES.iter().flat_map(|(page, twin)| [page, twin]).copied().chain(files) {
            for headers in [
                &[("host", "evil.example")][..],
                &[("x-forwarded-host", "evil.example"), ("forwarded", "host=evil.example;proto=http")],
            ] {
                let answer = service.send(reqwest::Method::GET, path, headers, "").await;
                let (text, link) = (answer.text(), answer.header("link"));
                assert!(!text.contains("evil.example") && !link.contains("evil.example"), "{path}");
                assert!(!text.contains(&service.address().to_string()), "{path}");
            }
            let own = addresses(&service.get(path).await.text());
            assert!(own.iter().any(|address| address.starts_with(BASE)) || path == "/nothing-here", "{path}: {own:?}");
        }
    })
    .await;
}
