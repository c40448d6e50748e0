//! The monthly letter, from the command to the mailbox and the unsubscribe link.

mod archive;
mod base_urls;
mod bounces;
mod contents;
mod interrupted;
mod of_service;
mod opt_ins;
mod recipients;
mod refusals;
mod signatures;

use std::process::Command;
use std::time::Duration;

use porchlight::config::RawSettings;
use porchlight::domain::letters::LetterForecast;
use porchlight::site::{Content, MailTemplates};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::harness::{Database, MailServer, Program, Service, each_migrated_database};

/// The public address of the site, whatever this machine calls it.
const BASE_URL: &str = "https://troupe.example";

const LETTER: &str = "# What is new in November\n\nBots answer *sooner*. [Read on](/releases).\n";

/// A service and a mail server, for commands about letters.
pub(super) struct LetterFixture {
    pub service: Service,
    pub server: MailServer,
}

async fn on_each_database(test: impl AsyncFn(&mut LetterFixture)) {
    on_each_database_with(RawSettings::default(), test).await;
}

async fn on_each_database_with(written: RawSettings, test: impl AsyncFn(&mut LetterFixture)) {
    for database in each_migrated_database().await {
        println!("on {database:?}");
        let mut fixture = LetterFixture::open_with(written.clone(), database).await;
        test(&mut fixture).await;
        fixture.counts_agree().await;
        fixture.service.stop().await;
    }
}

impl LetterFixture {
    async fn open(database: Database) -> Self {
        Self::open_with(RawSettings::default(), database).await
    }

    async fn open_with(written: RawSettings, database: Database) -> Self {
        let server = MailServer::start().await;
        let service = Service::start(written, database).await;
        Self { service, server }
    }

    /// Posts a download, with or without an opt-in to the monthly email.
    async fn download(&self, email: &str, updates: bool) {
        let order = json!({ "email": email, "updates": updates, "source": "a <friend>" });
        self.service.post("/api/download", &order).await.expect_ok();
    }

    fn file(&self, name: &str, text: &str) -> String {
        self.service.file(name, text).display().to_string()
    }

    /// `porchlight letter …` as a maker types it on this machine.
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.service.command(&["letter"]);
        command.args(arguments).args(["--database-url", self.service.database.url()]).args([
            "--base-url",
            BASE_URL,
            "--smtp-url",
            &self.server.url(),
            "--mail-from",
            "Troupe <hello@troupe.example>",
            "--contact-to",
            "makers@troupe.example",
            "--postal-address",
            "1 Lamp Street, Oldtown",
            "--letter-rate",
            "1000",
        ]);
        command
    }

    fn run(&self, arguments: &[&str]) -> (i32, String) {
        Program::run(self.command(arguments))
    }

    fn send(&self, file: &str) -> (i32, String) {
        self.run(&["send", file, "--yes"])
    }

    fn status(&self) -> Value {
        let output = Program::run_to_end(&mut self.command(&["status", "--json"]));
        let status: Value = serde_json::from_slice(&output.stdout).expect("JSON and nothing else");
        let counts = ["sent", "waiting", "uncertain", "refused", "skipped"].map(|name| status[name].as_u64().unwrap());
        assert_eq!(status["recipients"], counts.iter().sum::<u64>(), "{status:#}");
        status
    }

    /// Whether the row of each letter counts its recipients as they are.
    async fn counts_agree(&self) {
        let count = |state: &str, condition: &str| {
            let counted =
                format!("SELECT COUNT(*) FROM letter_recipients r WHERE r.letter = letters.id AND {condition}");
            format!("{state} <> ({counted})")
        };
        let states = ["waiting", "uncertain", "sent", "refused", "skipped"];
        let mut wrong: Vec<_> = states.iter().map(|state| count(state, &format!("r.state = '{state}'"))).collect();
        wrong.push(count("bounced", "r.bounce IS NOT NULL AND r.state IN ('sent', 'uncertain')"));
        let wrong = format!("SELECT COUNT(*) FROM letters WHERE {}", wrong.join(" OR "));
        assert_eq!(self.service.database.number(&wrong).await, 0, "the counts of a letter are wrong");
    }

    /// Recipients of all mails since the last call, sorted.
    async fn recipients(&mut self) -> Vec<String> {
        let mails = self.server.mails().await;
        let mut to: Vec<_> = mails.into_iter().flat_map(|mail| mail.recipients).collect();
        to.sort();
        to
    }
}

