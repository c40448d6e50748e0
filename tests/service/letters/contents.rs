//! What is in a letter: both of its parts, the images in it, and what must not be in it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::Method;
use rustix::process::Signal;

use super::signatures::SIGNED;
use super::{BASE_URL, LetterFixture, on_each_database};
use crate::harness::{DkimKey, Program};

const SMALL: &[u8] = include_bytes!("../../../content/assets/touch-icon.png");
const WIDE: &[u8] = include_bytes!("../../../content/assets/og.png");

/// A letter with all that Markdown has.
const LETTER: &str = "---
preview: \"What the bots learned\"
---
Hello,

## What *is* new in `November` {#new}

<!-- Ask Ada whether this is true: a private note -->
<p>raw</p>

![A lamp above a **stage**](pictures/wide%20one.png)

Bots answer **sooner**[^1]. Read [the notes](releases) or https://elsewhere.example/a_b--c.

| Bot | Time |
|-----|-----:|
| Ada | 2 s  |

- one
- two ![The icon](icon.png) ![The icon again](icon.png)

[^1]: On *most* days.
";

const TEXT: &str = "Hello,

What is new in November
-----------------------

[A lamp above a stage]

Bots answer sooner[1]. Read the notes <https://troupe.example/releases> or https://elsewhere.example/a_b--c.

Bot  Time
---  ----
Ada  2 s

- one
- two [The icon] [The icon again]

[1] On most days.

-- 
";

/// Writes [`LETTER`] with its images, and returns its path.
fn letter(fixture: &LetterFixture) -> String {
    let folder = fixture.service.file("icon.png", SMALL).parent().unwrap().join("pictures");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("wide one.png"), WIDE).unwrap();
    fixture.file("november.md", LETTER)
}

#[tokio::test]
async fn a_letter_arrives_as_it_was_written() {
    on_each_database(async |fixture| {
        let (file, key) = (letter(fixture), DkimKey::ed25519());
        fixture.download("ada@example.com", true).await;
        let mut command = fixture.command(&["send", &file, "--yes"]);
        command.args(key.arguments());
        let (code, output) = Program::run(command);
        assert_eq!(code, 0, "{output}");
        let [mail] = fixture.server.mails().await.try_into().expect("one mail");
        assert!(mail.defects.is_empty(), "{mail:#?}");
        assert_eq!(mail.header("subject"), "What is new in November");
        assert_eq!(mail.header("list-id"), "Troupe <letter.troupe.example>");
        key.assert_signed(&mail.source, &SIGNED);

        let kinds: Vec<_> = mail.parts.iter().map(|part| part.kind.as_str()).collect();
        let images = ["image/png", "image/png"];
        let expected = ["multipart/alternative", "text/plain", "multipart/related", "text/html"];
        assert_eq!(kinds, [&expected[..], &images].concat());
        for (part, (name, bytes)) in mail.parts[4..].iter().zip([("icon.png", SMALL), ("wide one.png", WIDE)]) {
            assert_eq!(STANDARD.decode(&part.content).unwrap(), bytes);
            assert_eq!((part.file_name.as_deref(), part.disposition.as_deref()), (Some(name), Some("inline")));
            let id = part.id.as_deref().unwrap().trim_matches(['<', '>']);
            assert!(mail.html.contains(&format!("src=\"cid:{id}\"")), "{id}: {}", mail.html);
        }
        assert!(mail.text.starts_with(TEXT), "{}", mail.text);
        for part in [
            "<h2>What <em>is</em> new in <code>November</code></h2>",
            "width=\"600\" height=\"315\" style=\"max-width:100%;height:auto\" alt=\"A lamp above a stage\">",
            "width=\"180\" height=\"180\" style=\"max-width:100%;height:auto\" alt=\"The icon again\">",
            "<a href=\"https://troupe.example/releases\">the notes</a>",
            "<a href=\"https://elsewhere.example/a_b--c\">https://elsewhere.example/a_b--c</a>",
            "href=\"#fn-1\"",
            "On <em>most</em> days.",
            ">What the bots learned&#847;",
            "<html lang=\"en\">",
        ] {
            assert!(mail.html.contains(part), "{part}: {}", mail.html);
        }
        assert_eq!(mail.html.matches("src=").count(), mail.html.matches("src=\"cid:").count(), "nothing is loaded");
        for part in [&mail.html, &mail.text] {
            for hidden in ["private", "Ask Ada", "raw", "{#", "preview:"] {
                assert!(!part.contains(hidden), "{hidden}: {part}");
            }
            assert_eq!(part.matches("The makers of Troupe").count(), 1, "{part}");
        }
    })
    .await;
}

