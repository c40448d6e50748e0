//! What Sparkle 2 takes from the appcast, by a reader that chooses as Sparkle does: of the items of the default channel and of the
//! channels that the app allows, which its macOS can run and whose turn in a rollout has come, the one with the highest build.

use std::cmp::Ordering;

use roxmltree::{Document, Node};

use super::feeds::{SPARKLE, signature};
use super::live;
use crate::harness::on_each_database_with;

/// An app that looks for an update.
struct App {
    build: &'static str,
    channels: &'static [&'static str],
    macos: &'static str,
    /// The group that waits for its turn in a rollout, from 0 to 6. Nobody waits who asks for updates.
    group: Option<i64>,
    /// Days since the newest item was published.
    day: i64,
}

const APP: App = App { build: "0", channels: &[], macos: "15.2", group: None, day: 0 };

/// Numbers are compared one by one, and what follows a hyphen does not count.
fn compare(a: &str, b: &str) -> Ordering {
    let numbers = |text: &str| -> Vec<u64> {
        let mut numbers: Vec<_> =
            text.split('-').next().unwrap().split('.').map(|part| part.parse().unwrap()).collect();
        numbers.resize(8, 0);
        numbers
    };
    numbers(a).cmp(&numbers(b))
}

fn element<'a>(item: Node<'a, 'a>, name: &str) -> Option<Node<'a, 'a>> {
    item.children().find(|node| node.has_tag_name((SPARKLE, name)))
}

fn text<'a>(item: Node<'a, 'a>, name: &str) -> Option<&'a str> {
    element(item, name).map(|node| node.text().unwrap_or_default().trim())
}

fn published(item: Node<'_, '_>) -> i64 {
    let date = item.children().find(|node| node.has_tag_name("pubDate")).unwrap().text().unwrap();
    jiff::fmt::rfc2822::parse(date).unwrap().timestamp().as_second()
}

impl App {
    fn is_critical(&self, item: Node<'_, '_>) -> bool {
        element(item, "criticalUpdate").is_some_and(|critical| {
            let below = critical.attribute((SPARKLE, "version"));
            below.is_none_or(|below| compare(self.build, below) == Ordering::Less)
        })
    }

    fn may_take(&self, item: Node<'_, '_>, now: i64) -> bool {
        let is_allowed = text(item, "channel").is_none_or(|channel| self.channels.contains(&channel));
        let runs = text(item, "minimumSystemVersion").is_none_or(|minimum| compare(minimum, self.macos).is_le());
        let waits = text(item, "phasedRolloutInterval").zip(self.group).is_some_and(|(interval, group)| {
            !self.is_critical(item) && now - published(item) < interval.parse::<i64>().unwrap() * group
        });
        is_allowed && runs && !waits
    }

    /// The update that the app finds, with an exclamation mark if it is critical.
    fn update(&self, appcast: &str) -> String {
        let document = Document::parse(appcast).unwrap();
        let items: Vec<_> = document.descendants().filter(|node| node.has_tag_name("item")).collect();
        let now = items.iter().map(|item| published(*item)).max().unwrap_or_default() + self.day * 86_400;
        let mut best: Option<Node> = None;
        for item in items.into_iter().filter(|item| self.may_take(*item, now)) {
            let is_higher = |best| compare(text(item, "version").unwrap(), text(best, "version").unwrap()).is_gt();
            if best.is_none_or(is_higher) {
                best = Some(item);
            }
        }
        match best.filter(|best| compare(text(*best, "version").unwrap(), self.build).is_gt()) {
            None => "none".to_owned(),
            Some(item) => {
                let enclosure = item.children().find(|node| node.has_tag_name("enclosure")).unwrap();
                assert!(enclosure.attribute((SPARKLE, "edSignature")).is_some_and(|signature| !signature.is_empty()));
                let critical = if self.is_critical(item) { "!" } else { "" };
                format!("{}{critical}", text(item, "shortVersionString").unwrap())
            }
        }
    }
}

