//! What makers do to a release after it was published: edit it, withdraw it, put it back.

use porchlight::actions::edit_release;
use porchlight::domain::releases::{BuildNumber, ReleaseEdit, Version};
use serde_json::{Value, json};

use super::feeds::signature;
use super::{LATEST, leads_to, listed, live};
use crate::harness::{Service, disk_image, on_each_database_with};

const IMAGE: &str = "/releases/Troupe-1.5.0.dmg";

fn member(service: &Service, version: &str, name: &str) -> Value {
    let all = listed(service);
    let release = all.as_array().unwrap().iter().find(|release| release["version"] == version).unwrap();
    release[name].clone()
}

/// Runs the command, which fails with 1 and these words in one line, and changes nothing.
fn refuse(service: &Service, arguments: &[&str], words: &str) {
    let before = listed(service);
    let (code, output) = service.release(arguments);
    assert!(code == 1 && output.contains(words) && output.trim().lines().count() == 1, "{arguments:?}: {output}");
    assert_eq!(before, listed(service), "{arguments:?}");
}

#[tokio::test]
async fn everything_but_the_image_of_a_release_can_be_edited() {
    on_each_database_with(live(), async |service| {
        let image = service.publish("1.5.0");
        let notes = service.file("notes.md", "Quicker *windows*.");
        let signature = signature();
        for change in [
            &["--notes", notes.to_str().unwrap()][..],
            &["--build", "77", "--ed-signature", &signature],
            &["--minimum-macos", "15.1", "--date", "2026-01-02"],
            &["--critical", "--phased", "14"],
        ] {
            let (code, output) = service.release(&[&["edit", "1.5.0"], change].concat());
            assert!(
                code == 0 && output.contains("1.5.0 is changed; the newest release is 1.5.0."),
                "{change:?}: {output}"
            );
        }
        for (name, value) in [
            ("notes", json!("Quicker *windows*.")),
            ("build", json!("77")),
            ("ed_signature", json!(signature)),
            ("minimum_macos", json!("15.1")),
            ("published", json!("2026-01-02T00:00:00Z")),
            ("critical", json!(true)),
            ("phased_days", json!(14)),
            ("channel", json!("stable")),
        ] {
            assert_eq!(member(service, "1.5.0", name), value, "{name}");
        }
        let appcast = service.wait_for_text("/appcast.xml", "<sparkle:criticalUpdate").await;
        assert!(appcast.contains("<sparkle:version>77</sparkle:version>"), "{appcast}");
        let page = service.get("/releases").await.text();
        for fact in ["<em>windows</em>", "2 January 2026", "macOS 15.1 or later"] {
            assert!(page.contains(fact), "{fact}: {page}");
        }
        assert!(service.get(IMAGE).await.body == image);

        service.release(&["edit", "1.5", "--critical=no", "--phased", "0"]);
        assert_eq!(
            (member(service, "1.5.0", "critical"), member(service, "1.5.0", "phased_days")),
            (json!(false), json!(0))
        );
        assert_eq!(member(service, "1.5.0", "notes"), "Quicker *windows*.", "what is not named stays");

        refuse(service, &["edit", "1.6.0", "--build", "1"], "There is no release 1.6.0. `porchlight release list`");
        refuse(service, &["edit", "1.5.0", "--date", "2999-01-01"], "the date is in the future");
        for arguments in
            [&["edit", "1.5.0"][..], &["edit", "1.5.0", "--date", "soon"], &["edit", "1.5.0", "--phased", "-1"]]
        {
            assert_eq!(service.release(arguments).0, 2, "{arguments:?}");
        }
    })
    .await;
}

