//! Publishing: which images are accepted, which is the newest, and where it appears.

mod bucket;
mod changes;
mod channels;
mod feeds;
mod instances;
mod interrupted;
mod nothing_published;
mod sparkle;

use std::process::Command;

use serde_json::{Value, json};

use crate::harness::{Program, Service, disk_image, on_each_database, on_each_database_with, on_one_database};
use porchlight::config::RawSettings;

const LATEST: &str = "/releases/latest/Troupe.dmg";

/// Settings of a site that is not a preview.
pub(super) fn live() -> RawSettings {
    RawSettings { base_url: Some("https://troupe.example".to_owned()), ..RawSettings::default() }
}

async fn leads_to(service: &Service) -> String {
    let answer = service.head(LATEST).await;
    assert_eq!(answer.status, 302);
    assert_eq!(answer.header("cache-control"), "no-cache");
    answer.header("location").to_owned()
}

fn listed(service: &Service) -> Value {
    let output = Program::run_to_end(&mut service.release_command(&["list", "--json"]));
    assert!(output.status.success());
    serde_json::from_slice(&output.stdout).expect("JSON and nothing else")
}

#[tokio::test]
async fn the_newest_is_served_as_soon_as_it_is_published() {
    on_each_database_with(live(), async |service| {
        service.publish("1.9.3");
        assert_eq!(leads_to(service).await, "/releases/Troupe-1.9.3.dmg");
        let image = service.publish("1.10.0");
        assert_eq!(leads_to(service).await, "/releases/Troupe-1.10.0.dmg");
        assert_eq!(service.get(LATEST).await.status, 302);

        let answer = service.get("/releases/Troupe-1.10.0.dmg").await;
        assert_eq!(answer.status, 200);
        assert!(answer.body == image);

        let started = service.post("/api/download", &json!({ "email": "ada@example.com" })).await.expect_ok();
        assert_eq!(started["url"], "https://troupe.example/releases/latest/Troupe.dmg");
    })
    .await;
}

#[tokio::test]
async fn a_withdrawn_version_is_gone_for_good_and_the_one_before_is_the_newest_again() {
    on_each_database_with(live(), async |service| {
        service.publish("1.4.0");
        service.publish("1.5.0");
        let (code, output) = service.release(&["withdraw", "1.5.0"]);
        assert_eq!((code, leads_to(service).await.as_str()), (2, "/releases/Troupe-1.5.0.dmg"), "{output}");
        assert!(output.contains("--yes"), "{output}");

        let (code, output) = service.release(&["withdraw", "1.5.0", "--yes"]);
        assert_eq!(code, 0, "{output}");
        assert_eq!(leads_to(service).await, "/releases/Troupe-1.4.0.dmg");
        let gone = service.get("/releases/Troupe-1.5.0.dmg").await;
        assert_eq!((gone.status.as_u16(), gone.header("cache-control")), (410, "no-cache"));
        assert!(gone.text().contains(LATEST), "{}", gone.text());
        assert!(!service.wait_for_text("/releases.json", "\"latest\": \"1.4.0\"").await.contains("1.5.0"));

        for (version, words) in [("1.5.0", "1.5.0 was already withdrawn on"), ("1.6.0", "There is no release 1.6.0")] {
            let (code, output) = service.release(&["withdraw", version]);
            assert!(code == 1 && output.contains(words), "nothing is asked: {output}");
        }
    })
    .await;
}

