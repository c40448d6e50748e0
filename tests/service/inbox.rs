//! `porchlight inbox` while the service runs.

use std::time::Duration;

use porchlight::actions::inbox_page;
use porchlight::config::RawSettings;
use porchlight::domain::contact::MessageSearch;
use porchlight::domain::paging::PageStart;
use porchlight::store::{InboxFilter, InboxQuery, Store};
use serde_json::{Value, json};

use crate::harness::{Program, Service, each_migrated_database, on_each_database};
use crate::people::{data, json_of, run};

async fn write(service: &Service, email: &str, text: &str) {
    service.clock.advance(Duration::from_secs(1));
    service.post("/api/contact", &json!({ "name": "Ada", "email": email, "message": text })).await.expect_ok();
}

fn listed(service: &Service, more: &[&str]) -> Vec<String> {
    let list = json_of(service, &[&["inbox", "list", "--json"], more].concat());
    list.as_array().unwrap().iter().map(|message| message["message"].as_str().unwrap().to_owned()).collect()
}

async fn set(service: &Service, text: &str, state: &str, more: &str) {
    let messages = format!("SELECT id FROM messages WHERE body = '{text}'");
    service.database.execute(&format!("UPDATE outbox SET state = '{state}' {more} WHERE id IN ({messages})")).await;
}

#[tokio::test]
async fn every_message_is_listed_and_shown_in_full() {
    on_each_database(async |service| {
        assert_eq!(data(service, &["inbox", "list", "--json"]), "[]\n");
        let long = "First line\n\u{1b}[31mred\u{7} and \u{202e}more ".repeat(80);
        write(service, "ada@example.com", &long).await;
        write(service, "bob@example.com", "Second").await;
        write(service, "cyd@example.com", "Third").await;
        set(service, "Second", "failed", ", tries = 56, last_error = 'no such user'").await;
        set(service, "Third", "sent", "").await;

        assert_eq!(listed(service, &[]), [long.as_str(), "Second", "Third"]);
        assert_eq!(listed(service, &["--waiting"]), [long.as_str()]);
        assert_eq!(listed(service, &["--failed"]), ["Second"]);
        assert_eq!(listed(service, &["--unanswered"]), [long.as_str(), "Second", "Third"]);
        assert_eq!(listed(service, &["--limit", "2"]), [long.as_str(), "Second"]);
        assert_eq!(run(service, &["inbox", "list", "--failed", "--waiting"]).0, 2);
        let lines = data(service, &["inbox", "list"]);
        assert_eq!(lines.lines().count(), 3);
        let whole = data(service, &["inbox", "list", "--json"]);
        assert!([lines, whole].iter().all(|output| !output.contains(['\u{1b}', '\u{202e}'])));

        let all = json_of(service, &["inbox", "list", "--json"]);
        let (id, reference) = (all[0]["id"].as_str().unwrap(), all[0]["reference"].as_str().unwrap());
        for name in [id, reference, &id.to_uppercase(), &id.replace('-', "")] {
            assert_eq!(json_of(service, &["inbox", "show", name, "--json"]), all[0]);
        }
        let text = data(service, &["inbox", "show", reference]);
        assert!(
            text.contains("Ada <ada@example.com>")
                && text.contains(&long.replace(['\u{1b}', '\u{7}', '\u{202e}'], "\u{fffd}"))
        );
        let failed = data(service, &["inbox", "show", all[1]["reference"].as_str().unwrap()]);
        assert!(failed.contains("after 56 attempts") && failed.contains("no such user"), "{failed}");
        let (code, output) = run(service, &["inbox", "show", "00000000"]);
        assert!(code == 1 && output.contains("There is no message 00000000"), "{output}");
        assert_eq!(run(service, &["inbox", "show", "%"]).0, 2);
    })
    .await;
}

