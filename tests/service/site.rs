//! A site for another app, from `site_dir`.

use std::fs;
use std::path::Path;

use porchlight::config::RawSettings;
use rustix::process::Signal;
use serde_json::json;

use crate::harness::{Program, disk_image, on_each_database_with, on_one_database, on_one_database_with, raw};

/// A first customisation: the facts, one page, one colour.
fn another_app(folder: &Path) {
    let facts = include_str!("../../content/site.toml").replace("Troupe", "Lantern").replace("troupe", "lantern");
    fs::create_dir_all(folder.join("pages")).unwrap();
    fs::create_dir_all(folder.join("assets")).unwrap();
    fs::write(folder.join("site.toml"), facts).unwrap();
    fs::write(
        folder.join("pages/about.md"),
        "---\ntitle: About\ndescription: Lantern is a small lamp for your menu bar, and this page says so.\n\
         last_updated: 2026-11-14\n---\n# About {{ app.name }}\n\nA lamp.\n\n## Why {#why}\n\n## How {#how}\n",
    )
    .unwrap();
    let style = include_str!("../../content/assets/style.css");
    fs::write(folder.join("assets/style.css"), format!("{style}\n/* lantern */")).unwrap();
}

fn written(folder: &Path) -> RawSettings {
    RawSettings { site_dir: Some(folder.display().to_string()), ..RawSettings::default() }
}

#[tokio::test]
async fn a_folder_turns_the_site_into_that_of_another_app() {
    let folder = tempfile::tempdir().unwrap();
    another_app(folder.path());
    on_each_database_with(written(folder.path()), async |service| {
        let about = service.get("/about").await.text();
        assert!(about.contains("About Lantern") && about.contains("id=\"why\""), "{about}");
        assert!(service.get_as("/about", "text/markdown").await.text().contains("# About Lantern"));
        for path in ["/", "/index.md", "/llms.txt", "/agents.md", "/developers", "/mcp/server-card", "/openapi.json"] {
            let text = service.get(path).await.text();
            assert!(text.contains("Lantern"), "{path}");
            assert!(!text.contains("Troupe"), "{path} still speaks of the other app");
        }
        let url = service.post("/api/download", &json!({ "email": "a@b.co" })).await.expect_ok()["url"].clone();
        assert_eq!(url, format!("{}/releases/latest/Lantern.dmg", service.base_url()));
        let sample = service.get("/releases/Lantern-sample.dmg").await;
        assert_eq!(sample.header("content-disposition"), "attachment; filename=\"Lantern-sample.dmg\"");
        assert!(sample.body == include_bytes!("../../content/sample.dmg"));
        let (_, rest) = about.split_once("href=\"/assets/style.").expect("a style sheet");
        let style = service.get(&format!("/assets/style.{}", rest.split('"').next().unwrap())).await;
        assert!(style.text().contains("/* lantern */"));
        let sitemap = service.get("/sitemap.xml").await.text();
        assert!(sitemap.contains("/about</loc><lastmod>2026-11-14</lastmod>"), "{sitemap}");
    })
    .await;
}

#[tokio::test]
async fn a_build_that_failed_is_tried_again_until_it_succeeds() {
    let folder = tempfile::tempdir().unwrap();
    another_app(folder.path());
    let page = folder.path().join("pages/about.md");
    let text = fs::read_to_string(&page).unwrap();
    let site = ["--site-dir", folder.path().to_str().unwrap()];
    let mut serve = Program::command(folder.path(), &["serve", "--listen", "127.0.0.1:0", "--log-format", "logfmt"]);
    serve.args(site);
    let mut program = Program::start(serve, "not mailed to anybody");
    fs::write(&page, "{{ no front matter").unwrap();
    fs::write(folder.path().join("image.dmg"), disk_image(1000, 1)).unwrap();
    let publish = ["release", "publish", "image.dmg", "--version", "1.4.0"];
    let (code, output) = Program::run(Program::command(folder.path(), &[&publish[..], &site].concat()));
    assert_eq!(code, 0, "{output}");
    program.wait_for_output("site rebuild failed");
    fs::write(&page, text).unwrap();
    program.wait_for_output("site rebuilt");
    let list = raw(program.address(), "GET /releases.json HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").await;
    assert!(list.contains("Lantern-1.4.0.dmg"), "{list}");
}

