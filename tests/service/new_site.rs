//! `porchlight new`: a site for another app, which speaks of that app alone.

use std::path::Path;
use std::sync::LazyLock;

use fancy_regex::Regex;
use porchlight::config::RawSettings;
use serde_json::json;

use crate::harness::{MailServer, Program, Service, disk_image, each_database, on_one_database_with, raw};
use crate::links::crawl;

const NAME: &str = "Tea & Time";

/// Words of the app whose site is built in.
static OTHER_APP: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?i)troupe|\bbots?\b|coding.agent|approval gate|\b(scout|quill|tally)\b").expect("an expression")
});

fn new_site(folder: &Path, name: &str) -> (i32, String) {
    Program::run(Program::command(folder, &["new", "site", "--name", name]))
}

/// Settings of a service with a new site.
fn settings(folder: &Path) -> RawSettings {
    let (code, output) = new_site(folder, NAME);
    assert_eq!(code, 0, "{output}");
    RawSettings { site_dir: Some(folder.join("site").display().to_string()), ..RawSettings::default() }
}

#[track_caller]
fn assert_own(what: &str, text: &str) {
    let other = OTHER_APP.find(text).expect("a match or none");
    let around = other.map(|found| &text[text.floor_char_boundary(found.start().saturating_sub(60))..found.end()]);
    assert_eq!(around, None, "{what} speaks of the other app");
}

async fn call_tool(service: &Service, name: &str) -> String {
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": name } });
    service.post("/mcp", &call).await.text()
}

#[tokio::test]
async fn every_page_file_and_tool_of_a_new_site_speaks_of_its_app_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    on_one_database_with(settings(folder.path()), async |service| {
        let mut paths = crawl(service, "/", &service.get("/").await).await;
        paths.extend(crawl(service, "/llms.txt", &service.get("/llms.txt").await).await);
        let unlinked = ["/nothing", "/download/started", "/contact/sent", "/robots.txt", "/.well-known/security.txt"];
        paths.extend(unlinked.map(str::to_owned));
        assert!(paths.len() > 40, "{paths:?}");
        for path in paths {
            for accept in ["text/html", "text/markdown"] {
                let answer = service.get_as(&path, accept).await;
                if !answer.media_type().starts_with("image/") && !answer.media_type().starts_with("text/css") {
                    assert_own(&path, &String::from_utf8_lossy(&answer.body));
                }
            }
        }
        for path in ["/index.md", "/about.md", "/llms.txt", "/agents.md", "/releases.atom", "/openapi.json"] {
            let text = service.get(path).await.text().replace("&amp;", "&");
            assert!(text.contains(NAME), "{path}: {text}");
        }
        let listed = service.post("/mcp", &json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" })).await.text();
        assert_own("tools/list", &listed);
        let (about, get) = (call_tool(service, "about_service").await, call_tool(service, "get_download").await);
        assert_own("about_service", &about);
        assert!(about.contains(NAME), "{about}");
        assert_own("get_download", &get);
    })
    .await;
}

#[tokio::test]
async fn the_mail_of_a_new_site_speaks_of_its_app_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    for database in each_database().await {
        let mut server = MailServer::start().await;
        let site = tempfile::tempdir_in(folder.path()).expect("a folder");
        let mail = RawSettings {
            smtp_url: Some(server.url()),
            mail_from: Some("Tea <hello@tea.example>".to_owned()),
            contact_to: Some("makers@tea.example".to_owned()),
            ..settings(site.path())
        };
        let service = Service::start(mail, database).await;
        let message = json!({ "email": "ada@example.com", "message": "Hello there" });
        service.post("/api/contact", &message).await.expect_ok();
        let forwarded = server.next_mail().await;
        assert_own("the forwarded message", &forwarded.text);
        service.post("/api/download", &json!({ "email": "ada@example.com", "updates": true })).await.expect_ok();
        let letter = service.file("november.md", "# What is new\n\nWords.\n");
        let mut send = service.command(&["letter", "send", letter.to_str().unwrap(), "--yes"]);
        send.args(["--database-url", service.database.url(), "--smtp-url", &server.url()]);
        send.args(["--mail-from", "hello@tea.example", "--contact-to", "makers@tea.example"]);
        send.args(["--postal-address", "1 Tea Street", "--base-url", "https://tea.example"]);
        send.arg("--site-dir").arg(site.path().join("site"));
        let (code, output) = Program::run(send);
        assert_eq!(code, 0, "{output}");
        let letter = server.next_mail().await;
        for (part, text) in [("text", &letter.text), ("HTML", &letter.html)] {
            assert_own(part, text);
            assert!(text.replace("&amp;", "&").contains(NAME), "{text}");
        }
    }
}

#[tokio::test]
async fn nothing_is_written_without_a_proper_name_and_an_empty_folder() {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, why) in [("", "it is empty"), ("a\tb", "control character")] {
        let (code, output) = new_site(folder.path(), name);
        assert!(code == 2 && output.contains(why), "{output}");
    }
    assert!(!folder.path().join("site").exists());
    let (code, output) = new_site(folder.path(), NAME);
    assert!(code == 0 && output.contains("cd site && porchlight serve --watch"), "{output}");
    std::fs::write(folder.path().join("site/site.toml"), "mine").expect("a change");
    let (code, output) = new_site(folder.path(), "Other");
    assert!(code == 1 && output.contains("site is not empty"), "{output}");
    assert_eq!(std::fs::read_to_string(folder.path().join("site/site.toml")).expect("a file"), "mine");
}

