//! Disk images that makers publish at the desk: a form whose last field is the image.

use reqwest::Method;
use rustix::process::Signal;
use serde_json::Value;

use super::interrupted::{Running, wait_for_half, wait_for_nothing};
use super::{listed, private, run};
use crate::harness::{
    Answer, Bucket, Connection, MakerBrowser, MultipartForm, Program, Service, disk_image, each_migrated_database,
    markup, on_each_database_with, on_one_database_with,
};

const PAGE: &str = "/desk/releases";
const LENGTH: usize = 600_000;
/// With every character that base64 has besides letters and digits.
const SIGNATURE: &str = "aB3+/xaB3+/xaB3+/xaB3+/xaB3+/xaB3+/xaB3+/xaB3+/xaB3+/xaB3+/xaB3+/xaB3+/xaB3+/xaB3+/xaA==";

/// What is published, how many files there are, and what was recorded.
async fn state(service: &Service) -> (Value, usize, Vec<String>) {
    let files = std::fs::read_dir(service.releases_dir()).map_or(0, Iterator::count);
    (listed(service), files, service.database.texts("SELECT what FROM activity ORDER BY what").await)
}

async fn publish(browser: &MakerBrowser<'_>, version: &str, image: &[u8]) -> Answer {
    browser.post_file(PAGE, &[("version", version)], ("Troupe.dmg", image)).await
}

/// What a page says of a form that it refuses.
fn refusal(page: &str) -> String {
    markup::attributes(page, "p", "id").iter().find(|id| *id == "refused").expect("a refusal");
    let (_, text) = page.split_once("id=\"refused\" role=\"alert\">").expect("its text");
    text.split_once("</p>").expect("its end").0.replace("&#x27;", "'").replace("&#x2f;", "/")
}

/// The head of an upload by a browser that is signed in.
fn head(browser: &MakerBrowser<'_>, host: &str, length: u64, more: &str) -> String {
    let cookies: Vec<_> = browser.cookies().into_iter().map(|(name, value)| format!("{name}={value}")).collect();
    format!(
        "POST {PAGE} HTTP/1.1\r\nHost: {host}\r\nCookie: {}\r\nContent-Type: {}\r\nContent-Length: {length}\r\n\
         Connection: close\r\n{more}\r\n",
        cookies.join("; "),
        MultipartForm::TYPE
    )
}

const SAME_ORIGIN: &str = "Sec-Fetch-Site: same-origin\r\n";

/// Sends an upload up to the middle of the image.
async fn begin(service: &Service, browser: &MakerBrowser<'_>, form: &MultipartForm) -> Connection {
    let mut connection = Connection::open(service.ops_address()).await;
    let host = service.ops_address().to_string();
    connection.send(head(browser, &host, form.bytes().len() as u64, SAME_ORIGIN)).await;
    connection.send(&form.before).await;
    connection.send(&form.file[..form.file.len() / 2]).await;
    connection
}

