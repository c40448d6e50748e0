//! The inbox at the desk: the same messages as those of the command, read, searched, answered, mailed again, discarded.

use std::time::Duration;

use serde_json::json;

use super::private;
use crate::harness::{MakerBrowser, Service, markup, on_each_database_with, on_one_database_with};
use crate::people::{data, json_of};

async fn write(service: &Service, email: &str, text: &str) {
    service.clock.advance(Duration::from_secs(1));
    service.post("/api/contact", &json!({ "name": "Ada", "email": email, "message": text })).await.expect_ok();
}

/// The texts of the messages on a page of the list.
fn texts(page: &str) -> Vec<String> {
    markup::texts(page, "span").into_iter().filter(|text| text.starts_with("No. ")).collect()
}

/// The page from the form on that is sent to a path with this end.
fn form_to<'a>(page: &'a str, end: &str) -> &'a str {
    let at = page.find(&format!("{end}\">")).and_then(|at| page[..at].rfind("<form")).expect("the form");
    &page[at..]
}

/// The paths of the messages on a page of the list.
fn paths(page: &str) -> Vec<String> {
    let mut links = markup::attributes(page, "a", "href");
    links.retain(|link| link.starts_with("/desk/inbox/"));
    links
}

#[tokio::test]
async fn a_maker_reads_a_message_answers_it_and_marks_it_as_answered() {
    on_each_database_with(private(), async |service| {
        let browser = MakerBrowser::signed_in(service).await;
        let empty = browser.get("/desk/inbox").await.text();
        assert!(empty.contains("Every message is answered.") && !empty.contains("class=\"count\""), "{empty}");
        service.post("/api/download", &json!({ "email": "ada@example.com" })).await.expect_ok();
        write(service, "ada@example.com", "Hello,\n\ndoes it run on Sonoma?").await;
        write(service, "bob@example.com", "Thank you").await;

        let list = browser.get("/desk/inbox").await.text();
        assert!(list.contains("<span class=\"unseen\">, unanswered: </span>2</span>"), "{list}");
        assert!(list.find("Thank you") < list.find("Hello, does it run on Sonoma?"), "the newest first: {list}");
        let (path, of_bob) = (&paths(&list)[1], &paths(&list)[0]);
        let message = browser.get(path).await.text();
        assert!(message.contains("Hello,\n\ndoes it run on Sonoma?</div>") && message.contains("not answered"));
        let answer = markup::attributes(&message, "a", "href");
        let answer = answer.iter().find(|link| link.starts_with("mailto:ada@example.com?")).expect("an answer");
        assert!(
            answer.contains("subject=Re%3A%20Hello%2C%20does") && answer.contains("%3E%20does%20it%20run"),
            "{answer}"
        );
        let person = browser.submit(form_to(&message, "/desk/people/person"), &[]).await;
        let page = browser.get(person.location()).await.text();
        assert!(page.contains("ada@example.com") && page.contains(path), "a page of its own, and the way back: {page}");
        let message = browser.get(of_bob).await.text();
        let person = browser.submit(form_to(&message, "/desk/people/person"), &[]).await.text();
        assert!(person.contains("bob@example.com") && person.contains("Thank you"), "Bob only wrote: {person}");

        let marked = browser.post(&format!("{path}/answered"), &[]).await;
        let list = format!("/desk/inbox?done=answered&message={}", path.rsplit('/').next().unwrap());
        assert_eq!((marked.status.as_u16(), marked.location()), (303, list.as_str()));
        let list = browser.get(marked.location()).await.text();
        assert!(list.contains("<bdi>Ada</bdi></a> is marked as answered.") && list.contains("unanswered: </span>1<"));
        assert_eq!(paths(&list), [path.as_str(), of_bob], "that of the message that was marked, and the list");
        let unanswered = json_of(service, &["inbox", "list", "--unanswered", "--json"]);
        assert_eq!(unanswered.as_array().unwrap().len(), 1, "the command sees it, too");
        assert!(browser.get(path).await.text().contains("marked as answered on 15 Nov 2026"));

        let reference = &json_of(service, &["inbox", "list", "--json"])[1]["reference"];
        data(service, &["inbox", "answered", reference.as_str().unwrap()]);
        assert_eq!(paths(&browser.get("/desk/inbox").await.text()), [""; 0], "and the desk sees what the command does");
        assert_eq!(browser.post(&format!("{path}/unanswered"), &[]).await.location(), path);
        assert_eq!(paths(&browser.get("/desk/inbox").await.text()), [path.as_str()]);
    })
    .await;
}

