//! Releases at the desk: the list, a release, and what makers change of one.

use reqwest::Method;
use serde_json::{Value, json};

use super::{listed, private};
use crate::harness::{Answer, MakerBrowser, Service, markup, on_each_database_with, on_one_database_with, wait_for};

const PAGE: &str = "/desk/release/1.4.0";
/// What a page must not show as HTML.
const HOSTILE: &str = "</textarea><script>alert(1)</script><img src=x onerror=alert(1)>\"'";

async fn recorded(service: &Service) -> Vec<String> {
    let recorded = service.database.texts("SELECT what FROM activity ORDER BY at, id").await;
    recorded.into_iter().filter(|what| what.contains("release")).collect()
}

/// Sends the form of a release as its page has it, with changes.
async fn edit(browser: &MakerBrowser<'_>, changes: &[(&str, &str)]) -> Answer {
    let page = browser.get(PAGE).await.text();
    let (_, form) = page.split_once("<form method=\"post\" action=\"/desk/release/1.4.0\"").expect("the form");
    let form = form.split("</form>").next().expect("its end");
    let (names, values) = (markup::attributes(form, "input", "name"), markup::attributes(form, "input", "value"));
    let notes = markup::texts(form, "textarea").concat();
    let notes = notes.strip_prefix('\n').expect("a line break that is no part of the notes");
    let notes = markup::unescaped(notes);
    let held = names.into_iter().zip(values).chain([("notes".to_owned(), notes)]);
    let is_on = form.contains("value=\"yes\" checked");
    let held = held.filter(|(name, _)| name != "critical" || is_on);
    let held: Vec<_> = held.filter(|(name, _)| changes.iter().all(|(changed, _)| changed != name)).collect();
    let fields: Vec<_> =
        held.iter().map(|(name, value)| (name.as_str(), value.as_str())).chain(changes.iter().copied()).collect();
    browser.post(PAGE, &fields).await
}

#[track_caller]
fn assert_refused(answer: &Answer, words: &str) {
    let page = answer.text();
    assert_eq!(answer.status, 422, "{page}");
    let (_, text) = page.split_once("id=\"refused\" role=\"alert\">").expect("a refusal");
    assert!(text.split("</p>").next().unwrap().contains(words), "{page}");
}

#[tokio::test]
async fn the_list_says_of_each_release_what_it_is() {
    on_each_database_with(private(), async |service| {
        let browser = MakerBrowser::signed_in(service).await;
        assert!(browser.get("/desk").await.text().contains("href=\"/desk/releases\""), "the navigation");
        let page = browser.get("/desk/releases").await.text();
        assert!(
            page.contains("<code>porchlight release publish</code>")
                && page.contains("<details class=\"publish\" open>")
        );
        for (version, more) in [
            ("1.4.0", &[][..]),
            ("1.5.0", &[]),
            ("1.6.0", &[]),
            ("2.0.0-beta.1", &["--channel", "beta"]),
            ("2.0.0-beta.2", &["--channel", "beta"]),
        ] {
            service.publish_with(version, more);
        }
        service.release(&["withdraw", "1.6.0", "--yes", "--reason", HOSTILE]);
        let page = browser.get("/desk/releases").await.text();
        assert_eq!(markup::texts(&page, "b"), ["2.0.0-beta.2", "2.0.0-beta.1", "1.6.0", "1.5.0", "1.4.0"]);
        let states = ["newest of beta", "earlier beta", "withdrawn", "newest", "earlier"];
        let found: Vec<_> =
            page.split("<span class=\"state\">").skip(1).map(|rest| rest.split('<').next().unwrap()).collect();
        assert_eq!(found, states);
        assert!(page.contains("&lt;script&gt;alert(1)") && !page.contains("<script>"), "{page}");
        assert!(page.contains("beta, 20 KB</span>") && page.contains("datetime=\"2026-11-15\">15 Nov 2026<"), "{page}");
        assert!(!page.contains("porchlight release publish") && page.contains("<details class=\"publish\">"), "{page}");
        assert!(!page.contains("Update checks"), "none were counted: {page}");
        let set = "INSERT INTO counts (day, kind, via, name, times) VALUES (20772, 'update', '', '1.5.0', 1234)";
        service.database.execute(set).await;
        let page = browser.get("/desk/releases").await.text();
        let (_, chart) = page.split_once("aria-labelledby=\"updates\"").expect("the chart of the overview");
        let chart = chart.split("</section>").next().unwrap();
        assert!(browser.get("/desk").await.text().contains(chart), "{chart}");
        assert!(chart.contains("1,234 update checks") && chart.contains("100 % from 1.5.0"), "{chart}");
    })
    .await;
}