#[tokio::test]
async fn a_letter_reaches_exactly_those_who_opted_in() {
    on_each_database(async |fixture| {
        fixture.download("Ada@Example.com", true).await;
        fixture.download("bob@example.com", false).await;
        fixture.service.post("/api/waitlist", &json!({ "email": "cyd@example.com" })).await.expect_ok();
        let file = fixture.file("november.md", LETTER);
        let (code, output) = fixture.run(&["send", &file]);
        assert_eq!((code, fixture.server.mails().await.len()), (2, 0), "{output}");
        assert!(output.contains("--yes"), "{output}");

        let (code, output) = fixture.send(&file);
        assert_eq!(code, 0, "{output}");
        let mails = fixture.server.mails().await;
        assert_eq!(mails.len(), 1, "{mails:#?}");
        let mail = &mails[0];
        assert_eq!(mail.recipients, ["Ada@Example.com"], "as first typed");
        assert_eq!(mail.sender, "hello@troupe.example");
        assert!(mail.defects.is_empty(), "{mail:#?}");
        assert_eq!(mail.header("subject"), "What is new in November");
        assert_eq!(mail.header("from"), "Troupe <hello@troupe.example>");
        assert!(mail.header("content-type").starts_with("multipart/alternative"));
        assert_eq!(mail.header("list-unsubscribe-post"), "List-Unsubscribe=One-Click");
        let way_out = mail.header("list-unsubscribe").trim_matches(['<', '>']).to_owned();
        let path = way_out.strip_prefix(BASE_URL).expect("an address of ours").to_owned();
        for part in [&mail.text, &mail.html] {
            for words in ["sooner", "1 Lamp Street, Oldtown", "15 November 2026", "a program", &way_out] {
                assert!(part.contains(words), "{words}: {part}");
            }
            assert!(!part.contains("friend"), "no text of the caller: {part}");
        }
        assert!(mail.html.contains(&format!("href=\"{BASE_URL}/releases\"")), "{}", mail.html);
        assert_eq!(
            fixture.status(),
            json!({
                "id": fixture.status()["id"], "subject": "What is new in November", "started": fixture.status()["started"],
                "recipients": 1, "sent": 1, "waiting": 0, "uncertain": 0, "refused": 0, "skipped": 0,
                "bounced": 0, "archived": false, "run": "command", "stop_reason": null,
            })
        );
        let status = fixture.status();
        let id = status["id"].as_str().expect("an id");
        for (letter, code, words) in [
            (&id[..8], 0, "1 recipient, 1 sent"),
            (&*file, 0, "1 recipient, 1 sent"),
            ("000000", 1, "No letter 000000 has been sent"),
            ("nowhere.md", 1, "The letter in nowhere.md cannot be used: "),
        ] {
            let (ended, output) = fixture.run(&["status", letter]);
            assert!(ended == code && output.contains(words), "{letter}: {output}");
        }

        let form = [("content-type", "application/x-www-form-urlencoded")];
        let left = fixture.service.send(reqwest::Method::POST, &path, &form, "List-Unsubscribe=One-Click").await;
        assert!(left.status.is_success() || left.status.is_redirection(), "{}", left.status);
        assert!(!fixture.service.database.has_updates_on("ada@example.com").await);
    })
    .await;
}