#[tokio::test]
async fn a_letter_that_was_started_goes_on_without_its_file() {
    on_each_database(async |fixture| {
        let (code, output) = fixture.run(&["send", "--yes"]);
        assert!(code == 1 && output.contains("No letter has been sent yet."), "{output}");
        let file = letter(fixture);
        fixture.download("ada@example.com", true).await;
        fixture.server.command("stop-listening").await;
        let mut sending = Program::start(fixture.command(&["send", &file, "--yes"]), "The mail server is unavailable");
        sending.wait_for_output("Trying again in 2 seconds");
        sending.signal(Signal::INT);
        assert_eq!(sending.end().0.code(), Some(1));
        std::fs::remove_file(&file).unwrap();
        std::fs::remove_dir_all(file.replace("november.md", "pictures")).unwrap();

        fixture.server.command("listen-again").await;
        let (code, output) = fixture.run(&["send", "--yes"]);
        assert_eq!(code, 0, "{output}");
        let [mail] = fixture.server.mails().await.try_into().expect("one mail");
        assert_eq!(mail.recipients, ["ada@example.com"]);
        assert_eq!(STANDARD.decode(&mail.parts[5].content).unwrap(), WIDE);
        assert!(mail.text.starts_with(TEXT), "{}", mail.text);

        // The same file is the same letter. With another image it is another letter.
        let file = letter(fixture);
        let (code, output) = fixture.run(&["send", &file, "--yes"]);
        assert!(code == 0 && output.contains("already been sent"), "{output}");
        fixture.service.file("icon.png", WIDE);
        assert_eq!(fixture.run(&["status", &file]).0, 1, "another letter");
        for (table, rows) in [("letters", 1), ("letter_images", 2)] {
            assert_eq!(fixture.service.database.count(table).await, rows, "{table}");
        }
    })
    .await;
}

