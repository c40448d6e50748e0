//! DKIM signatures of letters, as receivers verify them.

use super::{LetterFixture, on_each_database};
use crate::harness::{Database, DkimKey, Program};

/// RFC 8058 requires that the headers of one-click unsubscribe are signed.
pub(super) const SIGNED: [&str; 10] = [
    "from",
    "to",
    "subject",
    "date",
    "message-id",
    "list-id",
    "list-unsubscribe",
    "list-unsubscribe-post",
    "mime-version",
    "content-type",
];

/// A letter that is easily changed on its way.
fn fragile_letter() -> String {
    let long = "a very long line without an end ".repeat(60);
    format!("# Neues im November: größer 🎭\n\n.dot\n\n..two dots\n\n    .code  \n\n{long}\n\nGrüße  \n漢字\n")
}

fn run(fixture: &LetterFixture, key: &DkimKey, arguments: &[&str]) {
    let mut command = fixture.command(arguments);
    let (code, output) = Program::run({
        command.args(key.arguments());
        command
    });
    assert_eq!(code, 0, "{output}");
}

#[tokio::test]
async fn letters_and_test_copies_arrive_with_a_valid_signature() {
    on_each_database(async |fixture| {
        for (key, name) in [(DkimKey::rsa(), "rsa"), (DkimKey::ed25519(), "ed25519")] {
            let file = fixture.file(&format!("{name}.md"), &format!("{}\n{name}\n", fragile_letter()));
            run(fixture, &key, &["test", &file, "--to", "me@troupe.example"]);
            fixture.download(&format!("{name}@example.com"), true).await;
            run(fixture, &key, &["send", &file, "--yes"]);
            let [test, letter] = fixture.server.mails().await.try_into().expect("two mails");
            assert_eq!(letter.recipients, [format!("{name}@example.com")]);
            for mail in [&test, &letter] {
                assert!(mail.defects.is_empty(), "{mail:#?}");
                let verdict = key.assert_signed(&mail.source, &SIGNED);
                assert_eq!(verdict.tags["a"], format!("{name}-sha256"));
            }
            let names = |mail: &crate::harness::ReceivedMail| {
                mail.headers.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>()
            };
            assert_eq!(names(&test), names(&letter), "a test copy is like the real one");
        }
    })
    .await;
}

/// The body of a mail, with the same boundary for all.
fn body(mail: &str) -> String {
    let (headers, body) = mail.split_once("\r\n\r\n").expect("a body");
    let (_, boundary) = headers.split_once("boundary=\"").expect("a boundary");
    body.replace(boundary.trim_end_matches('"'), "boundary")
}

#[tokio::test]
async fn the_preview_has_the_complete_mail() {
    let mut fixture = LetterFixture::open(Database::migrated_sqlite().await).await;
    let (file, key) = (fixture.file("november.md", &fragile_letter()), DkimKey::rsa());
    run(&fixture, &key, &["preview", &file]);
    let read = |extension: &str| std::fs::read_to_string(file.replace(".md", extension)).unwrap();
    let source = read(".preview.eml");
    key.assert_signed(&source, &SIGNED);
    assert!(source.contains("\r\nTo: reader@example.com\r\n") && source.ends_with("--\r\n"), "{source}");

    run(&fixture, &key, &["test", &file, "--to", "me@troupe.example"]);
    let [test] = fixture.server.mails().await.try_into().expect("one mail");
    assert_eq!(body(&source), body(&test.source), "what is shown is what is sent");
    let is_long = |part: &str| part.lines().any(|line| line.len() > 1000);
    for (preview, mailed) in [(read(".preview.html"), &test.html), (read(".preview.txt"), &test.text)] {
        assert_eq!(preview.trim_end(), mailed.trim_end());
        assert!(is_long(&preview));
    }
    fixture.service.stop().await;
}

#[tokio::test]
async fn a_preview_needs_no_mail_server_and_no_database() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("november.md"), fragile_letter()).expect("a letter");
    let (code, output) = Program::run(Program::command(folder.path(), &["letter", "preview", "november.md"]));
    assert_eq!(code, 0, "{output}");
    let source = std::fs::read_to_string(folder.path().join("november.preview.eml")).expect("the mail");
    assert!(source.contains("From: sender@example.com\r\nTo: reader@example.com\r\n"), "{source}");
    assert!(source.contains("\r\nList-Unsubscribe: <http://127.0.0.1:8080/unsubscribe/nobody>\r\n"), "{source}");
    let mut names: Vec<_> =
        std::fs::read_dir(folder.path()).expect("a folder").map(|file| file.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["november.md", "november.preview.eml", "november.preview.html", "november.preview.txt"]);
}