#[tokio::test]
async fn a_form_publishes_a_disk_image_and_it_is_the_newest_at_once() {
    on_each_database_with(private(), async |service| {
        let (browser, image) = (MakerBrowser::signed_in(service).await, disk_image(LENGTH, 7));
        assert!(browser.get(PAGE).await.text().contains("Nothing has been published yet."));
        let fields = [
            ("version", " 1.1.0 "),
            ("notes", "# Faster\n\nBots answer\nsooner."),
            ("channel", "stable"),
            ("build", "110"),
            ("ed_signature", SIGNATURE),
            ("minimum_macos", "14.0"),
            ("phased", "7"),
            ("critical", "yes"),
        ];
        let answer = browser.post_file(PAGE, &fields, ("What ever.dmg", &image)).await;
        assert_eq!(answer.status, 303, "{}", answer.text());
        assert_eq!(answer.location(), "/desk/release/1.1.0?done=published");
        assert_eq!(service.head("/releases/latest/Troupe.dmg").await.header("location"), "/releases/Troupe-1.1.0.dmg");
        assert!(service.get("/releases/Troupe-1.1.0.dmg").await.body == image);
        let release = &listed(service)[0];
        for (name, value) in &fields[1..6] {
            assert_eq!(release[*name], *value, "{release:#}");
        }
        assert_eq!((&release["phased_days"], &release["critical"]), (&7.into(), &true.into()));
        let page = browser.get(answer.location()).await.text();
        for words in ["The release is published", "Release 1.1.0", "newest", "over 7 days", SIGNATURE, "600,000 bytes"]
        {
            assert!(page.replace("&#x2f;", "/").contains(words), "{words}: {page}");
        }
        let page = browser.get(PAGE).await.text();
        assert!(page.contains("<b>1.1.0</b>") && page.contains("<span class=\"state\">newest</span>"), "{page}");
        service.wait_for_text("/index.md", "1.1.0").await;
        let before = state(service).await;
        assert!(before.2.contains(&"published release 1.1.0".to_owned()), "{:?}", before.2);
        assert!(browser.get("/desk/activity").await.text().contains("published release 1.1.0"));

        let again = browser.post_file(PAGE, &fields, ("Troupe.dmg", &image)).await;
        assert_eq!(again.location(), "/desk/release/1.1.0?done=known", "a button that was pressed twice");
        for other in [disk_image(LENGTH, 8), disk_image(LENGTH + 1, 7), disk_image(2 * LENGTH, 7)] {
            let refused = browser.post_file(PAGE, &fields, ("Troupe.dmg", &other)).await;
            assert_eq!(refused.status, 409);
            assert!(refusal(&refused.text()).contains("version 1.1.0 is already published"), "{}", refused.text());
        }
        assert_eq!(state(service).await, before);

        let fields = [("version", "1.1.0"), ("notes", "# Anew\n"), ("phased", "9")];
        let kept = browser.post_file(PAGE, &fields, ("Troupe.dmg", &image)).await;
        let page = kept.text();
        assert!(kept.status == 409 && refusal(&page).contains("1.1.0 was published before"), "{page}");
        assert_eq!(state(service).await, before);
        assert!(page.contains("<h1>Release 1.1.0</h1>") && page.contains(">\n# Anew\n</textarea>"), "{page}");
        let (_, form) = page.split_once("<form method=\"post\" action=\"/desk/release/1.1.0\"").expect("a form");
        let form = format!("<form action=\"/desk/release/1.1.0\"{form}");
        let saved = browser.submit(&form, &[fields[1]]).await;
        assert_eq!(saved.location(), "/desk/release/1.1.0?done=edited", "{}", saved.text());
        let changed = &listed(service)[0];
        assert_eq!((&changed["notes"], &changed["phased_days"]), (&"# Anew".into(), &9.into()));
        assert_eq!((&changed["build"], &changed["critical"]), (&release["build"], &true.into()), "what was not typed");
    })
    .await;
}

#[tokio::test]
async fn the_image_of_another_version_is_published_with_a_question() {
    on_each_database_with(private(), async |service| {
        let (browser, image) = (MakerBrowser::signed_in(service).await, disk_image(20_000, 7));
        let question = "This image is the one of 1.1.0, too. Was it the right file?";
        let shown = async |version: &str| {
            let published = publish(&browser, version, &image).await;
            browser.get(published.location()).await.text()
        };
        assert!(!shown("1.1.0").await.contains("the right file"));
        assert!(shown("1.2.0").await.contains(question));
        let file = service.file("image.dmg", &image);
        service.release(&["withdraw", "1.2.0", "--yes"]);
        assert!(!browser.get("/desk/release/1.2.0").await.text().contains("the right file"), "it is not offered");
        let (code, said) = service.release(&["publish", file.to_str().expect("a path"), "--version", "1.3.0"]);
        assert!(code == 0 && said.contains("This image is the one of 1.2.0, too."), "{said}");
        let of_list: Vec<_> = ["1.3.0", "1.2.0", "1.1.0"].into_iter().zip(0..).collect();
        for (version, place) in of_list {
            let release = &listed(service)[place];
            assert!(release["version"] == version && release["same_image_as"] != version, "{release:#}");
            assert!(release["same_image_as"].is_string(), "{release:#}");
        }
    })
    .await;
}