/// A folder whose `site.toml` has every fact that a maker may set.
pub fn with_every_fact() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let facts = "maker_country = \"Iceland\"\nlicence_name = \"Lamp Licence 2.0\"\n\
                 licence_url = \"https://lamp.example/licence\"\nsource_url = \"https://lamp.example/source\"\n\
                 works_with = [\"Agent One\", \"Agent Two\"]\nsignature = \"notarised\"\n";
    let site = include_str!("../../content/site.toml");
    fs::write(folder.path().join("site.toml"), format!("{facts}{site}")).unwrap();
    folder
}

#[tokio::test]
async fn facts_that_a_maker_sets_appear_wherever_they_matter_and_nothing_is_invented() {
    let facts = [
        ("Iceland", &["/about.md", "/llms.txt", "/agents.md", "/"][..]),
        ("Lamp Licence 2.0", &["/about.md", "/llms.txt", "/agents.md"]),
        ("https://lamp.example/licence", &["/about.md", "/llms.txt", "/agents.md", "/"]),
        ("https://lamp.example/source", &["/about.md", "/index.md", "/llms.txt", "/agents.md", "/"]),
        ("Agent One, Agent Two", &["/about.md", "/llms.txt", "/agents.md"]),
        (
            "Apple Developer ID and notarised",
            &["/about.md", "/index.md", "/llms.txt", "/agents.md", "/", "/download/started"],
        ),
    ];
    let about = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "about_service" } });
    let folder = with_every_fact();
    on_one_database_with(written(folder.path()), async |service| {
        for (fact, paths) in facts {
            for path in paths {
                assert!(service.get(path).await.text().contains(fact), "{path} does not have {fact}");
            }
        }
        let about = service.post("/mcp", &about).await.expect_ok()["result"]["structuredContent"].clone();
        assert_eq!(about["maker_country"], "Iceland");
        assert!(about["licence"].as_str().unwrap().starts_with("Lamp Licence 2.0. Source-available"), "{about}");
        assert_eq!(about["licence_url"], "https://lamp.example/licence");
        assert_eq!(about["source_url"], "https://lamp.example/source");
        assert_eq!(about["works_with"], json!(["Agent One", "Agent Two"]));
        for path in ["/", "/index.md", "/about.md", "/llms.txt", "/agents.md", "/download/started"] {
            let text = service.get(path).await.text();
            assert!(!text.contains("may not be signed") && !text.contains("may refuse"), "{path} says otherwise");
        }
    })
    .await;
    on_one_database(async |service| {
        for (fact, paths) in facts {
            for path in paths {
                assert!(!service.get(path).await.text().contains(fact), "{path} invents {fact}");
            }
        }
        let about = service.post("/mcp", &about).await.expect_ok()["result"]["structuredContent"].clone();
        for name in ["maker_country", "licence_url", "source_url", "works_with"] {
            assert_eq!(about.get(name), None, "{name}");
        }
    })
    .await;
}

#[tokio::test]
async fn what_the_app_runs_on_is_made_from_the_minimum_unless_it_is_written() {
    let facts = include_str!("../../content/site.toml").replace("\nsystem = ", "\n# system = ");
    for (minimum, system) in [("14.0", "macOS 14 or later"), ("15.2", "macOS 15.2 or later")] {
        let folder = tempfile::tempdir().unwrap();
        let facts = facts.replace("minimum_macos = \"14.0\"", &format!("minimum_macos = \"{minimum}\""));
        fs::write(folder.path().join("site.toml"), facts).unwrap();
        on_one_database_with(written(folder.path()), async |service| {
            for path in ["/", "/index.md", "/about.md", "/llms.txt"] {
                assert!(service.get(path).await.text().contains(system), "{path}");
            }
        })
        .await;
    }
}

