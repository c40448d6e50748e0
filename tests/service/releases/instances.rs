//! Several instances on one database.

use porchlight::config::RawSettings;
use serde_json::Value;

use super::{LATEST, leads_to, live};
use crate::harness::{Database, Service, each_database, wait_until};

async fn instance(database: &Database, releases_dir: Option<String>) -> Service {
    let written = RawSettings { releases_dir, ops_listen: Some("127.0.0.1:0".to_owned()), ..live() };
    Service::start(written, database.clone()).await
}

async fn readiness(service: &Service) -> (u16, Value) {
    let answer = reqwest::get(format!("http://{}/readyz", service.ops_address())).await.unwrap();
    (answer.status().as_u16(), answer.json().await.unwrap())
}

#[tokio::test]
async fn every_instance_that_shares_the_folder_serves_the_newest_within_a_second() {
    for database in each_database().await {
        let one = instance(&database, None).await;
        let other = instance(&database, Some(one.releases_dir().display().to_string())).await;
        for version in ["1.4.0", "1.5.0"] {
            let image = one.publish(version);
            for service in [&one, &other] {
                let address = format!("/releases/Troupe-{version}.dmg");
                wait_until("the newest release", async || service.head(LATEST).await.header("location") == address)
                    .await;
                assert!(service.get(&address).await.body == image);
                assert_eq!(readiness(service).await.0, 200);
                service.wait_for_text("/index.md", version).await;
            }
        }
        other.release(&["withdraw", "1.5.0", "--yes"]);
        wait_until("the withdrawal", async || one.get("/releases/Troupe-1.5.0.dmg").await.status == 410).await;
        assert_eq!(other.get("/releases/Troupe-1.5.0.dmg").await.status, 410);
        one.stop().await;
        other.stop().await;
    }
}

#[tokio::test]
async fn an_instance_that_cannot_see_the_image_logs_it_and_answers_503() {
    for database in each_database().await {
        let one = instance(&database, None).await;
        let blind = instance(&database, None).await;
        assert_eq!(readiness(&blind).await, readiness(&one).await, "nothing is published yet");
        one.publish("1.4.0");
        assert_eq!(readiness(&one).await.0, 200);

        let (status, report) = readiness(&blind).await;
        assert_eq!((status, &report["ready"], &report["parts"]["database"]), (503, &false.into(), &"ok".into()));
        let why = report["parts"]["newest_image"].as_str().unwrap();
        let may_be_several = database.is_postgres();
        assert!(why.contains("there is no such file") && why.contains("releases_dir") == may_be_several, "{report:#}");
        let answer = blind.get("/releases/Troupe-1.4.0.dmg").await;
        assert_eq!(answer.status, 503);
        assert!(!answer.header("retry-after").is_empty());

        std::fs::create_dir_all(blind.releases_dir()).unwrap();
        std::fs::write(blind.releases_dir().join("Troupe-1.4.0.dmg"), "not all of it").unwrap();
        assert_eq!(blind.get("/releases/Troupe-1.4.0.dmg").await.status, 503);
        assert_eq!(readiness(&blind).await.0, 503);
        one.stop().await;
        blind.stop().await;
    }
}

#[tokio::test]
async fn while_the_database_is_away_the_newest_is_the_one_last_known() {
    let database = Database::postgres().await;
    let service = instance(&database, None).await;
    let image = service.publish("1.4.0");
    assert_eq!(leads_to(&service).await, "/releases/Troupe-1.4.0.dmg");
    database.refuse_connections().await;
    let address = leads_to(&service).await;
    assert!(service.get(&address).await.body == image);
    let (status, report) = readiness(&service).await;
    assert_eq!(status, 503);
    assert_ne!(report["parts"]["database"], "ok");
    database.accept_connections().await;
    service.stop().await;
}
