//! Counts that are kept up to date with each event equal a recount.

use std::time::Duration;

use futures_util::future::join_all;
use futures_util::{StreamExt, stream};
use porchlight::config::RawSettings;
use porchlight::domain::confirmation::OptInRequest;
use porchlight::domain::consent::Via;
use porchlight::domain::contact::{ContactMessage, ReceivedMessage};
use porchlight::domain::email::EmailAddress;
use porchlight::domain::text::MessageText;
use porchlight::store::{Database as StoredIn, SignupKind, SignupRecord, Writer};
use serde_json::json;
use uuid::Uuid;

use crate::harness::{COUNTS, Database, SOURCES, Service, each_database, on_each_database, wait_until};

/// By day, and by source: downloads, new people, opt-ins and joins.
async fn counts(database: &Database) -> [Vec<String>; 2] {
    let by_day = format!(
        "SELECT day || ' ' || kind || ' ' || via || ' ' || name || ' ' || SUM(times) FROM {COUNTS} \
         GROUP BY day, kind, via, name ORDER BY day, kind, via, name"
    );
    let by_source = format!(
        "SELECT day || ' ' || source || ' ' || SUM(downloads) || ' ' || SUM(people) || ' ' || SUM(opt_ins) || ' ' || SUM(joins) \
         FROM {SOURCES} GROUP BY day, source ORDER BY day, source"
    );
    [database.texts(&by_day).await, database.texts(&by_source).await]
}

/// The sum of a count over all days and interfaces.
async fn total(database: &Database, kind: &str) -> i64 {
    let sum = format!("SELECT CAST(COALESCE(SUM(times), 0) AS BIGINT) FROM {COUNTS} WHERE kind = '{kind}'");
    database.number(&sum).await
}

async fn download(service: &Service, email: &str, updates: bool, source: &str) {
    let order = json!({ "email": email, "updates": updates, "source": source });
    service.post("/api/download", &order).await.expect_ok();
}

/// Recounts everything with the migrations that created the tables, as in a database of an older version.
async fn recounted(service: Service) -> [Vec<String>; 2] {
    let database = service.database.clone();
    service.stop().await;
    database
        .execute(
            "DROP TABLE counts; DROP TABLE sources; DELETE FROM pending_counts; \
             DELETE FROM _sqlx_migrations WHERE version IN (6, 7, 8)",
        )
        .await;
    Service::start(RawSettings::default(), database.clone()).await.stop().await;
    counts(&database).await
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
        assert_eq!(total(&database, "download").await + total(&database, "join").await, database.count("events").await);
        let imported = "INSERT INTO signups (id, address, kind, at, via) VALUES ('1', 'z@example.com', 'download', 0, 'import'); \
                        INSERT INTO people (address, email, first_seen_at, first_download) \
                        VALUES ('z@example.com', 'z@example.com', 0, '1')";
        database.execute(imported).await;
        let counted = counts(&database).await;
        assert!(counted.iter().flatten().count() > 20, "{counted:#?}");
        assert_eq!(counted, recounted(service).await);
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
    second.stop().await;
    let counted = counts(&database).await;
    assert_eq!(counted, recounted(first).await);
}

#[tokio::test]
async fn pending_counts_are_added_up_and_nothing_changes_for_readers() {
    let database = Database::migrated_postgres().await;
    let service = Service::start(RawSettings::default(), database.clone()).await;
    // More than fit into one batch beside another.
    let requests = (0..300).map(|number| {
        let (email, source) = (format!("p{}@example.com", number / 3), format!("s{}", number % 7));
        let service = &service;
        async move { download(service, &email, number % 2 == 0, &source).await }
    });
    join_all(requests).await;
    let before = counts(&database).await;
    assert_eq!([total(&database, "download").await, total(&database, "person").await], [300, 100]);
    wait_until("counts that are settled", async || database.count("pending_counts").await == 0).await;
    assert_eq!(counts(&database).await, before);
    assert_eq!(before, recounted(service).await);
}

