//! Pages, navigation and redirects that makers add to the site.

use std::fs;
use std::path::Path;

use porchlight::config::RawSettings;
use serde_json::{Value, json};

use crate::harness::{Program, Service, on_one_database, on_one_database_with};

fn write(folder: &Path, name: &str, text: &str) {
    let path = folder.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn page(title: &str, more: &str, body: &str) -> String {
    let description = format!("What this page of the tests says about {title}, in a sentence.");
    format!(
        "---\ntitle: {title}\ndescription: {description}\nlast_updated: 2026-11-18\n{more}---\n# {title}\n\n{body}\n"
    )
}

/// Questions in the navigation, a folder with two pages, and terms that search engines leave out.
fn with_own_pages() -> (tempfile::TempDir, RawSettings) {
    let folder = tempfile::tempdir().unwrap();
    let facts = include_str!("../../content/site.toml");
    let more = "\n[nav]\nhide = [\"developers\"]\n\n[redirects]\n\"/old\" = \"/faq\"\n\"/shop.html\" = \"https://shop.example/a b\"\n";
    write(folder.path(), "site.toml", &format!("{facts}{more}"));
    write(folder.path(), "pages/faq.md", &page("Questions", "nav: 1\n", "## Why {#why}\n\n[Terms](/terms)"));
    write(folder.path(), "pages/terms.md", &page("Terms", "noindex: true\n", "Be kind."));
    write(folder.path(), "pages/help/index.md", &page("Help", "", "All of it."));
    write(folder.path(), "pages/help/install.md", &page("Install", "template: page.html\n", "Drag it."));
    let site_dir = Some(folder.path().display().to_string());
    (folder, RawSettings { site_dir, ..RawSettings::default() })
}

async fn read_page(service: &Service, page: &str) -> Value {
    let call = json!({
        "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": { "name": "read_page", "arguments": { "page": page } },
    });
    service.post("/mcp", &call).await.expect_ok()["result"].clone()
}

async fn tool_schema(service: &Service) -> Value {
    let list = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" });
    let tools = service.post("/mcp", &list).await.expect_ok()["result"]["tools"].clone();
    tools[1]["inputSchema"]["properties"]["page"].clone()
}

#[tokio::test]
async fn every_page_of_the_folder_is_a_page_like_the_built_in_ones() {
    let (_folder, written) = with_own_pages();
    on_one_database_with(written, async |service| {
        for (path, twin, title) in [
            ("/faq", "/faq.md", "Questions"),
            ("/terms", "/terms.md", "Terms"),
            ("/help", "/help/index.md", "Help"),
            ("/help/install", "/help/install.md", "Install"),
        ] {
            let html = service.get_as(path, "text/html").await;
            assert_eq!(html.status, 200, "{path}");
            assert!(html.text().contains(&format!("<h1>{title}</h1>")), "{path}");
            assert!(html.header("link").contains(&format!("<{twin}>; rel=\"alternate\"")), "{path}");
            let markdown = service.get_as(path, "text/markdown").await;
            assert_eq!(markdown.body, service.get(twin).await.body, "{path}");
            assert!(markdown.text().contains(&format!("canonical_url: {}{path}\n", service.base_url())), "{path}");
            assert!(!markdown.text().contains("nav:") && !markdown.text().contains("noindex:"), "{path}");
            assert!(!html.header("etag").is_empty(), "{path}");
        }
        let faq = service.get("/faq").await.text();
        assert!(faq.contains("id=\"why\"") && faq.contains("href=\"/terms\""), "{faq}");
        assert!(service.get("/terms").await.text().contains("<meta name=\"robots\" content=\"noindex\">"));
        for map in ["/sitemap.xml", "/sitemap.md"] {
            let map = service.get(map).await.text();
            assert!(map.contains("/faq") && map.contains("/help/install") && !map.contains("/terms"), "{map}");
        }
        assert!(service.get("/nowhere").await.text().contains("href=\"/faq\""));
        let llms = service.get("/llms.txt").await.text();
        assert!(llms.contains("/faq.md): What") && llms.contains("/help/index.md"), "{llms}");
        assert!(!llms.contains("install.md") && llms.contains("/sitemap.md): what else"), "{llms}");
    })
    .await;
}

#[tokio::test]
async fn pages_choose_their_place_in_the_navigation() {
    let (_folder, written) = with_own_pages();
    on_one_database_with(written, async |service| {
        let html = service.get("/faq").await.text();
        let (_, nav) = html.split_once("<nav aria-label=\"Site\">").unwrap();
        let nav = nav.split_once("</nav>").unwrap().0;
        let paths: Vec<_> = nav.split("href=\"").skip(1).map(|rest| rest.split('"').next().unwrap()).collect();
        assert_eq!(paths, ["/faq", "/about", "/privacy", "/contact"]);
        assert!(nav.contains("<a href=\"/faq\" aria-current=\"page\">Questions</a>"), "{nav}");
        assert_eq!(service.get("/developers").await.status, 200, "hidden is not gone");
    })
    .await;
}

#[tokio::test]
async fn old_addresses_lead_to_new_ones() {
    let (_folder, written) = with_own_pages();
    on_one_database_with(written, async |service| {
        for (from, to) in [("/old", "/faq"), ("/shop.html", "https://shop.example/a%20b")] {
            let answer = service.get(from).await;
            assert_eq!((answer.status.as_u16(), answer.header("location")), (301, to));
        }
    })
    .await;
}

#[tokio::test]
async fn agents_read_own_pages_by_path() {
    let (_folder, written) = with_own_pages();
    on_one_database_with(written, async |service| {
        for (page, words) in
            [("about", "# About"), ("/faq", "# Questions"), ("/help/install", "Drag it."), ("/terms", "kind")]
        {
            let result = read_page(service, page).await;
            assert!(result["content"][0]["text"].as_str().unwrap().contains(words), "{page}: {result}");
        }
        let unknown = read_page(service, "/nowhere").await;
        assert_eq!(unknown["isError"], true);
        assert!(unknown.to_string().contains("or the path of a page such as those in /sitemap.md"), "{unknown}");
        let schema = tool_schema(service).await;
        assert_eq!(schema["type"], "string");
        let description = schema["description"].as_str().unwrap();
        assert!(description.contains("home, about") && description.contains("/faq (Questions)"), "{description}");
        assert!(!description.contains("/terms") && schema.get("enum").is_none(), "{schema}");
    })
    .await;
    on_one_database(async |service| {
        let names = ["home", "about", "privacy", "developers", "contact"];
        assert_eq!(tool_schema(service).await["enum"], json!(names));
        assert!(read_page(service, "/about").await.to_string().contains("# About"));
    })
    .await;
}

#[tokio::test]
async fn what_cannot_be_a_page_is_named_while_the_rest_is_served() {
    let (folder, written) = with_own_pages();
    write(folder.path(), "pages/desk.md", &page("Desk", "", ""));
    write(folder.path(), "pages/api/x.md", &page("API", "", ""));
    write(folder.path(), "pages/index.md", &page("Start", "", ""));
    let site_dir = written.site_dir.clone().unwrap();
    let (_, output) = Program::run(Program::command(folder.path(), &["check", "--site-dir", &site_dir]));
    for sentence in [
        "pages/desk.md is not used: the service itself uses the address /desk.",
        "pages/api/x.md is not used: the service itself uses the address /api/x.",
        "pages/index.md is not used: the home page is pages/home.md.",
    ] {
        assert!(output.contains(sentence), "{output}");
    }
    on_one_database_with(written, async |service| {
        assert_eq!(service.get("/desk").await.status, 404);
        assert_eq!(service.get("/faq").await.status, 200);
    })
    .await;
}

#[test]
fn faults_of_pages_and_navigation_name_file_and_line() {
    for (file, text, sentence) in [
        ("pages/faq.md", page("F", "nav: first\n", ""), "pages/faq.md has a fault in line 5: write `nav: 2` for"),
        ("pages/faq.md", page("F", "x: y\nnoindex: yes\n", ""), "line 6: write `noindex: true` or `noindex: false`."),
        (
            "pages/faq.md",
            page("F", "template: contcat.html\n", ""),
            "line 5: there is no template `contcat.html` in templates/. Did you mean `contact.html`?",
        ),
        ("site.toml", facts("[nav]\nhide = [\"develpers\"]"), "there is no such page. Did you mean `developers`?"),
        ("site.toml", facts("[redirects]\n\"/about\" = \"/\""), "/about is in use, so it cannot lead elsewhere."),
        ("site.toml", facts("[redirects]\n\"/api/x\" = \"/\""), "/api/x is in use, so it cannot lead elsewhere."),
        ("site.toml", facts("[redirects]\n\"old\" = \"/\""), "a redirect starts at a path such as /old, not at `old`."),
        ("site.toml", facts("[redirects]\n\"/old\" = \"new\""), "/old leads to `new`, which is neither a path"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), file, &text);
        let site_dir = folder.path().display().to_string();
        let (code, output) = Program::run(Program::command(folder.path(), &["check", "--site-dir", &site_dir]));
        assert_eq!(code, 1, "{output}");
        assert!(output.contains(sentence), "{sentence}\n{output}");
        if file == "site.toml" {
            let line = text.lines().count();
            assert!(output.contains(&format!("site.toml has a fault in line {line}: ")), "{output}");
        }
    }
}

fn facts(more: &str) -> String {
    format!("{}\n{more}\n", include_str!("../../content/site.toml"))
}
