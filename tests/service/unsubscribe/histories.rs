//! Random sequences of events: exactly those people are mailed whom a simple model predicts.

use std::collections::BTreeMap;
use std::time::Duration;

use porchlight::actions::{LetterSender, LetterStep};
use porchlight::domain::letters::Letter;
use porchlight::domain::mail::{Mailbox, Relay};
use porchlight::domain::network::BaseUrl;
use porchlight::domain::people::SuppressionReason;
use porchlight::mail::{MailAddress, Mailer};
use porchlight::site::{Content, MailTemplates};
use porchlight::store::Store;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use serde_json::json;

use super::{address, download, link, mailed, post};
use crate::harness::{MailServer, Service, on_each_database};

/// Something that happens to one of a few people.
#[derive(Clone, Copy, Debug)]
enum Event {
    Download,
    OptIn,
    Join,
    Look,
    Unsubscribe,
    NotMe,
    Suppress,
    Unsuppress,
    Erase,
}

/// The model of a person.
#[derive(Default)]
struct Person {
    known: bool,
    opted_in: bool,
    suppressed: bool,
    /// The month of the last letter.
    lettered: String,
}

impl Person {
    fn receives_letter(&self) -> bool {
        self.opted_in && !self.suppressed
    }
}

fn histories() -> impl Strategy<Value = Vec<(usize, Event)>> {
    use Event::{Download, Erase, Join, Look, NotMe, OptIn, Suppress, Unsubscribe, Unsuppress};
    let event = prop_oneof![
        4 => Just(OptIn),
        2 => Just(Unsubscribe),
        2 => Just(Erase),
        1 => Just(Download),
        1 => Just(Join),
        1 => Just(Look),
        1 => Just(NotMe),
        1 => Just(Suppress),
        2 => Just(Unsuppress),
    ];
    prop::collection::vec((0..3_usize, event), 1..15)
}

async fn happen(service: &Service, store: &Store, email: &str, event: Event, person: &mut Person) {
    let now = service.clock.now();
    match event {
        Event::Download | Event::OptIn => {
            let opts_in = matches!(event, Event::OptIn);
            download(service, email, opts_in).await;
            person.known = true;
            person.opted_in |= opts_in;
        }
        Event::Join => {
            let answer = service.post("/api/waitlist", &json!({ "email": email })).await.expect_ok();
            assert!(person.known || answer["already"] == false, "who was erased is new");
            person.known = true;
        }
        Event::Look | Event::Unsubscribe | Event::NotMe if !person.known => {}
        Event::Look => assert_eq!(service.get(&link(service, email).await).await.status, 200),
        Event::Unsubscribe => {
            assert_eq!(post(service, &link(service, email).await, "List-Unsubscribe=One-Click").await.status, 200);
            person.opted_in = false;
        }
        Event::NotMe => {
            assert_eq!(post(service, &link(service, email).await, "reason=not-me").await.status, 200);
            (person.opted_in, person.suppressed) = (false, true);
        }
        Event::Suppress => {
            store.suppress(&address(email), SuppressionReason::Makers, now).await.expect("to be done");
            person.suppressed = true;
        }
        Event::Unsuppress => {
            let was = store.unsuppress(&address(email)).await.expect("to be done");
            assert_eq!(was, person.suppressed);
            person.suppressed = false;
        }
        Event::Erase => {
            store.erase(&address(email), now).await.expect("to be done");
            (person.known, person.opted_in) = (false, false);
        }
    }
}

/// Sends a letter to everybody who opted in; returns the recipients that the mail server accepted.
async fn send_letter(service: &Service, store: &Store, server: &mut MailServer, number: usize) -> Vec<String> {
    let relay = Relay::parse(&server.url()).expect("a mail server");
    let from = Mailbox::parse("hello@troupe.example").expect("a sender");
    let base_url = BaseUrl::parse(service.base_url()).expect("an address");
    let mut sender = LetterSender::new(
        store.clone(),
        Mailer::new(relay, &from).expect("a sender"),
        MailTemplates::read(&Content::default(), base_url.clone(), Some("1 Lamp Street")).expect("templates").into(),
        base_url,
        Letter::parse(&format!("# Letter {number}\n\nNews.\n")).expect("a letter"),
        MailAddress::from_mailbox(&from).expect("an address"),
        service.clock.clone(),
    );
    sender.start().await.expect("to be started");
    while let LetterStep::Finished = sender.step().await.expect("a step") {}
    sender.close().await;
    let mut to: Vec<_> = server.mails().await.into_iter().flat_map(|mail| mail.recipients).collect();
    to.sort();
    to
}

fn those(people: &BTreeMap<String, Person>, which: impl Fn(&Person) -> bool) -> Vec<String> {
    people.iter().filter(|(_, person)| which(person)).map(|(email, _)| email.clone()).collect()
}

#[tokio::test]
async fn only_people_with_a_valid_opt_in_are_mailed_and_once_a_month() {
    on_each_database(async |service| {
        let store = service.database.store();
        let mut server = MailServer::start().await;
        let mut runner = TestRunner::default();
        let mut people: BTreeMap<String, Person> = BTreeMap::new();
        for case in 0..24 {
            let history = histories().new_tree(&mut runner).expect("a history").current();
            for (who, event) in &history {
                service.clock.advance(Duration::from_millis(1));
                // Two consecutive cases share their people, and a letter was sent in between.
                let email = format!("p{who}-{}@example.com", case / 2);
                let person = people.entry(email.clone()).or_default();
                happen(service, &store, &email, *event, person).await;
            }
            let mut recipients = mailed(service).await;
            recipients.sort();
            assert_eq!(recipients, those(&people, Person::receives_letter), "{history:?}");

            if case % 6 == 5 {
                service.clock.advance(Duration::from_hours(24 * 31));
            }
            let month = service.clock.now().month();
            let expected = those(&people, |person| person.receives_letter() && person.lettered != month);
            assert_eq!(send_letter(service, &store, &mut server, case).await, expected, "{history:?}");
            for email in expected {
                people.get_mut(&email).expect("a person").lettered.clone_from(&month);
            }
        }
        store.close().await;
    })
    .await;
}
