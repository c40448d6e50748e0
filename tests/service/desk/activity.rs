//! The record of what makers change: by whom, and of no visitor by name.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use porchlight::actions::Pruner;
use reqwest::Method;
use serde_json::json;

use super::{open, put, run, send, token};
use crate::harness::{
    Answer, Database, MailServer, MakerBrowser, Service, disk_image, each_migrated_database, on_each_database,
    on_each_database_with,
};

/// Commands that have no database, or start what has one.
const WITHOUT_DATABASE: [&str; 11] = [
    "backup key",
    "completions",
    "config example",
    "config show",
    "health",
    "mail key",
    "mail record",
    "man",
    "new",
    "serve",
    "site copy",
];

/// The commands of makers, and what was recorded.
struct Makers<'a> {
    service: &'a Service,
    tried: BTreeSet<String>,
    rows: Vec<String>,
}

impl Makers<'_> {
    /// What a database has recorded: who did what.
    async fn recorded(&mut self, database: &Database) -> String {
        self.rows.extend(database.everything().await.remove("activity").expect("a table"));
        let recorded = database.texts("SELECT via || ' ' || COALESCE(name || ' ', '') || what FROM activity").await;
        database.execute("DELETE FROM activity").await;
        recorded.join("; ")
    }

    /// Runs a command that ends with this code and records this, after `command`; empty stands for nothing.
    async fn run(&mut self, arguments: &[&str], code: i32, recorded: &str) {
        let (found, _, said) = run(self.service, arguments);
        assert_eq!(found, code, "{arguments:?}: {said}");
        let recorded = if recorded.is_empty() { String::new() } else { format!("command {recorded}") };
        assert_eq!(self.recorded(&self.service.database).await, recorded, "{arguments:?}: {said}");
        self.tried.insert(arguments.join(" "));
    }

    async fn change_releases(&mut self) {
        self.service.file("image.dmg", disk_image(20_000, 1));
        let publish = ["release", "publish", "image.dmg", "--version", "1.4.0"];
        for (arguments, code, recorded) in [
            (&publish[..], 0, "published release 1.4.0"),
            (&publish, 1, ""),
            (&["release", "edit", "1.4.0", "--minimum-macos", "14.0"], 0, "edited release 1.4.0"),
            (&["release", "edit", "1.4.0"], 2, ""),
            (&["release", "edit", "1.5.0", "--critical"], 1, ""),
            (&["release", "withdraw", "1.4.0"], 2, ""),
            (&["release", "withdraw", "1.4.0", "--yes"], 0, "withdrew release 1.4.0"),
            (&["release", "withdraw", "1.4.0", "--yes"], 1, ""),
            (&["release", "restore", "1.4.0"], 0, "put release 1.4.0 back"),
            (&["release", "restore", "1.4.0"], 1, ""),
            (&["release", "list"], 0, ""),
            (&["release", "show"], 0, ""),
        ] {
            self.run(arguments, code, recorded).await;
        }
        self.service.read_releases();
    }

    async fn send_letters(&mut self, server: &mut MailServer) {
        self.service.file("november.md", "# November\n\nWords.\n");
        let send = ["letter", "send", "november.md", "--yes"];
        self.run(&send, 1, "").await;
        for name in ["zuse", "hopper"] {
            let order = json!({ "email": format!("{name}@example.com"), "updates": true, "source": "zine" });
            self.service.post("/api/download", &order).await.expect_ok();
        }
        self.run(&["letter", "preview", "november.md"], 0, "").await;
        self.run(&["letter", "test", "november.md", "--to", "me@troupe.example"], 0, "").await;
        self.run(&send[..3], 2, "").await;
        server.command("reply hello 554 5.7.1 not you").await;
        self.run(&send, 1, "started to send the letter “November”").await;
        server.command("accept").await;
        self.run(&send, 0, "went on sending the letter “November”").await;
        self.run(&send, 0, "").await;
        let id = self.service.database.texts("SELECT id FROM letters").await.remove(0);
        for (arguments, recorded) in [
            (&["letter", "archive", &id][..], "put the letter “November” into the archive"),
            (&["letter", "archive", &id], ""),
            (&["letter", "archive", &id, "--remove"], "took the letter “November” out of the archive"),
            (&["letter", "archive", &id, "--remove"], ""),
            (&["letter", "status"], ""),
            (&["letter", "list"], ""),
            (&["letter", "recipients", &id], ""),
        ] {
            self.run(arguments, 0, recorded).await;
        }

        let returned = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/service/bounces/postfix-unknown-mailbox.eml");
        let returned = std::fs::read_to_string(returned).expect("a sample");
        let mail = server.mails().await.pop().expect("a letter");
        let sender = "bounces+0123456789abcdef0123456789abcdef@troupe.example";
        self.service.file("returned.eml", returned.replace(sender, &mail.sender));
        self.run(&["bounce", "returned.eml"], 0, "suppressed 1 recipient whose letter came back").await;
        self.run(&["bounce", "returned.eml"], 0, "").await;
    }

    async fn change_people(&mut self) {
        self.service.file("people.csv", "email,suppressed\nbabbage@example.com,false\nturing@example.com,true\n");
        self.service.file("more.csv", "email\nnobody\nperlis@example.com\n");
        for (arguments, code, recorded) in [
            (&["people", "import", "people.csv", "--dry-run"][..], 0, ""),
            (&["people", "import", "people.csv"], 0, "imported 2 people and 1 suppression"),
            (&["people", "import", "people.csv"], 0, ""),
            (&["people", "import", "more.csv", "--all-or-nothing"], 1, ""),
            (&["people", "import", "more.csv"], 1, "imported 1 person"),
            (&["people", "suppress", "babbage@example.com"], 0, "suppressed a person"),
            (&["people", "unsuppress", "babbage@example.com"], 0, "allowed mail to a person again"),
            (&["people", "unsuppress", "babbage@example.com"], 1, ""),
            (&["people", "list"], 0, ""),
            (&["people", "show", "babbage@example.com"], 0, ""),
            (&["people", "export"], 0, ""),
            (&["people", "purge", "--source", "zine"], 2, ""),
            (&["people", "purge", "--source", "zine", "--yes"], 0, "removed 2 signups"),
            (&["people", "purge", "--source", "zine", "--yes"], 1, ""),
            (&["people", "erase", "babbage@example.com", "--yes"], 0, "erased a person"),
            (&["people", "erase", "babbage@example.com", "--yes"], 1, ""),
            (&["people", "erase", "babbage@example.com", "--yes", "--vacuum"], 0, ""),
        ] {
            self.run(arguments, code, recorded).await;
        }
    }

    async fn change_messages(&mut self) {
        for text in ["Difference", "Engine"] {
            let message = json!({ "name": "Lovelace", "email": "ada.l@example.com", "message": text });
            self.service.post("/api/contact", &message).await.expect_ok();
        }
        self.service.database.execute("UPDATE outbox SET state = 'failed'").await;
        let ids = self.service.database.texts("SELECT id FROM messages").await;
        let (one, other) = (ids[0].as_str(), ids[1].as_str());
        for (arguments, code, recorded) in [
            (&["inbox", "list"][..], 0, ""),
            (&["inbox", "show", one], 0, ""),
            (&["inbox", "answered", one, other], 0, "marked 2 messages as answered"),
            (&["inbox", "answered", one, "--undo"], 0, "marked 1 message as not answered"),
            (&["inbox", "answered", "00000000"], 1, ""),
            (&["inbox", "retry", one], 0, "had 1 message mailed again"),
            (&["inbox", "retry", "--all"], 0, "had 1 message mailed again"),
            (&["inbox", "retry", "--all"], 0, ""),
            (&["inbox", "discard", one], 2, ""),
            (&["inbox", "discard", one, other, "--yes"], 0, "discarded 2 messages"),
            (&["inbox", "discard", one, "--yes"], 1, ""),
        ] {
            self.run(arguments, code, recorded).await;
        }
    }

    async fn change_access(&mut self) {
        for (arguments, code, recorded) in [
            (&["desk", "--name", "grace"][..], 0, "made a link that signs grace in"),
            (&["desk", "--end-all"], 0, "ended all sessions"),
            (&["token", "create", "ci", "--may", "publish"], 0, "created the token ci"),
            (&["token", "create", "ci", "--may", "publish"], 1, ""),
            (&["token", "list"], 0, ""),
            (&["token", "revoke", "ci"], 0, "revoked the token ci"),
            (&["token", "revoke", "ci"], 1, ""),
            (&["site", "rename"], 0, "recorded Troupe as the name of the app"),
            (&["site", "rename"], 0, ""),
            (&["stats"], 0, ""),
            (&["check", "--name-server", "127.0.0.1:1"], 0, ""),
        ] {
            self.run(arguments, code, recorded).await;
        }
    }

    /// The copies record where they come from, and the database that is copied stays as it is.
    async fn copy(&mut self) {
        self.run(&["backup", "backup"], 0, "").await;
        self.run(&["restore", "backup"], 0, "").await;
        let restored = Database::sqlite();
        for recorded in ["command restored a backup", ""] {
            let mut command = self.service.command(&["restore", "backup", "--database-url", restored.url()]);
            assert!(command.output().expect("the program").status.success());
            assert_eq!(self.recorded(&restored).await, recorded);
        }
        let target = Database::postgres().await;
        let moving = ["move", "--to", target.url()];
        if self.service.database.is_postgres() {
            return self.run(&moving, 1, "").await;
        }
        for recorded in ["command moved the data to this database", ""] {
            self.run(&moving, 0, "").await;
            assert_eq!(self.recorded(&target).await, recorded);
        }
    }
}