#[tokio::test]
async fn what_is_written_again_one_by_one_is_counted_once() {
    on_each_database(async |service| {
        service.database.refuse_poison_in("events").await;
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
async fn a_write_repeated_after_an_ambiguous_commit_is_counted_once() {
    on_each_database(async |service| {
        let database = StoredIn::parse(service.database.url()).expect("a database");
        let (writer, written) = Writer::start(&database, None).expect("a writer");
        let (at, email) = (service.clock.now(), EmailAddress::parse("ada@example.com").expect("an address"));
        let kind = SignupKind::Download { opt_in: OptInRequest::Immediate };
        let signup = SignupRecord { id: Uuid::max(), kind, email: email.clone(), source: None, via: Via::Site, at };
        let text = MessageText::parse("Hello").expect("a message");
        let message = ReceivedMessage { id: Uuid::max(), contact: ContactMessage { name: None, email, text }, at };
        for _ in 0..2 {
            writer.record_signup(signup.clone()).await.expect("to be stored");
            writer.record_message(message.clone()).await.expect("to be stored");
        }
        drop(writer);
        written.await.expect("its end");
        let [by_day, by_source] = counts(&service.database).await;
        assert_eq!(
            by_day,
            ["20772 download site  1", "20772 message   1", "20772 opt-in site  1", "20772 person site  1"]
        );
        assert_eq!(by_source, ["20772  1 1 1 0"]);
    })
    .await;
}

#[tokio::test]
async fn a_day_admits_five_hundred_new_sources_and_those_of_the_week_before() {
    on_each_database(async |service| {
        let database = &service.database;
        download(service, "ada@example.com", true, "hn").await;
        service.clock.advance(Duration::from_hours(7 * 24));
        database.execute("INSERT INTO new_sources (day, names) VALUES (20779, 498)").await;
        for source in ["first", "second", "one too many", "hn", "first", "one too many", ""] {
            download(service, "bob@example.com", false, source).await;
        }
        let sources = format!(
            "SELECT source || ' ' || SUM(downloads) FROM {SOURCES} WHERE day = 20779 GROUP BY source ORDER BY source"
        );
        assert_eq!(database.texts(&sources).await, [" 1", "first 2", "hn 1", "second 1"]);
        assert_eq!(total(database, "download").await, 8);
        service.clock.advance(Duration::from_hours(24));
        download(service, "bob@example.com", false, "one too many").await;
        assert_eq!(database.count("sources WHERE source = 'one too many'").await, 1, "a new day");
    })
    .await;
}

/// Sends downloads with so many different sources to the instances in turn. All of them at once can be more than a busy machine stores
/// in time, and some would be refused.
async fn invent_sources(instances: &[&Service], number: usize) {
    let requests = (0..number).map(|number| async move {
        let service = instances[number % instances.len()];
        // Some of them through both instances.
        let source = format!("invented {}", number / 2);
        download(service, &format!("p{number}@example.com"), false, &source).await;
    });
    stream::iter(requests).buffer_unordered(128).collect::<Vec<()>>().await;
}

#[tokio::test]
async fn instances_together_admit_exactly_five_hundred_new_sources() {
    let database = Database::migrated_postgres().await;
    let (first, second) = tokio::join!(
        Service::start(RawSettings::default(), database.clone()),
        Service::start(RawSettings::default(), database.clone())
    );
    invent_sources(&[&first, &second], 1200).await;
    assert_eq!(database.count("sources WHERE source <> ''").await, 500);
    assert_eq!(database.texts("SELECT CAST(names AS TEXT) FROM new_sources").await, ["500"]);

    // Both instances ask for the last place of a day at the same time.
    for day in 20773..20793 {
        database.execute(&format!("INSERT INTO new_sources (day, names) VALUES ({day}, 499)")).await;
        for service in [&first, &second] {
            service.clock.advance(Duration::from_hours(24));
        }
        let (one, other) = (format!("one {day}"), format!("other {day}"));
        tokio::join!(
            download(&first, "ada@example.com", false, &one),
            download(&second, "bob@example.com", false, &other)
        );
        assert_eq!(database.count(&format!("sources WHERE day = {day}")).await, 1);
    }
    first.stop().await;
    second.stop().await;
}

#[tokio::test]
async fn the_rows_of_stats_add_up_to_the_total() {
    on_each_database(async |service| {
        invent_sources(&[service], 1040).await;
        assert_eq!(service.database.count("sources WHERE source <> ''").await, 500);
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
        assert!(rest["downloads"].as_u64().expect("a number") >= 40, "{rest}");
        let mut command = service.command(&["stats"]);
        command.args(["--database-url", service.database.url()]);
        let (_, table) = crate::harness::Program::run(command);
        assert!(table.lines().last().expect("a line").starts_with("(others)"), "{table}");
    })
    .await;
}