#[tokio::test]
async fn nobody_gets_two_letters_in_one_month() {
    on_each_database(async |fixture| {
        fixture.download("ada@example.com", true).await;
        let (first, second) = (fixture.file("a.md", LETTER), fixture.file("b.md", "# Another\n\nMore.\n"));
        assert_eq!(fixture.send(&first).0, 0);
        assert_eq!(fixture.recipients().await, ["ada@example.com"]);
        let (code, text) = fixture.run(&["send", &first]);
        assert!(code == 0 && text.contains("This letter has already been sent."), "nothing is asked: {text}");
        assert!(fixture.recipients().await.is_empty());

        fixture.download("bob@example.com", true).await;
        assert_eq!(fixture.send(&second).0, 0);
        assert_eq!(fixture.recipients().await, ["bob@example.com"], "another file goes to those who had none");
        let status = fixture.status();
        assert_eq!((&status["sent"], &status["skipped"]), (&json!(1), &json!(1)));
        assert_eq!(fixture.service.database.count("letter_months").await, 2);
        let output = Program::run_to_end(&mut fixture.command(&["list", "--json"]));
        let listed: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(listed.as_array().unwrap().len(), 2);
        let (_, text) = fixture.run(&["list"]);
        assert!(text.contains("  1 of 2 sent, 1 skipped  Another\n"), "{text}");
    })
    .await;
}

#[tokio::test]
async fn one_mailbox_gets_one_letter_however_many_variants_of_it_opted_in() {
    on_each_database(async |fixture| {
        for number in 0..20 {
            fixture.download(&format!("ada.lovelace+{number}@gmail.com"), true).await;
            fixture.download(&format!("bob+{number}@example.com"), true).await;
        }
        assert_eq!(fixture.send(&fixture.file("a.md", LETTER)).0, 0);
        assert_eq!(fixture.recipients().await.len(), 2);
        let status = fixture.status();
        assert_eq!((&status["sent"], &status["skipped"]), (&json!(2), &json!(38)));
    })
    .await;
}

#[tokio::test]
async fn nobody_gets_a_second_letter_in_a_month_that_the_clock_returns_to() {
    on_each_database(async |fixture| {
        fixture.download("ada@example.com", true).await;
        let (day, mut sent) = (Duration::from_hours(24), Vec::new());
        let end_of_month = fixture.service.clock.now().after(16 * day);
        for (name, at) in [
            ("november", end_of_month.before(day)),
            ("december", end_of_month),
            ("november again", end_of_month.before(day)),
            ("december again", end_of_month),
        ] {
            let mut command =
                fixture.command(&["send", &fixture.file(&format!("{name}.md"), &format!("# {name}\n")), "--yes"]);
            Program::set_clock(&mut command, at);
            let (code, output) = Program::run(command);
            // Nobody would get the last one. Of the third the database has forgotten the month, but not the letter.
            assert_eq!(code, i32::from(name == "december again"), "{output}");
            sent.extend(fixture.server.mails().await.iter().map(|mail| mail.header("subject").to_owned()));
        }
        assert_eq!(sent, ["november", "december"]);
    })
    .await;
}

#[tokio::test]
async fn the_database_itself_refuses_a_second_place_in_a_month() {
    on_each_database(async |fixture| {
        fixture.download("ada@example.com", true).await;
        fixture.send(&fixture.file("a.md", LETTER));
        let again = "INSERT INTO letter_months (hash, month, letter) SELECT hash, month, 'other' FROM letter_months";
        assert!(fixture.service.database.refuses(again).await);
    })
    .await;
}

