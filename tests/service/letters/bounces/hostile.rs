//! Mails that anybody could send to the address of returned letters: they change nothing, and cannot stop the command.

use std::io::Write;
use std::process::Stdio;

use serde_json::Value;

use super::{LETTER, LetterFixture, SAMPLES, on_each_database, sample};
use crate::harness::Program;

/// Sends a letter to one person; gives the sender in its envelope.
async fn one_letter(fixture: &mut LetterFixture) -> String {
    fixture.download("ada@example.com", true).await;
    let mut senders = fixture.send_tagged(&fixture.file("a.md", LETTER)).await;
    senders.remove("ada@example.com").expect("a letter")
}

#[tokio::test]
async fn a_forged_mail_or_one_about_a_letter_that_was_not_sent_changes_nothing() {
    on_each_database(async |fixture| {
        let sender = one_letter(fixture).await;
        let (local, tag) = sender.split_once('@').unwrap().0.split_once('+').unwrap();
        let before = fixture.service.database.everything().await;
        let tagged = |tag: &str| format!("{local}+{tag}@troupe.example");
        for forged in [
            tagged(&"0".repeat(32)),
            tagged(&tag.to_uppercase().replace(|c: char| c.is_ascii_digit(), "A")),
            tagged(&tag[1..]),
            tagged(&format!("{tag}0")),
            tagged(&format!("{}' OR '1'='1", &tag[..20])),
            "ada@example.com".to_owned(),
        ] {
            let (code, output) = fixture.bounce(&sample("postfix-unknown-mailbox", &forged), &[]);
            assert!(code == 0 && output.contains("nothing was changed"), "{forged}: {output}");
        }
        assert_eq!(fixture.service.database.everything().await, before);

        let set = |state: &str| {
            format!("UPDATE letter_recipients SET state = '{state}'; UPDATE letters SET sent = 0; UPDATE letters SET {state} = 1")
        };
        fixture.service.database.execute(&set("waiting")).await;
        let (code, output) = fixture.bounce(&sample("postfix-unknown-mailbox", &sender), &[]);
        assert!(code == 0 && output.contains("belongs to no letter that was sent"), "{output}");
        assert_eq!(fixture.service.database.count("suppressions").await, 0);

        fixture.service.database.execute("UPDATE letters SET waiting = 0").await;
        fixture.service.database.execute(&set("uncertain")).await;
        let (_, output) = fixture.bounce(&sample("postfix-unknown-mailbox", &sender), &[]);
        assert!(output.contains("so it is suppressed"), "a letter that came back had been sent: {output}");
        let status = fixture.status();
        assert_eq!((&status["uncertain"], &status["bounced"]), (&Value::from(1), &Value::from(1)), "{status:#}");
    })
    .await;
}

#[tokio::test]
async fn a_truncated_mail_leads_to_what_the_whole_mail_does_or_to_nothing() {
    on_each_database(async |fixture| {
        let sender = one_letter(fixture).await;
        for (name, result, detail) in SAMPLES {
            let whole = sample(name, &sender);
            let lengths: Vec<_> = (0..whole.len()).step_by(64).collect();
            let files: Vec<_> = lengths
                .iter()
                .map(|length| {
                    fixture.file(&format!("{length}.eml"), &String::from_utf8_lossy(&whole.as_bytes()[..*length]))
                })
                .collect();
            let summary = fixture.bounce_files(&files);
            let last_code = whole.rfind(detail).unwrap_or_default();
            for (length, mail) in lengths.iter().zip(summary["mails"].as_array().unwrap()) {
                if mail["result"] != "unchanged" {
                    assert_eq!(
                        (&mail["result"], &mail["status"]),
                        (&Value::from(result), &Value::from(detail)),
                        "{name}"
                    );
                    assert!(*length > last_code, "{name} was believed after {length} bytes");
                }
            }
            let clear = "DELETE FROM suppressions; UPDATE letters SET bounced = 0; \
                         UPDATE letter_recipients SET bounce = NULL, bounced_at = NULL";
            fixture.service.database.execute(clear).await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_report_inside_another_mail_is_not_believed() {
    on_each_database(async |fixture| {
        let sender = one_letter(fixture).await;
        let report = sample("postfix-unknown-mailbox", &sender);
        let deep = |kind: &str| format!("Content-Type: {kind}\n\n--b\n").repeat(20_000);
        for (name, mail) in [
            ("forwarded", format!("To: {sender}\nContent-Type: message/rfc822\n\n{report}")),
            ("attached", format!("To: {sender}\nContent-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: message/rfc822\n\n{report}\n--b--\n")),
            ("attached to a report", format!("To: {sender}\nContent-Type: multipart/report; boundary=b\n\n--b\nContent-Type: message/rfc822\n\n{report}\n--b--\n")),
            ("nested parts", format!("To: {sender}\n{}", deep("multipart/report; boundary=b"))),
            ("nested mails", format!("To: {sender}\nContent-Type: multipart/report; boundary=b\n\n--b\n{}", deep("message/rfc822"))),
            ("without a boundary", format!("To: {sender}\nContent-Type: multipart/report\n\n{report}")),
            ("an empty boundary", format!("To: {sender}\nContent-Type: multipart/report; boundary=\"\"\n\n--\n{report}")),
            ("no headers", "\n\n".to_owned()),
            ("nothing", String::new()),
        ] {
            let (code, output) = fixture.bounce(&mail, &[]);
            assert!(code == 0 && output.contains("nothing was changed"), "{name}: {output}");
        }
        assert_eq!(fixture.status()["bounced"], 0);
    })
    .await;
}

#[tokio::test]
#[ignore = "more than 10 MB: ./test all"]
async fn of_a_large_mail_only_the_beginning_counts_and_all_of_it_is_taken() {
    on_each_database(async |fixture| {
        let sender = one_letter(fixture).await;
        let large = "A line of a large mail, as often as it takes.\n".repeat(50 * 1024 * 1024 / 46);
        let report = sample("postfix-unknown-mailbox", &sender);
        let (before, status) = report.split_at(report.find("Content-Description: Delivery report").unwrap());
        for (mail, words) in [
            (format!("{before}\n{large}\n{status}"), "reports no failure"),
            (format!("{report}\n{large}"), "ada@example.com has no mailbox"),
        ] {
            let mut command = fixture.bounce_command(&[]);
            let mut child = command.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
            child.stdin.take().unwrap().write_all(mail.as_bytes()).expect("a command that reads everything");
            let output = Program::wait(child, "the end of the command");
            let text = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success() && text.contains(words), "{text}");
        }
    })
    .await;
}
