//! Unsubscribing from the monthly email, and who is still mailed.

mod histories;

use std::time::Duration;

use porchlight::config::RawSettings;
use porchlight::domain::letters::{UNSUBSCRIBE_PATH, UnsubscribeToken};
use porchlight::domain::mail::EmailAddress;
use porchlight::domain::people::SuppressionReason;
use porchlight::domain::sha256::Sha256;
use reqwest::Method;
use serde_json::json;

use crate::harness::{Answer, Database, Service, on_each_database, on_one_database};

const FORM: (&str, &str) = ("content-type", "application/x-www-form-urlencoded");

fn address(email: &str) -> EmailAddress {
    EmailAddress::parse(email).expect("an address")
}

async fn download(service: &Service, email: &str, updates: bool) {
    let body = json!({ "email": email, "updates": updates, "source": "tests" });
    service.post("/api/download", &body).await.expect_ok();
}

/// The link in a letter to this person.
pub(super) async fn link(service: &Service, email: &str) -> String {
    let (store, email) = (service.database.store(), address(email));
    let mut bytes = [0; 20];
    bytes.copy_from_slice(&Sha256::of(format!("{}{}", service.database.url(), email.key()).as_bytes()).bytes()[..20]);
    let new = [(email.clone(), UnsubscribeToken::from_random(bytes))];
    let no_letter = Sha256::of(b"");
    store.record_recipients(&no_letter, &new, service.clock.now()).await.expect("a token");
    let token = store.person_record(&email).await.expect("a person").token.expect("a token");
    store.close().await;
    token.path(UNSUBSCRIBE_PATH)
}

/// Signs up a person with an opt-in; returns the link in a letter to them.
pub(super) async fn reader(service: &Service, email: &str) -> String {
    download(service, email, true).await;
    link(service, email).await
}

async fn mailed(service: &Service) -> Vec<String> {
    let store = service.database.store();
    let page = store.recipients_page("").await.expect("recipients");
    store.close().await;
    page.into_iter().flat_map(|page| page.people).map(|email| email.key().to_owned()).collect()
}

pub(super) async fn post(service: &Service, path: &str, body: &str) -> Answer {
    service.send(Method::POST, path, &[FORM], body).await
}

#[tokio::test]
async fn no_request_that_follows_names_the_token() {
    on_one_database(async |service| {
        let link = reader(service, "ada@example.com").await;
        let not_me = post(service, &link, "reason=not-me").await;
        for answer in [service.get(&link).await, post(service, &link, "").await, not_me] {
            assert_eq!((answer.status.as_u16(), answer.header("referrer-policy")), (200, "strict-origin"));
        }
    })
    .await;
}

#[tokio::test]
async fn looking_changes_nothing_and_the_button_does_it() {
    on_each_database(async |service| {
        let link = reader(service, "Ada@Example.com").await;
        for answer in [service.get(&link).await, service.head(&link).await, service.get(&format!("{link}?x")).await] {
            assert_eq!(answer.status, 200);
        }
        let page = service.get(&link).await.text();
        assert_eq!(page.matches("<button").count(), 1, "one button");
        assert!(page.contains("<form method=\"post\"") && page.contains("value=\"not-me\""), "{page}");
        assert_eq!(mailed(service).await, ["ada@example.com"]);

        let left = post(service, &link, "").await;
        assert_eq!(left.status, 200);
        assert!(left.text().contains("You are unsubscribed"), "{}", left.text());
        assert!(mailed(service).await.is_empty());
        assert_eq!(service.database.count("suppressions").await, 0);
        post(service, &link, "").await;
        let counted = "SELECT CAST(SUM(times) AS BIGINT) FROM counts WHERE kind = 'unsubscribe'";
        assert_eq!(service.database.number(counted).await, 1, "leaving again is not leaving twice");
    })
    .await;
}

