//! Counts that are kept up to date with each event equal a recount.

use std::time::Duration;

use futures_util::future::join_all;
use futures_util::{StreamExt, stream};
use porchlight::actions::Pruner;
use porchlight::config::RawSettings;
use porchlight::domain::contact::{ContactMessage, ReceivedMessage};
use porchlight::domain::mail::EmailAddress;
use porchlight::domain::text::MessageText;
use porchlight::store::{Database as StoredIn, Writer};
use serde_json::json;
use uuid::Uuid;

use crate::harness::{Database, Service, each_database, on_each_database};

/// By day, and by source: downloads, new people, opt-ins and joins.
async fn counts(database: &Database) -> [Vec<String>; 2] {
    let by_day = "SELECT day || ' ' || kind || ' ' || via || ' ' || name || ' ' || SUM(times) FROM counts \
         GROUP BY day, kind, via, name ORDER BY day, kind, via, name";
    let by_source = "SELECT day || ' ' || source || ' ' || SUM(downloads) || ' ' || SUM(new_people) || ' ' || SUM(opt_ins) || ' ' || SUM(joins) \
         FROM sources GROUP BY day, source ORDER BY day, source";
    [database.texts(by_day).await, database.texts(by_source).await]
}

/// The sum of a count over all days and interfaces.
async fn total(database: &Database, kind: &str) -> i64 {
    let sum = format!("SELECT CAST(COALESCE(SUM(times), 0) AS BIGINT) FROM counts WHERE kind = '{kind}'");
    database.number(&sum).await
}

async fn download(service: &Service, email: &str, updates: bool, source: &str) {
    let order = json!({ "email": email, "updates": updates, "source": source });
    service.post("/api/download", &order).await.expect_ok();
}

/// Everything that is counted, as rows of `day`, `kind`, `via`, `source`.
const EVENTS: &str = "(SELECT at / 86400000 AS day, kind, via, source FROM signups \
     UNION ALL SELECT s.at / 86400000, 'person', s.via, s.source FROM people p JOIN signups s \
         ON s.id = CASE WHEN p.first_join IS NULL OR p.first_download < p.first_join THEN p.first_download ELSE p.first_join END \
     UNION ALL SELECT at / 86400000, 'opt-in', via, source FROM consents \
     UNION ALL SELECT at / 86400000, 'message', '', NULL FROM messages) AS events";

/// What [`counts`] returns if everything that is stored is counted again. Imported people came from no visit.
async fn recounted(database: &Database) -> [Vec<String>; 2] {
    let by_day = format!(
        "SELECT day || ' ' || kind || ' ' || via || '  ' || COUNT(*) FROM {EVENTS} WHERE via <> 'import' \
         GROUP BY day, kind, via ORDER BY day, kind, via"
    );
    let number = |kind| format!("COUNT(CASE kind WHEN '{kind}' THEN 1 END)");
    let by_source = format!(
        "SELECT day || ' ' || source || ' ' || {} || ' ' || {} || ' ' || {} || ' ' || {} FROM \
         (SELECT day, kind, via, CASE WHEN source LIKE '%@%' THEN '' ELSE COALESCE(source, '') END AS source FROM {EVENTS}) AS named \
         WHERE via <> 'import' AND kind <> 'message' GROUP BY day, source ORDER BY day, source",
        number("download"),
        number("person"),
        number("opt-in"),
        number("join")
    );
    [database.texts(&by_day).await, database.texts(&by_source).await]
}

#[tokio::test]
async fn each_thing_is_counted_on_its_day_and_by_where_it_came_from() {
    on_each_database(async |service| {
        download(service, "ada@example.com", true, "hn").await;
        download(service, "ADA@example.com", true, "hn").await;
        download(service, "bob@example.com", false, "bob@example.com").await;
        service.post("/api/waitlist", &json!({ "email": "ada@example.com" })).await.expect_ok();
        service.clock.advance(Duration::from_hours(24));
        service.post("/api/waitlist", &json!({ "email": "cyd@example.com", "source": "blog" })).await.expect_ok();
        let message = json!({ "email": "cyd@example.com", "message": "Hello" });
        service.post("/api/contact", &message).await.expect_ok();
        service.post("/api/contact", &message).await.expect_ok();
        let [by_day, by_source] = counts(&service.database).await;
        assert_eq!(
            by_day,
            [
                "20772 download api  3",
                "20772 join api  1",
                "20772 opt-in api  1",
                "20772 person api  2",
                "20773 join api  1",
                "20773 message   1",
                "20773 person api  1",
            ]
        );
        assert_eq!(by_source, ["20772  1 1 0 1", "20772 hn 2 1 1 0", "20773 blog 0 1 0 1"]);
    })
    .await;
}

#[tokio::test]
async fn what_was_counted_as_it_happened_is_what_a_recount_gives() {
    for database in each_database().await {
        println!("on {database:?}");
        let service = Service::start(RawSettings::default(), database.clone()).await;
        for day in 0..3 {
            let requests = (0..90).map(|number| {
                let service = &service;
                async move {
                    let person = format!("p{}@example.com", (number + day * 17) % 40);
                    let source = ["hn", "blog", "x@example.com", ""][number % 4];
                    let order = match number % 3 {
                        0 => ("/api/waitlist", json!({ "email": person, "source": source })),
                        1 => ("/api/contact", json!({ "email": person, "message": format!("Letter {}", number / 9) })),
                        _ => {
                            ("/api/download", json!({ "email": person, "updates": number % 5 == 0, "source": source }))
                        }
                    };
                    service.post(order.0, &order.1).await.expect_ok();
                }
            });
            join_all(requests).await;
            service.clock.advance(Duration::from_hours(25));
        }
        assert_eq!(total(&database, "person").await, database.count("people").await);
        assert_eq!(total(&database, "opt-in").await, database.count("consents").await);
        assert_eq!(total(&database, "message").await, database.count("messages").await);
        assert_eq!(
            total(&database, "download").await + total(&database, "join").await,
            database.count("signups").await
        );
        let imported = "INSERT INTO signups (id, address, kind, at, via) VALUES ('1', 'z@example.com', 'download', 0, 'import'); \
                        INSERT INTO people (address, email, first_seen_at, first_download) \
                        VALUES ('z@example.com', 'z@example.com', 0, '1')";
        database.execute(imported).await;
        let counted = counts(&database).await;
        assert!(counted.iter().flatten().count() > 20, "{counted:#?}");
        assert_eq!(counted, recounted(&database).await);
        service.stop().await;
    }
}