#[tokio::test]
async fn no_release_and_no_change_leaves_people_without_updates() {
    on_each_database_with(live(), async |service| {
        let signature = signature();
        let signed = |build| ["--build", build, "--ed-signature", &signature].map(str::to_owned);
        let with = |build, more: &[&str]| {
            [signed(build).as_slice(), &more.iter().map(|one| (*one).to_owned()).collect::<Vec<_>>()].concat()
        };
        let publish = |version: &str, arguments: &[String]| {
            let image = service.file("image.dmg", disk_image(9_000, 7)).display().to_string();
            let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
            service.release(&[&["publish", &image, "--version", version], arguments.as_slice()].concat())
        };
        assert_eq!(publish("1.4.0", &with("40", &[])).0, 0);
        let before = listed(service);
        for (version, arguments, words) in [
            ("1.5.0", vec![], "1.5.0 has no build number, but 1.4.0 has one; give that of the app, or add --force"),
            ("1.5.0", vec!["--build".to_owned(), "50".to_owned()], "1.5.0 has no EdDSA signature, but 1.4.0 has one"),
            (
                "1.5.0",
                with("40", &[]),
                "Sparkle takes build 40 of 1.5.0 for the same as build 40 of 1.4.0; choose a higher one",
            ),
            ("1.5.0", with("39", &[]), "older than build 40"),
            ("2.0.0-beta.1", with("39", &["--prerelease"]), "older than build 40"),
        ] {
            let (code, output) = publish(version, &arguments);
            assert!(code == 1 && output.contains(words), "{arguments:?}: {output}");
        }
        assert_eq!(before, listed(service));
        assert_eq!(leads_to(service).await, "/releases/Troupe-1.4.0.dmg");

        assert_eq!(publish("1.5.0", &with("50", &[])).0, 0);
        refuse(
            service,
            &["edit", "1.5.0", "--build", "39"],
            "older than build 40 of 1.4.0; choose a higher one, or add --force",
        );
        refuse(
            service,
            &["edit", "1.4.0", "--build", "51"],
            "newer than build 50 of 1.5.0; choose a lower one, or add --force",
        );
        assert_eq!(service.release(&["edit", "1.4.0", "--build", "49"]).0, 0);
        assert_eq!(service.release(&["edit", "1.4.0", "--build", "51", "--force"]).0, 0);
        service.release(&["edit", "1.4.0", "--build", "40"]);

        // Some have the withdrawn one, and get only a higher build.
        service.release(&["withdraw", "1.5.0", "--yes"]);
        let (code, output) = publish("1.4.1", &with("45", &[]));
        assert!(code == 1 && output.contains("build 50 of 1.5.0; choose a higher one"), "{output}");
        assert_eq!(publish("1.4.1", &with("45", &["--force"])).0, 0, "makers can insist");
        let (code, output) = publish("1.5.2", &["--build".to_owned(), "60".to_owned(), "--force".to_owned()]);
        assert!(code == 0 && output.contains("release edit 1.5.2 --ed-signature"), "what was forgotten: {output}");
    })
    .await;
}

#[tokio::test]
async fn of_two_changes_at_once_that_do_not_go_together_one_is_refused() {
    on_each_database_with(live(), async |service| {
        let image = service.file("image.dmg", disk_image(9_000, 7)).display().to_string();
        for version in ["1.4.0", "1.5.0"] {
            let build = if version == "1.4.0" { "10" } else { "90" };
            assert_eq!(service.release(&["publish", &image, "--version", version, "--build", build]).0, 0);
        }
        let store = service.database.store();
        let build = |number: &str| ReleaseEdit {
            build: Some(BuildNumber::parse(number).expect("a build number")),
            ..ReleaseEdit::default()
        };
        for round in 0..20 {
            let now = service.clock.now();
            let versions = ["1.4.0", "1.5.0"].map(|version| Version::parse(version).expect("a version"));
            // Each would do alone.
            let (high, low) = (build("80"), build("20"));
            let (first, second) = tokio::join!(
                edit_release(&store, &versions[0], &high, false, now),
                edit_release(&store, &versions[1], &low, false, now),
            );
            assert!(first.is_err() || second.is_err(), "round {round}");
            edit_release(&store, &versions[0], &build("10"), true, now).await.expect("a change");
            edit_release(&store, &versions[1], &build("90"), true, now).await.expect("a change");
        }
        store.close().await;
    })
    .await;
}