#[tokio::test]
async fn a_letter_that_would_not_arrive_as_written_claims_nobody() {
    on_each_database(async |fixture| {
        fixture.download("ada@example.com", true).await;
        let folder = fixture.service.file("icon.png", SMALL).parent().unwrap().to_owned();
        let outside = tempfile::tempdir().unwrap();
        std::fs::write(outside.path().join("secret.png"), SMALL).unwrap();
        std::os::unix::fs::symlink(outside.path().join("secret.png"), folder.join("linked.png")).unwrap();
        std::os::unix::fs::symlink(outside.path(), folder.join("below")).unwrap();
        std::fs::create_dir(folder.join("folder.png")).unwrap();
        fixture.service.file("drawing.png", "<svg xmlns='http://www.w3.org/2000/svg'/>");
        fixture.service.file("damaged.png", &SMALL[..12]);
        fixture.service.file("large.png", [SMALL, &vec![0; 1024 * 1024]].concat());
        fixture.service.file("half.png", [SMALL, &vec![0; 600 * 1024]].concat());
        fixture.service.file("other.png", [SMALL, &vec![1; 600 * 1024]].concat());
        let many = (0..21).map(|number| format!("![i](i{number}.png)\n")).collect::<Vec<_>>().concat();
        for number in 0..21 {
            fixture.service.file(&format!("i{number}.png"), SMALL);
        }
        let absolute = format!("![i]({})", outside.path().join("secret.png").display());
        for (body, why) in [
            ("![](icon.png)", "in line 3, the image icon.png has no text"),
            ("Text\n\n> ![  ](icon.png)", "in line 5, the image icon.png has no text"),
            ("![i](missing.png)", "in line 3, the image missing.png cannot be read: No such file"),
            ("![i](drawing.png)", "in line 3, the image drawing.png is neither PNG, JPEG nor GIF"),
            ("![i](damaged.png)", "in line 3, the image damaged.png is damaged"),
            ("![i](large.png)", "in line 3, the image large.png is too large"),
            ("![i](half.png)\n![i](other.png)", "in line 4, the image other.png is too large"),
            ("![i](folder.png)", "in line 3, the image folder.png is not a regular file"),
            ("![i](../icon.png)", "in line 3, the image ../icon.png is outside the folder"),
            (&absolute, "is outside the folder"),
            ("![i](linked.png)", "in line 3, the image linked.png is a symbolic link"),
            ("![i](below/secret.png)", "in line 3, the image below/secret.png is a symbolic link"),
            (
                "![i](https://elsewhere.example/a.png)",
                "in line 3, the image https://elsewhere.example/a.png is not a file",
            ),
            (&many, "in line 23, the image i20.png is one too many"),
            (&"* a\n".repeat(15_000), "KB long as HTML, and Gmail cuts off what follows 102 KB"),
        ] {
            let file = fixture.file("bad.md", &format!("# A\n\n{body}\n"));
            for arguments in
                [&["send", &file, "--yes"][..], &["preview", &file], &["test", &file, "--to", "me@troupe.example"]]
            {
                let (code, output) = fixture.run(arguments);
                assert!(code == 1 && output.contains(why), "{why}: {output}");
                assert!(!why.starts_with("in line") || output.contains("bad.md cannot be used: "), "{output}");
            }
        }
        for table in ["letters", "letter_images", "letter_recipients", "letter_months"] {
            assert_eq!(fixture.service.database.count(table).await, 0, "{table}");
        }
        assert!(fixture.server.mails().await.is_empty());
    })
    .await;
}

#[tokio::test]
async fn a_preview_shows_the_images_that_will_be_sent() {
    on_each_database(async |fixture| {
        let file = letter(fixture);
        assert_eq!(fixture.run(&["preview", &file]).0, 0);
        let read = |extension: &str| std::fs::read_to_string(file.replace(".md", extension)).unwrap();
        let (html, source) = (read(".preview.html"), read(".preview.eml"));
        assert!(html.contains(&format!("src=\"data:image/png;base64,{}\"", STANDARD.encode(WIDE))), "{html:.5000}");
        assert!(!html.contains("cid:"));
        assert!(read(".preview.txt").starts_with(TEXT));
        fixture.run(&["test", &file, "--to", "me@troupe.example"]);
        let [test] = fixture.server.mails().await.try_into().expect("one mail");
        assert_eq!(source.matches("Content-ID").count(), 2);
        for part in &test.parts[4..] {
            let id = part.id.as_deref().unwrap();
            assert!(source.contains(id), "{id}: {source:.5000}");
        }
    })
    .await;
}

#[tokio::test]
async fn the_unsubscribe_link_of_a_test_copy_explains_itself() {
    on_each_database(async |fixture| {
        let file = fixture.file("a.md", super::LETTER);
        fixture.run(&["test", &file, "--to", "me@troupe.example"]);
        let [mail] = fixture.server.mails().await.try_into().expect("one mail");
        let url = mail.header("list-unsubscribe").trim_matches(['<', '>']).to_owned();
        let path = url.strip_prefix(BASE_URL).expect("an address of ours");
        let form = [("content-type", "application/x-www-form-urlencoded")];
        for (method, headers, body) in
            [(Method::GET, &form[..0], ""), (Method::POST, &form, "List-Unsubscribe=One-Click")]
        {
            let page = fixture.service.send(method, path, headers, body).await;
            assert_eq!(page.status, 200, "{}", page.text());
            assert!(page.text().contains("This is the link of a test copy"), "{}", page.text());
            assert!(!page.text().contains("<form method=\"post\""), "{}", page.text());
        }
    })
    .await;
}