#[tokio::test]
async fn after_a_mark_the_next_message_has_the_focus_and_the_mark_can_be_undone() {
    on_each_database_with(private(), async |service| {
        let browser = MakerBrowser::signed_in(service).await;
        for number in 1..=4 {
            write(service, "ada@example.com", &format!("No. {number}")).await;
        }
        let focused = |page: &str| {
            let row = page.split("<li").find(|row| row.contains(" autofocus>")).unwrap_or_default();
            texts(row).concat()
        };
        let mark = async |page: &str, text: &str| {
            let (row, _) = page.split_once(text).and_then(|(_, row)| row.split_once("</li>")).expect("a row");
            browser.get(browser.submit(row, &[]).await.location()).await.text()
        };
        let list = browser.get("/desk/inbox").await.text();
        assert_eq!(focused(&list), "");
        let marked = mark(&list, "No. 3").await;
        assert_eq!(
            (texts(&marked), focused(&marked)),
            (["No. 4", "No. 2", "No. 1"].map(str::to_owned).into(), "No. 2".into())
        );
        let undone = browser.get(browser.submit(form_to(&marked, "/unanswered"), &[]).await.location()).await.text();
        assert_eq!((texts(&undone).len(), focused(&undone)), (4, "No. 3".to_owned()));
        assert!(undone.contains("The message is marked as not answered."), "{undone}");
        assert_eq!(focused(&mark(&undone, "No. 1").await), "No. 2", "after the oldest, the one before");
        let all = browser.get("/desk/inbox?filter=all").await.text();
        let marked = mark(&all, "No. 4").await;
        assert_eq!((texts(&marked).len(), focused(&marked)), (4, "No. 3".to_owned()));
        assert!(!browser.get("/desk/inbox?done=answered&message=x").await.text().contains("autofocus"));
    })
    .await;
}

#[tokio::test]
async fn a_message_leads_to_the_next_one_of_its_kind() {
    on_each_database_with(private(), async |service| {
        let browser = MakerBrowser::signed_in(service).await;
        for number in 1..=4 {
            write(service, "ada@example.com", &format!("No. {number}")).await;
        }
        let all = paths(&browser.get("/desk/inbox").await.text());
        browser.post(&format!("{}/answered", all[1]), &[]).await;
        let beside =
            async |at: usize| paths(browser.get(&all[at]).await.text().split_once("class=\"pager\"").unwrap().1);
        let discard = |at: usize| format!("{}/discard", all[at]);
        assert_eq!(beside(0).await, [all[2].as_str(), &discard(0)], "the newest one that is not answered");
        assert_eq!(beside(2).await, [all[0].as_str(), &all[3], &discard(2)]);
        assert_eq!(beside(1).await, [all[0].as_str(), &all[2], &discard(1)], "from an answered one to any other");
    })
    .await;
}