#[tokio::test]
async fn a_long_list_has_pages() {
    on_each_database_with(private(), async |service| {
        let browser = MakerBrowser::signed_in(service).await;
        let row =
            |n: u8| format!("('1.{n}.0', '1.{n}', 'T-1.{n}.dmg', 7, '{}', '', 'stable', 0, 0, {n})", "ab".repeat(32));
        let rows = (1..=120).map(row).collect::<Vec<_>>().join(", ");
        let columns = "version, written, file, length, sha256, notes, channel, critical, phased_days, published_at";
        service.database.execute(&format!("INSERT INTO releases ({columns}) VALUES {rows}")).await;
        let (mut path, mut found, mut pages) = ("/desk/releases".to_owned(), Vec::new(), Vec::new());
        loop {
            let page = browser.get(&path).await.text();
            let versions = markup::texts(&page, "b");
            assert!(versions.len() <= 50, "{versions:?}");
            found.extend(versions);
            pages.push(path);
            match markup::attributes(&page, "a", "href").into_iter().find(|link| link.contains("older=")) {
                Some(older) => path = older,
                None => break,
            }
        }
        let all: Vec<_> = (1..=120).rev().map(|n| format!("1.{n}")).collect();
        assert_eq!((found, pages.len()), (all, 3));
        let newer = async |path: &str| {
            let page = browser.get(path).await.text();
            markup::attributes(&page, "a", "href").into_iter().find(|link| link.contains("newer=")).expect("a link")
        };
        let back = newer(&newer(&pages[2]).await).await;
        let [first, again] = [browser.get("/desk/releases").await.text(), browser.get(&back).await.text()];
        assert_eq!(markup::texts(&first, "b"), markup::texts(&again, "b"));
    })
    .await;
}

#[tokio::test]
async fn a_release_has_a_page_with_all_that_is_known_of_it() {
    on_each_database_with(private(), async |service| {
        let browser = MakerBrowser::signed_in(service).await;
        service.publish_with("1.4.0", &["--minimum-macos", "14.5", "--build", "140"]);
        let arguments = ["--url", "https://files.example/T.dmg", "--length", "7", "--sha256", &"ab".repeat(32)];
        let (code, said) =
            service.release(&[&["publish", "--version", "1.5.0", "--build", "150"], &arguments[..]].concat());
        assert_eq!(code, 0, "{said}");
        let page = browser.get(PAGE).await.text();
        let record = &listed(service)[1];
        let sha256 = record["sha256"].as_str().unwrap();
        for words in
            ["earlier", "140", "14.5", "Troupe-1.4.0.dmg", "20 KB, 20,000 bytes", "on the disk of the service", sha256]
        {
            assert!(page.contains(words), "{words}: {page}");
        }
        let page = markup::main_text(&browser.get("/desk/release/1.5").await.text());
        assert!(page.contains("on another host: https://files.example/T.dmg"), "{page}");
        for unknown in ["1.6.0", "x", "latest", "1.4.0/x", "..", ""] {
            assert_eq!(browser.get(&format!("/desk/release/{unknown}")).await.status, 404, "{unknown}");
        }
    })
    .await;
}