#[tokio::test]
async fn makers_can_retry_messages() {
    on_each_database(async |service| {
        for text in ["One", "Two", "Three", "Four"] {
            write(service, "ada@example.com", text).await;
        }
        let later = ", at = 4000000000000, tries = 3";
        set(service, "One", "failed", later).await;
        set(service, "Two", "failed", later).await;
        set(service, "Three", "waiting", later).await;
        set(service, "Four", "sent", "").await;
        let all = json_of(service, &["inbox", "list", "--json"]);
        let reference = |index: usize| all[index]["reference"].as_str().unwrap().to_owned();
        let states = || -> Vec<Value> {
            let all = json_of(service, &["inbox", "list", "--json"]);
            all.as_array().unwrap().iter().map(|message| message["state"].clone()).collect()
        };

        assert_eq!(run(service, &["inbox", "retry"]).0, 2, "a message or --all is required");
        assert_eq!(run(service, &["inbox", "retry", &reference(0), "--all"]).0, 2);
        let (code, output) = run(service, &["inbox", "retry", &reference(0)]);
        assert!(code == 0 && output.contains("1 message will be mailed"), "{output}");
        assert_eq!(states(), ["waiting", "failed", "waiting", "sent"]);
        let (code, output) = run(service, &["inbox", "retry", &reference(3)]);
        assert!(code == 1 && output.contains("was already mailed on"), "{output}");

        let (code, output) = run(service, &["inbox", "retry", "--all"]);
        assert!(code == 0 && output.contains("2 messages will be mailed"), "{output}");
        assert_eq!(states(), ["waiting", "waiting", "waiting", "sent"]);
        let late = "SELECT COUNT(*) FROM outbox WHERE at = 4000000000000";
        assert_eq!(service.database.number(late).await, 0, "every message is due now");
        assert!(run(service, &["inbox", "retry", "--all"]).1.contains("No messages are waiting"));
    })
    .await;
}

#[tokio::test]
async fn makers_can_discard_messages_mailed_or_not() {
    on_each_database(async |service| {
        for (email, text) in [
            ("ada@example.com", "Hello"),
            ("bot1@spam.example", "Visit our CASINO now"),
            ("bot2@spam.example", "The casino is open"),
            ("bot3@spam.example", "Roulette"),
            ("bob@example.com", "Mailed"),
            ("eve@example.com", "In the mail"),
        ] {
            write(service, email, text).await;
        }
        set(service, "Mailed", "sent", "").await;
        set(service, "In the mail", "leased", ", at = 4000000000000").await;
        set(service, "Roulette", "failed", "").await;
        let counted = "SELECT CAST(SUM(times) AS BIGINT) FROM counts WHERE kind = 'message'";
        let before = service.database.number(counted).await;
        let all = json_of(service, &["inbox", "list", "--json"]);
        let reference = |index: usize| all[index]["reference"].as_str().unwrap().to_owned();

        assert_eq!(run(service, &["inbox", "discard"]).0, 2, "which ones is required");
        let (code, output) = run(service, &["inbox", "discard", &reference(1), &reference(2)]);
        assert!(code == 2 && output.contains("--yes"), "{output}");
        assert!(output.contains("CASINO now") && output.contains("casino is open"), "what would go is shown: {output}");
        assert_eq!(service.database.count("messages").await, 6);
        let (code, output) = run(service, &["inbox", "discard", &reference(0), "00000000", "--yes"]);
        assert!(code == 1 && output.contains("There is no message 00000000"), "{output}");
        assert_eq!(service.database.count("messages").await, 6, "all or nothing");

        let (code, output) = run(service, &["inbox", "discard", &reference(1), &reference(2), "--yes"]);
        assert!(code == 0 && output.contains("2 messages were deleted"), "{output}");
        assert_eq!(listed(service, &[]), ["Hello", "Roulette", "Mailed", "In the mail"]);
        let (code, output) = run(service, &["inbox", "discard", &reference(3), &reference(5), "--yes"]);
        assert!(code == 1 && output.contains("1 message was deleted") && output.contains("and stayed"), "{output}");
        assert_eq!(listed(service, &[]), ["Hello", "Mailed", "In the mail"], "what is being mailed stays");
        let (code, output) = run(service, &["inbox", "discard", &reference(5), "--yes"]);
        assert!(code == 1 && output.contains("nothing was deleted"), "{output}");
        let (code, output) = run(service, &["inbox", "retry", &reference(5)]);
        assert!(code == 1 && output.contains("being mailed now"), "{output}");
        let (code, output) = run(service, &["inbox", "discard", &reference(4), "--yes"]);
        assert!(code == 0 && output.contains("1 message was deleted"), "{output}");

        assert_eq!(service.database.number(counted).await, before, "statistics stay");
        assert_eq!(service.database.count("outbox").await, 2);
        assert_eq!(service.database.count("message_hashes").await, 2, "the same message can be sent again");
    })
    .await;
}

#[tokio::test]
async fn a_flood_is_discarded_by_ids_from_standard_input() {
    on_each_database(async |service| {
        for number in 0..30 {
            write(service, "bot@spam.example", &format!("Spam {number}")).await;
        }
        write(service, "ada@example.com", "Hello").await;
        let all = json_of(service, &["inbox", "list", "--json"]);
        let ids = all.as_array().unwrap().iter().take(30).map(|message| message["id"].as_str().unwrap());
        let file = service.file("ids.txt", ids.collect::<Vec<_>>().join("\n"));
        let mut command = crate::people::command(service, &["inbox", "discard", "-", "--yes"]);
        command.stdin(std::fs::File::open(file).unwrap());
        let (code, output) = Program::run(command);
        assert!(code == 0 && output.contains("and 20 more") && output.contains("30 messages were deleted"), "{output}");
        assert_eq!(listed(service, &[]), ["Hello"]);
    })
    .await;
}

