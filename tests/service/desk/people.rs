//! People at the desk: the list, the search, what is held of one, and what makers do about it.

use std::time::Duration;

use serde_json::{Value, json};

use super::private;
use crate::harness::{MakerBrowser, Service, markup, on_each_database_with};
use crate::people::{data, json_of, run};

async fn download(service: &Service, email: &str, updates: bool) {
    service.clock.advance(Duration::from_secs(1));
    service.post("/api/download", &json!({ "email": email, "updates": updates })).await.expect_ok();
}

/// The names and paths of the people on a page of the list.
fn people(page: &str) -> Vec<(String, String)> {
    let (_, list) = page.split_once("<ul class=\"rows\"").unwrap_or_default();
    let links = markup::attributes(list, "a", "href").into_iter().filter(|link| link.starts_with("/desk/people/"));
    markup::texts(list, "bdi").into_iter().zip(links).collect()
}

fn names(page: &str) -> Vec<String> {
    people(page).into_iter().map(|(email, _)| email.split('@').next().unwrap().to_owned()).collect()
}

async fn path_of(browser: &MakerBrowser<'_>, email: &str) -> String {
    people(&browser.post("/desk/people", &[("search", email)]).await.text()).swap_remove(0).1
}

#[tokio::test]
async fn people_are_listed_newest_first_with_totals_and_found_without_their_address_in_any_path() {
    on_each_database_with(private(), async |service| {
        let browser = MakerBrowser::signed_in(service).await;
        let empty = browser.get("/desk/people").await.text();
        assert!(empty.contains("Nobody has downloaded the app or joined the list yet."), "{empty}");
        service.clock.advance(Duration::from_mins(1));
        for number in 1..=60 {
            download(service, &format!("p{number}@{}.example", ["even", "odd"][number % 2]), number > 55).await;
        }
        service.post("/api/waitlist", &json!({ "email": "p60@even.example" })).await.expect_ok();
        data(service, &["people", "suppress", "p59@odd.example"]);

        let first = browser.get("/desk/people").await.text();
        assert_eq!(names(&first), (11..=60).rev().map(|n| format!("p{n}")).collect::<Vec<_>>());
        let totals = markup::texts(&first, "dd");
        assert_eq!(totals, ["60", "5", "0", "1"], "people, opted in, pending, suppressed");
        assert!(first.contains("1 download, waitlist") && first.contains("<span class=\"state\">suppressed</span>"));
        let older =
            markup::attributes(&first, "a", "href").into_iter().find(|link| link.contains("older=")).expect("a link");
        let second = browser.get(&older).await.text();
        assert_eq!(names(&second), (1..=10).rev().map(|n| format!("p{n}")).collect::<Vec<_>>());

        for (fields, found) in [
            (&[("search", "P58")][..], &["p58"][..]),
            (&[("search", "@EVEN.example"), ("state", "opted-in")], &["p60", "p58", "p56"]),
            (&[("search", "p59@odd.example"), ("state", "suppressed")], &["p59"]),
            (&[("search", "nobody")], &[]),
        ] {
            let page = browser.post("/desk/people", fields).await.text();
            assert_eq!(names(&page), found, "{fields:?}");
            let paths: Vec<_> = ["href", "action"].map(|name| markup::attributes(&page, "*", name)).concat();
            assert!(
                paths
                    .iter()
                    .all(|path| !path.contains("p5") && !path.contains("example") || path.starts_with("mailto")),
                "{paths:?}"
            );
        }
        assert_eq!(names(&browser.get("/desk/people?state=opted-in").await.text()), ["p60", "p58", "p57", "p56"]);
        for odd in ["@", "@ "] {
            let page = browser.post("/desk/people", &[("search", odd)]).await.text();
            assert!(page.contains("This cannot be searched for: ") && page.contains("aria-invalid=\"true\""), "{page}");
        }
        assert_eq!(browser.post("/desk/people", &[("search", "")]).await.location(), "/desk/people");
        let even = browser.post("/desk/people", &[("search", "@even.example")]).await.text();
        assert!(names(&even).len() == 30 && !even.contains("class=\"pager\""));
    })
    .await;
}

#[tokio::test]
async fn a_persons_page_and_its_file_have_all_that_the_command_prints() {
    on_each_database_with(private(), async |service| {
        let browser = MakerBrowser::signed_in(service).await;
        download(service, "Ada@example.com", true).await;
        let text = "One\n<b>two</b>";
        service.post("/api/contact", &json!({ "email": "ada@example.com", "message": text })).await.expect_ok();
        let path = path_of(&browser, "ada@").await;
        assert!(!path.to_lowercase().contains("ada@"), "{path}");
        let page = browser.get(&path).await.text();
        for shown in
            ["Ada@example.com", "<dt>updates</dt><dd>yes</dd>", "opt-in (api)", "One\n    &lt;b&gt;two&lt;&#x2f;b&gt;"]
        {
            assert!(page.contains(shown), "{shown}: {page}");
        }
        let message = markup::attributes(&page, "a", "href").into_iter().find(|link| link.starts_with("/desk/inbox/"));
        assert!(browser.get(&message.expect("the message")).await.text().contains("One\n"));
        assert!(page.contains("dir=\"auto\">One &lt;b&gt;two"), "the link is its beginning: {page}");
        assert!(page.contains("<dt>first seen</dt><dd>15 Nov 2026, 12:00 UTC</dd>"), "as everywhere: {page}");
        let file = browser.post("/desk/people/record", &[("email", "ada@example.com")]).await;
        assert_eq!(file.header("content-disposition"), "attachment; filename=\"person-2026-11-15.json\"");
        assert_eq!(file.media_type(), "application/json");
        assert_eq!(file.text(), data(service, &["people", "show", "ada@example.com", "--json"]));
        for unknown in
            ["/desk/people/x", "/desk/people/1-00000000000000000000000000000000", "/desk/people/ada@example.com"]
        {
            assert_eq!(browser.get(unknown).await.status, 404, "{unknown}");
        }
    })
    .await;
}