#[tokio::test]
async fn a_script_asks_with_the_end_of_the_image_before_it_sends_all_of_it() {
    on_each_database_with(private(), async |service| {
        let (browser, image) = (MakerBrowser::signed_in(service).await, disk_image(LENGTH, 7));
        assert_eq!(publish(&browser, "1.4.0", &image).await.status, 303);
        let before = state(service).await;
        let (end, length) = (&image[LENGTH - 512..], LENGTH.to_string());
        let other = (LENGTH + 1).to_string();
        let shorter = (LENGTH - 1).to_string();
        for (version, length, end, status, words) in [
            ("1.5.0", &length, end, 204, ""),
            ("1.4.0", &length, end, 204, ""),
            ("1.4.0", &other, end, 409, "version 1.4.0 is already published; choose a higher one"),
            ("one.four", &length, end, 422, "The version cannot be used"),
            ("1.3.9", &length, end, 409, "1.3.9 is not newer than 1.4.0"),
            ("1.5.0", &length, &image[..512], 422, "it is not a disk image"),
            ("1.5.0", &length, &end[..100], 422, "it is not a disk image"),
            ("1.5.0", &shorter, end, 422, "it did not copy completely"),
        ] {
            let fields = [("version", version), ("length", length)];
            let answer = browser.post_file(PAGE, &fields, ("Troupe.dmg", end)).await;
            assert_eq!(answer.status, status, "{version}: {}", answer.text());
            assert!(words.is_empty() || refusal(&answer.text()).contains(words), "{}", answer.text());
            assert_eq!(state(service).await, before, "it only asks");
        }
    })
    .await;
}

#[tokio::test]
async fn what_cannot_be_published_is_refused_with_its_reason_and_nothing_that_was_typed_is_lost() {
    on_each_database_with(private(), async |service| {
        let (browser, image) = (MakerBrowser::signed_in(service).await, disk_image(20_000, 7));
        let signed = ["--build", "100", "--ed-signature", SIGNATURE];
        service.publish_with("1.4.0", &signed);
        let before = state(service).await;
        let (long, good) = ("x".repeat(65 * 1024), &image[..]);
        let build = ("build", "101");
        let signature = ("ed_signature", SIGNATURE);
        for (fields, file, status, words) in [
            (&[("version", "1.5.0"), build, signature][..], &image[..19_000], 422, "or it did not copy completely"),
            (&[("version", "1.5.0"), build, signature], b"x", 422, "<code>hdiutil create</code>"),
            (&[("version", "1.5.0"), ("build", "99"), signature], good, 409, "choose a higher one"),
            (&[("version", "1.5.0"), build], good, 409, "1.5.0 has no EdDSA signature, but 1.4.0 has one"),
            (&[("version", "1.5.0"), signature], good, 409, "give that of the app"),
            (&[("version", "1.3.9")], good, 409, "1.3.9 is not newer than 1.4.0; publish a higher version."),
            (&[("version", "1.5.0-beta.1")], good, 409, "cannot be in the stable channel"),
            (&[("version", "<b>1</b>")], good, 422, "The version cannot be used: it is not of the form"),
            (&[("version", "")], good, 422, "The version cannot be used"),
            (&[("version", "1.5.0"), ("build", "1 0")], good, 422, "The build number cannot be used"),
            (&[("version", "1.5.0"), ("ed_signature", "abc")], good, 422, "sign_update"),
            (&[("version", "1.5.0"), ("minimum_macos", "Sonoma")], good, 422, "The minimum macOS cannot be used"),
            (&[("version", "1.5.0"), ("channel", "a b")], good, 422, "The channel cannot be used"),
            (&[("version", "1.5.0"), ("phased", "400")], good, 422, "a number of days from 0 to 365"),
            (&[("version", "1.5.0"), ("notes", &long)], good, 422, "larger than 64 KiB"),
        ] {
            let answer = browser.post_file(PAGE, fields, ("<img src=x>\".dmg", file)).await;
            let page = answer.text();
            assert_eq!(answer.status, status, "{fields:?}");
            assert!(refusal(&page).contains(words), "{fields:?}: {}", refusal(&page));
            assert!(
                !refusal(&page).contains("--") && !page.contains("<b>1</b>") && !page.contains("<img src=x"),
                "{page}"
            );
            assert!(!page.contains(service.releases_dir().to_str().unwrap()), "{page}");
            let typed = markup::attributes(&page, "input", "value");
            for (name, value) in fields.iter().filter(|(name, _)| *name != "notes") {
                assert!(typed.iter().any(|typed| typed == value), "{name}: {typed:?}");
            }
            assert_eq!(state(service).await, before, "{fields:?}");
        }
        let kept = browser.post_file(PAGE, &[("version", "1"), ("notes", "a\n</textarea>")], ("", b"")).await.text();
        assert!(kept.contains(">\na\n&lt;&#x2f;textarea&gt;</textarea>"), "{kept}");
        assert!(refusal(&kept).contains("Choose a disk image"), "{kept}");

        let too_large = "x".repeat(300 * 1024);
        let answer = browser.post_file(PAGE, &[("notes", &too_large)], ("Troupe.dmg", &image)).await;
        assert!(answer.status == 422 && answer.text().contains("incomplete, or too large"), "{}", answer.text());
        for (kind, body) in [("application/x-www-form-urlencoded", "version=1.5.0"), ("multipart/form-data", "")] {
            let headers = [("content-type", kind), ("sec-fetch-site", "same-origin")];
            assert_eq!(browser.send(Method::POST, PAGE, &headers, body).await.status, 422);
        }
        assert_eq!(state(service).await, before);
    })
    .await;
}

