//! What a maker leaves out of `site.toml` is nowhere, and what they set is everywhere: the waiting list, the price, the Mac App
//! Store, a notice, and the words about a refused first open.

use std::fs;
use std::path::Path;

use porchlight::config::RawSettings;
use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{
    Program, Service, disk_image, on_each_database_with, on_one_database, on_one_database_with, wait_until,
};
use crate::links::crawl;

const BUY: &str = "https://shop.example/buy?app=tea";
const STORE: &str = "https://apps.apple.com/app/id1";
const NOTICE: &str = "Version 2.1 loses notes & tags. Wait for 2.2.";

const PRICE: &str =
    "\n[price]\namount = 25\ncurrency = \"EUR\"\ntrial_days = 14\nbuy_url = \"https://shop.example/buy?app=tea\"\n";

/// The site of a new app, with lines before and after the others in `site.toml`.
fn new_site(folder: &Path, before: &str, after: &str) -> RawSettings {
    let site = folder.join("site");
    let (code, output) = Program::run(Program::command(folder, &["new", "site", "--name", "Tea"]));
    assert_eq!(code, 0, "{output}");
    let facts = fs::read_to_string(site.join("site.toml")).unwrap();
    fs::write(site.join("site.toml"), format!("{before}\n{facts}{after}")).unwrap();
    RawSettings { site_dir: Some(site.display().to_string()), ..RawSettings::default() }
}

/// Everything that the service says, by where it says it.
async fn everything(service: &Service) -> Vec<(String, String)> {
    let mut paths = crawl(service, "/", &service.get("/").await).await;
    paths.extend(crawl(service, "/llms.txt", &service.get("/llms.txt").await).await);
    paths.extend(["/nothing", "/download/started", "/contact/sent", "/mcp/server-card"].map(str::to_owned));
    assert!(paths.len() > 40, "{paths:?}");
    let mut texts = Vec::new();
    for path in paths {
        for accept in ["text/html", "text/markdown"] {
            let answer = service.get_as(&path, accept).await;
            if ["text/", "application/"].iter().any(|kind| answer.media_type().starts_with(kind)) {
                texts.push((format!("{path} as {accept}"), String::from_utf8_lossy(&answer.body).into_owned()));
            }
        }
    }
    for method in ["initialize", "tools/list"] {
        let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "x", "version": "1" } });
        let params = if method == "initialize" { params } else { json!({}) };
        texts.push((method.to_owned(), rpc(service, method, &params).await.to_string()));
    }
    for tool in ["about_service", "get_download"] {
        texts.push((tool.to_owned(), call(service, tool).await.to_string()));
    }
    texts.push(("/api/".to_owned(), service.get("/api/").await.text()));
    texts
}

async fn rpc(service: &Service, method: &str, params: &Value) -> Value {
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
    service.post("/mcp", &message).await.expect_ok()
}

async fn call(service: &Service, tool: &str) -> Value {
    rpc(service, "tools/call", &json!({ "name": tool, "arguments": {} })).await["result"]["structuredContent"].clone()
}

#[tokio::test]
async fn a_waiting_list_that_is_left_out_is_nowhere() {
    let folder = tempfile::tempdir().unwrap();
    on_one_database_with(new_site(folder.path(), "", ""), async |service| {
        for (place, text) in everything(service).await {
            let text = text.to_lowercase();
            for word in ["waitlist", "waiting list", "joined the list", "join the list", "or the list"] {
                assert!(!text.contains(word), "{place} speaks of {word:?}");
            }
        }
        let unknown = service.post("/api/unknown", &json!({})).await.expect_problem(404, "not_found");
        for method in [Method::GET, Method::POST, Method::OPTIONS] {
            let body = json!({ "email": "ada@example.com" }).to_string();
            let answer = service.send(method, "/api/waitlist", &[("content-type", "application/json")], body).await;
            let problem = answer.expect_problem(404, "not_found");
            assert!(answer.headers.get("deprecation").is_none());
            assert_eq!(problem["resolution"], unknown["resolution"]);
        }
        let join = json!({ "name": "join_waitlist", "arguments": { "email": "ada@example.com" } });
        let refused = rpc(service, "tools/call", &join).await;
        let message = "Invalid params: unknown tool; available tools: about_service, read_page, get_download";
        assert_eq!((&refused["error"]["code"], &refused["error"]["message"]), (&json!(-32602), &json!(message)));
        assert_eq!(service.database.count("people").await, 0);
        let rules = service.get("/developers.md").await.text();
        assert!(rules.contains("Two JSON endpoints") && rules.contains("\n5. Tell the person"), "{rules}");
    })
    .await;
}

