//! Update checks: requests of the appcast by Sparkle are counted by day and version, and their profiles each alone.

use std::time::Duration;

use porchlight::config::RawSettings;
use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{Connection, Database, Program, Service, each_database, markup, on_each_database_with, raw};
use crate::ops::{ask, watched};

/// The day of every test, as stored in `counts`.
const TODAY: i64 = 20_772;

const PROFILE: &str = "/appcast.xml?appName=Tea%20Time&appVersion=140&cpu64bit=1&cpusubtype=2&cputype=16777228&lang=de-DE\
                       &model=Mac15,3&ncpu=12&osVersion=26.1.0&ramMB=36864";

async fn check(service: &Service, user_agent: &str, path: &str) {
    let answer = service.send(Method::GET, path, &[("user-agent", user_agent)], "").await;
    assert_eq!((answer.status.as_u16(), answer.media_type()), (200, "application/rss+xml"));
}

async fn checks(service: &Service, version: &str, times: usize) {
    for _ in 0..times {
        check(service, &format!("Tea Time/{version} Sparkle/2.6.4"), "/appcast.xml").await;
    }
}

/// What is counted of update checks, once the service has stopped. No other kind has a row in these tests.
async fn counted(database: &Database) -> Vec<String> {
    database
        .texts("SELECT day || ' ' || kind || via || ' ' || name || ' ' || times FROM counts ORDER BY day, kind, name")
        .await
}

fn on(day: i64, rows: &[&str]) -> Vec<String> {
    rows.iter().map(|row| format!("{day} {row}")).collect()
}

fn stats(service: &Service, arguments: &[&str]) -> String {
    let database = ["stats", "--since", "2026-11-14", "--database-url", service.database.url()];
    let (code, output) = Program::run(service.command(&[&database[..], arguments].concat()));
    assert_eq!(code, 0, "{output}");
    output
}

#[tokio::test]
async fn update_checks_are_counted_by_day_and_version_and_shown_wherever_counts_are() {
    for database in each_database().await {
        let service = Service::start(watched(), database.clone()).await;
        let (_, _, page) = ask(&service, "/", &[]).await;
        assert!(!page.contains("Update checks"), "{page}");
        assert!(!stats(&service, &[]).contains("updates"));
        for version in ["1.4.0", "1.5.0"] {
            service.publish(version);
        }
        service.publish_with("2.0.0-beta.1", &["--prerelease"]);
        checks(&service, "1.4.0", 3).await;
        checks(&service, "2.0.0-beta.1", 1).await;
        checks(&service, "7.7.7", 1).await;
        check(&service, "Tea Time/1.4.0 Sparkle/2.6.4", PROFILE).await;
        service.release(&["withdraw", "1.4.0", "--yes"]);
        service.clock.advance(Duration::from_hours(24));
        checks(&service, "1.5.0", 2).await;
        checks(&service, "1.4.0", 1).await;
        service.stop().await;

        let expected = [
            on(
                TODAY,
                &["macos 26 1", "processor arm64 1", "update 1.4.0 4", "update 2.0.0-beta.1 1", "update other 1"],
            ),
            on(TODAY + 1, &["update 1.4.0 1", "update 1.5.0 2"]),
        ];
        assert_eq!(counted(&database).await, expected.concat());

        let service = Service::start(watched(), database).await;
        service.clock.advance(Duration::from_hours(24));
        let json: Value = serde_json::from_str(&stats(&service, &["--json"])).expect("JSON");
        let row = |version, checks| json!({ "version": version, "checks": checks });
        assert_eq!(
            json["update_checks"],
            json!([row("1.5.0", 2), row("1.4.0", 5), row("2.0.0-beta.1", 1), row("other", 1)])
        );
        assert_eq!(json["periods"][0]["update_checks"], json!([]));
        assert_eq!(
            json["periods"][1]["update_checks"],
            json!([row("1.4.0", 4), row("2.0.0-beta.1", 1), row("other", 1)])
        );
        assert_eq!(json["periods"][2]["update_checks"], json!([row("1.5.0", 2), row("1.4.0", 1)]));
        assert_eq!(json["update_macos"], json!([{ "macos": "26", "checks": 1 }]));
        assert_eq!(json["update_processors"], json!([{ "processor": "arm64", "checks": 1 }]));
        assert_eq!(json["total"]["downloads"], 0, "an update check is no download");

        let table = stats(&service, &[]);
        for row in [
            &["updates", "checks", "1.5.0", "1.4.0", "2.0.0-beta.1", "other"][..],
            &["2026-11-15", "6", "0", "4", "1", "1"],
            &["2026-11-16", "3", "2", "1", "0", "0"],
            &["total", "9", "2", "5", "1", "1"],
            &["system", "checks"],
            &["macOS", "26", "1"],
            &["arm64", "processor", "1"],
        ] {
            assert!(table.lines().any(|line| line.split_whitespace().eq(row.iter().copied())), "{row:?}\n{table}");
        }

        let (_, _, metrics) = ask(&service, "/metrics", &[]).await;
        for (version, times) in [("1.4.0", 5), ("1.5.0", 2), ("2.0.0-beta.1", 1), ("other", 1)] {
            let sample = format!("\nporchlight_update_checks_total{{version=\"{version}\"}} {times}\n");
            assert!(metrics.contains(&sample), "{sample}\n{metrics}");
        }
        let (_, _, page) = ask(&service, "/", &[]).await;
        let (_, chart) = page.split_once("<section class=\"chart\" aria-labelledby=\"updates\">").expect("a chart");
        let chart = chart.split("</section>").next().expect("its end");
        assert_eq!(markup::texts(chart, "p")[0], "9 update checks since 10 Nov, 22 % from 1.5.0.");
        assert!(chart.contains("<title>16 Nov, so far: 3 update checks, 2 from 1.5.0</title>"), "{chart}");
        assert!(chart.contains("<i class=\"key inner\"></i>from 1.5.0"), "{chart}");
        let headings = ["When", "Update checks", "1.5.0", "1.4.0", "2.0.0-beta.1", "other"];
        assert_eq!(markup::texts(chart, "th")[..6], headings, "{chart}");
        assert_eq!(markup::texts(chart, "td")[..10], ["3", "2", "1", "0", "0", "6", "0", "4", "1", "1"]);
        let (_, systems) = page.split_once("id=\"systems\"").expect("a heading");
        assert!(systems.contains("<bdi>26</bdi>") && systems.contains("<bdi>arm64</bdi>"), "{systems}");
        service.stop().await;
    }
}

