//! Letters on the site: their pages, the feed, the link in each copy, and that nothing there belongs to one reader.

use std::collections::BTreeSet;

use porchlight::config::RawSettings;
use rustix::process::Signal;
use serde_json::Value;

use super::{BASE_URL, LetterFixture, on_each_database, on_each_database_with};
use crate::harness::markup::attributes;
use crate::harness::{Program, Service, on_one_database_with, wait_for, wait_until};

const IMAGE: &[u8] = include_bytes!("../../../content/assets/touch-icon.png");

const LETTER: &str = "---
preview: What the *bots* learned
---
# What is <new> in November

Bots answer **sooner**[^1]. Read [the notes](releases). {{ app.name }} {% include \"x\" %} {#

<!-- a private note -->
<script>raw()</script>

## Two

![The icon](icon.png)

[^1]: On most days.
";

fn archive_on() -> RawSettings {
    let [base_url, download_url, letters_archive] =
        [BASE_URL, "https://files.example/Troupe.dmg", "yes"].map(|text| Some(text.to_owned()));
    RawSettings { base_url, download_url, letters_archive, ..RawSettings::default() }
}

impl LetterFixture {
    fn letter(&self) -> String {
        self.service.file("icon.png", IMAGE);
        self.file("november.md", LETTER)
    }

    /// Sends a letter that is put into the archive.
    fn send_archived(&self, file: &str) -> String {
        let (code, output) = self.run(&["send", file, "--yes", "--letters-archive", "yes"]);
        assert_eq!(code, 0, "{output}");
        output
    }

    /// The path of the only page in the archive, once the service shows one.
    async fn only_page(&self) -> String {
        wait_for("a letter on the site", async || pages(&self.service).await.pop()).await
    }

    fn listed(&self) -> Value {
        let output = Program::run_to_end(&mut self.command(&["list", "--json"]));
        serde_json::from_slice(&output.stdout).expect("JSON and nothing else")
    }
}

/// The paths of all letters that the archive lists.
async fn pages(service: &Service) -> Vec<String> {
    let links = attributes(&service.get("/letters").await.text(), "a", "href");
    let letters: BTreeSet<_> = links.into_iter().filter(|link| link.starts_with("/letters/")).collect();
    letters.into_iter().collect()
}

#[tokio::test]
async fn a_letter_is_on_the_site_for_everybody_and_nothing_there_belongs_to_one_reader() {
    on_each_database_with(archive_on(), async |fixture| {
        let people = ["ada@example.com", "bob+news@example.org", "cyd@example.net"];
        for email in people {
            fixture.download(email, true).await;
        }
        let mut command = fixture.command(&["send", &fixture.letter(), "--yes", "--letters-archive", "yes"]);
        command.args(["--bounce-address", "bounces@troupe.example"]);
        let (code, output) = Program::run(command);
        assert_eq!(code, 0, "{output}");
        let path = fixture.only_page().await;
        assert!(path.starts_with("/letters/what-is-in-november-"), "{path}");
        let url = format!("{BASE_URL}{path}");
        assert!(output.contains(&format!("Everybody can read it at {url}")), "{output}");

        let mails = fixture.server.mails().await;
        assert_eq!(mails.len(), people.len());
        let database = &fixture.service.database;
        let mut secrets = database.texts("SELECT token FROM unsubscribe_tokens").await;
        secrets.extend(database.texts("SELECT bounce_tag FROM letter_recipients").await);
        secrets.extend(database.texts("SELECT hash FROM letter_months").await);
        secrets.extend(database.texts("SELECT id FROM consents").await);
        assert_eq!(secrets.len(), 4 * people.len());
        for mail in &mails {
            for part in [&mail.text, &mail.html] {
                assert!(part.contains(&url), "{part}");
            }
            secrets.extend(["message-id", "list-unsubscribe", "to"].map(|name| mail.header(name).to_owned()));
            secrets.push(mail.sender.clone());
            // What stands below the letter: why this reader gets it, and how to stop it.
            let footer = mail.text.split_once("\n-- \n").expect("a footer").1;
            let is_of_all = |line: &str| line.is_empty() || line.contains(&path) || line == "The makers of Troupe";
            secrets.extend(footer.lines().filter(|line| !is_of_all(line)).map(str::to_owned));
        }
        secrets.extend(people.iter().flat_map(|email| [*email, &email[..email.len() - 4]]).map(str::to_owned));
        secrets.extend(["/unsubscribe/", "/confirm/", "a private note", "raw()", "cid:"].map(str::to_owned));

        let page = fixture.service.get(&path).await;
        let images = attributes(&page.text(), "img", "src");
        let [image] = images.as_slice() else { panic!("one image: {images:?}") };
        assert!(image.starts_with(&format!("{path}/")), "{image}");
        let answer = fixture.service.get(image).await;
        assert_eq!((answer.status.as_u16(), answer.media_type(), answer.body.as_slice()), (200, "image/png", IMAGE));
        assert_eq!(answer.header("cache-control"), "public, max-age=86400");
        assert_eq!(answer.header("cross-origin-resource-policy"), "cross-origin", "feed readers show it");
        assert!(page.text().contains(&format!("<img src=\"{image}\" width=\"180\" height=\"180\" alt=\"The icon\"")));

        let (twin, list) = (format!("{path}.md"), "/letters".to_owned());
        let files = ["/letters.md", "/letters.atom", "/sitemap.xml", "/sitemap.md", "/llms.txt"].map(str::to_owned);
        for path in [&path, &twin, &list, image].into_iter().chain(&files) {
            for accept in ["text/html", "text/markdown"] {
                let answer = fixture.service.get_as(path, accept).await;
                assert_eq!(answer.status, 200, "{path}");
                let headers = format!("{:?}", answer.headers);
                let text = String::from_utf8_lossy(&answer.body).into_owned() + &headers;
                for secret in &secrets {
                    assert!(!text.contains(secret.as_str()), "{path} has {secret}: {text}");
                }
            }
        }
        for path in ["/letters", &path] {
            let html = fixture.service.get(path).await.text();
            assert!(html.contains("type=\"application/atom+xml\" href=\"/letters.atom\""), "{html}");
            let sitemaps = ["/sitemap.xml", "/sitemap.md"].map(|sitemap| fixture.service.get(sitemap));
            for sitemap in sitemaps {
                let sitemap = sitemap.await.text();
                assert!(sitemap.contains(&format!("{BASE_URL}{path}")), "{sitemap}");
            }
        }
    })
    .await;
}

#[tokio::test]
async fn the_page_of_a_letter_says_what_the_letter_says_in_both_formats() {
    on_each_database_with(archive_on(), async |fixture| {
        fixture.download("ada@example.com", true).await;
        fixture.send_archived(&fixture.letter());
        let path = fixture.only_page().await;
        let html = fixture.service.get(&path).await.text();
        for part in [
            "<h1>What is in November</h1>",
            "Bots answer <strong>sooner</strong>",
            "<a href=\"/releases\">the notes</a>",
            "{{ app.name }} {% include “x” %} {#",
            "<h2 id=\"two\">Two</h2>",
            "On most days.",
            "<time datetime=\"2026-11-15\">15 November 2026</time>",
            "<meta name=\"description\" content=\"What the *bots* learned\">",
            &format!("<link rel=\"canonical\" href=\"{BASE_URL}{path}\">"),
        ] {
            assert!(html.contains(part), "{part}: {html}");
        }
        let markdown = fixture.service.get_as(&path, "text/markdown").await;
        assert!(!markdown.header("x-markdown-tokens").is_empty());
        assert_eq!(markdown.text(), fixture.service.get(&format!("{path}.md")).await.text());
        for part in [
            "title: \"What is in November\"",
            "last_updated: 2026-11-15",
            "\n# What is in November\n",
            "[the notes](https://troupe.example/releases)",
            &format!("![The icon]({BASE_URL}{path}/"),
            "On most days.",
        ] {
            assert!(markdown.text().contains(part), "{part}: {}", markdown.text());
        }
        let list = fixture.service.get("/letters").await.text();
        let entry = format!("15 November 2026: <a href=\"{path}\">What is in November</a>. What the *bots* learned");
        assert!(list.contains(&entry), "{list}");
        let feed = fixture.service.get("/letters.atom").await;
        assert_eq!(feed.media_type(), "application/atom+xml");
        for part in [
            "<title>Letters of Troupe</title>",
            "<title>What is in November</title>",
            &format!("<id>{BASE_URL}{path}</id>"),
            "<published>2026-11-15T",
            &format!("&lt;img src=&quot;{BASE_URL}{path}/"),
            "&lt;a href=&quot;https://troupe.example/releases&quot;&gt;",
        ] {
            assert!(feed.text().contains(part), "{part}: {}", feed.text());
        }
    })
    .await;
}

#[tokio::test]
async fn a_letter_is_put_into_the_archive_and_taken_out_on_every_instance() {
    on_each_database_with(archive_on(), async |fixture| {
        fixture.download("ada@example.com", true).await;
        let (code, output) = fixture.send(&fixture.letter());
        assert_eq!(code, 0, "{output}");
        let [mail] = fixture.server.mails().await.try_into().expect("one mail");
        assert!(!mail.text.contains("/letters/") && !mail.html.contains("/letters/"), "{}", mail.text);
        assert_eq!(fixture.listed()[0]["archived"], false);
        // SQLite has one instance.
        let mut services = vec![&fixture.service];
        let other;
        if fixture.service.database.is_postgres() {
            other = Service::start(archive_on(), fixture.service.database.clone()).await;
            services.push(&other);
        }
        for service in &services {
            assert_eq!(pages(service).await.len(), 0);
        }
        let id = fixture.listed()[0]["id"].as_str().unwrap()[..8].to_owned();
        let (code, output) = fixture.run(&["archive", &id, "--letters-archive", "yes"]);
        assert!(code == 0 && output.contains("is now in the archive: https://troupe.example/letters/"), "{output}");
        let (_, output) = fixture.run(&["archive", &id]);
        assert!(output.contains("is already in the archive. It is shown once `letters_archive` is set"), "{output}");
        assert_eq!(fixture.listed()[0]["archived"], true);
        assert!(fixture.run(&["list"]).1.contains("1 of 1 sent, archived  "));
        let path = fixture.only_page().await;
        let image = attributes(&fixture.service.get(&path).await.text(), "img", "src").remove(0);
        for service in &services {
            wait_until("the page", async || service.get(&path).await.status == 200).await;
        }

        let (code, output) = fixture.run(&["archive", &id, "--remove"]);
        assert!(code == 0 && output.contains("is now out of the archive"), "{output}");
        assert!(fixture.run(&["archive", &id, "--remove"]).1.contains("is already out of the archive"));
        for service in &services {
            wait_until("the page to be gone", async || service.get(&path).await.status == 404).await;
            for gone in [&path, &format!("{path}.md"), &image] {
                assert_eq!(service.get(gone).await.status, 404, "{gone}");
            }
            for empty in ["/letters", "/letters.md", "/letters.atom", "/sitemap.xml"] {
                let answer = service.get(empty).await;
                assert!(answer.status == 200 && !answer.text().contains("november"), "{}", answer.text());
            }
        }
    })
    .await;
}

#[tokio::test]
async fn a_letter_that_was_taken_out_or_never_sent_stays_out() {
    on_each_database_with(archive_on(), async |fixture| {
        let prepared = "INSERT INTO letters (id, subject, markdown) VALUES ('0a', 'Draft', '# Draft')";
        fixture.service.database.execute(prepared).await;
        let (code, output) = fixture.run(&["archive", "0a", "--letters-archive", "yes"]);
        assert!(code == 1 && output.contains("No letter 0a has been sent, or begun to be."), "{output}");
        assert_eq!(fixture.service.database.number("SELECT archived FROM letters").await, 0);
        fixture.service.database.execute("DELETE FROM letters").await;

        // Sending goes on after it was taken out, without a link to the page that is gone.
        fixture.download("ada@example.com", true).await;
        fixture.server.command("stop-listening").await;
        let file = fixture.letter();
        let command = fixture.command(&["send", &file, "--yes", "--letters-archive", "yes"]);
        let sending = Program::start(command, "The mail server is unavailable");
        sending.signal(Signal::INT);
        assert_eq!(sending.end().0.code(), Some(1));
        let id = fixture.listed()[0]["id"].as_str().unwrap().to_owned();
        assert_eq!(fixture.listed()[0]["archived"], true);
        assert_eq!(fixture.run(&["archive", &id, "--remove"]).0, 0);
        fixture.server.command("listen-again").await;
        let output = fixture.send_archived(&file);
        assert!(!output.contains("Everybody can read it"), "{output}");
        let [mail] = fixture.server.mails().await.try_into().expect("one mail");
        assert!(!mail.text.contains("/letters/") && !mail.html.contains("/letters/"), "{}", mail.text);
        assert_eq!(fixture.listed()[0]["archived"], false);
    })
    .await;
}

#[tokio::test]
async fn without_the_setting_there_is_no_archive() {
    on_each_database(async |fixture| {
        fixture.download("ada@example.com", true).await;
        fixture.send_archived(&fixture.letter());
        for path in ["/letters", "/letters.md", "/letters.atom"] {
            let unknown = fixture.service.get(path).await;
            assert_eq!(
                (unknown.status, unknown.text()),
                (reqwest::StatusCode::NOT_FOUND, fixture.service.get("/nothing").await.text())
            );
        }
        assert!(!fixture.service.get("/").await.text().contains("/letters"));
        assert!(!fixture.service.get("/sitemap.xml").await.text().contains("/letters"));
    })
    .await;
}

#[tokio::test]
async fn the_archive_has_the_language_and_the_templates_of_the_site() {
    let folder = tempfile::tempdir().unwrap();
    let facts = include_str!("../../../content/site.toml");
    std::fs::write(folder.path().join("site.toml"), format!("language = \"fr\"\n{facts}")).unwrap();
    std::fs::create_dir(folder.path().join("templates")).unwrap();
    let template = "{% extends \"layout.html\" %}{% block main %}<p class=\"own\">{{ page.title }}</p>{{ body|safe }}{% endblock %}";
    std::fs::write(folder.path().join("templates/archived_letter.html"), template).unwrap();
    let site_dir = Some(folder.path().display().to_string());
    on_each_database_with(RawSettings { site_dir, ..archive_on() }, async |fixture| {
        fixture.download("ada@example.com", true).await;
        let mut command = fixture.command(&["send", &fixture.letter(), "--yes", "--letters-archive", "yes"]);
        command.args(["--site-dir", &folder.path().display().to_string()]);
        let (code, output) = Program::run(command);
        assert_eq!(code, 0, "{output}");
        let [mail] = fixture.server.mails().await.try_into().expect("one mail");
        assert!(mail.text.contains("Dans un navigateur : https://troupe.example/letters/"), "{}", mail.text);
        assert!(mail.html.contains(">Lire dans un navigateur</a>"), "{}", mail.html);
        let path = fixture.only_page().await;
        assert!(fixture.service.get(&path).await.text().contains("<p class=\"own\">What is in November</p>"));
        let list = fixture.service.get("/letters").await.text();
        assert!(list.contains("<h1>Les lettres envoyées</h1>") && list.contains(">Lettres</a>"), "{list}");
        assert!(fixture.service.get("/letters.atom").await.text().contains("<title>Lettres de Troupe</title>"));
    })
    .await;
}

#[tokio::test]
async fn a_page_of_the_makers_for_the_archive_is_named_while_there_is_none() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("pages")).unwrap();
    let page = "---\ntitle: Ours\ndescription: Ours.\nlast_updated: 2026-11-18\nnav: 1\n---\n# Ours\n\n{{ letters|length }} letters.\n";
    std::fs::write(folder.path().join("pages/letters.md"), page).unwrap();
    let site_dir = Some(folder.path().display().to_string());
    let off = RawSettings { site_dir: site_dir.clone(), ..RawSettings::default() };
    on_one_database_with(off, async |service| {
        assert_eq!(service.get("/letters").await.status, 404);
        let (_, output) = Program::run(service.command(&["check", "--site-dir", &folder.path().display().to_string()]));
        let note = "pages/letters.md is not used: it is the page of the archive, and `letters_archive` is not on.";
        assert!(output.contains(note), "{output}");
    })
    .await;
    on_one_database_with(RawSettings { site_dir, ..archive_on() }, async |service| {
        assert!(service.get("/letters").await.text().contains("0 letters."));
        assert!(service.get("/").await.text().contains("<li><a href=\"/letters\">Ours</a></li>"));
    })
    .await;
}
