//! Who gets a letter and who does not, as `letter send` says it before and after, and as `letter recipients` lists it.

use serde_json::{Value, json};

use super::{LETTER, LetterFixture, on_each_database};
use crate::harness::Program;

const OTHER: &str = "# Another\n\nMore.\n";

fn people(fixture: &LetterFixture, arguments: &[&str]) {
    let mut command = fixture.service.command(&["people"]);
    command.args(arguments).args(["--database-url", fixture.service.database.url()]);
    let (code, output) = Program::run(command);
    assert_eq!(code, 0, "{output}");
}

#[tokio::test]
async fn the_question_says_how_many_get_it_and_why_others_do_not() {
    on_each_database(async |fixture| {
        fixture.download("ada@example.com", true).await;
        assert_eq!(fixture.send(&fixture.file("a.md", LETTER)).0, 0);
        for address in ["ada+news@example.com", "bob@example.com", "bob+1@example.com", "cyd@example.com", "eve@example.com"] {
            fixture.download(address, true).await;
        }
        people(fixture, &["suppress", "eve@example.com"]);
        let pending = "INSERT INTO confirmations (address, consent, state, at, expires_at) VALUES ('cyd@example.com', 'x', 'pending', 0, 0); \
                       UPDATE people SET opt_in = NULL WHERE address = 'cyd@example.com'";
        fixture.service.database.execute(pending).await;
        let file = fixture.file("b.md", OTHER);
        let said = [
            "1 opt-in is not confirmed yet and gets no letter.",
            "4 people do not get it: 2 had a letter this month, 1 is suppressed, 1 shares the mailbox of another.",
        ];
        // There is no terminal to answer at.
        let (code, output) = fixture.run(&["send", &file]);
        assert_eq!(code, 2, "{output}");
        assert!(said.iter().all(|sentence| output.contains(sentence)), "{output}");
        assert_eq!(fixture.run(&["status", &file]).0, 1, "nothing was started");

        let (code, output) = fixture.send(&file);
        assert_eq!(code, 0, "{output}");
        assert!(output.contains("“Another”: 4 recipients, 1 sent, 0 waiting, 0 uncertain, 0 refused, 3 skipped\n"), "{output}");
        assert!(output.contains("Skipped: had a letter this month (3)."), "{output}");
        assert_eq!(fixture.recipients().await.len(), 2, "Ada, and one of the addresses of Bob");
        let (code, output) = fixture.send(&file);
        assert!(code == 0 && output.contains("This letter has already been sent."), "{output}");
    })
    .await;
}

#[tokio::test]
async fn a_letter_that_nobody_would_get_is_not_started() {
    on_each_database(async |fixture| {
        fixture.download("ada@example.com", true).await;
        fixture.download("bob@example.com", true).await;
        people(fixture, &["suppress", "bob@example.com"]);
        assert_eq!(fixture.send(&fixture.file("a.md", LETTER)).0, 0);
        let (code, output) = fixture.send(&fixture.file("b.md", OTHER));
        assert_eq!(code, 1, "{output}");
        assert!(output.contains("nothing was sent: 1 had a letter this month, 1 is suppressed."), "{output}");
        assert!(output.contains("`notice` in site.toml"), "{output}");
        assert_eq!(fixture.service.database.count("letters").await, 1);
        assert_eq!(fixture.recipients().await, ["ada@example.com"]);
    })
    .await;
}