#[tokio::test]
async fn a_release_of_which_nobody_has_asked_yet_is_shown_as_none_and_without_releases_there_is_no_part() {
    on_each_database_with(watched(), async |service| {
        let chart = async || {
            let (_, _, page) = ask(service, "/", &[]).await;
            let (_, chart) = page.split_once("aria-labelledby=\"updates\">").expect("a chart");
            (markup::texts(chart, "p").swap_remove(0), chart.matches("key inner").count())
        };
        let other =
            format!("INSERT INTO counts (day, kind, via, name, times) VALUES ({TODAY}, 'update', '', 'other', 1)");
        service.database.execute(&other).await;
        assert_eq!(chart().await, ("1 update check since 9 Nov.".to_owned(), 0));
        service.publish("1.4.0");
        assert_eq!(chart().await, ("1 update check since 9 Nov, 0 % from 1.4.0.".to_owned(), 1));
    })
    .await;
}

#[tokio::test]
async fn requests_that_are_not_those_of_sparkle_are_no_update_checks() {
    for database in each_database().await {
        let service = Service::start(RawSettings::default(), database.clone()).await;
        service.publish("1.4.0");
        let sparkle = ("user-agent", "Troupe/1.4.0 Sparkle/2.6.4");
        let safari = "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko)";
        for user_agent in [safari, "NetNewsWire (RSS Reader; https://netnewswire.com/)", "Sparkle/2.6.4", "curl/8.14.1"]
        {
            check(&service, user_agent, PROFILE).await;
        }
        service.get("/appcast.xml").await;
        for method in [Method::HEAD, Method::POST, Method::OPTIONS] {
            service.send(method, "/appcast.xml", &[sparkle], "").await;
        }
        for path in ["/appcast.xml/", "/releases.atom", "/about"] {
            service.send(Method::GET, path, &[sparkle], "").await;
        }
        let etag = service.get("/appcast.xml").await.header("etag").to_owned();
        let again = service.send(Method::GET, "/appcast.xml", &[sparkle, ("if-none-match", &etag)], "").await;
        assert_eq!(again.status, 304);
        service.stop().await;
        assert_eq!(counted(&database).await, on(TODAY, &["update 1.4.0 1"]), "only the one that got a 304");
    }
}

