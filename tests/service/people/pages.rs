//! What the desk shows of people: pages of the list, one person by a key, and the totals.

use std::time::Duration;

use porchlight::actions::{
    CachedTotals, PeoplePage, erase_person, find_person, people_page, suppress_person, unsuppress_person,
};
use porchlight::config::RawSettings;
use porchlight::domain::mail::EmailAddress;
use porchlight::domain::paging::PageStart;
use porchlight::domain::people::{PeopleQuery, PeopleSearch, PersonKey, PersonState};
use porchlight::store::Store;

use super::{download, shown, write};
use crate::harness::{Service, each_migrated_database};

/// Runs a test with the service and a store of its own.
async fn on_each_store(test: impl AsyncFn(&Service, &Store)) {
    for database in each_migrated_database().await {
        println!("on {database:?}");
        let service = Service::start(RawSettings::default(), database).await;
        let store = service.database.store();
        test(&service, &store).await;
        store.close().await;
        service.stop().await;
    }
}

fn email(text: &str) -> EmailAddress {
    EmailAddress::parse(text).expect("an address")
}

async fn key(store: &Store, address: &str) -> PersonKey {
    store.person_key(&email(address)).await.expect("a key").expect("a known person")
}

fn address(number: u64) -> String {
    format!("P{number}@{}.example", ["even", "odd"][usize::from(number % 2 == 1)])
}

/// The addresses of a page up to the @, with `<` if there are newer people and `>` if there are older ones.
async fn page(store: &Store, query: &PeopleQuery, start: &PageStart<PersonKey>) -> String {
    let PeoplePage { page, notes } = people_page(store, query, start, 3).await.expect("a page");
    assert_eq!(notes, Vec::<String>::new());
    let names: Vec<_> = page.items.iter().map(|(_, person)| person.email.key().split('@').next().unwrap()).collect();
    let (newer, older) = (if page.has_newer { "<" } else { "" }, if page.has_older { ">" } else { "" });
    format!("{newer}{}{older}", names.join(" "))
}

#[tokio::test]
async fn the_desk_pages_through_people_and_names_none_by_the_address() {
    on_each_store(async |service, store| {
        for number in 1..=8 {
            // Two at a time.
            service.clock.advance(Duration::from_secs(number % 2));
            download(service, &address(number), number > 4).await;
        }
        let key = async |number| key(store, &address(number)).await;
        let (older, newer) = (
            async |number| PageStart::OlderThan(key(number).await),
            async |number| PageStart::NewerThan(key(number).await),
        );
        let everybody = PeopleQuery::default();
        let even = PeopleQuery { search: PeopleSearch::parse("@even.example").ok(), ..PeopleQuery::default() };
        let named = PeopleQuery { search: PeopleSearch::parse("p").ok(), ..PeopleQuery::default() };
        let readers = PeopleQuery { state: Some(PersonState::OptedIn), ..PeopleQuery::default() };
        let others = PeopleQuery { state: Some(PersonState::Waitlist), ..PeopleQuery::default() };
        for (query, start, expected) in [
            (&everybody, PageStart::Newest, "p8 p7 p6>"),
            (&everybody, older(6).await, "<p5 p4 p3>"),
            (&everybody, older(3).await, "<p2 p1"),
            (&everybody, older(1).await, "<"),
            (&everybody, newer(2).await, "<p5 p4 p3>"),
            (&everybody, newer(5).await, "p8 p7 p6>"),
            (&everybody, newer(8).await, "p8 p7 p6>"),
            (&even, PageStart::Newest, "p8 p6 p4>"),
            (&even, older(4).await, "<p2"),
            (&even, newer(2).await, "p8 p6 p4>"),
            (&named, older(7).await, "<p6 p5 p4>"),
            (&named, newer(1).await, "<p4 p3 p2>"),
            (&readers, PageStart::Newest, "p8 p7 p6>"),
            (&readers, older(6).await, "<p5"),
            (&readers, newer(1).await, "<p7 p6 p5>"),
            (&others, PageStart::Newest, ""),
        ] {
            assert_eq!(page(store, query, &start).await, expected, "{query:?} {start:?}");
        }

        let key_of_4 = key(4).await;
        assert!(!key_of_4.to_string().contains("p4"));
        assert_eq!(PersonKey::parse(&key_of_4.to_string()), Some(key_of_4.clone()));
        assert_eq!(
            store.person_by_key(&key_of_4).await.expect("a search").expect("a person").as_typed(),
            "P4@even.example"
        );
        let erased = erase_person(store, &email("p4@even.example"), service.clock.now()).await.expect("an erasure");
        assert!(erased.done[0].starts_with("p4@even.example was erased (downloads and joins: 1,"), "{erased:?}");
        assert_eq!(store.person_by_key(&key_of_4).await.expect("a search"), None);
        assert_eq!(page(store, &everybody, &PageStart::OlderThan(key_of_4)).await, "<p2 p1", "older than that time");
    })
    .await;
}