#[tokio::test]
async fn every_app_finds_the_update_that_is_meant_for_it() {
    on_each_database_with(live(), async |service| {
        let signature = signature();
        let publish = |version: &str, build: &str, more: &[&str]| {
            let common = ["--build", build, "--ed-signature", &signature];
            service.publish_with(version, &[common.as_slice(), more].concat());
        };
        publish("1.4", "40", &["--minimum-macos", "13.0"]);
        publish("1.5.0", "50", &["--minimum-macos", "13.0", "--critical"]);
        publish("1.6.0", "60", &["--minimum-macos", "15.0", "--phased", "7"]);
        publish("2.0.0-beta.1", "70", &["--minimum-macos", "13", "--prerelease"]);
        publish("1.6.1", "61", &[]);
        service.release(&["withdraw", "1.6.1", "--yes"]);
        publish("2.1.0-1", "80", &["--minimum-macos", "13", "--channel", "nightly"]);
        service.wait_for_text("/releases.json", "2.1.0-1").await;
        let appcast = service.get("/appcast.xml").await.text();
        let (beta, both) = (&["beta"][..], &["beta", "nightly"][..]);
        for (app, found) in [
            // The newest for everybody, and at once for those who ask.
            (App { build: "50", ..APP }, "1.6.0"),
            (App { build: "60", ..APP }, "none"),
            // Whoever skipped the critical one is urged.
            (App { build: "40", ..APP }, "1.6.0!"),
            (App { build: "49", group: Some(6), ..APP }, "1.6.0!"),
            // A rollout: a group a day.
            (App { build: "50", group: Some(0), ..APP }, "1.6.0"),
            (App { build: "50", group: Some(1), ..APP }, "none"),
            (App { build: "50", group: Some(1), day: 1, ..APP }, "1.6.0"),
            (App { build: "50", group: Some(6), day: 5, ..APP }, "none"),
            (App { build: "50", group: Some(6), day: 6, ..APP }, "1.6.0"),
            // An older macOS.
            (App { build: "40", macos: "14.6.1", ..APP }, "1.5.0!"),
            (App { build: "50", macos: "14.6.1", ..APP }, "none"),
            (App { build: "39", macos: "12.7", ..APP }, "none"),
            // Channels.
            (App { build: "60", channels: beta, ..APP }, "2.0.0-beta.1"),
            (App { build: "60", channels: beta, group: Some(6), ..APP }, "2.0.0-beta.1"),
            (App { build: "40", channels: beta, macos: "14.0", ..APP }, "2.0.0-beta.1!"),
            (App { build: "70", channels: beta, ..APP }, "none"),
            (App { build: "60", channels: both, ..APP }, "2.1.0-1"),
            (App { build: "60", channels: &["alpha"], ..APP }, "none"),
            // The one that was withdrawn.
            (App { build: "61", ..APP }, "none"),
        ] {
            let App { build, macos, channels, group, day } = app;
            let situation = format!("build {build} of {channels:?} on {macos}, group {group:?} on day {day}");
            assert_eq!(app.update(&appcast), found, "{situation}");
        }

        // A change for the better, and the release that those get who have the one that was withdrawn.
        service.release(&["edit", "1.6.0", "--phased", "0", "--minimum-macos", "14.0"]);
        service.release(&["edit", "1.5.0", "--critical=no"]);
        publish("1.6.2", "62", &["--minimum-macos", "15.0"]);
        service.wait_for_text("/releases.json", "1.6.2").await;
        let appcast = service.get("/appcast.xml").await.text();
        for (app, found) in [
            (App { build: "40", group: Some(6), macos: "14.0", ..APP }, "1.6.0"),
            (App { build: "61", ..APP }, "1.6.2"),
            (App { build: "60", channels: beta, ..APP }, "2.0.0-beta.1"),
        ] {
            assert_eq!(app.update(&appcast), found, "build {}", app.build);
        }
        service.release(&["edit", "2.0.0-beta.1", "--channel", "nightly"]);
        publish("2.0.0", "81", &[]);
        service.wait_for_text("/releases.json", "Troupe-2.0.0.dmg").await;
        let appcast = service.get("/appcast.xml").await.text();
        for channels in [&[][..], beta, both] {
            assert_eq!(App { build: "80", channels, ..APP }.update(&appcast), "2.0.0");
        }
    })
    .await;
}