/// All commands, by their manual pages.
fn commands(service: &Service) -> BTreeSet<String> {
    assert_eq!(run(service, &["man", "--to", "man"]).0, 0);
    let pages = service.file("x", "").with_file_name("man").read_dir().expect("a folder");
    let pages = pages.map(|page| page.expect("a page").file_name().into_string().expect("UTF-8"));
    let names: BTreeSet<_> = pages.map(|page| page.trim_end_matches(".1").replace('-', " ")).collect();
    let is_group = |name: &String| names.iter().any(|other| other.starts_with(&format!("{name} ")));
    let commands = names.iter().filter(|name| !is_group(name));
    commands.map(|name| name.trim_start_matches("porchlight ").to_owned()).collect()
}

#[tokio::test]
async fn every_command_that_changes_something_is_recorded_and_no_visitor_is_named() {
    for database in each_migrated_database().await {
        println!("on {database:?}");
        let (mut server, service) = (MailServer::start().await, Service::start(open(), database).await);
        service.file(
            "porchlight.toml",
            format!(
                "data_dir = '.'\nbase_url = 'https://troupe.example'\nsmtp_url = '{}'\nmail_from = 'hello@troupe.example'\n\
                 contact_to = 'makers@troupe.example'\npostal_address = '1 Lamp Street'\nletter_rate = 1000\n\
                 bounce_address = 'bounces@troupe.example'\n",
                server.url()
            ),
        );
        let mut makers = Makers { service: &service, tried: BTreeSet::new(), rows: Vec::new() };
        makers.change_releases().await;
        makers.send_letters(&mut server).await;
        makers.change_people().await;
        makers.change_messages().await;
        makers.change_access().await;
        makers.copy().await;

        for command in commands(&service) {
            let is_tried = makers.tried.iter().any(|tried| tried.starts_with(&command));
            assert!(is_tried || WITHOUT_DATABASE.contains(&command.as_str()), "what does `{command}` record?");
        }
        assert!(makers.rows.len() > 20);
        let rows = makers.rows.concat().to_lowercase();
        for word in ["@", "zuse", "hopper", "zine", "babbage", "turing", "perlis", "ada.l", "lovelace", "engine"] {
            assert!(!rows.contains(word), "{word}: {rows}");
        }
        service.stop().await;
    }
}