#[tokio::test]
async fn why_a_release_was_withdrawn_is_shown_until_it_is_put_back() {
    on_each_database_with(live(), async |service| {
        service.publish("1.4.0");
        let image = service.publish("1.5.0");
        let reason = "It could lose *settings* <b>of</b> bots.";
        let (code, output) = service.release(&["withdraw", "1.5.0", "--yes", "--reason", reason]);
        assert!(code == 0 && output.contains("1.5.0 is withdrawn; the newest release is 1.4.0."), "{output}");
        assert_eq!(service.get(IMAGE).await.status, 410);
        assert_eq!(member(service, "1.5.0", "withdrawn_reason"), reason);
        let (_, list) = service.release(&["list"]);
        assert!(list.lines().next().unwrap().ends_with(&format!("withdrawn: {reason}")), "{list}");
        let html = service.wait_for_text("/releases", "It could lose").await;
        assert!(
            html.contains("<h2 id=\"withdrawn\">") && html.contains("It could lose <em>settings</em> of bots."),
            "{html}"
        );
        assert!(html.contains("id=\"v1-4-0\"") && !html.contains("id=\"v1-5-0\""), "{html}");
        let markdown = service.get("/releases.md").await.text();
        assert!(markdown.contains("\n## Withdrawn {#withdrawn}\n\n- 1.5.0, on "), "{markdown}");
        let list = service.get("/releases.json").await.json();
        assert_eq!(
            (&list["withdrawn"][0]["version"], &list["withdrawn"][0]["reason"]),
            (&json!("1.5.0"), &json!(reason))
        );
        assert!(!service.get("/appcast.xml").await.text().contains("1.5.0"));

        let (code, output) = service.release(&["restore", "1.5.0"]);
        assert!(code == 0 && output.contains("1.5.0 is offered again; the newest release is 1.5.0."), "{output}");
        assert_eq!(leads_to(service).await, IMAGE);
        assert!(service.get(IMAGE).await.body == image, "the same bytes");
        assert_eq!(member(service, "1.5.0", "withdrawn_reason"), Value::Null);
        assert!(!service.wait_for_text("/releases", "id=\"v1-5-0\"").await.contains("It could lose"));
        refuse(service, &["restore", "1.5.0"], "1.5.0 is not withdrawn.");
        refuse(service, &["restore", "1.6.0"], "There is no release 1.6.0.");

        service.release(&["withdraw", "1.5.0", "--yes"]);
        service.wait_for_text("/releases.json", "\"latest\": \"1.4.0\"").await;
        let html = service.get("/releases").await.text();
        assert!(
            !html.contains("id=\"v1-5-0\"") && !html.contains("id=\"withdrawn\""),
            "without a reason there is nothing to say"
        );
        for reason in [" ", &"x".repeat(501)] {
            assert_eq!(service.release(&["withdraw", "1.4.0", "--yes", "--reason", reason]).0, 2);
        }
    })
    .await;
}

#[tokio::test]
async fn a_release_is_put_back_only_with_the_image_that_was_published_and_if_it_could_be_published() {
    on_each_database_with(live(), async |service| {
        let image = service.publish("1.5.0");
        let file = service.releases_dir().join("Troupe-1.5.0.dmg");
        service.release(&["withdraw", "1.5.0", "--yes"]);
        let mut other = image.clone();
        other[100] ^= 1;
        std::fs::write(&file, &other).unwrap();
        refuse(service, &["restore", "1.5.0"], "the image Troupe-1.5.0.dmg is not the one that was published");
        std::fs::write(&file, &image[..900]).unwrap();
        refuse(service, &["restore", "1.5.0"], "it has 900 bytes instead of 20000");
        std::fs::remove_file(&file).unwrap();
        refuse(service, &["restore", "1.5.0"], "the image Troupe-1.5.0.dmg cannot be read: there is no such file");
        assert_eq!(service.head(LATEST).await.status, 503);
        std::fs::write(&file, &image).unwrap();

        service.publish("1.6.0");
        refuse(
            service,
            &["restore", "1.5.0"],
            "1.5.0 is not newer than 1.6.0; publish a higher version, or add --force to do it anyway",
        );
        assert_eq!(service.release(&["restore", "1.5.0", "--force"]).0, 0);
        assert!(service.get(IMAGE).await.body == image);
        assert_eq!(leads_to(service).await, "/releases/Troupe-1.6.0.dmg");

        let (sha256, url) = ("ab".repeat(32), "https://files.example/t.dmg");
        let external = ["--url", url, "--length", "1", "--sha256", &sha256, "--version", "1.7.0"];
        assert_eq!(service.release(&[&["publish"], external.as_slice()].concat()).0, 0);
        service.release(&["withdraw", "1.7.0", "--yes"]);
        assert_eq!(service.release(&["restore", "1.7.0"]).0, 0);
        assert_eq!(leads_to(service).await, url);
    })
    .await;
}