#[tokio::test]
async fn a_list_leads_from_page_to_page_and_marking_a_message_stays_on_the_page() {
    on_each_database_with(private(), async |service| {
        let browser = MakerBrowser::signed_in(service).await;
        for number in 1..=120 {
            write(service, "ada@example.com", &format!("No. {number}")).await;
        }
        let link = |page: &str, rel: &str| {
            let (_, nav) = page.split_once("class=\"pager\"")?;
            let links = markup::attributes(nav, "a", "href").into_iter().zip(markup::attributes(nav, "a", "rel"));
            links.into_iter().find(|(_, of)| of == rel).map(|(link, _)| link)
        };
        let range =
            |newest: usize, oldest: usize| (oldest..=newest).rev().map(|n| format!("No. {n}")).collect::<Vec<_>>();
        let first = browser.get("/desk/inbox?filter=all").await.text();
        assert_eq!((texts(&first), link(&first, "prev")), (range(120, 71), None));
        let second = browser.get(&link(&first, "next").unwrap()).await.text();
        assert_eq!(texts(&second), range(70, 21));
        let third = browser.get(&link(&second, "next").unwrap()).await.text();
        assert_eq!((texts(&third), link(&third, "next")), (range(20, 1), None));
        assert_eq!(texts(&browser.get(&link(&third, "prev").unwrap()).await.text()), range(70, 21));
        assert_eq!(texts(&browser.get(&link(&second, "prev").unwrap()).await.text()), range(120, 71));
        for odd in ["?older=x", "?newer=", "?filter=nothing", "?older=%00", "?&&="] {
            assert_eq!(texts(&browser.get(&format!("/desk/inbox{odd}")).await.text()), range(120, 71), "{odd}");
        }

        let (_, row) = second.split_once("No. 69").expect("a row");
        let row = row.split("</li>").next().expect("its end");
        let marked = browser.submit(row, &[]).await;
        let page = browser.get(marked.location()).await.text();
        assert!(page.contains("is marked as answered."));
        assert_eq!(texts(&page), range(70, 21), "the same page of all messages");
        assert_eq!(texts(&browser.get("/desk/inbox").await.text()).len(), 50);
    })
    .await;
}

#[tokio::test]
async fn what_is_searched_for_is_in_no_address() {
    on_each_database_with(private(), async |service| {
        let browser = MakerBrowser::signed_in(service).await;
        for number in 1..=60 {
            write(service, &format!("p{number}@example.com"), &format!("No. {number} of \"Ümläut\" & <more>")).await;
        }
        write(service, "bob@example.com", "No. 0").await;
        let found = browser.post("/desk/inbox", &[("search", " ÜMLÄUT\" & <M")]).await.text();
        assert_eq!(texts(&found).len(), 50);
        assert!(found.contains("Messages with “<bdi>ÜMLÄUT&quot; &amp; &lt;M</bdi>”"), "{found}");
        for place in ["a", "form", "link", "script"] {
            let of = [markup::attributes(&found, place, "href"), markup::attributes(&found, place, "action")].concat();
            assert!(of.iter().all(|link| !link.to_lowercase().contains("ml")), "{of:?}");
        }
        let (_, pager) = found.split_once("class=\"pager\"").expect("a second page");
        let place = markup::attributes(pager, "button", "value").swap_remove(0);
        let second = browser.submit(pager, &[("older", &place)]).await.text();
        assert_eq!(texts(&second).len(), 10, "{second}");
        assert!(second.contains("No. 1 of") && second.contains("name=\"newer\"") && !second.contains("name=\"older\""));
        let none = browser.post("/desk/inbox", &[("search", "casino")]).await.text();
        assert!(none.contains("No message has this in its name"), "{none}");
        assert_eq!(browser.post("/desk/inbox", &[("search", "  ")]).await.location(), "/desk/inbox");
    })
    .await;
}