#[tokio::test]
async fn an_unsubscribe_after_the_start_of_a_letter_is_respected() {
    on_each_database(async |fixture| {
        for name in ["ada", "bob"] {
            fixture.download(&format!("{name}@example.com"), true).await;
        }
        let file = fixture.file("a.md", LETTER);
        fixture.server.command("stop-listening").await;
        let waiting = "The mail server is unavailable: Connection error";
        let mut sending = Program::start(fixture.command(&["send", &file, "--yes"]), waiting);
        sending.wait_for_output("Trying again in 2 seconds, for up to an hour.");
        sending.signal(Signal::INT);
        let (status, output) = sending.end();
        assert_eq!(status.code(), Some(1), "{output}");
        assert!(output.contains("Interrupted. 2 recipients have not been sent to yet."), "{output}");
        assert_eq!(fixture.status()["waiting"], 2);

        fixture.service.database.execute("UPDATE people SET opt_in = NULL WHERE address = 'ada@example.com'").await;
        fixture.download("cyd@example.com", true).await;
        fixture.server.command("listen-again").await;
        assert_eq!(fixture.send(&file).0, 0);
        assert_eq!(fixture.recipients().await, ["bob@example.com"], "recipients were written down at the start");
        assert_eq!(fixture.status()["skipped"], 1);
    })
    .await;
}

#[tokio::test]
async fn a_letter_goes_on_when_the_mail_server_is_back() {
    on_each_database(async |fixture| {
        fixture.download("ada@example.com", true).await;
        let file = fixture.file("a.md", LETTER);
        fixture.server.command("stop-listening").await;
        let sending = Program::start(fixture.command(&["send", &file, "--yes"]), "Trying again in 1 second");
        fixture.server.command("listen-again").await;
        let (status, output) = sending.end();
        assert!(status.success(), "{output}");
        assert_eq!(fixture.recipients().await, ["ada@example.com"]);
    })
    .await;
}

#[tokio::test]
async fn a_template_that_fails_is_noticed_before_anybody_is_claimed() {
    on_each_database(async |fixture| {
        fixture.download("ada@example.com", true).await;
        let file = fixture.file("a.md", LETTER);
        let site = tempfile::tempdir().unwrap();
        std::fs::create_dir(site.path().join("templates")).unwrap();
        std::fs::write(site.path().join("templates/letter.txt"), "{{ nothing.at.all }}").unwrap();
        let mut command = fixture.command(&["send", &file, "--yes"]);
        command.arg("--site-dir").arg(site.path());
        let (code, output) = Program::run(command);
        assert!(code == 1 && output.contains("letter.txt"), "{output}");
        assert_eq!(fixture.run(&["status"]).0, 1, "it has not started");
        assert_eq!(fixture.service.database.count("letter_months").await, 0);

        // It fails while the letter is sent.
        let mut sender = refusals::sender(fixture).await;
        let (content, base_url) = (Content::with_folder(site.path()).unwrap(), sender.base_url.clone());
        sender.templates = MailTemplates::read(&content, base_url, Some("1 Lamp Street")).unwrap().into();
        assert!(sender.step().await.is_err());
        assert_eq!((&fixture.status()["waiting"], &fixture.status()["uncertain"]), (&json!(1), &json!(0)));
        assert_eq!(fixture.service.database.count("letter_months").await, 0);
        sender.store.close().await;
    })
    .await;
}

#[tokio::test]
async fn a_preview_and_a_test_reach_no_recipient() {
    on_each_database(async |fixture| {
        fixture.download("ada@example.com", true).await;
        let file = fixture.file("november.md", LETTER);
        let (code, output) = fixture.run(&["preview", &file]);
        assert_eq!(code, 0, "{output}");
        let html = std::fs::read_to_string(file.replace(".md", ".preview.html")).unwrap();
        let text = std::fs::read_to_string(file.replace(".md", ".preview.txt")).unwrap();
        assert!(html.contains("<em>sooner</em>") && text.contains("answer sooner."));
        for name in ["november.txt", "november.html", "november.preview.txt", "november"] {
            let letter = fixture.file(name, LETTER);
            for _ in 0..2 {
                let (code, output) = fixture.run(&["preview", &letter]);
                assert_eq!((code, std::fs::read_to_string(&letter).unwrap().as_str()), (0, LETTER), "{output}");
            }
        }
        assert_eq!(std::fs::read_to_string(&file).unwrap(), LETTER, "a maker's files stay theirs");

        let (code, output) = fixture.run(&["test", &file, "--to", "me@troupe.example"]);
        assert_eq!(code, 0, "{output}");
        let mails = fixture.server.mails().await;
        assert_eq!(mails.len(), 1);
        assert_eq!(mails[0].recipients, ["me@troupe.example"]);
        assert_eq!(mails[0].header("subject"), "[Test] What is new in November");
        assert_eq!(fixture.service.database.count("letters").await, 0);
        assert_eq!(fixture.run(&["status"]).0, 1, "no letter has been sent");
    })
    .await;
}