#[tokio::test]
async fn what_cannot_be_published_is_refused_with_one_sentence_and_nothing_changed() {
    on_each_database_with(live(), async |service| {
        service.publish("1.4.0");
        service.publish("1.5.0");
        service.release(&["withdraw", "1.5.0", "--yes"]);
        let whole = disk_image(9_000, 7);
        let good = service.file("good.dmg", &whole);
        let short = service.file("short.dmg", &whole[..8_000]);
        let holed = service.file("holed.dmg", [&whole[..4_000], &whole[5_000..]].concat());
        let text = service.file("notes.md", "What is new\n".repeat(100));
        let long = service.file("long.md", "x".repeat(65 * 1024));
        let binary = service.file("binary.md", [0xff, 0xfe, 0x00]);
        let [good, short, holed, text, long, binary] =
            [&good, &short, &holed, &text, &long, &binary].map(|path| path.to_str().unwrap());
        let before = (listed(service), std::fs::read_dir(service.releases_dir()).unwrap().count());
        for (arguments, code, words) in [
            (vec![text, "--version", "1.6.0"], 1, "it is not a disk image (.dmg), or it did not copy completely"),
            (vec![short, "--version", "1.6.0"], 1, "`hdiutil create`, or copy it again."),
            (
                vec![holed, "--version", "1.6.0"],
                1,
                "it did not copy completely: its data extends past the end of the file",
            ),
            (vec!["nowhere.dmg", "--version", "1.6.0"], 1, "nowhere.dmg cannot be read"),
            (vec![".", "--version", "1.6.0"], 1, "cannot be read"),
            (vec![good, "--version", "1.4.0"], 1, "is already published"),
            (vec![good, "--version", "1.4.0", "--force"], 1, "is already published"),
            (vec![good, "--version", "1.5.0", "--force"], 1, "was withdrawn"),
            (
                vec![good, "--version", "1.3.9"],
                1,
                "1.3.9 is not newer than 1.4.0; publish a higher version, or add --force",
            ),
            (vec![good, "--version", "1.6.0-beta.1"], 1, "cannot be in the stable channel"),
            (vec![good, "--version", "1.6.0", "--notes", long], 1, "larger than 64 KiB"),
            (vec![good, "--version", "1.6.0", "--notes", binary], 1, "The notes in"),
            (vec![good, "--version", "1.6.0.1"], 2, "1.4, 1.4.0 or 2.0.0-beta.1"),
            (vec![good, "--version", "v1.6.0"], 2, "1.4, 1.4.0 or 2.0.0-beta.1"),
            (vec![good, "--version", "1.6.0", "--ed-signature", "abc"], 2, "sign_update"),
            (vec![good, "--version", "1.6.0", "--minimum-macos", "Sonoma"], 2, "such as 14.0"),
            (vec!["--version", "1.6.0"], 2, "FILE"),
        ] {
            let (found, output) = service.release(&[&["publish"], arguments.as_slice()].concat());
            assert_eq!(found, code, "{arguments:?}: {output}");
            assert!(output.contains(words), "{arguments:?}: {output}");
            if code == 1 {
                assert_eq!(output.trim().lines().count(), 1, "{arguments:?}: {output}");
            }
            let after = (listed(service), std::fs::read_dir(service.releases_dir()).unwrap().count());
            assert_eq!(before, after, "{arguments:?}");
        }
        assert_eq!(leads_to(service).await, "/releases/Troupe-1.4.0.dmg");
    })
    .await;
}

#[tokio::test]
async fn an_older_version_can_be_forced_in_and_does_not_become_the_newest() {
    on_each_database_with(live(), async |service| {
        service.publish("1.4.0");
        service.publish_with("1.3.9", &["--force"]);
        assert_eq!(leads_to(service).await, "/releases/Troupe-1.4.0.dmg");
        assert_eq!(service.get("/releases/Troupe-1.3.9.dmg").await.status, 200);
    })
    .await;
}

#[tokio::test]
async fn a_prerelease_is_for_those_who_ask_for_it_and_never_the_newest() {
    on_each_database_with(live(), async |service| {
        service.publish_with("2.0.0-beta.1", &["--prerelease"]);
        assert_eq!(service.get(LATEST).await.status, 503);
        service.post("/api/download", &json!({ "email": "ada@example.com" })).await.expect_problem(503, "unavailable");
        service.publish("1.4.0");
        service.publish_with("2.0.0-beta.2", &["--prerelease"]);
        assert_eq!(leads_to(service).await, "/releases/Troupe-1.4.0.dmg");
        assert_eq!(service.get("/releases/Troupe-2.0.0-beta.2.dmg").await.status, 200);
        let home = service.wait_for_text("/index.md", "1.4.0").await;
        assert!(!home.contains("beta"), "{home}");
    })
    .await;
}

