//! Opt-ins that have to be confirmed by mail (`confirm_updates`), from the form to the letter.

mod asking;

use std::time::Duration;

use porchlight::actions::{ConfirmationTexts, OutboxSender, SendStep};
use porchlight::config::RawSettings;
use porchlight::domain::limits::CONFIRMATION_PERIOD;
use porchlight::domain::mail::{Mailbox, Relay};
use porchlight::domain::network::BaseUrl;
use porchlight::mail::{MailAddress, Mailer};
use porchlight::site::{Content, CurrentMailTemplates, MailTemplates};
use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{
    Answer, Database, MailServer, Program, ReceivedMail, Service, each_migrated_database, on_one_database_with,
    wait_until,
};

const BASE_URL: &str = "https://troupe.example";
const FORM: (&str, &str) = ("content-type", "application/x-www-form-urlencoded");
const HOUR: Duration = Duration::from_hours(1);

/// The mail server of the service does not exist, so that the test runs the steps of the sender itself.
pub(super) fn confirming() -> RawSettings {
    RawSettings {
        confirm_updates: Some("yes".to_owned()),
        smtp_url: Some("smtp://127.0.0.1:1".to_owned()),
        mail_from: Some("Troupe <hello@troupe.example>".to_owned()),
        contact_to: Some("makers@troupe.example".to_owned()),
        ..RawSettings::default()
    }
}

struct Fixture {
    service: Service,
    server: MailServer,
    sender: OutboxSender,
}

async fn on_each_database(test: impl AsyncFn(&mut Fixture)) {
    for database in each_migrated_database().await {
        println!("on {database:?}");
        let mut fixture = Fixture::open(database).await;
        test(&mut fixture).await;
        fixture.sender.store.close().await;
        fixture.service.stop().await;
    }
}

pub(super) fn texts() -> ConfirmationTexts {
    let base_url = BaseUrl::parse(BASE_URL).expect("a URL");
    let templates = MailTemplates::read(&Content::default(), base_url.clone(), None).expect("templates");
    ConfirmationTexts { templates: CurrentMailTemplates::new(templates), base_url }
}

fn sender(service: &Service, server: &MailServer) -> OutboxSender {
    let from = Mailbox::parse("Troupe <hello@troupe.example>").expect("a sender");
    OutboxSender {
        store: service.database.store(),
        mailer: Mailer::new(Relay::parse(&server.url()).expect("a mail server"), &from).expect("a sender"),
        to: MailAddress::from_mailbox(&from).expect("a recipient"),
        desk_email: None,
        confirmations: texts(),
        clock: service.clock.clone(),
    }
}

/// The path of the link in a mail.
fn link(mail: &ReceivedMail) -> String {
    let url = mail.text.lines().find(|line| line.starts_with(BASE_URL)).expect("a link on a line of its own");
    url.strip_prefix(BASE_URL).expect("a path").to_owned()
}

impl Fixture {
    async fn open(database: Database) -> Self {
        let server = MailServer::start().await;
        let service = Service::start(confirming(), database).await;
        let sender = sender(&service, &server);
        Self { service, server, sender }
    }

    async fn opt_in(&self, email: &str) {
        let order = json!({ "email": email, "updates": true, "source": "tests" });
        self.service.post("/api/download", &order).await.expect_ok();
    }

    async fn step(&self) -> SendStep {
        self.sender.step().await.expect("a database that answers")
    }

    /// Steps for as long as mails go, and returns those that arrived.
    async fn mails(&mut self) -> Vec<ReceivedMail> {
        while let SendStep::Sent = self.step().await {}
        self.server.mails().await
    }

    /// Opts in and returns the link in the mail that follows.
    async fn asked(&mut self, email: &str) -> String {
        self.opt_in(email).await;
        let mails = self.mails().await;
        let [mail] = mails.as_slice() else { panic!("one mail: {mails:#?}") };
        link(mail)
    }

    async fn press(&self, link: &str) -> Answer {
        self.service.send(Method::POST, link, &[FORM], "").await
    }

    async fn not_me(&self, link: &str) -> Answer {
        self.service.send(Method::POST, link, &[FORM], "reason=not-me").await
    }

    /// The addresses that a letter would go to.
    async fn recipients(&self) -> Vec<String> {
        let page = self.sender.store.recipients_page("").await.expect("recipients");
        page.into_iter().flat_map(|page| page.people).map(|email| email.key().to_owned()).collect()
    }

