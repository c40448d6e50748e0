//! Releases as Sparkle, feed readers and programs subscribe to them.

use porchlight::config::RawSettings;
use roxmltree::{Document, Node};

use super::live;
use crate::harness::{Service, on_one_database_with};

pub(super) const SPARKLE: &str = "http://www.andymatuschak.org/xml-namespaces/sparkle";
const ATOM: &str = "http://www.w3.org/2005/Atom";

fn child<'a>(node: Node<'a, 'a>, namespace: Option<&str>, name: &str) -> Node<'a, 'a> {
    let is_it = |child: &Node<'_, '_>| child.tag_name().name() == name && child.tag_name().namespace() == namespace;
    node.children().find(is_it).unwrap_or_else(|| panic!("no {name}"))
}

fn words<'a>(node: Node<'a, 'a>, namespace: Option<&str>, name: &str) -> &'a str {
    child(node, namespace, name).text().unwrap_or_default()
}

pub(super) fn signature() -> String {
    format!("{}==", "aB3+/x".repeat(15).chars().take(86).collect::<String>())
}

async fn publish_three(service: &Service) {
    let notes = service.file("notes.md", "**Faster** & \"better\" <b>than</b> ]]> before");
    let signature = signature();
    service.publish_with(
        "1.4.0",
        &["--notes", notes.to_str().unwrap(), "--ed-signature", &signature, "--minimum-macos", "14.6", "--build", "77"],
    );
    // Whoever gets updates by Sparkle would not get these.
    service.publish_with("1.5.0", &["--force"]);
    service.publish_with("2.0.0-beta.1", &["--prerelease", "--force"]);
    service.wait_for_text("/releases.json", "2.0.0-beta.1").await;
}

#[tokio::test]
async fn sparkle_finds_every_version_with_its_signature() {
    on_one_database_with(live(), async |service| {
        publish_three(service).await;
        let answer = service.get("/appcast.xml").await;
        assert_eq!(answer.media_type(), "application/rss+xml");
        let text = answer.text();
        let appcast = Document::parse(&text).unwrap();
        assert_eq!(appcast.root_element().tag_name().name(), "rss");
        let channel = child(appcast.root_element(), None, "channel");
        let items: Vec<_> = channel.children().filter(|node| node.has_tag_name("item")).collect();
        let versions: Vec<_> = items.iter().map(|item| words(*item, Some(SPARKLE), "shortVersionString")).collect();
        assert_eq!(versions, ["2.0.0-beta.1", "1.5.0", "1.4.0"]);
        assert_eq!(words(items[0], Some(SPARKLE), "channel"), "beta");
        assert!(!items[1].children().any(|node| node.has_tag_name((SPARKLE, "channel"))));
        assert_eq!(words(items[1], Some(SPARKLE), "version"), "1.5.0");
        assert_eq!(words(items[1], Some(SPARKLE), "minimumSystemVersion"), "14.0", "as site.toml has it");

        for (item, anchor) in items.iter().zip(["v2-0-0-beta-1", "v1-5-0", "v1-4-0"]) {
            let link = words(*item, Some(SPARKLE), "fullReleaseNotesLink");
            assert_eq!(link, format!("https://troupe.example/releases#{anchor}"));
            assert_eq!(item.children().any(|node| node.has_tag_name("description")), anchor == "v1-4-0");
        }
        let signed = items[2];
        assert_eq!(words(signed, Some(SPARKLE), "version"), "77");
        assert_eq!(words(signed, Some(SPARKLE), "minimumSystemVersion"), "14.6", "its own");
        assert_eq!(
            words(signed, None, "description").trim(),
            "<p><strong>Faster</strong> &amp; \u{201c}better\u{201d} than ]]&gt; before</p>"
        );
        assert!(words(signed, None, "pubDate").ends_with(" +0000"));
        let enclosure = child(signed, None, "enclosure");
        assert_eq!(enclosure.attribute("url"), Some("https://troupe.example/releases/Troupe-1.4.0.dmg"));
        assert_eq!(enclosure.attribute("length"), Some("20000"));
        assert_eq!(enclosure.attribute("type"), Some("application/octet-stream"));
        assert_eq!(enclosure.attribute((SPARKLE, "edSignature")), Some(signature().as_str()));
    })
    .await;
}

#[tokio::test]
async fn an_appcast_that_the_makers_signed_themselves_is_served_byte_for_byte() {
    let site = tempfile::tempdir().unwrap();
    let own = b"\xef\xbb\xbf<?xml version=\"1.0\"?>\r\n<rss/>\r\n<!-- sparkle-signatures: edSignature: x -->\r\n";
    std::fs::write(site.path().join("appcast.xml"), own).unwrap();
    let written = RawSettings { site_dir: Some(site.path().display().to_string()), ..live() };
    on_one_database_with(written, async |service| {
        service.publish("1.4.0");
        service.wait_for_text("/releases.json", "1.4.0").await;
        assert_eq!(service.get("/appcast.xml").await.body, own);
    })
    .await;
}

