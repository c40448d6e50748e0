//! `porchlight people purge`

use std::time::Duration;

use serde_json::json;

use super::{join, run, shown, write};
use crate::harness::{Service, on_each_database};

async fn download(service: &Service, email: &str, source: Option<&str>) -> bool {
    let mut order = json!({ "email": email, "updates": true });
    if let Some(source) = source {
        order["source"] = source.into();
    }
    service.post("/api/download", &order).await.expect_ok()["already"].as_bool().expect("true or false")
}

/// How often each kind of event was counted.
async fn counted(service: &Service) -> Vec<String> {
    let counts = "SELECT kind || ' ' || SUM(times) FROM counts GROUP BY kind ORDER BY kind";
    service.database.texts(counts).await
}

/// Every reference between rows resolves.
async fn expect_consistent(service: &Service) {
    for dangling in [
        "signups WHERE address NOT IN (SELECT address FROM people)",
        "consents WHERE address NOT IN (SELECT address FROM people)",
        "people WHERE first_download IS NOT NULL AND first_download NOT IN (SELECT id FROM signups)",
        "people WHERE first_join IS NOT NULL AND first_join NOT IN (SELECT id FROM signups)",
        "people WHERE opt_in IS NOT NULL AND opt_in NOT IN (SELECT id FROM consents)",
        "withdrawals WHERE consent NOT IN (SELECT id FROM consents)",
    ] {
        assert_eq!(service.database.count(dangling).await, 0, "{dangling}");
    }
}

#[tokio::test]
async fn a_purge_removes_matching_signups_and_people_of_whom_nothing_else_is_stored() {
    on_each_database(async |service| {
        download(service, "ada@example.com", Some("hn")).await;
        service.clock.advance(Duration::from_hours(1));
        for number in 0..30 {
            download(service, &format!("bot{number}@example.com"), Some("casino")).await;
        }
        // Ada is a real person, Bob wrote a message, Cyd joined, and Dan downloaded again later.
        download(service, "ada@example.com", Some("casino")).await;
        download(service, "bob@example.com", Some("casino")).await;
        write(service, "bob@example.com", "Hello").await;
        download(service, "cyd@example.com", Some("casino")).await;
        join(service, "cyd@example.com").await;
        download(service, "dan@example.com", Some("casino")).await;
        service.clock.advance(Duration::from_hours(1));
        download(service, "dan@example.com", None).await;
        let counts = counted(service).await;

        let purge = ["people", "purge", "--source", "casino"];
        let (code, output) = run(service, &purge);
        assert!(code == 2 && output.contains("--yes"), "{output}");
        for expected in ["34 downloads and 0 joins of 34 people match.", "30 of them have nothing else"] {
            assert!(output.contains(expected), "{output}");
        }
        assert_eq!(service.database.count("people").await, 34, "nothing was removed");

        let (code, output) = run(service, &["people", "purge", "--source", "casino", "--yes"]);
        assert_eq!(code, 0, "{output}");
        assert!(output.contains("34 signups") && output.contains("30 people were removed entirely"), "{output}");
        expect_consistent(service).await;
        assert_eq!(
            service.database.texts("SELECT address FROM people ORDER BY address").await,
            ["ada@example.com", "bob@example.com", "cyd@example.com", "dan@example.com"]
        );
        assert_eq!(counted(service).await, counts);
        let ada = shown(service, "ada@example.com");
        assert_eq!((&ada["updates"], &ada["downloads"]), (&json!(true), &json!(1)), "her opt-in came with the first");
        let dan = shown(service, "dan@example.com");
        assert_eq!((&dan["updates"], &dan["downloads"]), (&json!(false), &json!(1)), "the purged opt-in is gone");
        assert!(!download(service, "bot1@example.com", None).await, "a removed person is new");
        assert!(!download(service, "bob@example.com", None).await, "no download of his is left");
        assert!(download(service, "dan@example.com", None).await);

        let (code, output) = run(service, &purge);
        assert!(code == 1 && output.contains("No signup matches"), "{output}");
    })
    .await;
}

#[tokio::test]
async fn a_purge_by_time_takes_only_that_time_and_many_signups() {
    on_each_database(async |service| {
        let flood = "INSERT INTO signups (id, address, kind, at, via) \
                 WITH RECURSIVE number(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < 700) \
                 SELECT 'event ' || n, 'p' || (n / 2) || '@example.com', 'join', 1794700800000 + n, 'api' FROM number; \
             INSERT INTO people (address, email, first_seen_at, first_join) \
                 SELECT address, address, MIN(at), MIN(id) FROM signups GROUP BY address";
        service.database.execute(flood).await;
        run(service, &["people", "suppress", "p7@example.com"]);
        for (since, until, left) in [
            ("2026-11-15T00:00:00.701Z", "2026-11-16", 700),
            ("2026-11-14", "2026-11-14", 700),
            ("2026-11-15T00:00:00.101Z", "2026-11-15T00:00:00.701Z", 100),
            ("2026-11-15", "2026-11-15", 0),
        ] {
            run(service, &["people", "purge", "--since", since, "--until", until, "--yes"]);
            assert_eq!(service.database.count("signups").await, left, "{since} {until}");
            expect_consistent(service).await;
        }
        assert_eq!((service.database.count("people").await, service.database.count("suppressions").await), (0, 1));
        let (code, output) = run(service, &["people", "purge", "--yes"]);
        assert!(code == 2 && output.contains("--source"), "{output}");
    })
    .await;
}