#[tokio::test]
async fn ten_thousand_invented_versions_and_profiles_add_a_row_each() {
    for database in each_database().await {
        let service = Service::start(RawSettings::default(), database.clone()).await;
        service.publish("1.4.0");
        let mut connection = Connection::open(service.address()).await;
        for hundred in 0..100 {
            let request = |number: usize| {
                let number = hundred * 100 + number;
                format!(
                    "GET /appcast.xml?osVersion={number}.{number}&cputype={} HTTP/1.1\r\nhost: localhost\r\n\
                     if-none-match: *\r\nuser-agent: Troupe/{number}.0.0 Sparkle/2.6.4\r\n\r\n",
                    number + 100
                )
            };
            connection.send((0..100).map(request).collect::<String>()).await;
            for _ in 0..100 {
                assert!(connection.read_until("\r\n\r\n").await.starts_with("HTTP/1.1 304 "));
            }
            // A connection takes at most 10,000 requests.
            if hundred == 50 {
                connection = Connection::open(service.address()).await;
            }
        }
        service.stop().await;
        let rows = counted(&database).await;
        let systems =
            [10, 11, 12, 13, 14, 15].into_iter().chain(26..=45).map(|major| format!("{TODAY} macos {major} 1"));
        let others = on(TODAY, &["macos other 9974", "processor other 10000", "update other 10000"]);
        assert_eq!(rows, systems.chain(others).collect::<Vec<_>>());
    }
}

#[tokio::test]
async fn a_hostile_request_of_the_appcast_does_no_harm_and_leaves_nothing() {
    for database in each_database().await {
        let service = Service::start(watched(), database.clone()).await;
        service.publish("1.4.0");
        let long = "9".repeat(6000);
        let agent = "Troupe/1.4.0 Sparkle/2.6.4";
        for (query, user_agent, status) in [
            (format!("osVersion={long}&cputype={long}"), agent.as_bytes().to_vec(), "200"),
            ("osVersion=%00&cputype=%00".to_owned(), agent.into(), "200"),
            ("osVersion=%ff%fe&cputype='; DROP TABLE counts; --".replace(' ', "%20"), agent.into(), "200"),
            ("osVersion=15\0&cputype=7".to_owned(), agent.into(), "400"),
            ("&".repeat(6000), agent.into(), "200"),
            (String::new(), format!("Troupe/{long} Sparkle/2.6.4").into(), "200"),
            (String::new(), b"Caf\xe9/1.4.0\xff\xfe Sparkle/2.6.4".into(), "200"),
            (String::new(), b"Troupe/1.4.0\0 Sparkle/2.6.4".into(), "400"),
            (String::new(), " Sparkle/".repeat(600).into(), "200"),
            (String::new(), "/ Sparkle/".repeat(600).into(), "200"),
        ] {
            let head =
                format!("GET /appcast.xml?{query} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\nuser-agent: ");
            let request = [head.as_bytes(), &user_agent, b"\r\n\r\n"].concat();
            let answer = raw(service.address(), request).await;
            assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{query:.40}: {answer:.200}");
        }
        service.stop().await;
        let expected = ["macos other 3", "processor other 3", "update 1.4.0 4", "update other 4"];
        assert_eq!(counted(&database).await, on(TODAY, &expected));
    }
}

#[tokio::test]
async fn the_update_checks_of_two_instances_add_up() {
    let database = Database::postgres().await;
    let start = || Service::start(RawSettings::default(), database.clone());
    let (first, second) = tokio::join!(start(), start());
    first.publish("1.4.0");
    second.read_releases();
    for (service, times) in [(&first, 3), (&second, 4)] {
        checks(service, "1.4.0", times).await;
        check(service, "Troupe/9.9.9 Sparkle/2.6.4", PROFILE).await;
    }
    first.stop().await;
    second.stop().await;
    let expected = ["macos 26 2", "processor arm64 2", "update 1.4.0 7", "update other 2"];
    assert_eq!(counted(&database).await, on(TODAY, &expected));
}