#[tokio::test]
async fn an_edit_changes_what_differs_and_is_shown_at_once() {
    on_each_database_with(private(), async |service| {
        let browser = MakerBrowser::signed_in(service).await;
        service.publish_with("1.4.0", &["--build", "140"]);
        let before = listed(service)[0].clone();
        assert_refused(&edit(&browser, &[]).await, "the form says what the release has already");
        let notes = format!("# Faster\n\n{HOSTILE}\n\n    code");
        let answer = edit(&browser, &[("notes", &notes), ("minimum_macos", "14.5"), ("date", "2026-11-14")]).await;
        assert_eq!(answer.location(), "/desk/release/1.4.0?done=edited", "{}", answer.text());
        let mut expected = before.clone();
        expected["notes"] = json!(notes);
        expected["minimum_macos"] = json!("14.5");
        expected["published"] = json!("2026-11-14T00:00:00Z");
        assert_eq!(listed(service)[0], expected);
        let page = browser.get(answer.location()).await.text();
        assert!(page.contains("The release was changed.") && page.matches("<script").count() == 1, "{page}");
        service.wait_for_text("/releases", "Faster").await;
        assert_eq!(edit(&browser, &[("critical", "yes"), ("phased", "7"), ("build", "141")]).await.status, 303);
        let changed = listed(service)[0].clone();
        assert_eq!((&changed["critical"], &changed["phased_days"]), (&json!(true), &json!(7)));
        assert_eq!((&changed["notes"], &changed["build"]), (&json!(notes), &json!("141")));
        assert_refused(&edit(&browser, &[]).await, "the form says");
        let page = browser.get(PAGE).await.text();
        let off: Vec<_> = page.split("value=\"yes\" checked").collect();
        assert_eq!(off.len(), 2, "{page}");
        assert_eq!(edit(&browser, &[("critical", "no"), ("notes", "")]).await.status, 303);
        let changed = listed(service)[0].clone();
        assert_eq!((&changed["critical"], &changed["notes"]), (&json!(false), &json!("")));
        assert_eq!(recorded(service).await, [&["published release 1.4.0"][..], &["edited release 1.4.0"; 3]].concat());
    })
    .await;
}

#[tokio::test]
async fn an_edit_that_the_command_refuses_is_refused_with_the_same_sentence() {
    on_each_database_with(private(), async |service| {
        let browser = MakerBrowser::signed_in(service).await;
        service.publish_with("1.3.0", &["--build", "130"]);
        service.publish_with("1.4.0", &["--build", "140"]);
        let before = format!("{:?}", service.database.everything().await);
        for (name, value) in [("build", "129"), ("date", "2030-01-01")] {
            let (code, said) = service.release(&["edit", "1.4.0", &format!("--{name}"), value]);
            assert_eq!(code, 1, "{said}");
            let said = said.trim().replace(", or add --force to do it anyway", "");
            let (_, sentence) = said.split_once("Nothing was changed: ").expect("a sentence");
            assert_refused(&edit(&browser, &[(name, value)]).await, &format!("Nothing was changed: {sentence}"));
        }
        for (name, value, words) in [
            ("build", "", "the build number cannot be taken away any more"),
            ("build", "1 2", "The build number cannot be used"),
            ("channel", "a b", "The channel cannot be used"),
            ("date", "yesterday", "write a day as 2026-11-15"),
            ("ed_signature", HOSTILE, "The EdDSA signature cannot be used"),
            ("phased", "366", "from 0 to 365"),
        ] {
            let answer = edit(&browser, &[(name, value)]).await;
            assert_refused(&answer, words);
            let page = answer.text();
            assert!(markup::attributes(&page, "input", "value").iter().any(|typed| typed == value), "{name}: {page}");
            assert_eq!(page.matches("<script").count(), 1, "{page}");
        }
        let long = "x".repeat(65 * 1024);
        let headers = [("content-type", crate::harness::MultipartForm::TYPE), ("sec-fetch-site", "same-origin")];
        for (notes, words) in [(&long[..], "larger than 64 KiB"), (&"x\n".repeat(32 * 1024), "build number")] {
            let form = crate::harness::MultipartForm::new(&[("notes", notes)], ("", b"")).bytes();
            assert_refused(&browser.send(Method::POST, PAGE, &headers, form).await, words);
        }
        assert_eq!(format!("{:?}", service.database.everything().await), before);
    })
    .await;
}