#[tokio::test]
async fn a_person_is_suppressed_allowed_again_and_erased_after_a_question() {
    on_each_database_with(private(), async |service| {
        let browser = MakerBrowser::signed_in(service).await;
        download(service, "ada@example.com", true).await;
        download(service, "bob@example.com", true).await;
        let (path, ada) = (path_of(&browser, "ada@example.com").await, [("email", "ada@example.com")]);
        let shown = || json_of(service, &["people", "show", "ada@example.com", "--json"]);
        let suppressed = browser.post("/desk/people/suppress", &ada).await;
        assert_eq!(suppressed.location(), format!("{path}?done=suppressed"));
        let page = browser.get(suppressed.location()).await.text();
        for shown in [
            "The address is suppressed: it gets no mail",
            "<dt>updates</dt><dd>no (opted in, but suppressed)</dd>",
            "UTC (by a maker or an import)",
            "it gets the monthly letter again, because it is opted in",
            "Allow mail again",
        ] {
            assert!(page.contains(shown), "{shown}: {page}");
        }
        assert_eq!((&shown()["suppression"]["reason"], &shown()["updates"]), (&json!("makers"), &Value::Bool(false)));
        assert_eq!(browser.post("/desk/people/unsuppress", &ada).await.location(), format!("{path}?done=unsuppressed"));
        assert_eq!(shown()["updates"], true);

        let asked = browser.post("/desk/people/erase", &ada).await.text();
        assert!(
            asked.contains("Erase this person?") && asked.contains("Backups (continuous ones, too), exported lists"),
            "{asked}"
        );
        assert_eq!(shown()["downloads"], 1, "asking erases nothing");
        assert!(markup::attributes(&asked, "a", "href").contains(&path), "the way back");
        let (_, form) = asked.split_once("<main").expect("the page");
        let erased = browser.submit(form, &[]).await.text();
        assert!(erased.contains("ada@example.com was erased (downloads and joins: 1, opt-ins: 1"), "{erased}");
        assert!(
            erased.contains("<code>porchlight people erase ADDRESS --vacuum</code> clears them, also for somebody who is erased already"),
            "{erased}"
        );
        assert_eq!(browser.get(&path).await.status, 404);
        assert_eq!(run(service, &["people", "show", "ada@example.com"]).0, 1);
        let again = browser.submit(form, &[]).await;
        assert!(again.status == 422 && again.text().contains("Nothing is stored about ada@example.com."));
        assert_eq!(names(&browser.get("/desk/people").await.text()), ["bob"]);
    })
    .await;
}

#[tokio::test]
async fn a_question_shows_the_address_as_it_is() {
    on_each_database_with(private(), async |service| {
        let browser = MakerBrowser::signed_in(service).await;
        download(service, "`ada`b@example.com", true).await;
        let asked = browser.post("/desk/people/erase", &[("email", "`ada`b@example.com")]).await.text();
        assert!(asked.contains("<bdi>`ada`b@example.com</bdi>") && !asked.contains("<code>ada"), "{asked}");
        let erased =
            browser.post("/desk/people/erase", &[("email", "`ada`b@example.com"), ("sure", "yes")]).await.text();
        assert!(erased.contains("`ada`b@example.com was erased"), "{erased}");
    })
    .await;
}

#[tokio::test]
async fn somebody_who_is_in_no_list_is_found_by_the_whole_address() {
    on_each_database_with(private(), async |service| {
        let browser = MakerBrowser::signed_in(service).await;
        service.post("/api/contact", &json!({ "email": "Eve@example.com", "message": "Hi" })).await.expect_ok();
        let found = browser.post("/desk/people", &[("search", "eve@example.com")]).await.text();
        assert!(people(&found).is_empty() && found.contains("Look up <bdi>eve@example.com</bdi>"), "{found}");
        assert!(found.contains("A search looks at the beginning of an address"), "{found}");
        let eve = [("email", "eve@example.com")];
        let page = browser.post("/desk/people/person", &eve).await.text();
        assert!(page.contains("from &lt;Eve@example.com&gt;") || page.contains("Eve@example.com"), "{page}");
        let page = browser.post("/desk/people/suppress", &eve).await.text();
        assert!(page.contains("no letter until its owner opts in") && page.contains("Allow mail again"), "{page}");
        assert!(browser.post("/desk/people/erase", &[eve[0], ("sure", "yes")]).await.text().contains("messages: 1"));

        let nobody = [("email", "nobody@example.com")];
        let page = browser.post("/desk/people/person", &nobody).await.text();
        assert!(page.contains("Nothing is stored about nobody@example.com.") && !page.contains("Erase"), "{page}");
        assert!(browser.post("/desk/people/suppress", &nobody).await.text().contains("Allow mail again"));
        assert_eq!(json_of(service, &["people", "show", "nobody@example.com", "--json"])["suppressed"], true);
        for refused in ["person", "record", "suppress", "unsuppress", "erase"] {
            let answer = browser.post(&format!("/desk/people/{refused}"), &[("email", "no address")]).await;
            assert!(answer.status == 422 && answer.text().contains("The address cannot be used: "), "{refused}");
        }
    })
    .await;
}
