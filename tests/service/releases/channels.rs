//! Channels: which release the public gets, and which those get who ask for another channel.

use super::{LATEST, leads_to, listed, live};
use crate::harness::{Service, on_each_database_with};

async fn leads_to_of(service: &Service, channel: &str) -> String {
    let path = format!("/releases/latest/{channel}/Troupe.dmg");
    let (answer, head) = (service.get(&path).await, service.head(&path).await);
    assert_eq!((answer.status, answer.header("location")), (head.status, head.header("location")));
    if answer.status == 404 { "none".to_owned() } else { answer.header("location").to_owned() }
}

#[tokio::test]
async fn every_channel_has_a_link_to_its_newest_release() {
    on_each_database_with(live(), async |service| {
        let none = service.get("/releases/latest/beta/Troupe.dmg").await;
        assert_eq!((none.status.as_u16(), none.media_type()), (404, "text/html"));
        assert!(none.text().contains("href=\"/releases\""), "{}", none.text());

        service.publish("1.4.0");
        service.publish_with("2.0.0-beta.1", &["--prerelease"]);
        service.publish_with("2.0.0-beta.2", &["--channel", "beta"]);
        service.publish_with("2.1.0-1", &["--channel", "nightly"]);
        service.publish_with("1.5.0", &["--channel", "stable"]);
        for (channel, file) in [
            ("stable", "/releases/Troupe-1.5.0.dmg"),
            ("beta", "/releases/Troupe-2.0.0-beta.2.dmg"),
            ("nightly", "/releases/Troupe-2.1.0-1.dmg"),
            ("alpha", "none"),
            ("Beta", "none"),
            ("Stable", "none"),
            ("b%65ta", "none"),
        ] {
            assert_eq!(leads_to_of(service, channel).await, file, "{channel}");
        }
        assert_eq!(service.get("/releases/latest/beta/Other.dmg").await.status, 404);
        assert_eq!(leads_to(service).await, "/releases/Troupe-1.5.0.dmg");
        let channels: Vec<_> = listed(service).as_array().unwrap().iter().map(|of| of["channel"].clone()).collect();
        assert_eq!(channels, ["nightly", "beta", "beta", "stable", "stable"]);

        service.release(&["withdraw", "2.0.0-beta.2", "--yes"]);
        assert_eq!(leads_to_of(service, "beta").await, "/releases/Troupe-2.0.0-beta.1.dmg");

        for (arguments, code, words) in [
            (&["--version", "3.0.0", "--channel", "a/b"][..], 2, "not a channel"),
            (&["--version", "3.0.0", "--channel", "beta", "--prerelease"], 2, "cannot be used with"),
            (&["--version", "3.0.0-beta.1", "--channel", "stable"], 1, "cannot be in the stable channel"),
        ] {
            let image = service.file("image.dmg", crate::harness::disk_image(9_000, 7));
            let (found, output) = service.release(&[&["publish", image.to_str().unwrap()], arguments].concat());
            assert!(found == code && output.contains(words), "{arguments:?}: {output}");
        }
    })
    .await;
}

#[tokio::test]
async fn a_release_that_was_tried_in_a_channel_becomes_the_newest_for_everybody() {
    on_each_database_with(live(), async |service| {
        service.publish("1.4.0");
        let (code, output) = (0, service.publish_with("2.0.0", &["--channel", "beta"]));
        assert_eq!((code, leads_to(service).await.as_str()), (0, "/releases/Troupe-1.4.0.dmg"));
        let (code, told) = service.release(&["edit", "2.0.0", "--channel", "stable"]);
        assert!(code == 0 && told.contains("the newest release is 2.0.0"), "{told}");
        assert_eq!(leads_to(service).await, "/releases/Troupe-2.0.0.dmg");
        assert!(service.get("/releases/Troupe-2.0.0.dmg").await.body == output, "the same bytes");
        assert_eq!(leads_to_of(service, "beta").await, "none");
    })
    .await;
}

#[tokio::test]
async fn the_page_shows_what_is_stable_first() {
    on_each_database_with(live(), async |service| {
        service.publish_with("1.4.0", &["--minimum-macos", "13.0"]);
        service.publish_with("2.0.0-beta.1", &["--prerelease"]);
        service.publish("1.5");
        let markdown = service.wait_for_text("/releases.md", "Troupe 1.5").await;
        let titles: Vec<_> = markdown.lines().filter(|line| line.starts_with("## Troupe")).collect();
        assert_eq!(
            titles,
            ["## Troupe 1.5 {#v1-5-0}", "## Troupe 1.4.0 {#v1-4-0}", "## Troupe 2.0.0-beta.1 (beta) {#v2-0-0-beta-1}"]
        );
        let html = service.get("/releases").await.text();
        for release in listed(service).as_array().unwrap() {
            for fact in [&release["sha256"], &release["file"]] {
                assert!(html.contains(fact.as_str().unwrap()) && markdown.contains(fact.as_str().unwrap()));
            }
        }
        assert!(html.contains("macOS 13.0 or later") && html.contains("20 KB"), "{html}");
        assert_eq!(service.head(LATEST).await.status, 302);
    })
    .await;
}