#[tokio::test]
async fn the_start_check_and_dashboard_name_what_to_do_next_in_the_same_order() {
    let folder = tempfile::tempdir().expect("a folder");
    let written = RawSettings { ops_listen: Some("127.0.0.1:0".to_owned()), ..settings(folder.path()) };
    on_one_database_with(written, async |service| {
        let steps =
            ["The site has texts of a new site", "Downloads get a sample", "This is a local", "Contact messages"];
        let dashboard = reqwest::get(format!("http://{}/", service.ops_address())).await.expect("a dashboard");
        let dashboard = dashboard.text().await.expect("a text");
        let places = steps.map(|step| dashboard.find(&format!("<li>{step}")).expect(step));
        assert!(places.is_sorted(), "{places:?}");
        let mut check = service.command(&["check", "--database-url", service.database.url()]);
        check.arg("--site-dir").arg(folder.path().join("site"));
        let (_, output) = Program::run(check);
        let last = output.lines().last().expect("a line");
        assert!(output.contains("pages/about.md, line 13: Say here how it works, in a paragraph or two."), "{output}");
        assert!(last.starts_with("Next: The site has texts of a new site. Change site.toml (lines 6, 8,"), "{output}");
    })
    .await;
    let mut serve = Program::command(folder.path(), &["serve", "--listen", "127.0.0.1:0", "--log-format", "text"]);
    serve.args(["--ops-listen", "off", "--site-dir", "site"]);
    let program = Program::start(serve, "not mailed to anybody");
    let steps: Vec<_> =
        program.output().lines().filter(|line| line.starts_with("  next") || line.starts_with("  then")).collect();
    assert_eq!(steps.len(), 4, "{steps:#?}");
    assert!(steps[0].starts_with("  next          The site has texts of a new site."), "{steps:#?}");
}

#[tokio::test]
async fn in_the_folder_of_a_new_site_every_command_is_for_its_app() {
    let folder = tempfile::tempdir().expect("a folder");
    let (code, output) = new_site(folder.path(), NAME);
    assert_eq!(code, 0, "{output}");
    let site = folder.path().join("site");
    let image = folder.path().join("image.dmg");
    std::fs::write(&image, disk_image(20_000, 1)).expect("an image");
    let publish = ["release", "publish", image.to_str().expect("UTF-8"), "--version", "1.0.0"];
    let (code, output) = Program::run(Program::command(&site, &publish));
    assert!(code == 0 && output.contains("Tea-Time-1.0.0.dmg is published"), "{output}");
    let serve = Program::command(&site, &["serve", "--watch", "--listen", "127.0.0.1:0", "--ops-listen", "off"]);
    let program = Program::start(serve, "not mailed to anybody");
    let page = raw(program.address(), "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").await;
    assert!(page.contains("Tea &amp; Time") && page.contains("The newest version is 1.0.0"), "{page}");
    drop(program);
    let (_, shown) =
        Program::run(Program::command(folder.path(), &["--config", "site/porchlight.toml", "config", "show"]));
    assert!(shown.contains("data_dir         site/data ") && shown.contains("site_dir         site "), "{shown}");
}

#[tokio::test]
async fn a_command_for_another_app_changes_nothing_in_the_database() {
    let folder = tempfile::tempdir().expect("a folder");
    for database in each_database().await {
        let site = tempfile::tempdir_in(folder.path()).expect("a folder");
        let service = Service::start(settings(site.path()), database).await;
        let suppress = |more: &[&str]| {
            let mut command = service.command(&["people", "suppress", "ada@example.com"]);
            Program::run({
                command.args(["--database-url", service.database.url()]).args(more);
                command
            })
        };
        let (code, output) = suppress(&[]);
        assert!(code == 1 && output.contains("the database belongs to Tea & Time, and these settings"), "{output}");
        assert!(output.contains("are for Troupe"), "{output}");
        assert_eq!(service.database.count("suppressions").await, 0);
        let own = site.path().join("site");
        let own = ["--site-dir", own.to_str().expect("UTF-8")];
        assert_eq!(suppress(&own).0, 0);

        let facts = site.path().join("site/site.toml");
        let renamed = std::fs::read_to_string(&facts).expect("facts").replace(NAME, "Tea Hour");
        std::fs::write(&facts, renamed).expect("a change");
        let (code, output) = suppress(&own);
        assert!(code == 1 && output.contains("are for Tea Hour") && output.contains("site rename"), "{output}");
        let mut rename = service.command(&["site", "rename", "--database-url", service.database.url()]);
        rename.args(own);
        let (code, output) = Program::run(rename);
        assert_eq!((code, output.trim()), (0, "The database belonged to Tea & Time, and belongs to Tea Hour now."));
        assert_eq!(suppress(&own).0, 0);
    }
}
