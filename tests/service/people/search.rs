//! `porchlight people list`: search, states, order and pages.

use std::time::Duration;

use porchlight::config::RawSettings;

use super::{data, download, join, listed, run};
use crate::confirmations::confirming;
use crate::harness::{Service, on_each_database, on_each_database_with};

/// Inserts people `p1` to `p{count}`, the first of whom is the newest, at two domains in turn.
async fn insert(service: &Service, count: i64) {
    let text = "WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < {count}), \
             named AS (SELECT 'p' || n || CASE n % 2 WHEN 0 THEN '@even.example' ELSE '@odd.example' END AS address, n FROM numbers) \
         INSERT INTO people (address, email, first_seen_at) SELECT address, address, {now} - n FROM named";
    let now = service.clock.now().unix_millis();
    service.database.execute(&text.replace("{count}", &count.to_string()).replace("{now}", &now.to_string())).await;
}

#[tokio::test]
async fn people_are_found_by_the_beginning_of_an_address_or_a_domain_newest_first() {
    on_each_database(async |service| {
        for email in ["ada@example.com", "Adam@other.example", "bob@EXAMPLE.com", "eva@münchen.example"] {
            download(service, email, false).await;
            service.clock.advance(Duration::from_hours(24));
        }
        let found = |text: &str| listed(service, &["--search", text]);
        assert_eq!(
            listed(service, &[]),
            ["eva@münchen.example", "bob@EXAMPLE.com", "Adam@other.example", "ada@example.com"]
        );
        assert_eq!(found("ADA"), ["Adam@other.example", "ada@example.com"]);
        assert_eq!(found("ada@"), ["ada@example.com"]);
        assert_eq!(found("@Example.com"), ["bob@EXAMPLE.com", "ada@example.com"]);
        assert_eq!(found("@MÜNCHEN.example"), ["eva@münchen.example"]);
        assert_eq!(found("eva@münchen.example"), ["eva@münchen.example"]);
        assert_eq!(found("%"), Vec::<String>::new());
        let (code, output) = run(service, &["people", "list", "--search", "zoe"]);
        assert!(code == 0 && output.contains("No people found"), "{output}");
        for (text, why) in [("@example", "not a domain name"), ("", "nothing stands before the @")] {
            let (code, output) = run(service, &["people", "list", "--search", text]);
            assert!(code == 2 && output.contains(why), "{output}");
        }

        let second = service.clock.now().before(Duration::from_hours(48)).date();
        assert_eq!(listed(service, &["--since", &second]), ["eva@münchen.example", "bob@EXAMPLE.com"]);
        assert_eq!(listed(service, &["--since", &second, "--search", "@example.com"]), ["bob@EXAMPLE.com"]);
        assert_eq!(listed(service, &["--search", "a", "--limit", "1"]), ["Adam@other.example"]);
    })
    .await;
}

#[tokio::test]
async fn every_state_lists_those_who_are_in_it() {
    on_each_database_with(confirming(), async |service| {
        download(service, "pending@example.com", true).await;
        download(service, "plain@example.com", false).await;
        join(service, "waiting@example.com").await;
        download(service, "gone@example.com", false).await;
        run(service, &["people", "suppress", "gone+tag@example.com"]);
        let list = service.file("people.csv", "email,updates\nreader@example.com,yes\nformer@example.com,yes\n");
        assert_eq!(run(service, &["people", "import", list.to_str().unwrap()]).0, 0);
        service.database.execute("INSERT INTO withdrawals (consent, address, at, how) SELECT opt_in, address, 5, 'unsubscribe' FROM people WHERE address = 'former@example.com'").await;
        service.database.execute("UPDATE people SET opt_in = NULL WHERE address = 'former@example.com'").await;
        let in_state = |state: &str| listed(service, &["--state", state]);
        assert_eq!(in_state("opted-in"), ["reader@example.com"]);
        assert_eq!(in_state("pending"), ["pending@example.com"]);
        assert_eq!(in_state("suppressed"), ["gone@example.com"]);
        assert_eq!(in_state("unsubscribed"), ["former@example.com"]);
        assert_eq!(in_state("waitlist"), ["waiting@example.com"]);
        assert_eq!(in_state("downloaded"), ["plain@example.com", "pending@example.com", "gone@example.com"]);
        assert_eq!(listed(service, &["--updates"]), in_state("opted-in"));
        assert_eq!(listed(service, &["--state", "downloaded", "--search", "p"]), ["plain@example.com", "pending@example.com"]);
        let (code, output) = run(service, &["people", "list", "--state", "dead"]);
        assert!(code == 2 && output.contains("[possible values: opted-in, pending, suppressed,"), "{output}");
        assert!(data(service, &["people", "list", "--help"]).contains("has not confirmed the opt-in yet"));
        let lines = data(service, &["people", "list"]);
        for (email, state) in [("pending", "pending"), ("former", "unsubscribed"), ("gone", "suppressed"), ("reader", "updates")] {
            let line = lines.lines().find(|line| line.contains(email)).unwrap_or_default();
            assert!(line.contains(&format!(" {state} ")), "{line}");
        }
    })
    .await;
}

#[tokio::test]
async fn a_long_list_comes_in_pages_and_says_what_it_has_not_looked_at() {
    on_each_database(async |service| {
        insert(service, 12_000).await;
        let names = |numbers: &mut dyn Iterator<Item = i64>| -> Vec<String> {
            numbers.map(|n| format!("p{n}@{}.example", if n % 2 == 0 { "even" } else { "odd" })).collect()
        };
        assert_eq!(listed(service, &[]), names(&mut (1..=12_000)));
        assert_eq!(listed(service, &["--search", "@even.example"]), names(&mut (1..=6000).map(|half| 2 * half)));
        assert_eq!(listed(service, &["--search", "p11"]).len(), 1111);
        let (code, output) = run(service, &["people", "list", "--search", "p", "--limit", "1"]);
        assert!(code == 0 && output.contains("More than 10000 addresses begin like this"), "{output}");
        assert_eq!(listed(service, &["--search", "p"]).len(), 10_000);
        insert_others(service, 90_000).await;
        let (code, output) = run(service, &["people", "list", "--state", "pending"]);
        assert!(code == 0 && output.contains("none of the 100000 before, back to"), "{output}");
        assert!(output.contains("`porchlight people export` has everybody"), "{output}");
    })
    .await;
}

/// Inserts people who are older than those of [`insert`].
async fn insert_others(service: &Service, count: i64) {
    let text = "WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < {count}) \
         INSERT INTO people (address, email, first_seen_at) SELECT 'o' || n || '@example.com', 'o' || n || '@example.com', n FROM numbers";
    service.database.execute(&text.replace("{count}", &count.to_string())).await;
}

#[tokio::test]
async fn people_who_were_first_seen_at_the_same_time_are_each_listed_once() {
    let settings = RawSettings::default();
    on_each_database_with(settings, async |service| {
        let text = "WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 2500) \
             INSERT INTO people (address, email, first_seen_at) SELECT 'o' || n || '@example.com', 'o' || n || '@example.com', 7 FROM numbers";
        service.database.execute(text).await;
        let mut people = listed(service, &[]);
        assert!(people.is_sorted_by(|a, b| a > b), "in the reverse order of addresses");
        people.dedup();
        assert_eq!(people.len(), 2500);
    })
    .await;
}