    fn command(&self, arguments: &[&str]) -> (i32, String) {
        let mut command = self.service.command(arguments);
        command.args(["--database-url", self.service.database.url()]);
        Program::run(command)
    }

    fn person(&self, email: &str) -> Value {
        let (code, output) = self.command(&["people", "show", email, "--json"]);
        assert_eq!(code, 0, "{output}");
        serde_json::from_str(&output).expect("JSON")
    }

    async fn days_pass(&self, days: u64) {
        self.service.clock.advance(24 * HOUR * u32::try_from(days).expect("a few"));
        self.sender.store.prune_confirmations(self.service.clock.now()).await.expect("a database that answers");
    }
}

#[tokio::test]
async fn an_opt_in_counts_once_the_person_pressed_the_button() {
    on_each_database(async |fixture| {
        let link = fixture.asked("Ada@Example.com").await;
        assert!(fixture.recipients().await.is_empty(), "nobody is mailed a letter yet");
        let person = fixture.person("ada@example.com");
        assert_eq!((&person["updates"], &person["pending"]), (&json!(false), &json!(true)), "{person:#}");
        assert_eq!(person["asked_at"], "2026-11-15T12:00:00Z");
        assert_eq!(person["consents"][0]["pending"], true);
        assert_eq!(person["consents"][0]["confirmed_at"], Value::Null);

        fixture.service.clock.advance(HOUR);
        for looked in [fixture.service.get(&link).await, fixture.service.head(&link).await] {
            assert_eq!(looked.header("referrer-policy"), "strict-origin");
            assert_eq!(looked.status, 200, "a mail scanner follows the link");
        }
        assert!(fixture.recipients().await.is_empty(), "looking confirms nothing");

        let pressed = fixture.press(&link).await;
        assert_eq!(pressed.status, 200);
        assert!(pressed.text().contains("The monthly email is on"), "{}", pressed.text());
        assert_eq!(fixture.recipients().await, ["ada@example.com"]);
        let person = fixture.person("ada@example.com");
        assert_eq!((&person["updates"], &person["pending"]), (&json!(true), &json!(false)), "{person:#}");
        let consent = &person["consents"][0];
        assert_eq!(consent["at"], "2026-11-15T12:00:00Z");
        assert_eq!(consent["confirmed_at"], "2026-11-15T13:00:00Z");

        assert_eq!(fixture.press(&link).await.status, 200, "pressing again is harmless");
        assert!(fixture.service.get(&link).await.text().contains("The monthly email is on"));
        assert_eq!(fixture.person("ada@example.com"), person);
        assert!(fixture.mails().await.is_empty(), "no mail confirms the confirmation");
    })
    .await;
}

#[tokio::test]
async fn an_opt_in_that_nobody_confirms_is_forgotten_after_thirty_days() {
    on_each_database(async |fixture| {
        let link = fixture.asked("ada@example.com").await;
        fixture.service.clock.advance(CONFIRMATION_PERIOD.saturating_sub(Duration::from_secs(1)));
        assert_eq!(fixture.service.get(&link).await.status, 200);
        fixture.service.clock.advance(Duration::from_secs(1));
        let expired = fixture.service.get(&link).await;
        assert_eq!(expired.status, 404, "before it is pruned, too");
        let unknown = fixture.service.get("/confirm/cut-in-half").await;
        for page in [expired, unknown] {
            assert!(page.text().contains("This link no longer works") && page.text().contains("href=\"/#download\""));
        }
        assert_eq!(fixture.press(&link).await.status, 404);

        // Not pruned yet: the new opt-in takes the place of the expired one, and the person is asked again.
        fixture.opt_in("ada@example.com").await;
        assert_eq!(fixture.service.database.count("consents").await, 1);
        let mails = fixture.mails().await;
        assert_eq!(mails.len(), 1);
        assert_eq!(fixture.press(&self::link(&mails[0])).await.status, 200);
        assert_eq!(fixture.recipients().await, ["ada@example.com"]);

        fixture.opt_in("bob@example.com").await;
        fixture.days_pass(31).await;
        let bob = fixture.person("bob@example.com");
        assert_eq!((&bob["pending"], &bob["consents"], &bob["downloads"]), (&json!(false), &json!([]), &json!(1)));
        assert_eq!(fixture.recipients().await, ["ada@example.com"], "what was confirmed stays");
        for table in ["confirmations", "asked_mailboxes"] {
            assert_eq!(fixture.service.database.count(table).await, 0, "{table}");
        }
    })
    .await;
}

