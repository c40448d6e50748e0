//! `porchlight bounce --maildir`, and what happens to mail while the database is away.

use std::path::{Path, PathBuf};

use serde_json::json;

use super::{LETTER, LetterFixture, on_each_database, sample};
use crate::harness::Program;

fn maildir(fixture: &LetterFixture) -> PathBuf {
    let folder = PathBuf::from(fixture.file("any", "")).parent().unwrap().join("Maildir");
    for name in ["new", "cur", "tmp"] {
        std::fs::create_dir_all(folder.join(name)).unwrap();
    }
    folder
}

/// The names of all files, each with its folder.
fn files(maildir: &Path) -> Vec<String> {
    let mut names = Vec::new();
    for folder in ["new", "cur", "tmp"] {
        let entries = maildir.join(folder).read_dir().unwrap();
        names.extend(entries.map(|entry| format!("{folder}/{}", entry.unwrap().file_name().into_string().unwrap())));
    }
    names.sort();
    names
}

#[tokio::test]
async fn each_mail_of_a_maildir_is_handled_once() {
    on_each_database(async |fixture| {
        for name in ["ada", "bob", "cyd"] {
            fixture.download(&format!("{name}@example.com"), true).await;
        }
        let senders = fixture.send_tagged(&fixture.file("a.md", LETTER)).await;
        let maildir = maildir(fixture);
        let put = |name: &str, mail: String| std::fs::write(maildir.join(name), mail).unwrap();
        put("new/1.a", sample("postfix-unknown-mailbox", &senders["ada@example.com"]));
        put("new/2.b", "Subject: nothing to see\n\nHello\n".to_owned());
        put("cur/3.c:2,F", sample("exim-full-mailbox", &senders["bob@example.com"]));
        put("cur/4.d:2,S", sample("postfix-unknown-mailbox", &senders["cyd@example.com"]));
        put("tmp/5.e", sample("postfix-unknown-mailbox", &senders["cyd@example.com"]));
        let folder = maildir.to_str().unwrap();

        let (code, output) = Program::run(fixture.bounce_command(&["--maildir", folder]));
        assert_eq!(code, 0, "{output}");
        assert!(output.contains("3 mails: 1 suppressed, 1 counted, 1 changed nothing.\n"), "{output}");
        let handled = ["cur/1.a:2,S", "cur/2.b:2,S", "cur/3.c:2,FS", "cur/4.d:2,S", "tmp/5.e"];
        assert_eq!(files(&maildir), handled);
        assert_eq!(fixture.status()["bounced"], 2);
        let again = Program::run(fixture.bounce_command(&["--maildir", folder]));
        assert_eq!(again, (0, String::new()), "a cron job without mail to handle is silent");

        put("new/6.f", sample("postfix-unknown-mailbox", &senders["cyd@example.com"]));
        let (code, output) = Program::run(fixture.bounce_command(&["--maildir", folder, "--delete"]));
        assert!(code == 0 && output.contains("cyd@example.com has no mailbox"), "{output}");
        assert_eq!(files(&maildir), handled);

        let (code, output) = Program::run(fixture.bounce_command(&["--maildir", &format!("{folder}/new")]));
        assert!(code == 1 && output.contains("is not a Maildir"), "{output}");
    })
    .await;
}

#[tokio::test]
async fn nothing_is_lost_while_the_database_is_away_or_the_settings_are_wrong() {
    on_each_database(async |fixture| {
        fixture.download("ada@example.com", true).await;
        let senders = fixture.send_tagged(&fixture.file("a.md", LETTER)).await;
        let mail = sample("postfix-unknown-mailbox", &senders["ada@example.com"]);
        let maildir = maildir(fixture);
        std::fs::write(maildir.join("new/1.a"), &mail).unwrap();
        let away = if fixture.service.database.is_postgres() {
            "postgres://nobody@127.0.0.1:1/nowhere".to_owned()
        } else {
            format!("sqlite:{}", maildir.join("nowhere.db").display())
        };
        for wrong in [["--database-url", &away], ["--bounce-address", "bounces"]] {
            let folder = maildir.to_str().unwrap();
            let mut command = fixture.service.command(&["bounce", "--maildir", folder]);
            let (code, output) = Program::run({
                command.args(wrong);
                command
            });
            assert_eq!((code, files(&maildir)), (75, vec!["new/1.a".to_owned()]), "{output}");
            let mut command = fixture.service.command(&["bounce"]);
            command.args(wrong).stdin(std::fs::File::open(maildir.join("new/1.a")).unwrap());
            let (code, output) = Program::run(command);
            assert_eq!(code, 75, "a mail server tries again: {output}");
        }
        assert!(fixture.bounce(&mail, &[]).1.contains("so it is suppressed"));
        assert_eq!(fixture.status()["bounced"], json!(1));
    })
    .await;
}

#[tokio::test]
async fn a_file_that_cannot_be_read_keeps_no_other_from_being_handled() {
    on_each_database(async |fixture| {
        fixture.download("ada@example.com", true).await;
        let senders = fixture.send_tagged(&fixture.file("a.md", LETTER)).await;
        let file = fixture.file("returned.eml", &sample("postfix-unknown-mailbox", &senders["ada@example.com"]));
        let (code, output) = Program::run(fixture.bounce_command(&["nowhere.eml", &file]));
        assert!(code == 1 && output.contains("nowhere.eml cannot be read"), "{output}");
        assert!(
            output.contains("ada@example.com has no mailbox") && output.contains("1 mail was not handled."),
            "{output}"
        );
        assert_eq!(Program::run(fixture.bounce_command(&["--delete"])).0, 2);
    })
    .await;
}