#[tokio::test]
async fn a_version_is_the_same_one_however_many_numbers_are_written() {
    on_each_database_with(live(), async |service| {
        let image = service.publish("2.1");
        assert_eq!(leads_to(service).await, "/releases/Troupe-2.1.dmg");
        assert!(service.get("/releases/Troupe-2.1.dmg").await.body == image);
        assert_eq!(service.get("/releases/Troupe-2.1.0.dmg").await.status, 404);
        assert_eq!(listed(service)[0]["version"], "2.1", "as it was written");
        assert!(service.wait_for_text("/releases", "Troupe 2.1").await.contains("id=\"v2-1-0\""));

        let again = service.file("again.dmg", disk_image(9_000, 7));
        let publish =
            |version: &str| service.release(&["publish", again.to_str().unwrap(), "--version", version, "--force"]);
        let (code, output) = publish("2.1.0");
        assert!(code == 1 && output.contains("version 2.1.0 is already published"), "{output}");
        assert_eq!(service.release(&["show", "2.1.0"]).0, 0);
        assert_eq!(service.release(&["withdraw", "2.1.0", "--yes"]).0, 0);
        assert_eq!(service.get("/releases/Troupe-2.1.dmg").await.status, 410);
        let (code, output) = publish("2.1.0");
        assert!(code == 1 && output.contains("version 2.1.0 was withdrawn"), "{output}");

        service.publish("2.1.1");
        service.publish("3");
        assert_eq!(leads_to(service).await, "/releases/Troupe-3.dmg");
    })
    .await;
}

#[tokio::test]
async fn an_image_at_another_host_is_recorded_and_led_to() {
    on_each_database_with(live(), async |service| {
        let (url, sha256) = ("https://files.example/t/Troupe-1.4.0.dmg?x=1", "ab".repeat(32));
        let (code, output) = service.release(&[
            "publish",
            "--url",
            url,
            "--length",
            "48213504",
            "--sha256",
            &sha256,
            "--version",
            "1.4.0",
        ]);
        assert_eq!(code, 0, "{output}");
        assert_eq!(leads_to(service).await, url);
        assert_eq!(service.get("/releases/Troupe-1.4.0.dmg").await.header("location"), url);
        let started = service.post("/api/download", &json!({ "email": "ada@example.com" })).await.expect_ok();
        assert_eq!(started["url"], "https://troupe.example/releases/latest/Troupe.dmg");
        let listed = service.wait_for_text("/releases.json", "48213504").await;
        assert!(listed.contains(url) && listed.contains(&sha256), "{listed}");

        for missing in [&["--length", "1"][..], &["--sha256", &sha256], &[]] {
            let (code, output) = service.release(&[&["publish", "--url", url, "--version", "1.5.0"], missing].concat());
            assert_eq!(code, 2, "{output}");
        }
    })
    .await;
}

#[tokio::test]
async fn an_image_is_published_from_standard_input() {
    on_each_database_with(live(), async |service| {
        let image = disk_image(300_000, 7);
        let publish = |version: &str, file: &std::path::Path| {
            let mut command = service.release_command(&["publish", "-", "--version", version]);
            command.stdin(std::fs::File::open(file).unwrap());
            let ended = Program::run(command);
            service.read_releases();
            ended
        };
        let (code, output) = publish("1.4.0", &service.file("cut.dmg", &image[..299_000]));
        assert_eq!(code, 1);
        assert!(output.contains("The image cannot be published: it is not a disk image"), "{output}");
        let (code, output) = publish("1.4.0", &service.file("image.dmg", &image));
        assert_eq!(code, 0, "{output}");
        assert!(output.contains("length   300000 bytes"), "{output}");
        assert!(service.get("/releases/Troupe-1.4.0.dmg").await.body == image);
        assert!(!service.releases_dir().join(".partial").exists());
        let (code, output) = publish("1.4.0", &service.file("image.dmg", &image));
        assert_eq!(code, 1);
        assert!(output.contains("1.4.0 is already published"), "{output}");
    })
    .await;
}