#[tokio::test]
async fn what_is_wrong_without_the_image_is_refused_before_the_image_is_sent() {
    on_one_database_with(private(), async |service| {
        let browser = MakerBrowser::signed_in(service).await;
        service.publish("1.4.0");
        let (host, before) = (service.ops_address().to_string(), state(service).await);
        let stranger = MakerBrowser::on_ops_listener(service);
        for (browser, from, words) in [
            (&stranger, SAME_ORIGIN, "Your session has ended."),
            (&browser, "Sec-Fetch-Site: cross-site\r\n", "did not come from a page of the desk"),
            (&browser, "", "did not come from a page of the desk"),
            (&browser, "Origin: http://evil.example\r\n", "did not come from a page of the desk"),
        ] {
            let mut connection = Connection::open(service.ops_address()).await;
            let more = format!("{from}Expect: 100-continue\r\n");
            connection.send(head(browser, &host, 5_000_000_000, &more)).await;
            let answer = connection.read_until("</html>").await;
            assert!(answer.starts_with("HTTP/1.1 403 ") && answer.contains(words), "nothing of the body: {answer}");
        }
        for (version, length, status, words) in [
            ("1.5.0", 9_000_000_000_000_000, 507, "too little room"),
            ("1.3.0", 5_000_000_000, 409, "1.3.0 is not newer than 1.4.0"),
            ("1.4.0", 5_000_000_000, 409, "version 1.4.0 is already published"),
            ("1.x", 5_000_000_000, 422, "The version cannot be used"),
        ] {
            let form = MultipartForm::new(&[("version", version)], ("Troupe.dmg", b""));
            let mut connection = Connection::open(service.ops_address()).await;
            connection.send(head(&browser, &host, length, SAME_ORIGIN)).await;
            connection.send(&form.before).await;
            let answer = connection.read_until("</html>").await;
            assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")) && answer.contains(words), "{answer}");
        }
        let chunked = head(&browser, &host, 0, SAME_ORIGIN).replace("Content-Length: 0", "Transfer-Encoding: chunked");
        let form = MultipartForm::new(&[("version", "1.5.0")], ("Troupe.dmg", b""));
        let mut connection = Connection::open(service.ops_address()).await;
        connection.send(format!("{chunked}{:x}\r\n", form.before.len())).await;
        connection.send(&form.before).await;
        connection.send("\r\n").await;
        let answer = connection.read_until("</html>").await;
        assert!(answer.starts_with("HTTP/1.1 411 ") && answer.contains("does not say how long"), "{answer}");
        assert_eq!(state(service).await, before);
    })
    .await;
}