#[tokio::test]
async fn this_was_not_me_is_remembered_for_good() {
    on_each_database(async |fixture| {
        let link = fixture.asked("ada@example.com").await;
        let page = fixture.service.get(&link).await.text();
        assert_eq!(page.matches("<button").count(), 2, "{page}");
        assert!(page.contains("value=\"not-me\""), "{page}");
        let answer = fixture.not_me(&link).await;
        assert_eq!(answer.status, 200);
        assert!(answer.text().contains("We will not write to you again"), "{}", answer.text());
        assert_eq!(fixture.not_me(&link).await.status, 200, "repeating it is harmless");
        for answer in [fixture.press(&link).await, fixture.service.get(&link).await] {
            assert!(answer.text().contains("We will not write to you again"), "{}", answer.text());
        }

        fixture.days_pass(40).await;
        fixture.opt_in("ada@example.com").await;
        assert!(fixture.mails().await.is_empty(), "a suppressed address is never asked");
        let person = fixture.person("ada@example.com");
        assert_eq!((&person["suppressed"], &person["updates"]), (&json!(true), &json!(false)));
        assert_eq!(person["asked_at"], Value::Null);
    })
    .await;
}

#[tokio::test]
async fn after_a_confirmation_not_me_withdraws_it() {
    on_each_database(async |fixture| {
        let link = fixture.asked("ada@example.com").await;
        fixture.press(&link).await;
        assert_eq!(fixture.not_me(&link).await.status, 200);
        assert!(fixture.recipients().await.is_empty());
        let person = fixture.person("ada@example.com");
        assert_eq!(person["suppression"]["reason"], "not-me");
        assert_eq!(person["consents"][0]["withdrawn"]["how"], "not-me");
        let counted = "SELECT CAST(SUM(times) AS BIGINT) FROM counts WHERE kind = 'unsubscribe'";
        assert_eq!(fixture.service.database.number(counted).await, 1);
    })
    .await;
}

#[tokio::test]
async fn the_running_service_asks_at_once_and_the_letter_goes_to_those_who_confirmed() {
    for database in each_migrated_database().await {
        let mut server = MailServer::start().await;
        let mut settings = confirming();
        settings.smtp_url = Some(server.url());
        let service = Service::start(settings, database).await;
        for name in ["ada", "bob"] {
            let order = json!({ "email": format!("{name}@example.com"), "updates": true });
            service.post("/api/download", &order).await.expect_ok();
        }
        let mails = [server.next_mail().await, server.next_mail().await];
        let ada = mails.iter().find(|mail| mail.recipients == ["ada@example.com"]).expect("a mail to Ada");
        let url = ada.text.lines().find(|line| line.starts_with(service.base_url())).expect("a link");
        let path = url.strip_prefix(service.base_url()).expect("a path");
        assert_eq!(service.send(Method::POST, path, &[FORM], "").await.status, 200);
        wait_until("both mails are recorded", async || {
            service.database.count("outbox WHERE kind = 'confirmation' AND state = 'sent'").await == 2
        })
        .await;

        let file = service.file("letter.md", "# News\n\nText.\n").display().to_string();
        let mut letter = service.command(&["letter", "send", &file, "--yes", "--base-url", BASE_URL]);
        letter.args(["--database-url", service.database.url(), "--smtp-url", &server.url()]);
        letter.args(["--mail-from", "hello@troupe.example", "--contact-to", "makers@troupe.example"]);
        letter.args(["--postal-address", "1 Lamp Street", "--letter-rate", "1000"]);
        let (code, output) = Program::run(letter);
        assert_eq!(code, 0, "{output}");
        assert!(output.contains("1 opt-in is not confirmed yet and gets no letter."), "{output}");
        let sent = server.mails().await;
        assert_eq!(sent.iter().map(|mail| mail.recipients[0].as_str()).collect::<Vec<_>>(), ["ada@example.com"]);
        service.stop().await;
    }
}

