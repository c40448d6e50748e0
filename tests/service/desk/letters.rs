//! Letters at the desk: written, looked at, tested, sent, stopped, gone on with.

use std::time::Duration;

use porchlight::config::RawSettings;
use porchlight::domain::letters::{Letter, LetterRun};
use porchlight::domain::sha256::Sha256;
use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{Answer, Database, MailServer, MakerBrowser, Service, each_migrated_database, markup, wait_until};
use crate::people::run;

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x04\xb0\0\0\x02\x58\x08\x02";

fn settings(server: &MailServer) -> RawSettings {
    RawSettings {
        base_url: Some("https://troupe.example".to_owned()),
        download_url: Some("https://images.example/Troupe.dmg".to_owned()),
        ops_listen: Some("127.0.0.1:0".to_owned()),
        smtp_url: Some(server.url()),
        mail_from: Some("Troupe <hello@troupe.example>".to_owned()),
        contact_to: Some("makers@troupe.example".to_owned()),
        postal_address: Some("1 Lamp Street, Oldtown".to_owned()),
        letter_rate: Some("1000".to_owned()),
        ..RawSettings::default()
    }
}

async fn on_each_database(test: impl AsyncFn(&Service, &MakerBrowser<'_>, &mut MailServer)) {
    for database in each_migrated_database().await {
        println!("on {database:?}");
        let mut server = MailServer::start().await;
        let service = Service::start(settings(&server), database).await;
        let browser = MakerBrowser::signed_in(&service).await;
        test(&service, &browser, &mut server).await;
        service.stop().await;
    }
}

async fn opt_in(service: &Service, email: &str) {
    service.post("/api/download", &json!({ "email": email, "updates": true })).await.expect_ok();
}

/// Begins a draft; returns its path.
async fn draft(browser: &MakerBrowser<'_>) -> String {
    let begun = browser.post("/desk/letters/new", &[]).await;
    assert!(begun.location().starts_with("/desk/letters/drafts/"), "{}", begun.text());
    begun.location().to_owned()
}

/// Sends the form of a draft as a browser does, with the fields that are given instead of those of the page, and a file.
async fn save(browser: &MakerBrowser<'_>, path: &str, fields: &[(&str, &str)], file: Option<(&str, &[u8])>) -> Answer {
    let page = browser.get(path).await.text();
    let saved = markup::attributes(&page, "input", "value").swap_remove(0);
    let mut body = Vec::new();
    let given = |name: &str| fields.iter().any(|(given, _)| *given == name);
    let all = [("saved", saved.as_str())].into_iter().filter(|(name, _)| !given(name)).chain(fields.iter().copied());
    for (name, value) in all {
        body.extend(format!("--XX\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n").bytes());
    }
    let (name, bytes) = file.unwrap_or(("", b""));
    body.extend(format!("--XX\r\nContent-Disposition: form-data; name=\"image\"; filename=\"{name}\"\r\n\r\n").bytes());
    body.extend(bytes);
    body.extend(b"\r\n--XX--\r\n");
    let headers = [("content-type", "multipart/form-data; boundary=XX"), ("sec-fetch-site", "same-origin")];
    browser.send(Method::POST, path, &headers, body).await
}

/// Asks, and answers with the button.
async fn send(browser: &MakerBrowser<'_>, path: &str) -> Answer {
    let question = browser.get(&format!("{path}/send")).await.text();
    let letter = markup::attributes(&question, "input", "value").swap_remove(0);
    browser.post(&format!("{path}/send"), &[("letter", &letter)]).await
}

/// Lets time pass until the letter is in this state.
async fn until(service: &Service, browser: &MakerBrowser<'_>, path: &str, words: &str) -> String {
    wait_until(words, async || {
        service.clock.advance(Duration::from_millis(20));
        browser.get(path).await.text().contains(words)
    })
    .await;
    browser.get(path).await.text()
}

#[tokio::test]
async fn what_is_shown_is_what_is_sent() {
    on_each_database(async |service, browser, server| {
        opt_in(service, "ada@example.com").await;
        let path = draft(browser).await;
        let text = "# Not the subject\r\n\r\nHello <b>you</b>, [read](/releases).\r\n\r\n![A lamp](my-lamp.png)\r\n";
        let fields = [("subject", "News: <b> & \"more\""), ("preview", "First"), ("body", text), ("then", "save")];
        let saved = save(browser, &path, &fields, Some(("My Lamp.PNG", PNG))).await;
        assert_eq!(saved.location(), format!("{path}?done=saved"), "{}", saved.text());
        let page = browser.get(&path).await;
        assert!(page.header("content-security-policy").ends_with("; frame-src 'self'"));
        let page = page.text();
        assert!(
            page.contains("value=\"News: &lt;b&gt; &amp; &quot;more&quot;\"") && page.contains("In the text."),
            "{page}"
        );
        assert!(page.contains("\n# Not the subject\n\nHello &lt;b&gt;you"), "{page}");

        let preview = browser.get(&format!("{path}/preview")).await;
        let policy = preview.header("content-security-policy").to_owned();
        for part in ["default-src 'none'", "style-src 'unsafe-inline'", "img-src 'self'", "frame-ancestors 'self'"] {
            assert!(policy.contains(part) && !policy.contains("script"), "{policy}");
        }
        assert_eq!(
            (preview.header("cache-control"), preview.header("x-content-type-options")),
            ("no-store", "nosniff")
        );
        let shown = preview.text();
        let image = markup::attributes(&shown, "img", "src").swap_remove(0);
        assert!(image.starts_with(&format!("{path}/images/")), "{image}");
        let image_answer = browser.get(&image).await;
        assert_eq!((image_answer.media_type(), &image_answer.body[..]), ("image/png", PNG));

        let tested = save(browser, &path, &[&fields[..3], &[("then", "test")]].concat(), None).await;
        assert_eq!(tested.location(), format!("{path}?done=tested"), "{}", tested.text());
        let mail = server.next_mail().await;
        assert_eq!(
            (mail.header("to"), mail.header("subject")),
            ("makers@troupe.example", "[Test] News: <b> & \"more\"")
        );

        let asked = save(browser, &path, &[&fields[..3], &[("then", "send")]].concat(), None).await;
        assert_eq!(asked.location(), format!("{path}/send"));
        let question = browser.get(asked.location()).await.text();
        assert!(
            question.contains("<b>1 person</b> will get it") && question.contains(">Send to 1 person</button>"),
            "{question}"
        );
        let begun = send(browser, &path).await;
        let letter = begun.location().to_owned();
        until(service, browser, &letter, "Sent to 1 person.").await;
        let sent = server.next_mail().await;
        let unsubscribe = sent.header("list-unsubscribe").trim_matches(['<', '>']).to_owned();
        let cid = markup::attributes(&sent.html, "img", "src").swap_remove(0);
        let of_reader =
            sent.html.replace(&unsubscribe, "https://troupe.example/unsubscribe/nobody").replace(&cid, &image);
        let (through_site, through_program) = ("through the site", "through a program");
        let of_reader = of_reader.replace(through_program, through_site).replace("\r\n", "\n");
        assert_eq!(of_reader.trim_end(), shown.trim_end(), "byte for byte");
        assert_eq!(browser.get(&path).await.status, 404, "it is a draft no more");
        let kept = browser.get(&format!("{letter}/preview")).await.text();
        let image = markup::attributes(&kept, "img", "src").swap_remove(0);
        assert_eq!(kept.replace(&letter, &path), shown, "as it was sent");
        assert_eq!(browser.get(&image).await.body, PNG);
        let copy = browser.post(&format!("{letter}/copy"), &[]).await.location().to_owned();
        let page = browser.get(&copy).await.text();
        assert!(
            page.contains("value=\"News: &lt;b&gt; &amp; &quot;more&quot;\"") && page.contains("In the text."),
            "{page}"
        );
        browser.post(&format!("{copy}/delete"), &[]).await;
        assert!(run(service, &["letter", "list"]).1.contains("1 of 1 sent"), "the command sees it");
        let who = browser.get(&format!("{letter}/recipients?state=sent")).await.text();
        assert!(who.contains("<bdi>ada@example.com</bdi>"), "{who}");
    })
    .await;
}

#[tokio::test]
async fn what_was_asked_about_is_what_is_sent() {
    on_each_database(async |service, browser, server| {
        opt_in(service, "ada@example.com").await;
        let path = draft(browser).await;
        save(browser, &path, &[("body", "# Nice news\n\nHello"), ("then", "send")], None).await;
        let question = browser.get(&format!("{path}/send")).await.text();
        let letter = markup::attributes(&question, "input", "value").swap_remove(0);
        save(browser, &path, &[("body", "# Half finished"), ("then", "json")], None).await;
        let again = browser.post(&format!("{path}/send"), &[("letter", &letter)]).await;
        assert_eq!(again.location(), format!("{path}/send?done=changed-meanwhile"));
        let question = browser.get(again.location()).await.text();
        assert!(question.contains("Nothing was sent: ") && question.contains("Half finished"), "{question}");
        assert!(server.mails().await.is_empty());
        let emptied = browser.post(&path, &[]).await;
        assert_eq!(emptied.status, 422, "a form without a text");
        assert!(browser.get(&path).await.text().contains("# Half finished</textarea>"));
        let nul = save(browser, &path, &[("subject", "A\0B"), ("body", "# C\0D"), ("then", "save")], None).await;
        assert_eq!(nul.location(), format!("{path}?done=saved"));
        assert!(browser.get(&path).await.text().contains("value=\"AB\""));
    })
    .await;
}

#[tokio::test]
async fn a_letter_is_stopped_and_gone_on_with() {
    on_each_database(async |service, browser, server| {
        for number in 0..30 {
            opt_in(service, &format!("p{number}@example.com")).await;
        }
        let path = draft(browser).await;
        save(browser, &path, &[("body", "# November\n\nHello"), ("then", "save")], None).await;
        let letter = send(browser, &path).await.location().to_owned();
        let early = server.next_mail().await;
        assert_eq!(early.header("subject"), "November");
        assert_eq!(browser.post(&format!("{letter}/stop"), &[]).await.location(), letter);
        let stopped = browser.get(&letter).await.text();
        assert!(stopped.contains("It was stopped here, and waits until somebody goes on with it."), "{stopped}");
        service.clock.advance(Duration::from_hours(1));
        assert!(browser.get("/desk/letters").await.text().contains("<span class=\"state\">stopped</span>"));
        let again = browser.post(&format!("{letter}/stop"), &[]).await;
        assert_eq!(again.location(), letter, "once more changes nothing");
        let (store, id) =
            (service.database.store(), Sha256::from_hex(letter.rsplit('/').next().expect("an id")).expect("an id"));
        // As `porchlight letter send --go-on` does.
        store.change_letter_run(&id, LetterRun::Stopped, LetterRun::Command, None).await.expect("an answer");
        store.close().await;
        let of_command = browser.get(&letter).await.text();
        assert!(
            of_command.contains("<code>porchlight letter send</code> sends it, as long as that runs."),
            "{of_command}"
        );
        assert!(of_command.contains(">Stop</button>") && of_command.contains(">Take over</button>"), "{of_command}");
        browser.post(&format!("{letter}/go-on"), &[]).await;
        until(service, browser, &letter, "Sent to 30 people.").await;
        let mut arrived = vec![early.recipients[0].clone()];
        arrived.extend(server.mails().await.into_iter().flat_map(|mail| mail.recipients));
        arrived.sort();
        arrived.dedup();
        assert_eq!(arrived.len(), 30, "each one, once");
        let activity = browser.get("/desk/activity").await.text();
        for did in
            ["started to send the letter “November”", "stopped the letter “November”", "went on sending the letter"]
        {
            assert!(activity.contains(did), "{did}: {activity}");
        }
    })
    .await;
}

#[tokio::test]
async fn a_letter_that_was_stopped_before_its_recipients_were_known_is_not_lost() {
    on_each_database(async |service, browser, server| {
        opt_in(service, "ada@example.com").await;
        let (store, letter) = (service.database.store(), Letter::parse("# Early\n\nHello").expect("a letter"));
        store.prepare_letter(&letter).await.expect("an answer");
        let (from, to) = (LetterRun::Command, LetterRun::Stopped);
        store.change_letter_run(&letter.id, from, to, Some("The template is broken")).await.expect("an answer");
        store.close().await;
        let listed = browser.get("/desk/letters").await.text();
        assert!(listed.contains("<b>Early</b>") && listed.contains(">stopped</span>"), "{listed}");
        let page = format!("/desk/letters/{}", letter.id.hex());
        assert!(browser.get(&page).await.text().contains("It was stopped: The template is broken."));
        let path = draft(browser).await;
        save(browser, &path, &[("body", "# Early\n\nHello"), ("then", "save")], None).await;
        assert_eq!(send(browser, &path).await.location(), page, "the same text begins it again");
        until(service, browser, &page, "Sent to 1 person.").await;
        assert_eq!(server.next_mail().await.header("subject"), "Early");
    })
    .await;
}

#[tokio::test]
async fn nothing_is_sent_that_cannot_be_or_was() {
    on_each_database(async |service, browser, server| {
        let path = draft(browser).await;
        let question = browser.get(&format!("{path}/send")).await.text();
        assert!(
            question.contains("Nobody has opted in to the monthly letter yet") && !question.contains(">Send to"),
            "{question}"
        );
        opt_in(service, "ada@example.com").await;
        for (body, why) in [
            ("", "it is empty"),
            ("No heading", "it has no subject"),
            ("# A\n\n![](lamp.png)", "has no text for those who cannot see it"),
            ("# A\n\n![A](lamp.png)", "is not among the images of this draft"),
            ("# A\n\n![A](https://elsewhere.example/a.png)", "is not a file"),
            (&format!("# A\n\n{} x", ">".repeat(5000)), "nested too deeply"),
            (&format!("# A\n\n{} x", "*a _b ".repeat(5000) + &"b_ a*".repeat(5000)), "nested too deeply"),
        ] {
            save(browser, &path, &[("body", body), ("then", "save")], None).await;
            let page = browser.get(&path).await.text();
            assert!(page.contains("It cannot be sent yet: ") && page.contains(why), "{body}: {page}");
            assert!(browser.get(&format!("{path}/preview")).await.text().contains("It cannot be sent yet"));
            for refused in
                [browser.get(&format!("{path}/send")).await, browser.post(&format!("{path}/send"), &[]).await]
            {
                assert!(refused.status == 422 && refused.text().contains(why), "{body}: {}", refused.text());
            }
        }
        for (file, bytes, why) in [
            ("a.svg", &b"<svg onload=alert(1)>"[..], "is neither PNG, JPEG nor GIF"),
            ("large.png", &[PNG, &vec![0; 1 << 20]].concat(), "1 MiB together"),
        ] {
            let refused = save(browser, &path, &[("body", "# A"), ("then", "save")], Some((file, bytes))).await;
            assert!(refused.status == 422 && refused.text().contains(why), "{file}: {}", refused.text());
            let said = refused.text();
            assert!(
                said.contains("The text is saved, and no image was added: ") && said.contains("# A</textarea>"),
                "{said}"
            );
            assert!(!browser.get(&path).await.text().contains(file), "{file}");
        }
        // Each line is a heading, and has more HTML than Markdown.
        let wide = "# A\n".repeat(15_000);
        save(browser, &path, &[("body", &wide), ("then", "save")], None).await;
        for refused in [browser.get(&format!("{path}/send")).await, browser.post(&format!("{path}/send"), &[]).await] {
            assert!(refused.status == 422 && refused.text().contains("102 KB"), "{}", refused.text());
        }
        let long = "x".repeat(65 * 1024);
        let refused = save(browser, &path, &[("body", &long), ("then", "save")], None).await;
        assert!(refused.status == 422 && refused.text().contains("longer than 64 KiB"));
        assert!(refused.text().contains(&long), "it keeps what was typed");

        save(browser, &path, &[("body", "# A\n\nHello"), ("then", "save")], None).await;
        let letter = send(browser, &path).await.location().to_owned();
        until(service, browser, &letter, "Sent to 1 person.").await;
        let twin = draft(browser).await;
        save(browser, &twin, &[("body", "# A\n\nHello"), ("then", "save")], None).await;
        assert!(browser.get(&format!("{twin}/send")).await.text().contains("was sent before"));
        assert_eq!(browser.post(&format!("{twin}/send"), &[]).await.status, 422);
        server.next_mail().await;
        assert!(server.mails().await.is_empty(), "one mail in all");
    })
    .await;
}

#[tokio::test]
async fn two_windows_do_not_overwrite_each_other_and_a_draft_is_deleted_after_a_question() {
    on_each_database(async |service, browser, _| {
        let path = draft(browser).await;
        let page = browser.get(&path).await.text();
        let old = markup::attributes(&page, "input", "value").swap_remove(0);
        let answer = save(browser, &path, &[("body", "# Mine"), ("then", "json")], None).await;
        let answer: Value = serde_json::from_slice(&answer.body).expect("JSON");
        assert_eq!(answer["at"], "12:00");
        let late = save(browser, &path, &[("saved", &old), ("body", "# Theirs"), ("then", "save")], None).await;
        assert!(late.status == 422 && late.text().contains("was saved in another window"), "{}", late.text());
        assert!(late.text().contains("\n# Theirs</textarea>"), "it keeps what was typed");
        assert!(browser.get(&path).await.text().contains("\n# Mine</textarea>"));
        let current = markup::attributes(&late.text(), "input", "value").swap_remove(0);
        let again = save(browser, &path, &[("saved", &current), ("body", "# Theirs"), ("then", "save")], None).await;
        assert_eq!(again.location(), format!("{path}?done=saved"), "once more replaces the other one");
        save(browser, &path, &[("body", "# <script>alert(1)</script>"), ("then", "save")], Some(("a.png", PNG))).await;
        for page in [&path, "/desk/letters", &format!("{path}/delete"), &format!("{path}/preview")] {
            let page = browser.get(page).await.text();
            assert!(!page.contains("<script>alert") && page.matches("<script").count() <= 1, "{page}");
        }
        assert_eq!(browser.post(&format!("{path}/images/remove"), &[("name", "a.png")]).await.location(), path);
        assert!(!browser.get(&path).await.text().contains("a.png"));
        assert_eq!(browser.get(&format!("{path}/delete")).await.status, 200);
        assert_eq!(service.database.number("SELECT COUNT(*) FROM drafts").await, 1, "asking deletes nothing");
        assert_eq!(browser.post(&format!("{path}/delete"), &[]).await.location(), "/desk/letters?done=draft-deleted");
        assert_eq!(browser.get(&path).await.status, 404);
        let stranger = MakerBrowser::on_ops_listener(service);
        let refused = save_as(&stranger, &path).await;
        assert_eq!(refused.status, 403, "without a session, whatever the body is");
    })
    .await;
}

async fn save_as(browser: &MakerBrowser<'_>, path: &str) -> Answer {
    let headers = [("content-type", "multipart/form-data; boundary=XX"), ("sec-fetch-site", "same-origin")];
    browser.send(Method::POST, path, &headers, vec![0; 1 << 20]).await
}

#[tokio::test]
async fn without_the_settings_that_letters_need_the_desk_says_which() {
    let server = MailServer::start().await;
    let written = RawSettings { postal_address: None, ..settings(&server) };
    let service = Service::start(written, Database::migrated_sqlite().await).await;
    opt_in(&service, "ada@example.com").await;
    let browser = MakerBrowser::signed_in(&service).await;
    let path = draft(&browser).await;
    let page = browser.get(&path).await.text();
    assert!(page.contains("No letter can be sent from here yet: ") && page.contains("postal_address"), "{page}");
    assert!(browser.get("/desk/letters").await.text().contains("No letter can be sent from here yet: "));
    let test = save(&browser, &path, &[("body", "# Kept"), ("then", "test")], None).await;
    assert!(
        test.status == 422 && test.text().contains("The test copy was not sent: ") && test.text().contains("# Kept")
    );
    let question = browser.get(&format!("{path}/send")).await.text();
    assert!(question.contains("postal_address") && !question.contains(">Send to"), "{question}");
    assert_eq!(browser.post(&format!("{path}/send"), &[]).await.status, 422);
    service.stop().await;
}