#[tokio::test]
async fn an_upload_that_is_cancelled_leaves_nothing_and_can_be_repeated() {
    on_each_database_with(private(), async |service| {
        let (browser, image) = (MakerBrowser::signed_in(service).await, disk_image(LENGTH, 7));
        let form = MultipartForm::new(&[("version", "1.1.0")], ("Troupe.dmg", &image));
        for ends in ["cut", "closed on one side"] {
            let mut connection = begin(service, &browser, &form).await;
            wait_for_half(&service.releases_dir(), &image).await;
            let busy = publish(&browser, "1.2.0", &image).await;
            assert_eq!(busy.status, 503);
            assert!(refusal(&busy.text()).contains("another release is being published"), "{}", busy.text());
            if ends != "cut" {
                connection.end_sending().await;
                connection.read_to_end().await;
            }
            drop(connection);
            wait_for_nothing(&service.releases_dir()).await;
            let (releases, files, recorded) = state(service).await;
            assert_eq!((releases.as_array().unwrap().len(), files), (0, 1), "the lock");
            assert!(recorded.iter().all(|what| !what.contains("release")), "{ends}: {recorded:?}");
        }
        assert_eq!(publish(&browser, "1.1.0", &image).await.status, 303);
    })
    .await;
}

#[tokio::test]
async fn a_session_that_is_ended_while_an_image_arrives_publishes_nothing() {
    on_one_database_with(private(), async |service| {
        let (browser, image) = (MakerBrowser::signed_in(service).await, disk_image(LENGTH, 7));
        let form = MultipartForm::new(&[("version", "1.1.0")], ("Troupe.dmg", &image));
        let mut connection = begin(service, &browser, &form).await;
        wait_for_half(&service.releases_dir(), &image).await;
        assert_eq!(run(service, &["desk", "--end-all"]).0, 0);
        connection.send(&form.file[form.file.len() / 2..]).await;
        connection.send(&form.after).await;
        let answer = connection.read_to_end().await;
        assert!(answer.starts_with("HTTP/1.1 403 ") && answer.contains("Your session has ended"), "{answer}");
        assert_eq!(listed(service).as_array().map(Vec::len), Some(0));
    })
    .await;
}

#[tokio::test]
async fn a_form_without_its_end_is_not_published() {
    on_one_database_with(private(), async |service| {
        let (browser, image) = (MakerBrowser::signed_in(service).await, disk_image(LENGTH, 7));
        let before = state(service).await;
        // All of the image, and not the line after it: it may have been longer.
        let form = MultipartForm::new(&[("version", "1.1.0")], ("Troupe.dmg", &image));
        let body = [&form.before[..], &form.file].concat();
        let headers = [("content-type", MultipartForm::TYPE), ("sec-fetch-site", "same-origin")];
        let answer = browser.send(Method::POST, PAGE, &headers, body).await;
        assert!(answer.status == 400 && refusal(&answer.text()).contains("did not arrive"), "{}", answer.text());
        let after = state(service).await;
        assert_eq!((after.0, after.2), (before.0, before.2));
        assert!(!service.releases_dir().join(".partial").exists());
    })
    .await;
}