#[tokio::test]
async fn a_letter_that_cannot_be_sent_says_why() {
    let fixture = LetterFixture::open(Database::migrated_sqlite().await).await;
    let good = fixture.file("good.md", LETTER);
    let (code, output) = fixture.send(&good);
    assert_eq!(code, 1);
    assert!(output.contains("Nobody has opted in"), "{output}");
    let empty = fixture.file("empty.md", "\n");
    let picture = fixture.file("picture.md", "# A\n\n![b](/c.png)\n");
    for (arguments, code, words) in [
        (vec!["send", &empty, "--yes"], 1, "it is empty"),
        (vec!["send", &picture, "--yes"], 1, "in line 3, the image /c.png is outside the folder"),
        (vec!["send", "nowhere.md", "--yes"], 1, "nowhere.md cannot be used"),
        (vec!["test", &good, "--to", "nobody"], 2, "name@example.com"),
        (vec!["status", &good], 1, "has not been sent yet"),
    ] {
        let (found, output) = fixture.run(&arguments);
        assert_eq!(found, code, "{output}");
        assert!(output.contains(words), "{output}");
    }
    for (setting, name) in [("--postal-address", "postal_address"), ("--smtp-url", "smtp_url")] {
        let whole = fixture.command(&["send", &good, "--yes"]);
        let mut arguments: Vec<_> = whole.get_args().collect();
        let place = arguments.iter().position(|argument| *argument == setting).unwrap();
        arguments.drain(place..place + 2);
        let mut command = Program::command(whole.get_current_dir().unwrap(), &[]);
        command.args(arguments);
        let (code, output) = Program::run(command);
        assert_eq!(code, 2, "{output}");
        assert!(output.contains(&format!("`{name}`")), "{output}");
    }
    fixture.service.stop().await;
}

#[tokio::test]
async fn recipients_of_several_pages_are_each_recorded_once() {
    on_each_database(async |fixture| {
        let rows = (0..2100).map(|number| format!("p{number:04}@example.com,true\n")).collect::<Vec<_>>().concat();
        let file = fixture.file("people.csv", &format!("email,updates\n{rows}p2100@example.com,false\n"));
        for arguments in
            [&["import", file.as_str()][..], &["suppress", "p0999@example.com"], &["suppress", "p1500@example.com"]]
        {
            let mut command = fixture.service.command(&["people"]);
            command.args(arguments).args(["--database-url", fixture.service.database.url()]);
            let (code, output) = Program::run(command);
            assert_eq!(code, 0, "{output}");
        }
        let sender = refusals::sender(fixture).await;
        let forecast = sender.store.letter_forecast(None, fixture.service.clock.now()).await.unwrap();
        assert_eq!(forecast, LetterForecast { recipients: 2098, suppressed: 2, ..LetterForecast::default() });
        let database = &fixture.service.database;
        assert_eq!(database.count("letter_recipients").await, 2098);
        let never =
            "letter_recipients WHERE address IN ('p0999@example.com', 'p1500@example.com', 'p2100@example.com')";
        assert_eq!(database.count(never).await, 0);
        sender.store.close().await;
    })
    .await;
}