#[tokio::test]
async fn a_message_is_free_again_when_the_program_that_was_mailing_it_has_died() {
    on_each_database(async |service| {
        write(service, "ada@example.com", "Retried").await;
        write(service, "bob@example.com", "Discarded").await;
        for text in ["Retried", "Discarded"] {
            set(service, text, "leased", ", lease = id, at = 1").await;
        }
        let all = json_of(service, &["inbox", "list", "--json"]);
        let reference = |index: usize| all[index]["reference"].as_str().unwrap().to_owned();

        let (code, output) = run(service, &["inbox", "retry", &reference(0)]);
        assert!(code == 0 && output.contains("1 message will be mailed"), "{output}");
        assert_eq!(json_of(service, &["inbox", "show", &reference(0), "--json"])["state"], "waiting");
        let (code, output) = run(service, &["inbox", "discard", &reference(1), "--yes"]);
        assert!(code == 0 && output.contains("1 message was deleted"), "{output}");
        assert_eq!(listed(service, &[]), ["Retried"]);
    })
    .await;
}

#[tokio::test]
async fn makers_mark_messages_as_answered_and_take_it_back() {
    on_each_database(async |service| {
        for text in ["One", "Two", "Three"] {
            write(service, "ada@example.com", text).await;
        }
        set(service, "One", "sent", "").await;
        let all = || json_of(service, &["inbox", "list", "--json"]);
        let reference = |index: usize| all()[index]["reference"].as_str().unwrap().to_owned();
        let answered = |index: usize| all()[index]["answered_at"].clone();
        assert_eq!(answered(0), Value::Null);
        assert_eq!(run(service, &["inbox", "answered"]).0, 2, "which ones is required");
        let (code, output) = run(service, &["inbox", "answered", &reference(0), "00000000"]);
        assert!(code == 1 && output.contains("There is no message 00000000"), "{output}");
        assert_eq!(answered(0), Value::Null, "all or nothing");

        let (code, output) = run(service, &["inbox", "answered", &reference(0), &reference(2)]);
        assert!(code == 0 && output.contains("2 messages are marked as answered"), "{output}");
        let at = answered(0);
        assert!(at.as_str().unwrap() >= all()[2]["at"].as_str().unwrap(), "{at}");
        assert_eq!((answered(1), listed(service, &["--unanswered"])), (Value::Null, vec!["Two".to_owned()]));
        assert!(data(service, &["inbox", "list"]).lines().next().unwrap().contains("  answered  "));
        let shown = data(service, &["inbox", "show", &reference(0)]);
        assert!(shown.contains(&format!("answered   {}", at.as_str().unwrap())), "{shown}");
        assert!(data(service, &["inbox", "show", &reference(1)]).contains("answered   no\n"));
        let person = json_of(service, &["people", "show", "ada@example.com", "--json"]);
        assert_eq!(person["messages"], all(), "a data request has the same");

        service.clock.advance(Duration::from_mins(1));
        assert_eq!(run(service, &["inbox", "answered", &reference(0)]).0, 0);
        assert_eq!(answered(0), at, "the first time counts");
        let (code, output) = run(service, &["inbox", "answered", &reference(0), &reference(1), "--undo"]);
        assert!(code == 0 && output.contains("2 messages are marked as not answered"), "{output}");
        assert_eq!(listed(service, &["--unanswered"]), ["One", "Two"]);
        assert_eq!(run(service, &["inbox", "list", "--unanswered", "--failed"]).0, 2);
        assert_eq!(run(service, &["inbox", "discard", &reference(2), "--yes"]).0, 0);
        assert_eq!(listed(service, &[]), ["One", "Two"]);
    })
    .await;
}

/// The texts of a page, with `<` if there are newer messages and `>` if there are older ones, and the note.
async fn page(store: &Store, filter: InboxFilter, search: &str, start: &PageStart<uuid::Uuid>) -> (String, String) {
    let query = InboxQuery { filter, search: MessageSearch::parse(search) };
    let (page, note) = inbox_page(store, &query, start, 3).await.expect("a page");
    let texts: Vec<_> = page.items.iter().map(|entry| entry.received.contact.text.as_str()).collect();
    let (newer, older) = (if page.has_newer { "<" } else { "" }, if page.has_older { ">" } else { "" });
    (format!("{newer}{}{older}", texts.join(" ")), note.unwrap_or_default())
}