#[tokio::test]
async fn the_privacy_page_speaks_of_a_left_out_list_while_people_are_on_it_and_check_counts_them() {
    let folder = tempfile::tempdir().unwrap();
    on_each_database_with(new_site(folder.path(), "", ""), async |service| {
        let site = folder.path().join("site").display().to_string();
        let run = |arguments: &[&str]| {
            let mut command = service.command(arguments);
            command.args(["--database-url", service.database.url(), "--site-dir", &site]);
            Program::run(command)
        };
        assert!(!run(&["check"]).1.contains("waiting list"));
        let list = service.file("list.csv", "email,waitlist\nada@example.com,true\nbob@example.com,true\n");
        let (code, output) = run(&["people", "import", list.to_str().unwrap()]);
        assert_eq!(code, 0, "{output}");
        let (_, output) = run(&["check"]);
        assert!(output.contains("2 people are on the waiting list that site.toml leaves out"), "{output}");
        // A new release builds the pages again.
        fs::write(folder.path().join("image.dmg"), disk_image(2000, 1)).unwrap();
        let image = folder.path().join("image.dmg").display().to_string();
        let images = service.releases_dir().display().to_string();
        let (code, output) = run(&["release", "publish", &image, "--version", "1.0.0", "--releases-dir", &images]);
        assert_eq!(code, 0, "{output}");
        wait_until("the words about the list", async || {
            service.get("/privacy.md").await.text().contains("You joined the waiting list")
        })
        .await;
        let privacy = service.get("/privacy.md").await.text();
        assert!(privacy.contains("brings no mail") && privacy.contains("to leave the waiting list, or"), "{privacy}");
        assert!(!service.get("/contact.md").await.text().contains("waiting list"));
    })
    .await;
}

#[tokio::test]
async fn price_store_and_notice_are_on_pages_in_search_data_briefings_and_tools() {
    let folder = tempfile::tempdir().unwrap();
    let before = format!("app_store_url = \"{STORE}\"\nnotice = \"{NOTICE}\"");
    on_one_database_with(new_site(folder.path(), &before, PRICE), async |service| {
        let words = "25 EUR, 14 days free to try";
        let home = service.get("/").await.text();
        for part in [words, BUY, STORE, "\"installUrl\":\"https://apps.apple.com/app/id1\""] {
            assert!(home.contains(part), "{part}: {home}");
        }
        let (_, act) = home.split_once("class=\"hero-act\"").unwrap();
        let act = act.split_once("</p>").unwrap().0;
        assert!(act.contains(&format!("href=\"{BUY}\"")) && act.contains(&format!("href=\"{STORE}\"")), "{act}");
        let offer = json!({ "@type": "Offer", "price": "25", "priceCurrency": "EUR", "url": BUY, "description": "14 days free to try" });
        let (_, data) = home.split_once("<script type=\"application/ld+json\">").unwrap();
        let data: Value = serde_json::from_str(data.split_once("</script>").unwrap().0).unwrap();
        assert_eq!(data["@graph"][2]["offers"], offer);
        for path in ["/llms.txt", "/agents.md", "/index.md"] {
            let text = service.get(path).await.text();
            for part in [words, BUY, STORE, NOTICE] {
                assert!(text.contains(part), "{path} says nothing of {part}: {text}");
            }
        }
        for path in ["/", "/about", "/privacy", "/releases", "/nothing", "/download/started", "/contact/sent"] {
            let html = service.get_as(path, "text/html").await.text();
            let (_, notice) = html.split_once("aria-label=\"Notice\">").expect(path);
            assert!(notice.starts_with("<p class=\"wrap\">Version 2.1 loses notes &amp; tags."), "{path}");
            assert!(notice.contains("<h1"), "{path}: it is above everything");
            let markdown = service.get_as(path, "text/markdown").await;
            let is_markdown = markdown.media_type() == "text/markdown";
            assert_eq!(is_markdown, !path.ends_with("ed") && !path.ends_with("sent"), "{path}");
            assert!(!is_markdown || markdown.text().contains(&format!("**{NOTICE}**")), "{path}");
        }
        for tool in ["about_service", "get_download"] {
            let result = call(service, tool).await;
            let expected = json!([words, BUY, STORE, NOTICE]);
            assert_eq!(json!([result["price"], result["buy_url"], result["app_store_url"], result["notice"]]), expected);
            let tools = rpc(service, "tools/list", &json!({})).await["result"]["tools"].clone();
            let declared = tools.as_array().unwrap().iter().find(|declared| declared["name"] == tool).unwrap();
            assert!(jsonschema::is_valid(&declared["outputSchema"], &result), "{declared}");
        }
    })
    .await;
}