#[tokio::test]
async fn a_release_is_withdrawn_after_a_question_and_put_back() {
    on_each_database_with(private(), async |service| {
        let browser = MakerBrowser::signed_in(service).await;
        let image = service.publish("1.4.0");
        let question = browser.get(&format!("{PAGE}/withdraw")).await.text();
        assert!(
            question.contains("<bdi>1.4.0</bdi>")
                && question
                    .contains("It can no longer be downloaded. Nothing can be downloaded until you publish another")
                && question.contains("you can put the release back; no other image can have its version")
                && question.contains("name=\"reason\"")
        );
        assert!(listed(service)[0]["withdrawn"].is_null(), "it only asks");
        let too_long = browser.post(&format!("{PAGE}/withdraw"), &[("reason", &"x".repeat(501))]).await;
        assert!(too_long.status == 422 && too_long.text().contains("more than 500 characters"), "{}", too_long.text());

        let (_, form) = question.split_once("<form method=\"post\" action=\"/desk/release/").expect("the form");
        let answer = browser
            .submit(&format!("<form method=\"post\" action=\"/desk/release/{form}"), &[("reason", HOSTILE)])
            .await;
        assert_eq!(answer.location(), "/desk/release/1.4.0?done=withdrawn", "{}", answer.text());
        assert_eq!(service.get("/releases/Troupe-1.4.0.dmg").await.status, 410, "at once");
        assert_eq!(listed(service)[0]["withdrawn_reason"], HOSTILE);
        let page = browser.get(answer.location()).await.text();
        assert!(page.contains("&lt;script&gt;alert(1)") && page.matches("<script").count() == 1, "{page}");
        assert!(!page.contains("/withdraw\"") && page.contains("Put back"), "{page}");
        assert!(!page.contains("Offered to") && !page.contains("For visitors"), "{page}");
        for again in [
            browser.get(&format!("{PAGE}/withdraw")).await,
            browser.post(&format!("{PAGE}/withdraw"), &[("reason", "")]).await,
        ] {
            assert_refused(&again, "1.4.0 was already withdrawn on 15 Nov 2026.");
        }

        let path = service.releases_dir().join("Troupe-1.4.0.dmg");
        std::fs::write(&path, b"another").unwrap();
        assert_refused(&browser.post(&format!("{PAGE}/restore"), &[]).await, "cannot be read");
        std::fs::write(&path, image).unwrap();
        let answer = browser.post(&format!("{PAGE}/restore"), &[]).await;
        assert_eq!(answer.location(), "/desk/release/1.4.0?done=restored", "{}", answer.text());
        assert_eq!(service.get("/releases/Troupe-1.4.0.dmg").await.status, 200, "at once");
        assert_refused(&browser.post(&format!("{PAGE}/restore"), &[]).await, "1.4.0 is not withdrawn.");
        let expected = ["published release 1.4.0", "withdrew release 1.4.0", "put release 1.4.0 back"];
        assert_eq!(recorded(service).await, expected);

        assert_eq!(browser.post(&format!("{PAGE}/withdraw"), &[]).await.status, 303, "without a reason");
        assert_eq!(listed(service)[0]["withdrawn_reason"], Value::Null);
        service.publish("1.5.0");
        assert_refused(&browser.post(&format!("{PAGE}/restore"), &[]).await, "1.4.0 is not newer than 1.5.0");
    })
    .await;
}

#[tokio::test]
async fn the_question_before_withdrawing_says_what_people_get_instead() {
    on_one_database_with(private(), async |service| {
        let browser = MakerBrowser::signed_in(service).await;
        service.publish("1.3.0");
        service.publish("1.4.0");
        service.publish_with("2.0.0-beta.1", &["--channel", "beta"]);
        for (version, words) in [
            ("1.4.0", "It can no longer be downloaded. People will get 1.3.0 instead.<"),
            ("1.3.0", "It can no longer be downloaded.<"),
            ("2.0.0-beta.1", "Nothing can be downloaded in the channel beta until you publish another one.<"),
        ] {
            let asked = browser.get(&format!("/desk/release/{version}/withdraw")).await.text();
            assert!(asked.contains(words), "{version}: {asked}");
        }
        service.publish_with("2.0.0-beta.2", &["--channel", "beta"]);
        let asked = browser.get("/desk/release/2.0.0-beta.2/withdraw").await.text();
        assert!(asked.contains("People in the channel beta will get 2.0.0-beta.1 instead."), "{asked}");
    })
    .await;
}