#[tokio::test]
async fn a_change_over_http_is_recorded_with_the_name_of_the_token() {
    on_each_database_with(open(), async |service| {
        let (token, image) = (token(service), disk_image(20_000, 1));
        let mut makers = Makers { service, tried: BTreeSet::new(), rows: Vec::new() };
        makers.recorded(&service.database).await;
        let publish = async |token: &str, seed| put(service, token, "1.4.0", &disk_image(20_000, seed)).await;
        let ask = async |method, path, body: &str| send(service, method, &token, path, body).await;
        let mut expect = async |answer: Answer, status, recorded: &str| {
            assert_eq!(answer.status, status, "{}", answer.text());
            let recorded = if recorded.is_empty() { String::new() } else { format!("token ci {recorded}") };
            assert_eq!(makers.recorded(&service.database).await, recorded, "{}", answer.text());
        };
        expect(put(service, "x", "1.4.0", &image).await, 401, "").await;
        expect(publish(&token, 1).await, 201, "published release 1.4.0").await;
        expect(publish(&token, 1).await, 200, "").await;
        expect(publish(&token, 2).await, 409, "").await;
        expect(ask(Method::POST, "1.4.0/notes", "Sooner.").await, 200, "edited release 1.4.0").await;
        expect(ask(Method::POST, "1.5.0/notes", "Sooner.").await, 404, "").await;
        expect(ask(Method::GET, "1.4.0", "").await, 200, "").await;
        expect(ask(Method::GET, "", "").await, 200, "").await;
        expect(ask(Method::DELETE, "1.4.0", "").await, 200, "withdrew release 1.4.0").await;
        expect(ask(Method::DELETE, "1.4.0", "").await, 200, "").await;
        expect(ask(Method::DELETE, "1.5.0", "").await, 404, "").await;
    })
    .await;
}

#[tokio::test]
async fn what_is_done_stays_done_if_it_cannot_be_recorded() {
    on_each_database_with(open(), async |service| {
        let token = token(service);
        service.database.execute("DROP TABLE activity").await;
        let (code, _, said) = run(service, &["people", "suppress", "zuse@example.com"]);
        assert!(code == 0 && said.contains("The desk does not list this under Activity: "), "{said}");
        assert_eq!(service.database.count("suppressions").await, 1);
        assert_eq!(put(service, &token, "1.4.0", &disk_image(20_000, 1)).await.status, 201);
        assert_eq!(MakerBrowser::signed_in(service).await.get("/desk").await.status, 200);
    })
    .await;
}

#[tokio::test]
async fn what_was_done_is_forgotten_after_four_hundred_days() {
    on_each_database(async |service| {
        assert_eq!(run(service, &["people", "suppress", "zuse@example.com"]).0, 0);
        let store = service.database.store();
        let pruner = Pruner { store: store.clone(), clock: service.clock.clone(), keep_messages: None };
        service.clock.advance(Duration::from_hours(400 * 24 - 1));
        pruner.step().await.expect("a database that answers");
        assert_eq!(service.database.count("activity").await, 1);
        service.clock.advance(Duration::from_hours(2));
        pruner.step().await.expect("a database that answers");
        assert_eq!(service.database.count("activity").await, 0);
        store.close().await;
    })
    .await;
}