#[tokio::test]
async fn feed_readers_get_an_entry_for_every_version() {
    on_one_database_with(live(), async |service| {
        let text = service.get("/releases.atom").await.text();
        assert_eq!(words(Document::parse(&text).unwrap().root_element(), Some(ATOM), "title"), "Releases of Troupe");
        publish_three(service).await;
        let answer = service.get("/releases.atom").await;
        assert_eq!(answer.media_type(), "application/atom+xml");
        let text = answer.text();
        let feed = Document::parse(&text).unwrap();
        let feed = feed.root_element();
        for name in ["id", "title", "updated", "author"] {
            child(feed, Some(ATOM), name);
        }
        let entries: Vec<_> = feed.children().filter(|node| node.has_tag_name((ATOM, "entry"))).collect();
        assert_eq!(entries.len(), 3);
        let oldest = entries[2];
        assert_eq!(words(oldest, Some(ATOM), "title"), "Troupe 1.4.0");
        assert_eq!(words(oldest, Some(ATOM), "id"), "https://troupe.example/releases#v1-4-0");
        assert_eq!(child(oldest, Some(ATOM), "content").attribute("type"), Some("html"));
        let page = service.get("/releases").await.text();
        assert!(page.contains("id=\"v1-4-0\""));
        assert!(page.contains("type=\"application/atom+xml\" href=\"/releases.atom\""));
    })
    .await;
}

#[tokio::test]
async fn feeds_and_sitemap_are_well_formed_whatever_the_makers_write() {
    let site = tempfile::tempdir().unwrap();
    let facts = include_str!("../../../content/site.toml")
        .replace("name = \"Troupe\"", r#"name = "T & <b>'r\"]]>\u0001\uFFFFp""#)
        .replace("maker = \"The makers", "maker = \"<&> The makers");
    std::fs::write(site.path().join("site.toml"), facts).unwrap();
    let site_dir = site.path().display().to_string();
    let written = RawSettings { site_dir: Some(site_dir.clone()), ..live() };
    on_one_database_with(written, async |service| {
        service.publish_with("1.4.0", &["--site-dir", &site_dir]);
        service.wait_for_text("/releases.json", "1.4.0").await;
        let name = "T & <b>'r\"]]>\u{fffd}\u{fffd}p";
        let text = service.get("/appcast.xml").await.text();
        let appcast = Document::parse(&text).unwrap();
        assert_eq!(words(child(appcast.root_element(), None, "channel"), None, "title"), name);
        let text = service.get("/releases.atom").await.text();
        let feed = Document::parse(&text).unwrap();
        assert_eq!(words(feed.root_element(), Some(ATOM), "title"), format!("Releases of {name}"));
        let author = child(feed.root_element(), Some(ATOM), "author");
        assert_eq!(words(author, Some(ATOM), "name"), "<&> The makers of Troupe");
        let entry = child(feed.root_element(), Some(ATOM), "entry");
        assert_eq!(words(entry, Some(ATOM), "title"), format!("{name} 1.4.0"));
        Document::parse(&service.get("/sitemap.xml").await.text()).unwrap();
    })
    .await;
}

#[tokio::test]
async fn programs_get_the_same_as_json() {
    on_one_database_with(live(), async |service| {
        publish_three(service).await;
        let answer = service.get("/releases.json").await;
        assert_eq!(answer.header("cache-control"), "no-cache");
        let listed = answer.json();
        assert_eq!(listed["app"], "Troupe");
        assert_eq!(listed["latest"], "1.5.0");
        assert_eq!(listed["releases"][1]["minimum_macos"], "14.0", "as site.toml has it");
        let channels = [0, 1, 2].map(|position| listed["releases"][position]["channel"].clone());
        assert_eq!(channels, ["beta", "stable", "stable"]);
        let oldest = &listed["releases"][2];
        assert_eq!(oldest["minimum_macos"], "14.6", "its own");
        assert_eq!(oldest["version"], "1.4.0");
        assert_eq!(oldest["length"], 20_000);
        assert_eq!(oldest["url"], "https://troupe.example/releases/Troupe-1.4.0.dmg");
        assert_eq!(oldest["sha256"].as_str().unwrap().len(), 64);
        assert!(oldest["notes"].as_str().unwrap().starts_with("**Faster**"));
        assert!(oldest["date"].as_str().unwrap().ends_with('Z'));
    })
    .await;
}
