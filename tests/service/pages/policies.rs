//! What pages and briefings promise follows the settings.

use porchlight::config::RawSettings;

use super::live;
use crate::harness::markup::main_text;
use crate::harness::{Service, on_one_database_with};

/// With a mail server that is never reached.
fn with_mail(keep_messages: Option<&str>) -> RawSettings {
    RawSettings {
        smtp_url: Some("smtp://127.0.0.1:1".to_owned()),
        mail_from: Some("hello@troupe.example".to_owned()),
        contact_to: Some("makers@troupe.example".to_owned()),
        keep_messages: keep_messages.map(str::to_owned),
        ..live()
    }
}

/// The text of a page as HTML and as Markdown, and that of a file for agents, with single spaces.
async fn texts(service: &Service, paths: &[&str]) -> Vec<(String, String)> {
    let mut texts = Vec::new();
    for path in paths {
        let text = service.get(path).await.text();
        let is_html = !path.contains('.');
        let text = if is_html { main_text(&text) } else { text };
        texts.push(((*path).to_owned(), text.split_whitespace().collect::<Vec<_>>().join(" ")));
    }
    texts
}

/// Asserts that each text has the first words and not the others.
async fn assert_says(service: &Service, paths: &[&str], words: &str, not: &str) {
    for (path, text) in texts(service, paths).await {
        assert!(text.contains(words), "{path} without {words:?}: {text}");
        assert!(!text.contains(not), "{path} with {not:?}: {text}");
    }
}

const PRIVACY: &[&str] = &["/privacy", "/privacy.md"];
const CONTACT: &[&str] = &["/contact", "/contact.md", "/contact/sent"];
const BRIEFINGS: &[&str] = &["/llms.txt", "/agents.md"];

#[tokio::test]
async fn how_long_messages_are_kept_is_said_everywhere() {
    on_one_database_with(with_mail(Some("18 months")), async |service| {
        let kept = "Contact messages are deleted here 18 months after they were forwarded";
        assert_says(service, PRIVACY, kept, "No shorter period is set, ").await;
        assert_says(service, CONTACT, "is deleted here 18 months after it was forwarded", "We keep").await;
        assert_says(service, BRIEFINGS, "a message is deleted here 18 months after the makers got it", "forever").await;
        assert!(service.get("/llms.txt").await.body.len() < 4608, "the short briefing stays short");
    })
    .await;
    on_one_database_with(with_mail(None), async |service| {
        assert_says(service, PRIVACY, "Until you ask us to erase it. No shorter period is set, ", "deleted here").await;
        assert_says(service, CONTACT, "until you ask us to erase it.", "deleted here").await;
        assert_says(service, BRIEFINGS, "ept until the person asks for erasure. ", "deleted here").await;
    })
    .await;
}

#[tokio::test]
async fn a_site_without_a_mail_server_does_not_say_that_messages_are_forwarded() {
    let settings = RawSettings { keep_messages: Some("18 months".to_owned()), ..live() };
    on_one_database_with(settings, async |service| {
        assert_says(service, PRIVACY, "Until you ask us to erase it.", "forwarded").await;
        assert_says(service, CONTACT, "until you ask us to erase it.", "forwarded").await;
        assert_says(service, CONTACT, "stored", "way to our mailbox").await;
        assert_says(service, BRIEFINGS, "ept until the person asks for erasure", "18 months").await;
    })
    .await;
    on_one_database_with(with_mail(None), async |service| {
        assert_says(
            service,
            PRIVACY,
            "They are forwarded to our mailbox, so there is a copy there too.",
            "deleted here",
        )
        .await;
    })
    .await;
}

#[tokio::test]
async fn the_privacy_page_names_the_host_of_an_image_that_is_elsewhere() {
    let settings =
        RawSettings { download_url: Some("https://files.example:8443/latest/Troupe.dmg".to_owned()), ..live() };
    on_one_database_with(settings, async |service| {
        assert_says(service, PRIVACY, "the disk image: it comes from files.example, and", "hosts IP addresses").await;
    })
    .await;
    let own = RawSettings { download_url: Some("https://troupe.example/Troupe.dmg".to_owned()), ..live() };
    on_one_database_with(own, async |service| {
        assert_says(service, PRIVACY, "No requests to other hosts. No tracking", "it comes from").await;
    })
    .await;
    on_one_database_with(live(), async |service| {
        assert_says(service, PRIVACY, "No requests to other hosts. No tracking", "it comes from").await;
        let sha256 = "0".repeat(64);
        let elsewhere = ["publish", "--url", "https://files.example/a.dmg", "--length", "7", "--sha256", &sha256];
        let (code, output) = service.release(&[&elsewhere[..], &["--version", "1.0.0"]].concat());
        assert_eq!(code, 0, "{output}");
        service.wait_for_text("/privacy", "it comes from files.example").await;
    })
    .await;
}