/// Signs in to a program at its public address, behind a proxy that speaks https. Returns the cookie.
async fn sign_in(running: &Running, program: &Program) -> String {
    let output = Program::run_to_end(running.command(&["desk"]).env("PORCHLIGHT_DESK", "public"));
    let link = String::from_utf8(output.stdout).expect("UTF-8");
    let path = link.trim().strip_prefix("https://troupe.example").expect("a link").to_owned();
    let mut connection = Connection::open(program.address()).await;
    let head = format!("POST {path} HTTP/1.1\r\nHost: troupe.example\r\n{SAME_ORIGIN}Content-Length: 0\r\n");
    connection.send(format!("{head}Connection: close\r\n\r\n")).await;
    let answer = connection.read_to_end().await;
    let (_, cookie) = answer.split_once("set-cookie: __Host-porchlight-desk=").expect("a session");
    format!("__Host-porchlight-desk={}", cookie.split(';').next().expect("a value"))
}

async fn begin_at(program: &Program, cookie: &str, form: &MultipartForm, sent: usize) -> Connection {
    let mut connection = Connection::open(program.address()).await;
    let head = format!(
        "POST {PAGE} HTTP/1.1\r\nHost: troupe.example\r\nCookie: {cookie}\r\n{SAME_ORIGIN}Content-Type: {}\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n",
        MultipartForm::TYPE,
        form.bytes().len()
    );
    connection.send(head).await;
    connection.send(&form.bytes()[..sent]).await;
    connection
}

#[tokio::test]
async fn at_a_stop_an_upload_is_answered_and_nothing_is_left_of_it() {
    for database in each_migrated_database().await {
        let running = Running::new(database);
        let (image, releases) = (disk_image(LENGTH, 7), running.folder.path().join("data/releases"));
        let form = MultipartForm::new(&[("version", "1.1.0")], ("Troupe.dmg", &image));
        let serve = || {
            let mut command = running.command(&[]);
            command.env("PORCHLIGHT_DESK", "public");
            Running::serve(command)
        };
        let program = serve();
        let cookie = sign_in(&running, &program).await;
        let mut in_fields = begin_at(&program, &cookie, &form, 20).await;
        let mut connection = begin_at(&program, &cookie, &form, form.before.len() + LENGTH / 2).await;
        wait_for_half(&releases, &image).await;
        program.signal(Signal::TERM);
        for connection in [&mut connection, &mut in_fields] {
            let answer = connection.read_to_end().await;
            assert!(answer.starts_with("HTTP/1.1 503 ") && answer.contains("the service is stopping"), "{answer}");
        }
        let (status, log) = program.end();
        assert_eq!(status.code(), Some(0), "{log}");
        assert!(log.contains("method=POST route=/desk/{*path} status=503"), "{log}");
        assert!(!releases.join(".partial").exists());

        let program = serve();
        let mut connection = begin_at(&program, &cookie, &form, form.bytes().len()).await;
        let answer = connection.read_to_end().await;
        assert!(answer.starts_with("HTTP/1.1 303 "), "{answer}");
        program.signal(Signal::TERM);
        let (_, log) = program.end();
        assert!(log.contains("session=maker change=\"published release 1.1.0\""), "{log}");
    }
}

#[tokio::test]
async fn a_form_publishes_into_a_bucket_and_nothing_stays_on_the_disk() {
    let [database, _] = each_migrated_database().await;
    let (running, bucket) = (Running::new(database), Bucket::new());
    let image = disk_image(LENGTH, 7);
    let form = MultipartForm::new(&[("version", "1.1.0")], ("Troupe.dmg", &image));
    let mut command = running.command(&[]);
    command.env("PORCHLIGHT_DESK", "public");
    bucket.configure(&mut command, "?proxy=true");
    let program = Running::serve(command);
    let cookie = sign_in(&running, &program).await;
    let answer = begin_at(&program, &cookie, &form, form.bytes().len()).await.read_to_end().await;
    assert!(answer.starts_with("HTTP/1.1 303 "), "{answer}");
    assert_eq!(bucket.objects().len(), 1);
    assert!(!running.folder.path().join("data/uploads/.partial").exists());
}