#[tokio::test]
async fn without_a_release_a_live_site_has_no_download_and_nobody_is_recorded() {
    on_each_database_with(live(), async |service| {
        let empty_handed = async || {
            let answer = service.get(LATEST).await;
            assert_eq!(answer.status, 503);
            assert!(!answer.header("retry-after").is_empty());
            let order = json!({ "email": "ada@example.com", "updates": true });
            let problem = service.post("/api/download", &order).await.expect_problem(503, "unavailable");
            assert!(problem["detail"].as_str().unwrap().contains("none has been published"), "{problem:#}");
            service.post("/api/download", &json!({ "email": "ada" })).await.expect_problem(400, "invalid_email");
            assert_eq!(service.database.traces().await, 0);
        };
        empty_handed().await;
        service.publish("1.0.0");
        service.release(&["withdraw", "1.0.0", "--yes"]);
        empty_handed().await;
        service.post("/api/waitlist", &json!({ "email": "ada@example.com" })).await.expect_ok();
    })
    .await;
}

/// Checks the image with 7-Zip and returns its read-me. Warnings are errors.
fn open_with_7zip(image: &[u8]) -> Result<String, String> {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("image.dmg"), image).unwrap();
    let run =
        |program, task: &[&str]| Command::new(program).args(task).arg("image.dmg").current_dir(folder.path()).output();
    for task in [&["t", "-tdmg"][..], &["x"]] {
        let output = run("7zz", task).or_else(|_| run("7z", task));
        let output = output.expect("7-Zip is installed (Debian's package `7zip`)");
        let report = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        if !output.status.success() || report.contains("WARNING") {
            return Err(report);
        }
    }
    Ok(std::fs::read_to_string(folder.path().join("Sample/Read Me.txt")).unwrap())
}

#[test]
fn a_sample_that_was_cut_short_does_not_open() {
    let sample = include_bytes!("../../content/sample.dmg");
    let without_middle = [&sample[..500], &sample[600..]].concat();
    for cut in [&sample[..sample.len() - 1], &without_middle] {
        open_with_7zip(cut).unwrap_err();
    }
}

#[tokio::test]
async fn a_preview_serves_a_sample_image_until_there_is_a_release() {
    on_one_database(async |service| {
        let sample = leads_to(service).await;
        assert_eq!(sample, "/releases/Troupe-sample.dmg");
        let answer = service.get(&sample).await;
        assert_eq!(answer.status, 200);
        assert_eq!(answer.header("content-type"), "application/x-apple-diskimage");
        assert_eq!(answer.header("content-disposition"), "attachment; filename=\"Troupe-sample.dmg\"");
        let opened = open_with_7zip(&answer.body).expect("a whole disk image");
        assert!(opened.contains("This is a sample, not an app.") && !opened.contains("Troupe"), "{opened}");
        service.post("/api/download", &json!({ "email": "ada@example.com" })).await.expect_ok();

        service.publish("1.0.0");
        assert_eq!(leads_to(service).await, "/releases/Troupe-1.0.0.dmg");
        service.wait_for_text("/releases.json", "1.0.0").await;
        assert_eq!(service.get(&sample).await.status, 404);
    })
    .await;
}

#[tokio::test]
async fn with_download_url_nothing_has_to_be_published() {
    let elsewhere = "https://files.example/latest.dmg";
    let written = RawSettings { download_url: Some(elsewhere.to_owned()), ..live() };
    on_each_database_with(written, async |service| {
        let started = service.post("/api/download", &json!({ "email": "ada@example.com" })).await.expect_ok();
        assert_eq!(started["url"], elsewhere);
        assert_eq!(leads_to(service).await, elsewhere);
    })
    .await;
}