#[tokio::test]
async fn what_is_not_set_is_not_mentioned() {
    let words =
        ["buy_url", "app_store_url", "\"notice\"", "aria-label=\"Notice\"", "installUrl", "free to try", "App Store"];
    on_one_database(async |service| {
        for (place, text) in everything(service).await {
            for word in words {
                assert!(!text.contains(word), "{place} has {word:?}");
            }
        }
        let home = service.get("/").await.text();
        assert!(home.contains("\"offers\":{\"@type\":\"Offer\",\"price\":\"0\",\"priceCurrency\":\"USD\"}"), "{home}");
    })
    .await;
}

#[test]
fn a_price_in_the_old_form_is_refused_with_what_to_write_instead() {
    for (before, after, line, why) in [
        ("price = \"0\"", "", 1, "at the end of the file write [price], and below it lines such as amount = \"19.00\""),
        ("currency = \"EUR\"", "", 1, "at the end of the file write [price]"),
        ("notice = \"a\\nb\"", "", 1, "the notice is one line"),
        ("", "\n[price]\namount = 25\n", 0, "a price needs a currency, such as currency = \"EUR\""),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let site = new_site(folder.path(), before, after).site_dir.unwrap();
        let (code, output) = Program::run(Program::command(folder.path(), &["check", "--site-dir", &site]));
        assert!(code == 1 && output.contains(why), "{why}\n{output}");
        let place = format!("site.toml has a fault in line {line}: ");
        assert!(line == 0 || output.contains(&place), "{place}\n{output}");
    }
}

#[tokio::test]
async fn the_pages_of_a_notarised_app_do_not_speak_of_a_refused_first_open() {
    let folder = tempfile::tempdir().unwrap();
    let written = new_site(folder.path(), "signature = \"notarised\"", "");
    on_one_database_with(written, async |service| {
        for (place, text) in everything(service).await {
            for word in ["Open Anyway", "was blocked", "macOS refuses", "may refuse", "settings.svg", "after a refusal"]
            {
                let style = place.starts_with("/assets/");
                assert!(style || !text.contains(word), "{place} has {word:?}");
            }
        }
        let steps = call(service, "get_download").await["first_open"].clone();
        assert_eq!(steps, json!(["Open the disk image, drag the app to Applications, and open it."]));
    })
    .await;
    let folder = tempfile::tempdir().unwrap();
    on_one_database_with(new_site(folder.path(), "", ""), async |service| {
        for path in ["/", "/download/started"] {
            let html = service.get_as(path, "text/html").await.text();
            assert!(html.contains("the button Open Anyway") && html.contains("choose Open Anyway"), "{path}");
        }
    })
    .await;
}