#[tokio::test]
async fn a_message_is_mailed_again_and_discarded_after_a_question() {
    on_each_database_with(private(), async |service| {
        let browser = MakerBrowser::signed_in(service).await;
        for text in ["No. 1", "No. 2", "No. 3"] {
            write(service, "ada@example.com", text).await;
        }
        let set = async |text: &str, state: &str| {
            let messages = format!("SELECT id FROM messages WHERE body = '{text}'");
            let later = "at = 4000000000000, tries = 3, last_error = '550 <b>no</b>'";
            service
                .database
                .execute(&format!("UPDATE outbox SET state = '{state}', {later} WHERE id IN ({messages})"))
                .await;
        };
        let states = || -> Vec<_> {
            let all = json_of(service, &["inbox", "list", "--json"]);
            all.as_array().unwrap().iter().map(|message| message["state"].as_str().unwrap().to_owned()).collect()
        };
        for (text, state) in [("No. 1", "failed"), ("No. 2", "failed"), ("No. 3", "leased")] {
            set(text, state).await;
        }
        let failed = browser.get("/desk/inbox?filter=failed").await.text();
        assert!(texts(&failed) == ["No. 2", "No. 1"] && failed.contains("not mailed"), "{failed}");
        assert_eq!(texts(&browser.get("/desk/inbox?filter=waiting").await.text()), ["No. 3"]);
        let (second, first) = (&paths(&failed)[0], &paths(&failed)[1]);
        let page = browser.get(first).await.text();
        assert!(page.contains("failed on") && page.contains("550 &lt;b&gt;no"), "{page}");
        let retried = browser.post(&format!("{first}/retry"), &[]).await;
        assert_eq!(
            (retried.location(), &states()[..]),
            (format!("{first}?done=retried").as_str(), &["waiting", "failed", "leased"].map(str::to_owned)[..])
        );
        assert_eq!(browser.post("/desk/inbox/retry", &[]).await.location(), "/desk/inbox?filter=waiting&done=retried");
        assert_eq!(states(), ["waiting", "waiting", "leased"]);
        set("No. 1", "sent").await;
        let again = browser.post(&format!("{first}/retry"), &[]).await;
        assert!(again.status == 422 && again.text().contains("was already mailed on"), "{}", again.text());

        let asked = browser.get(&format!("{second}/discard")).await.text();
        assert!(asked.contains("is deleted for good") && asked.contains("was not mailed to you yet"), "{asked}");
        assert_eq!(states().len(), 3, "asking deletes nothing");
        assert_eq!(browser.post(&format!("{second}/discard"), &[]).await.location(), "/desk/inbox?done=discarded");
        assert_eq!(states(), ["sent", "leased"]);
        for gone in [browser.get(second).await, browser.post(&format!("{second}/discard"), &[]).await] {
            assert_eq!(gone.status, 404);
        }
        let being_mailed = &paths(&browser.get("/desk/inbox?filter=waiting").await.text())[0];
        let refused = browser.post(&format!("{being_mailed}/discard"), &[]).await;
        assert!(refused.status == 422 && refused.text().contains("is being mailed and stayed"), "{}", refused.text());
        for unknown in ["/desk/inbox/x", "/desk/inbox/00000000-0000-7000-8000-000000000000"] {
            assert_eq!(browser.get(unknown).await.status, 404);
            assert_eq!(browser.post(&format!("{unknown}/answered"), &[]).await.status, 404);
        }
    })
    .await;
}

#[tokio::test]
async fn a_long_list_says_at_least_how_many_wait_for_an_answer() {
    on_one_database_with(private(), async |service| {
        let many = "WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 10050) \
             INSERT INTO messages (id, address, email, body, at) SELECT '00000000-0000-7000-8000-' || substr('000000000000' || n, -12), \
             'ada@example.com', 'ada@example.com', 'No. ' || n, n FROM numbers";
        service.database.execute(many).await;
        let outbox = "INSERT INTO outbox (id, kind, state, at) SELECT id, 'message', 'sent', at FROM messages";
        service.database.execute(outbox).await;
        let browser = MakerBrowser::signed_in(service).await;
        assert!(browser.get("/desk/site").await.text().contains("unanswered: </span>10,000+</span>"));
        let found = browser.post("/desk/inbox", &[("search", "No. 49")]).await.text();
        assert!(found.contains("name=\"older\"") && !found.contains("Only the newest"), "{found}");
        let all = browser.post("/desk/inbox", &[("search", "No. 50")]).await.text();
        assert!(all.contains("name=\"older\""), "{all}");
        let none = browser.post("/desk/inbox", &[("search", "casino")]).await.text();
        assert!(none.contains("Only the newest 10000 messages were looked at."), "{none}");
    })
    .await;
}