#[tokio::test]
async fn pages_agents_and_search_engines_see_only_the_newest_release() {
    on_each_database(async |service| {
        service.publish("1.4.77");
        service.wait_for_text("/index.md", "1.4.77").await;
        service.publish("1.5.77");
        let sha256 = listed(service)[0]["sha256"].as_str().unwrap().to_owned();
        let date = listed(service)[0]["published"].as_str().unwrap()[..10].to_owned();
        assert!(date.starts_with("2026-11-"), "the clock of the tests");
        let date_in_words = format!("{} November 2026", date[8..].trim_start_matches('0'));
        service.wait_for_text("/index.md", "1.5.77").await;
        for path in ["/", "/index.md", "/llms.txt", "/download/started"] {
            let text = service.get(path).await.text();
            for fact in ["1.5.77", "20 KB", &sha256] {
                assert!(text.contains(fact), "{path} says nothing of {fact}");
            }
            assert!(text.contains(&date) || text.contains(&date_in_words), "{path} says nothing of {date}");
            assert!(!text.contains("1.4.77"), "{path}");
        }
        let home = service.get("/").await.text();
        let (_, json_ld) = home.split_once("application/ld+json\">").unwrap();
        let json_ld: Value = serde_json::from_str(json_ld.split_once("</script>").unwrap().0).unwrap();
        let software = &json_ld["@graph"][2];
        assert_eq!(software["softwareVersion"], "1.5.77");
        assert_eq!(software["datePublished"], date);
        assert_eq!(software["fileSize"], "20 KB");
        assert!(home.len() <= 16_000, "an agent that asks for no type reads {} bytes", home.len());

        let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "get_download" } });
        let way = &service.post("/mcp", &call).await.expect_ok()["result"]["structuredContent"];
        assert_eq!(way["version"], "1.5.77");
        assert_eq!(way["date"], date);
        assert_eq!(way["size"], "20 KB");
        assert_eq!(way["sha256"], sha256);
        assert!(!way.to_string().contains(".dmg"), "{way:#}");

        let sitemap = service.get("/sitemap.xml").await.text();
        assert!(sitemap.contains(&format!("/releases</loc><lastmod>{date}</lastmod>")), "{sitemap}");
        for version in ["1.5.77", "1.4.77"] {
            service.release(&["withdraw", version, "--yes"]);
        }
        assert!(!service.wait_for_text("/releases.md", "the download is a sample").await.contains("1.5.77"));
    })
    .await;
}

#[tokio::test]
async fn the_page_of_releases_has_the_notes_of_every_version() {
    on_one_database(async |service| {
        let notes =
            service.file("notes.md", "# Faster\n\nBots <script>alert(1)</script> answer *sooner*.\n\n## Fixed\n");
        let notes = notes.to_str().unwrap();
        service.publish_with("1.4.0", &["--notes", notes, "--minimum-macos", "14.0"]);
        service.publish_with("1.5.0", &["--notes", notes]);
        let html = service.wait_for_text("/releases", "Troupe 1.5.0").await;
        for part in ["id=\"v1-5-0\"", "id=\"v1-4-0\"", "<em>sooner</em>", "macOS 14.0 or later"] {
            assert!(html.contains(part), "{part}: {html}");
        }
        assert!(!html.contains("<script>alert") && !html.contains("omitted"), "{html}");
        for anchor in ["id=\"v1-5-0_faster\"", "id=\"v1-4-0_faster\""] {
            assert_eq!(html.matches(anchor).count(), 1, "an anchor is there once, and stays when a version follows");
        }
        let markdown = service.get_as("/releases", "text/markdown").await.text();
        assert_eq!(markdown, service.get("/releases.md").await.text());
        assert!(markdown.contains("### Faster") && markdown.contains("## Troupe 1.4.0"), "{markdown}");
        let footer = service.get("/about").await.text();
        assert!(footer.split_once("<footer").unwrap().1.contains("href=\"/releases\""));
    })
    .await;
}