#[tokio::test]
async fn a_person_is_found_among_many_who_were_first_seen_at_the_same_time() {
    on_each_store(async |service, store| {
        let text = "WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 2500) \
             INSERT INTO people (address, email, first_seen_at) SELECT 'o' || n || '@example.com', 'O' || n || '@example.com', -7 FROM numbers";
        service.database.execute(text).await;
        for name in ["o1", "o1733", "o999"] {
            let key = key(store, &format!("{name}@example.com")).await;
            let found = store.person_by_key(&key).await.expect("a search").expect("a person");
            assert_eq!(found.as_typed(), format!("{}@example.com", name.to_uppercase()));
        }
        for unknown in [format!("-7-{}", "0".repeat(32)), format!("5-{}", "0".repeat(32))] {
            let key = PersonKey::parse(&unknown).expect("a key");
            assert_eq!(store.person_by_key(&key).await.expect("a search"), None);
        }
        write(service, "ada@example.com", "Hello").await;
        assert_eq!(store.person_key(&email("ada@example.com")).await.expect("a search"), None, "only a message");
    })
    .await;
}

#[tokio::test]
async fn the_desk_says_what_the_command_says() {
    on_each_store(async |service, store| {
        let (ada, now) = (email("ada@example.com"), service.clock.now());
        let unknown = find_person(store, &ada).await.expect_err("nobody");
        assert_eq!(unknown.to_string(), "Nothing is stored about ada@example.com.");
        assert_eq!(unsuppress_person(store, &ada).await.expect("an answer"), None);
        suppress_person(store, &ada, now).await.expect("a suppression");
        assert_eq!(shown(service, "ada@example.com")["suppression"]["reason"], "makers");
        download(service, "ada@example.com", true).await;
        let outcome = unsuppress_person(store, &ada).await.expect("an answer").expect("a sentence");
        assert_eq!(outcome, "ada@example.com is no longer suppressed. It is opted in, so it gets the monthly letter.");
        suppress_person(store, &ada, now).await.expect("a suppression");
        let erased = erase_person(store, &ada, now).await.expect("an erasure");
        assert_eq!(erased.done[1..], ["Kept as a hash: the address is suppressed."]);
        assert!(erased.left[0].contains("`porchlight people erase ADDRESS --vacuum` clears them"), "{erased:?}");
    })
    .await;
}

#[tokio::test]
async fn the_numbers_of_people_are_counted_once_a_minute() {
    on_each_store(async |service, store| {
        let totals = CachedTotals::default();
        let people = async || totals.recent(store, service.clock.now()).await.expect("numbers").people;
        download(service, "ada@example.com", true).await;
        assert_eq!(people().await, 1);
        download(service, "bob@example.com", true).await;
        service.clock.advance(Duration::from_secs(59));
        assert_eq!(people().await, 1);
        service.clock.advance(Duration::from_secs(1));
        assert_eq!(people().await, 2);
    })
    .await;
}