#[tokio::test]
async fn who_still_waits_and_opted_out_is_not_counted_as_a_recipient() {
    on_each_database(async |fixture| {
        for name in ["ada", "bob", "cyd"] {
            fixture.download(&format!("{name}@example.com"), true).await;
        }
        let sender = super::refusals::sender(fixture).await;
        sender.store.close().await;
        let opt_out = |name| format!("UPDATE people SET opt_in = NULL WHERE address = '{name}@example.com'");
        fixture.service.database.execute(&opt_out("bob")).await;
        let file = fixture.file("a.md", LETTER);
        let (_, output) = fixture.run(&["send", &file]);
        assert!(output.contains("1 person does not get it: 1 opted out since."), "{output}");
        let sent = "UPDATE letter_recipients SET state = 'sent' WHERE address = 'ada@example.com'; \
                    UPDATE letters SET waiting = 2, sent = 1";
        fixture.service.database.execute(&format!("{sent}; {}", opt_out("cyd"))).await;
        let (code, output) = fixture.run(&["send", &file]);
        assert_eq!(code, 0, "nobody is mailed, so nothing is asked: {output}");
        assert!(output.contains("Skipped: opted out since (2)."), "{output}");
        assert!(fixture.recipients().await.is_empty());
    })
    .await;
}

#[tokio::test]
async fn recipients_are_listed_by_state_as_text_csv_and_json() {
    on_each_database(async |fixture| {
        for name in ["ada", "bob", "=cyd"] {
            fixture.download(&format!("{name}@example.com"), true).await;
        }
        fixture.server.command("reject bob 552 5.2.2 over, quota").await;
        assert_eq!(fixture.send(&fixture.file("a.md", LETTER)).0, 0);
        let bounced = "UPDATE letter_recipients SET bounce = '4.2.2', bounced_at = 1794744000000 WHERE address LIKE 'ada%'; \
                       UPDATE letters SET bounced = 1";
        fixture.service.database.execute(bounced).await;
        let id = fixture.status()["id"].as_str().unwrap().to_owned();
        let (_, listed) = fixture.run(&["list"]);
        assert!(listed.starts_with(&id[..8]), "{listed}");

        let list = |more: &[&str]| {
            let output = Program::run_to_end(&mut fixture.command(&[&["recipients", &id[..8]], more].concat()));
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            String::from_utf8(output.stdout).unwrap()
        };
        let emails = |more: &[&str]| -> Vec<String> {
            let json: Value = serde_json::from_str(&list(&[more, &["--json"]].concat())).unwrap();
            json.as_array().unwrap().iter().map(|row| row["email"].as_str().unwrap().to_owned()).collect()
        };
        assert_eq!(emails(&[]), ["=cyd@example.com", "ada@example.com", "bob@example.com"]);
        for (state, expected) in [
            ("sent", &["=cyd@example.com", "ada@example.com"][..]),
            ("refused", &["bob@example.com"]),
            ("bounced", &["ada@example.com"]),
            ("waiting", &[]),
            ("skipped", &[]),
            ("uncertain", &[]),
        ] {
            assert_eq!(emails(&["--state", state]), expected, "{state}");
        }
        let json: Value = serde_json::from_str(&list(&["--state", "refused", "--json"])).unwrap();
        let row = &json[0];
        assert_eq!((&row["state"], &row["bounce"]), (&json!("refused"), &Value::Null));
        assert!(row["trouble"].as_str().unwrap().contains("5.2.2 over, quota"), "{row:#}");
        let csv = list(&["--csv"]);
        let rows: Vec<_> = csv.lines().collect();
        assert_eq!((rows.len(), rows[0]), (4, "email,state,at,trouble,bounce,bounced_at"));
        assert!(rows[1].starts_with("'=cyd@example.com,sent,2026-11-15T"), "no formula: {csv}");
        assert!(rows[2].ends_with(",,4.2.2,2026-11-15T12:00:00Z"), "{csv}");
        assert!(rows[3].starts_with("bob@example.com,refused,2026") && rows[3].ends_with("over, quota\",,"), "{csv}");
        let text = list(&["--state", "bounced"]);
        assert_eq!(text, "2026-11-15  sent       ada@example.com, bounced (4.2.2)\n");
        for (reference, code, words) in [("ffffffffff", 1, "No letter ffffffffff has been sent"), ("a.md", 2, "letter list")] {
            let (found, output) = fixture.run(&["recipients", reference]);
            assert!(found == code && output.contains(words), "{output}");
        }
    })
    .await;
}