#[tokio::test]
async fn links_of_notes_that_lead_nowhere_are_named_with_their_release() {
    on_each_database_with(private(), async |service| {
        let browser = MakerBrowser::signed_in(service).await;
        service.publish("1.3.0");
        service.publish("1.4.0");
        let notes =
            "New:\n\n- [the guide](/guide)\n- ![a shot](shot.png)\n- [privacy](/privacy), [a site](https://x.example)";
        let saved = edit(&browser, &[("notes", notes)]).await;
        let expected = [
            "The notes of release 1.4.0, line 3, links to /guide, where nothing is.",
            "The notes of release 1.4.0, line 4, shows shot.png, which is not there.",
        ];
        let page = wait_for("the remarks", async || {
            let page = markup::main_text(&browser.get(saved.location()).await.text());
            page.contains("where nothing is").then_some(page)
        });
        let page = page.await;
        assert!(expected.iter().all(|remark| page.contains(remark)), "{page}");
        assert_eq!(page.matches("The notes of").count(), 2, "{page}");
        let site = markup::main_text(&browser.get("/desk/site").await.text());
        for sentence in expected {
            assert!(site.contains(sentence), "{site}");
        }
        assert!(!site.contains("pages/releases.md"), "{site}");
        assert!(!browser.get("/desk/release/1.3.0").await.text().contains("The notes of"));
    })
    .await;
}

#[tokio::test]
async fn notes_are_previewed_in_a_frame_as_the_page_of_releases_shows_them() {
    on_one_database_with(private(), async |service| {
        let browser = MakerBrowser::signed_in(service).await;
        let notes = format!("# Faster\n\n{HOSTILE}\n\n[a](javascript:alert(1)) *b*\n\n| a |\n|---|\n| 1 |");
        let path = service.file("notes.md", &notes);
        service.publish_with("1.4.0", &["--notes", path.to_str().unwrap()]);
        let stored = browser.get("/desk/notes?version=1.4.0").await;
        let sent = browser.post("/desk/notes", &[("notes", &notes)]).await;
        assert_eq!(stored.text(), sent.text());
        for answer in [stored, sent] {
            let policy = answer.header("content-security-policy");
            assert!(policy.starts_with("default-src 'none';") && policy.contains("frame-ancestors 'self'"), "{policy}");
            assert!(!policy.contains("script-src") && answer.header("x-content-type-options") == "nosniff", "{policy}");
            assert_eq!(answer.header("cache-control"), "no-store");
            let page = answer.text();
            assert!(
                !page.contains("<script") && !page.contains("<img") && !page.contains("href=\"javascript"),
                "{page}"
            );
        }
        let shown = service.wait_for_text("/releases", "Faster").await;
        let preview = browser.get("/desk/notes?version=1.4.0").await.text();
        let (_, body) = preview.split_once("<main>").expect("the notes");
        let (heading, text) = body.split("</main>").next().unwrap().trim().split_once("</h3>").expect("a heading");
        assert_eq!(heading, "<h3 id=\"notes_faster\">Faster");
        assert!(shown.contains("<h3 id=\"v1-4-0_faster\"") && shown.contains(text.trim()), "{text}\n\nin {shown}");
        let page = browser.get(PAGE).await;
        assert!(page.header("content-security-policy").contains("frame-src 'self'"));
        assert_eq!(markup::attributes(&page.text(), "iframe", "sandbox"), ["allow-same-origin"]);
        assert!(!browser.get("/desk").await.header("content-security-policy").contains("frame-src"));
        assert!(browser.get("/desk/notes").await.text().contains("will look like this"));
        assert_eq!(browser.get("/desk/notes?version=9.9.9").await.status, 404);
    })
    .await;
}