#[tokio::test]
async fn the_notes_of_one_version_change_nothing_of_the_others() {
    on_one_database(async |service| {
        for (version, notes) in [
            ("1.1.0", "# Links\n\n[home] is here.\n\n[home]: https://one.example/"),
            ("1.2.0", "~~~ sh\n# not a heading\n## neither {#check}"),
            ("1.3.0", "    # indented code\n\nUnder\nlined {#programs}\n===\n\n<!-- never closed"),
            ("1.4.0", "[home] is there.\n\n[home]: https://two.example/\n\n```\nnever closed"),
        ] {
            let notes = service.file("notes.md", notes);
            service.publish_with(version, &["--notes", notes.to_str().unwrap()]);
        }
        let html = service.wait_for_text("/releases", "Troupe 1.4.0").await;
        let sections: Vec<_> = html.split("<h2 id=\"").skip(1).map(|rest| rest.split('"').next().unwrap()).collect();
        assert_eq!(sections, ["v1-4-0", "v1-3-0", "v1-2-0", "v1-1-0", "check", "news", "programs"]);
        let ids: Vec<_> = html.split(" id=\"").skip(1).map(|rest| rest.split('"').next().unwrap()).collect();
        assert_eq!(ids.iter().collect::<std::collections::BTreeSet<_>>().len(), ids.len(), "{ids:?}");
        for part in [
            "<h3 id=\"v1-3-0_under-lined\">",
            "<code class=\"language-sh\"># not a heading\n## neither {#check}\n</code>",
            "<code># indented code\n</code>",
            "<a href=\"https://one.example/\">home</a> is here",
            "<a href=\"https://two.example/\">home</a> is there",
        ] {
            assert!(html.contains(part), "{part}: {html}");
        }
        let markdown = service.get("/releases.md").await.text();
        assert_eq!(markdown.lines().filter(|line| line.starts_with("```")).count(), 6, "{markdown}");
        assert!(
            markdown.contains("\n## Check what you downloaded {#check}\n") && !markdown.contains("<!--"),
            "{markdown}"
        );
    })
    .await;
}

#[tokio::test]
async fn lists_are_for_people_and_programs() {
    on_each_database_with(live(), async |service| {
        assert_eq!(listed(service), json!([]));
        let (code, text) = service.release(&["show"]);
        assert_eq!(code, 1);
        assert!(text.contains("Nothing has been published yet"), "{text}");

        let signature = format!("{}==", "aB3+/x".repeat(15).chars().take(86).collect::<String>());
        let notes = service.file("notes.md", "New\n");
        service.publish_with(
            "1.4.0",
            &[
                "--notes",
                notes.to_str().unwrap(),
                "--ed-signature",
                &signature,
                "--minimum-macos",
                "14.0",
                "--build",
                "77",
            ],
        );
        service.publish_with("1.5.0", &["--force"]);
        let (code, text) = service.release(&["list"]);
        assert_eq!(code, 0);
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines.len(), 2, "{text}");
        assert!(lines[0].starts_with("1.5.0 ") && lines[0].ends_with("newest"), "{text}");

        let output = Program::run_to_end(&mut service.release_command(&["show", "1.4.0", "--json"]));
        let shown: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(shown, listed(service)[1]);
        for (member, value) in [
            ("version", json!("1.4.0")),
            ("newest", json!(false)),
            ("file", json!("Troupe-1.4.0.dmg")),
            ("length", json!(20_000)),
            ("notes", json!("New")),
            ("build", json!("77")),
            ("ed_signature", json!(signature)),
            ("minimum_macos", json!("14.0")),
            ("channel", json!("stable")),
            ("critical", json!(false)),
            ("phased_days", json!(0)),
            ("withdrawn", json!(null)),
            ("withdrawn_reason", json!(null)),
        ] {
            assert_eq!(shown[member], value, "{shown:#}");
        }
        let (code, text) = service.release(&["show", "9.9.9"]);
        assert_eq!(
            (code, text.trim()),
            (1, "There is no release 9.9.9. `porchlight release list` lists all releases.")
        );
    })
    .await;
}