#[tokio::test]
async fn a_mail_client_unsubscribes_with_one_click() {
    on_each_database(async |service| {
        let multipart = ("content-type", "multipart/form-data; boundary=b");
        let in_parts = "--b\r\nContent-Disposition: form-data; name=\"List-Unsubscribe\"\r\n\r\nOne-Click\r\n--b--\r\n";
        for (kind, body) in [(FORM, "List-Unsubscribe=One-Click"), (multipart, in_parts)] {
            let link = reader(service, "ada@example.com").await;
            assert_eq!(mailed(service).await, ["ada@example.com"]);
            let headers = [kind, ("origin", "https://mail.example"), ("sec-fetch-site", "cross-site")];
            let answer = service.send(Method::POST, &link, &headers, body).await;
            assert_eq!(answer.status, 200, "no redirect: {}", answer.text());
            assert!(mailed(service).await.is_empty());
        }
    })
    .await;
}

#[tokio::test]
async fn unsubscribing_twice_is_the_same_as_once() {
    on_each_database(async |service| {
        let link = reader(service, "ada@example.com").await;
        for _ in 0..3 {
            assert_eq!(post(service, &link, "List-Unsubscribe=One-Click").await.status, 200);
        }
        assert!(mailed(service).await.is_empty());
        let kept = "SELECT w.address || ' ' || w.how || ' ' || w.at || ' ' || c.via \
                    FROM withdrawals w JOIN consents c ON c.id = w.consent";
        let now = service.clock.now().unix_millis();
        assert_eq!(service.database.texts(kept).await, [format!("ada@example.com unsubscribe {now} api")]);
    })
    .await;
}

#[tokio::test]
async fn a_wrong_link_is_an_address_like_any_other_that_leads_nowhere() {
    on_one_database(async |service| {
        let link = reader(service, "ada@example.com").await;
        let swapped = if link.ends_with('0') { "1" } else { "0" };
        let almost = format!("{}{swapped}", &link[..link.len() - 1]);
        let nowhere = service.get("/no-such-page").await;
        for path in [
            &almost,
            &link.to_uppercase().replace("/UNSUBSCRIBE/", "/unsubscribe/"),
            &format!("{link}/"),
            &format!("{link}0"),
            "/unsubscribe/",
            "/unsubscribe",
            "/unsubscribe/ada@example.com",
        ] {
            let answer = service.get(path).await;
            assert_eq!((answer.status, &answer.body), (nowhere.status, &nowhere.body), "{path}");
            assert_eq!(post(service, path, "reason=not-me").await.status, 404, "{path}");
        }
        assert_eq!(service.get_as(&almost, "text/markdown").await.media_type(), "text/markdown");
        let other = service.send(Method::PUT, &link, &[], "").await;
        assert_eq!((other.status.as_u16(), other.header("allow")), (405, "GET, HEAD, POST"));
        assert_eq!(mailed(service).await, ["ada@example.com"]);
    })
    .await;
}

#[tokio::test]
async fn a_later_opt_in_turns_it_on_again_and_nothing_else_does() {
    on_each_database(async |service| {
        let first = reader(service, "ada@example.com").await;
        post(service, &first, "").await;
        download(service, "ada@example.com", false).await;
        service.post("/api/waitlist", &json!({ "email": "ada@example.com" })).await.expect_ok();
        assert!(mailed(service).await.is_empty());

        service.clock.advance(Duration::from_hours(24));
        let again = reader(service, "ada@example.com").await;
        assert_eq!(again, first, "the link of an old letter is the link of the next");
        assert_eq!(mailed(service).await, ["ada@example.com"]);
        assert_eq!(service.database.count("consents").await, 2);

        service.clock.advance(Duration::from_hours(24 * 365 * 10));
        assert_eq!(post(service, &first, "List-Unsubscribe=One-Click").await.status, 200, "years later");
        assert!(mailed(service).await.is_empty());
    })
    .await;
}

#[tokio::test]
async fn it_was_not_me_outlasts_a_later_opt_in() {
    on_each_database(async |service| {
        let link = reader(service, "ada@example.com").await;
        let left = post(service, &link, "reason=not-me").await;
        assert_eq!(left.status, 200);
        assert!(left.text().contains("We will not write to you again"), "{}", left.text());
        for spelling in ["ada@example.com", "ADA@example.COM"] {
            download(service, spelling, true).await;
            assert!(mailed(service).await.is_empty(), "{spelling}");
        }
        post(service, &link, "").await;
        download(service, "ada@example.com", true).await;
        assert!(mailed(service).await.is_empty(), "an ordinary unsubscribe does not undo it");

        let kept = service.database.texts("SELECT hash || ' ' || reason FROM suppressions").await;
        assert!(matches!(kept.as_slice(), [kept] if kept.len() == 71 && kept.ends_with(" not-me")), "{kept:?}");

        let store = service.database.store();
        let ada = address("Ada@Example.com");
        assert!(store.unsuppress(&ada).await.expect("to be done"));
        assert!(!store.unsuppress(&ada).await.expect("to be done"));
        store.close().await;
        assert_eq!(mailed(service).await, ["ada@example.com"], "she opted in since, and the makers allow it");
    })
    .await;
}

