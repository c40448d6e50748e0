//! What is said while nothing is published, by a preview and by a public site.

use porchlight::domain::sha256::Sha256;
use serde_json::{Value, json};

use super::live;
use crate::harness::{Service, on_one_database, on_one_database_with};

/// What the pages and files say about the download.
async fn about_the_download(service: &Service) -> Vec<(&'static str, String)> {
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "get_download" } });
    let mut texts = vec![("get_download", service.post("/mcp", &call).await.text())];
    for path in [
        "/",
        "/index.md",
        "/releases",
        "/releases.md",
        "/releases.json",
        "/download/started",
        "/llms.txt",
        "/agents.md",
    ] {
        texts.push((path, service.get(path).await.text()));
    }
    texts
}

#[tokio::test]
async fn a_preview_calls_its_sample_a_sample_everywhere_and_gives_its_sha256() {
    on_one_database(async |service| {
        let sha256 = Sha256::of(include_bytes!("../../../content/sample.dmg")).hex();
        for (path, text) in about_the_download(service).await {
            assert!(text.contains("the download is a sample disk image without the app"), "{path}: {text}");
            assert!(text.contains(&sha256), "{path}");
        }
        let list = service.get("/releases.json").await.json();
        assert_eq!((&list["latest"], &list["releases"]), (&Value::Null, &json!([])));
        let url = list["sample"]["url"].as_str().expect("a URL");
        let sample = service.get(url.trim_start_matches(service.base_url())).await;
        assert_eq!(list["sample"]["length"], sample.body.len());
        for path in ["/appcast.xml", "/releases.atom"] {
            assert!(!service.get(path).await.text().contains("sample"), "{path}");
        }
    })
    .await;
}

#[tokio::test]
async fn without_a_release_the_public_site_offers_no_download() {
    on_one_database_with(live(), async |service| {
        for (path, text) in about_the_download(service).await {
            assert!(!text.contains("sample disk image"), "{path}");
            let text = text.to_lowercase();
            assert!(path == "/releases.json" || text.contains("there is no download"), "{path}: {text}");
        }
        let home = service.get("/").await.text();
        assert!(!home.contains("<form") && !home.contains("Download for Mac"), "a form that leads nowhere");
        assert!(!service.get("/about").await.text().contains("href=\"/#download\">Download</a>"));
    })
    .await;
}