#[test]
fn a_fault_in_the_folder_stops_the_start_with_file_and_line() {
    for (file, text, message) in [
        ("site.toml", "name = \"Lantern\"\nnonsense = 1\n", "site.toml has a fault in line"),
        (
            "site.toml",
            &include_str!("../../content/site.toml")
                .replace("\nsystem", "\n# system")
                .replace("\nminimum", "\n# minimum"),
            "site.toml has a fault in line 1: set system or minimum_macos",
        ),
        ("pages/about.md", "# About\n", "pages/about.md has a fault in line 1"),
        (
            "pages/about.md",
            "---\ntitle: a\ndescription: b\nlast_updated: c\n---\n# A\n\n{{ nobody }}\n",
            "pages/about.md has a fault in line",
        ),
        ("templates/page.html", "<p>\n{% if %}\n", "page.html has a fault in line 2"),
        ("assets/style.css", "\na { background: url(asset:none.png) }", "assets/style.css has a fault in line 2"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join(file).parent().unwrap()).unwrap();
        fs::write(folder.path().join(file), text).unwrap();
        let arguments = ["serve", "--listen", "127.0.0.1:0", "--site-dir", "."];
        let output = Program::run_to_end(&mut Program::command(folder.path(), &arguments));
        let words = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{words}");
        assert!(words.contains(message), "{file}: {words}");
        assert_eq!(words.lines().count(), 1, "{words}");
    }
}

#[tokio::test]
async fn a_hangup_reads_the_site_again() {
    let folder = tempfile::tempdir().unwrap();
    let site = folder.path().join("site");
    another_app(&site);
    let arguments = ["serve", "--listen", "127.0.0.1:0", "--site-dir", "site"];
    let mut program = Program::start(Program::command(folder.path(), &arguments), "not mailed to anybody");
    let page = fs::read_to_string(site.join("pages/about.md")).unwrap();
    fs::write(site.join("pages/about.md"), page.replace("A lamp.", "A brighter lamp.")).unwrap();
    program.signal(Signal::HUP);
    program.wait_for_output("site rebuilt");
    let about = raw(program.address(), "GET /about HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").await;
    assert!(about.contains("A brighter lamp.") && about.contains("cache-control: no-store"), "{about}");
}

#[tokio::test]
async fn watching_shows_a_change_and_keeps_the_last_good_site() {
    let folder = tempfile::tempdir().unwrap();
    let site = folder.path().join("site");
    another_app(&site);
    let arguments = ["serve", "--listen", "127.0.0.1:0", "--site-dir", "site", "--watch"];
    let mut program = Program::start(Program::command(folder.path(), &arguments), "not mailed to anybody");
    let about = async |program: &Program| {
        raw(program.address(), "GET /about HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").await
    };
    let shown = about(&program).await;
    assert!(shown.contains("A lamp.") && shown.contains("/assets/watch.") && shown.contains("cache-control: no-store"));

    let page = fs::read_to_string(site.join("pages/about.md")).unwrap();
    fs::write(site.join("pages/about.md"), page.replace("A lamp.", "A brighter lamp.")).unwrap();
    program.wait_for_output("site rebuilt");
    assert!(about(&program).await.contains("A brighter lamp."));

    fs::write(site.join("pages/about.md"), "no front matter").unwrap();
    program.wait_for_output("site rebuild failed; still serving the previous version");
    assert!(about(&program).await.contains("A brighter lamp."));
    program.signal(Signal::TERM);
    let (status, words) = program.end();
    assert!(status.success() && words.contains("pages/about.md has a fault in line 1"), "{words}");
}