#[tokio::test]
async fn makers_see_who_is_pending() {
    on_each_database(async |fixture| {
        let link = fixture.asked("ada@example.com").await;
        fixture.press(&link).await;
        fixture.asked("bob@example.com").await;
        let (code, output) = fixture.command(&["people", "export"]);
        assert_eq!(code, 0, "{output}");
        let row = |name: &str| output.lines().find(|line| line.starts_with(name)).expect("a row").to_owned();
        assert!(row("ada").contains("tests,1,2026-11-15T12:00:00Z,false,,,"), "{output}");
        assert!(row("bob").ends_with("false,,2026-11-15T12:00:00Z,2026-11-15T12:00:00Z"), "{output}");
        let (_, output) = fixture.command(&["stats", "--json", "--since", "2026-11-01"]);
        let statistics: Value = serde_json::from_str(&output).expect("JSON");
        assert_eq!(statistics["pending_opt_ins"], 1);
        assert_eq!(statistics["total"]["opt_ins"], 1, "{statistics:#}");
        assert_eq!(statistics["sources"][0]["opt_ins"], 1, "{statistics:#}");
        assert_eq!(statistics["sources"].as_array().map(Vec::len), Some(1), "the rows add up: {statistics:#}");
        let (_, output) = fixture.command(&["people", "show", "bob@example.com"]);
        assert!(output.contains("updates      no (the opt-in waits for its confirmation)"), "{output}");
    })
    .await;
}

#[tokio::test]
async fn a_purge_takes_the_pending_opt_in_with_its_signup() {
    on_each_database(async |fixture| {
        let link = fixture.asked("ada@example.com").await;
        let (code, output) = fixture.command(&["people", "purge", "--source", "tests", "--yes"]);
        assert_eq!(code, 0, "{output}");
        assert_eq!(fixture.press(&link).await.status, 404);
        for table in ["confirmations", "consents", "people"] {
            assert_eq!(fixture.service.database.count(table).await, 0, "{table}");
        }
    })
    .await;
}

#[tokio::test]
async fn pages_and_briefings_say_that_a_confirmation_comes_by_mail() {
    let said = [
        ("/", "A mail asks you to confirm it."),
        ("/", "then one mail asks you to confirm it."),
        ("/index.md", "confirm it by the link that we then mail you"),
        ("/privacy", "one mail that asks you to confirm it"),
        ("/privacy.md", "one mail that asks you to confirm it"),
        ("/download/started", "one mail asks you to confirm it"),
        ("/developers", "It counts once the person has confirmed it"),
        ("/developers.md", "It counts once the person has confirmed it"),
        ("/developers.md", "unsubscribe and confirmation requests with an unknown token"),
        ("/openapi.json", "A mail then asks them to confirm it"),
        ("/llms.txt", "A mail asks them to confirm it"),
        ("/agents.md", "One mail then asks them to confirm it"),
    ];
    on_one_database_with(confirming(), async |service| {
        for (path, words) in said {
            assert!(service.get(path).await.text().contains(words), "{path}");
        }
        for path in ["/", "/index.md", "/privacy", "/download/started", "/llms.txt"] {
            let text = service.get(path).await.text();
            assert!(!text.contains("nothing to confirm") && !text.contains("No confirmation"), "{path}");
        }
        let answer = service.post("/api/download", &json!({ "email": "ada@example.com", "updates": true })).await;
        assert_eq!(answer.expect_ok().as_object().map(serde_json::Map::len), Some(3), "the answer stays the same");
    })
    .await;
    let public = RawSettings {
        base_url: Some(BASE_URL.to_owned()),
        keep_messages: Some("24 months".to_owned()),
        ..confirming()
    };
    on_one_database_with(public, async |service| {
        let length = service.get("/llms.txt").await.text().len();
        assert!(length < 4500, "{length}");
    })
    .await;
    on_one_database_with(RawSettings::default(), async |service| {
        for (path, words) in said {
            assert!(!service.get(path).await.text().contains(words), "{path}");
        }
        assert!(service.get("/").await.text().contains("nothing to confirm"));
        service.post("/api/download", &json!({ "email": "ada@example.com", "updates": true })).await.expect_ok();
        assert_eq!(service.database.count("confirmations").await, 0);
        assert_eq!(service.database.count("people WHERE opt_in IS NOT NULL").await, 1);
    })
    .await;
}