#[tokio::test]
async fn the_desk_pages_through_the_inbox_and_searches_it() {
    for database in each_migrated_database().await {
        println!("on {database:?}");
        let service = Service::start(RawSettings::default(), database).await;
        for number in 1..=8 {
            let text = if number % 2 == 0 { format!("Even-{number}") } else { format!("Odd-{number}") };
            write(&service, &format!("p{number}@Example.com"), &text).await;
        }
        set(&service, "Odd-1", "failed", "").await;
        set(&service, "Odd-3", "sent", "").await;
        set(&service, "Even-8", "leased", ", at = 4000000000000").await;
        let store = service.database.store();
        let all = json_of(&service, &["inbox", "list", "--json"]);
        let id = |number: usize| uuid::Uuid::parse_str(all[number - 1]["id"].as_str().unwrap()).unwrap();
        let (older, newer) = (|number| PageStart::OlderThan(id(number)), |number| PageStart::NewerThan(id(number)));
        store.mark_answered(&[id(7), id(2)], Some(service.clock.now())).await.expect("to be marked");
        for (filter, search, start, expected) in [
            (InboxFilter::All, "", PageStart::Newest, "Even-8 Odd-7 Even-6>"),
            (InboxFilter::All, "", older(6), "<Odd-5 Even-4 Odd-3>"),
            (InboxFilter::All, "", older(3), "<Even-2 Odd-1"),
            (InboxFilter::All, "", older(1), "<"),
            (InboxFilter::All, "", newer(2), "<Odd-5 Even-4 Odd-3>"),
            (InboxFilter::All, "", newer(5), "Even-8 Odd-7 Even-6>"),
            (InboxFilter::All, "", newer(7), "Even-8 Odd-7 Even-6>"),
            (InboxFilter::Unanswered, "", PageStart::Newest, "Even-8 Even-6 Odd-5>"),
            (InboxFilter::Unanswered, "", older(5), "<Even-4 Odd-3 Odd-1"),
            (InboxFilter::Unanswered, "", newer(1), "<Odd-5 Even-4 Odd-3>"),
            (InboxFilter::Waiting, "", PageStart::Newest, "Even-8 Odd-7 Even-6>"),
            (InboxFilter::Waiting, "", older(6), "<Odd-5 Even-4 Even-2"),
            (InboxFilter::Waiting, "", newer(4), "<Odd-7 Even-6 Odd-5>"),
            (InboxFilter::Waiting, "", newer(2), "<Even-6 Odd-5 Even-4>"),
            (InboxFilter::Failed, "", PageStart::Newest, "Odd-1"),
            (InboxFilter::All, "EVEN", PageStart::Newest, "Even-8 Even-6 Even-4>"),
            (InboxFilter::All, "even", older(4), "<Even-2"),
            (InboxFilter::All, "p5@EXAMPLE", PageStart::Newest, "Odd-5"),
            (InboxFilter::All, " ada ", newer(1), "<Even-4 Odd-3 Even-2>"),
            (InboxFilter::Unanswered, "even", PageStart::Newest, "Even-8 Even-6 Even-4"),
            (InboxFilter::All, "casino", PageStart::Newest, ""),
        ] {
            let found = page(&store, filter, search, &start).await;
            assert_eq!(found, (expected.to_owned(), String::new()), "{filter:?} {search:?} {start:?}");
        }
        assert_eq!(store.unanswered_messages().await.expect("a count"), 6);

        // Of so many messages the oldest are not searched, and no others are counted.
        let spam = "WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 9997) \
                    INSERT INTO messages (id, address, email, body, at) \
                    SELECT 'ffffffff-ffff-7fff-8fff-' || (100000000000 + n), 'bot', 'bot', 'Spam', 1 FROM numbers";
        service.database.execute(spam).await;
        service.database.execute("INSERT INTO outbox (id, kind, state, at) SELECT id, 'message', 'sent', 1 FROM messages WHERE body = 'Spam'").await;
        let note = "Only the newest 10000 messages were looked at.";
        let found = page(&store, InboxFilter::All, "odd", &PageStart::Newest).await;
        assert_eq!(found, ("Odd-7".to_owned(), note.to_owned()));
        let found = page(&store, InboxFilter::All, "even", &newer(1)).await;
        assert_eq!(found, ("Even-8 Even-6".to_owned(), note.to_owned()));
        assert_eq!(
            page(&store, InboxFilter::Failed, "", &PageStart::Newest).await,
            ("Odd-1".to_owned(), String::new())
        );
        assert_eq!(store.unanswered_messages().await.expect("a count"), 10_000);
        store.close().await;
        service.stop().await;
    }
}