#[tokio::test]
async fn unsubscribing_ends_every_opt_in_of_the_mailbox() {
    on_each_database(async |service| {
        let link = reader(service, "ada+letters@example.com").await;
        for email in ["ada@example.com", "ADA+more@example.com", "ad.a@example.com", "eve@example.com"] {
            download(service, email, true).await;
        }
        post(service, &link, "List-Unsubscribe=One-Click").await;
        assert_eq!(mailed(service).await, ["ad.a@example.com", "eve@example.com"]);
        let unsubscribed = "SELECT CAST(SUM(times) AS BIGINT) FROM counts WHERE kind = 'unsubscribe'";
        assert_eq!(service.database.number(unsubscribed).await, 3);
        download(service, "ada@example.com", true).await;
        assert_eq!(mailed(service).await, ["ad.a@example.com", "ada@example.com", "eve@example.com"]);
    })
    .await;
}

#[tokio::test]
async fn ten_thousand_variants_of_a_mailbox_do_not_keep_it_from_unsubscribing() {
    on_each_database(async |service| {
        let link = reader(service, "ada@example.com").await;
        let numbers = if service.database.is_postgres() {
            "generate_series(1, 10000) AS numbers(n)"
        } else {
            "(WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 10000) SELECT n FROM numbers)"
        };
        let fill = format!(
            "INSERT INTO people (address, email, mailbox, first_seen_at, opt_in) \
             SELECT 'ada+' || n || '@example.com', 'a', 'ada@example.com', 1, 'c' || n FROM {numbers}; \
             INSERT INTO consents (id, address, at, via, wording) \
             SELECT 'c' || n, 'ada+' || n || '@example.com', 1, 'api', 1 FROM {numbers}"
        );
        service.database.execute(&fill).await;
        assert_eq!(post(service, &link, "List-Unsubscribe=One-Click").await.status, 200);
        assert!(mailed(service).await.is_empty());
        let unsubscribed = "SELECT CAST(SUM(times) AS BIGINT) FROM counts WHERE kind = 'unsubscribe'";
        assert_eq!(service.database.number(unsubscribed).await, 10_001);
    })
    .await;
}

#[tokio::test]
async fn not_me_through_an_old_link_keeps_nothing_that_was_added_since() {
    on_each_database(async |service| {
        let link = reader(service, "ada@example.com").await;
        post(service, &link, "List-Unsubscribe=One-Click").await;
        service.clock.advance(Duration::from_secs(1));
        download(service, "ada+more@example.com", true).await;
        assert_eq!(mailed(service).await, ["ada+more@example.com"]);
        post(service, &link, "reason=not-me").await;
        assert!(mailed(service).await.is_empty());
    })
    .await;
}

#[tokio::test]
async fn not_me_covers_all_variants_of_the_mailbox_but_one_that_opted_in_before() {
    on_each_database(async |service| {
        for (name, older) in [("first", true), ("later", false)] {
            let (plain, invented) = (format!("{name}@gmail.com"), format!("{name}+invented@googlemail.com"));
            let emails = if older { [&plain, &invented] } else { [&invented, &plain] };
            for email in emails {
                service.clock.advance(Duration::from_secs(1));
                download(service, email, true).await;
            }
            let link = link(service, &invented).await;
            post(service, &link, "reason=not-me").await;
            let (start, end) = name.split_at(2);
            for variant in [invented, format!("{name}+another@gmail.com"), format!("{start}.{end}@gmail.com")] {
                download(service, &variant, true).await;
            }
        }
        assert_eq!(mailed(service).await, ["first@gmail.com"]);

        let link = link(service, "first@gmail.com").await;
        post(service, &link, "reason=not-me").await;
        download(service, "first@gmail.com", true).await;
        assert!(mailed(service).await.is_empty(), "now the mailbox has no exception");
    })
    .await;
}