#[tokio::test]
async fn two_instances_add_to_the_same_counts_without_losing_any() {
    let database = Database::postgres().await;
    let start = || Service::start(RawSettings::default(), database.clone());
    let (first, second) = tokio::join!(start(), start());
    let requests = (0..200).map(|number| {
        let service = if number % 2 == 0 { &first } else { &second };
        let (email, source) = (format!("p{}@example.com", number / 4), format!("s{}", (number * 7) % 20));
        async move { download(service, &email, true, &source).await }
    });
    join_all(requests).await;
    assert_eq!(total(&database, "download").await, 200);
    assert_eq!(total(&database, "person").await, 50);
    assert_eq!(total(&database, "opt-in").await, 50);
    assert_eq!(counts(&database).await, recounted(&database).await);
    first.stop().await;
    second.stop().await;
}

#[tokio::test]
async fn what_is_written_again_one_by_one_is_counted_once() {
    on_each_database(async |service| {
        service.database.refuse_poison_in("signups").await;
        let requests = (0..60).map(|number| async move {
            let email =
                if number % 10 == 5 { "poison@example.com".to_owned() } else { format!("p{number}@example.com") };
            service.post("/api/download", &json!({ "email": email })).await
        });
        join_all(requests).await;
        assert_eq!(total(&service.database, "download").await, 54);
        assert_eq!(total(&service.database, "person").await, 54);
    })
    .await;
}

#[tokio::test]
async fn a_message_that_is_stored_twice_is_counted_once() {
    on_each_database(async |service| {
        let database = StoredIn::parse(service.database.url()).expect("a database");
        let (writer, written) = Writer::start(&database, None).expect("a writer");
        let (at, email) = (service.clock.now(), EmailAddress::parse("ada@example.com").expect("an address"));
        let text = MessageText::parse("Hello").expect("a message");
        let message = ReceivedMessage { id: Uuid::max(), contact: ContactMessage { name: None, email, text }, at };
        for _ in 0..2 {
            writer.record_message(message.clone()).await.expect("to be stored");
        }
        drop(writer);
        written.await.expect("its end");
        assert_eq!(counts(&service.database).await[0], ["20772 message   1"]);
    })
    .await;
}

/// Sends downloads with so many sources, each of them twice. All of them at once can be more than a busy machine stores
/// in time, and some would be refused.
async fn invent_sources(service: &Service, number: usize) {
    let requests = (0..number).map(|number| async move {
        let source = format!("invented {}", number / 2);
        download(service, &format!("p{number}@example.com"), false, &source).await;
    });
    stream::iter(requests).buffer_unordered(128).collect::<Vec<()>>().await;
}

#[tokio::test]
async fn once_a_day_the_five_hundred_largest_sources_of_each_day_are_kept() {
    on_each_database(async |service| {
        let database = &service.database;
        invent_sources(service, 1200).await;
        for _ in 0..3 {
            download(service, "ada@example.com", false, "zine").await;
        }
        let store = database.store();
        let pruner = Pruner { store: store.clone(), clock: service.clock.clone(), keep_messages: None };
        service.clock.advance(Duration::from_hours(24));
        pruner.step().await.expect("a database that answers");
        assert_eq!(database.count("sources").await, 500);
        assert_eq!(database.count("sources WHERE source = 'zine'").await, 1, "the largest one stays");
        assert_eq!(total(database, "download").await, 1203);
        invent_sources(service, 1200).await;
        pruner.step().await.expect("a database that answers");
        assert_eq!(database.count("sources").await, 1100, "not twice a day");
        store.close().await;
    })
    .await;
}

#[tokio::test]
async fn the_rows_of_stats_add_up_to_the_total() {
    on_each_database(async |service| {
        invent_sources(service, 140).await;
        assert_eq!(service.database.count("sources").await, 70);
        let mut command = service.command(&["stats", "--json"]);
        command.args(["--database-url", service.database.url()]);
        let (code, output) = crate::harness::Program::run(command);
        assert_eq!(code, 0, "{output}");
        let stats: serde_json::Value = serde_json::from_str(&output).expect("JSON");
        let rows = stats["sources"].as_array().expect("rows");
        for column in ["downloads", "new_people", "opt_ins", "joins"] {
            let sum: u64 = rows.iter().map(|row| row[column].as_u64().expect("a number")).sum();
            assert_eq!(sum, stats["total"][column].as_u64().expect("a number"), "{column}");
        }
        let rest = rows.last().expect("the rest");
        assert_eq!((&rest["others"], rows.iter().filter(|row| row["others"] == true).count()), (&json!(true), 1));
        assert_eq!((rows.len(), &rest["downloads"]), (51, &json!(40)), "{rest}");
        let mut command = service.command(&["stats"]);
        command.args(["--database-url", service.database.url()]);
        let (_, table) = crate::harness::Program::run(command);
        assert!(table.lines().last().expect("a line").starts_with("(others)"), "{table}");
    })
    .await;
}