#[tokio::test]
async fn an_address_that_does_not_exist_says_nothing_about_the_rest_of_its_mailbox() {
    on_each_database(async |service| {
        let store = service.database.store();
        let invented = address("ada+invented@example.com");
        store.suppress(&invented, SuppressionReason::NoMailbox, service.clock.now()).await.expect("to be done");
        for email in ["ada@example.com", "ada+invented@example.com"] {
            download(service, email, true).await;
        }
        assert_eq!(mailed(service).await, ["ada@example.com"]);
        assert!(store.unsuppress(&invented).await.expect("to be done"));
        assert_eq!(mailed(service).await, ["ada+invented@example.com", "ada@example.com"]);
        store.close().await;
    })
    .await;
}

#[tokio::test]
async fn an_address_may_be_suppressed_before_anybody_enters_it() {
    on_each_database(async |service| {
        let store = service.database.store();
        let now = service.clock.now();
        for (email, why) in
            [("ada@example.com", SuppressionReason::Makers), ("bob@example.com", SuppressionReason::NoMailbox)]
        {
            for _ in 0..2 {
                store.suppress(&address(email), why, now).await.expect("to be done");
            }
            download(service, email, true).await;
        }
        download(service, "eve@example.com", true).await;
        store.close().await;
        assert_eq!(mailed(service).await, ["eve@example.com"]);
    })
    .await;
}

#[tokio::test]
async fn each_database_remembers_in_its_own_way() {
    let mut kept = Vec::new();
    for _ in 0..2 {
        let service = Service::start(RawSettings::default(), Database::migrated_sqlite().await).await;
        let link = reader(&service, "ada@example.com").await;
        post(&service, &link, "reason=not-me").await;
        kept.extend(service.database.texts("SELECT hash FROM suppressions").await);
        service.stop().await;
    }
    assert_ne!(kept[0], kept[1], "the key of the hashes is not the same everywhere");
}

#[tokio::test]
async fn the_pages_are_for_one_person_and_tell_nothing_of_them() {
    on_one_database(async |service| {
        let link = reader(service, "ada@example.com").await;
        let token = link.rsplit('/').next().expect("a token");
        let pages =
            [service.get(&link).await, post(service, &link, "").await, post(service, &link, "reason=not-me").await];
        for page in pages {
            assert_eq!((page.header("cache-control"), page.header("x-robots-tag")), ("no-store", "noindex"));
            assert_eq!(page.media_type(), "text/html");
            assert!(page.header("content-security-policy").contains("form-action 'self'"));
            let text = page.text();
            assert!(text.contains("<meta name=\"robots\" content=\"noindex\">"));
            assert!(!text.contains(token) && !text.to_lowercase().contains("ada@"), "{text}");
        }
        let sitemap = service.get("/sitemap.xml").await.text();
        assert!(!sitemap.contains("unsubscribe"), "{sitemap}");
    })
    .await;
}

#[tokio::test]
async fn while_the_database_is_locked_unsubscribing_is_503_and_may_be_retried() {
    on_each_database(async |service| {
        let link = reader(service, "ada@example.com").await;
        let lock = service.database.lock().await;
        let answer = post(service, &link, "reason=not-me").await;
        assert_eq!(answer.status, 503);
        assert_eq!((answer.header("retry-after"), answer.header("cache-control")), ("5", "no-store"));
        lock.release().await;
        assert_eq!(mailed(service).await, ["ada@example.com"]);
        assert_eq!(post(service, &link, "reason=not-me").await.status, 200);
        assert!(mailed(service).await.is_empty());
    })
    .await;
}

#[tokio::test]
async fn an_invented_token_does_not_wait_for_the_write_lock() {
    on_each_database(async |service| {
        let lock = service.database.lock().await;
        let answer = service.send(Method::POST, &format!("/unsubscribe/{}", "a".repeat(40)), &[], "").await;
        assert_eq!(answer.status, 404);
        lock.release().await;
    })
    .await;
}
