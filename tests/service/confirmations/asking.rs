//! Who is asked to confirm an opt-in, when, and how often.

use std::time::Duration;

use futures_util::future::join_all;
use porchlight::actions::SendStep;
use porchlight::clock::Clock;
use porchlight::config::RawSettings;
use porchlight::domain::limits::MAX_CONFIRMATION_MAILS;
use porchlight::domain::network::BaseUrl;
use porchlight::site::{Content, MailTemplates};
use reqwest::Method;
use serde_json::json;

use super::{BASE_URL, FORM, HOUR, confirming, link, on_each_database, sender};
use crate::harness::{MailServer, Service, each_migrated_database};
use crate::unsubscribe;

#[tokio::test]
async fn the_mail_has_one_link_and_names_date_and_origin() {
    on_each_database(async |fixture| {
        let evil = json!({ "email": "ada@example.com", "updates": true, "source": "<b>Buy now</b>" });
        fixture.service.post("/api/download", &evil).await.expect_ok();
        let mails = fixture.mails().await;
        let mail = &mails[0];
        assert_eq!(mail.recipients, ["ada@example.com"]);
        assert_eq!(mail.header("subject"), "Troupe: please confirm one email a month");
        assert_eq!(mail.header("auto-submitted"), "auto-generated");
        assert!(mail.header("message-id").ends_with("@troupe.example>"));
        assert!(mail.defects.is_empty(), "{:?}", mail.defects);
        for part in [&mail.text, &mail.html] {
            assert!(part.contains("15 November 2026") && part.contains("a program"), "{part}");
            assert!(part.contains("a page with one more button"), "{part}");
            assert!(part.contains(&link(mail)), "{part}");
            assert!(!part.contains("Buy now"), "no text of a caller: {part}");
        }
        assert!(mail.html.contains(">Confirm the monthly email</a>"), "{}", mail.html);
        assert_eq!(mail.text.matches("/confirm/").count(), 1, "{}", mail.text);
        for tracker in ["<img", "<link", "<script", "url("] {
            assert!(!mail.html.contains(tracker), "{}", mail.html);
        }
    })
    .await;
}

#[tokio::test]
async fn the_mail_is_in_the_language_of_the_site() {
    let site = tempfile::tempdir().unwrap();
    on_each_database(async |fixture| {
        for (language, subject, words) in [
            (
                "de",
                "Troupe: bitte bestätige die monatliche E-Mail",
                [
                    "am 15.\u{a0}November 2026 über ein Programm",
                    "eine Seite mit noch einem Knopf",
                    "Wenn du es warst, bestätige es",
                ],
            ),
            (
                "fr",
                "Troupe\u{a0}: confirmez l’e-mail mensuel",
                [
                    "Le 15\u{a0}novembre 2026, par un programme",
                    "une page avec un dernier bouton",
                    "merci de confirmer\u{a0}:",
                ],
            ),
        ] {
            let facts = format!("language = \"{language}\"\n{}", include_str!("../../../content/site.toml"));
            std::fs::write(site.path().join("site.toml"), facts).unwrap();
            let content = Content::with_folder(site.path()).unwrap();
            let templates = MailTemplates::read(&content, BaseUrl::parse(BASE_URL).unwrap(), None).unwrap();
            fixture.sender.confirmations.templates.replace(templates);
            fixture.opt_in(&format!("{language}@example.com")).await;
            let mails = fixture.mails().await;
            let mail = &mails[0];
            println!("{}\n{}", mail.header("subject"), mail.text);
            assert_eq!(mail.header("subject"), subject);
            for part in [&mail.text, &mail.html] {
                assert!(words.iter().all(|words| part.contains(words)), "{part}");
            }
        }
    })
    .await;
}

#[tokio::test]
async fn however_often_somebody_posts_a_mailbox_is_asked_once_and_its_variants_together_once_in_thirty_days() {
    on_each_database(async |fixture| {
        for number in 0..5 {
            fixture.opt_in(&format!("ada+{number}@example.com")).await;
            fixture.opt_in("ada@example.com").await;
            fixture.opt_in("ADA@example.com").await;
        }
        let mails = fixture.mails().await;
        let mut asked: Vec<_> = mails.iter().flat_map(|mail| &mail.recipients).collect();
        asked.sort();
        assert!(
            matches!(asked.as_slice(), [variant, plain] if variant.contains('+') && *plain == "ada@example.com"),
            "nobody blocks ada with a variant: {asked:?}"
        );
        for _ in 0..29 {
            fixture.days_pass(1).await;
            fixture.opt_in("ada@example.com").await;
            fixture.opt_in("ada+1@example.com").await;
            assert!(fixture.mails().await.is_empty());
        }
        assert_eq!(fixture.person("ada@example.com")["consents"].as_array().map(Vec::len), Some(1));
        assert!(fixture.recipients().await.is_empty());
    })
    .await;
}

#[tokio::test]
async fn a_hundred_forms_of_one_gmail_mailbox_are_asked_twice() {
    on_each_database(async |fixture| {
        for number in 0..50 {
            let dots: String = (0..6).map(|bit| if number >> bit & 1 == 1 { "x." } else { "x" }).collect();
            for domain in ["gmail.com", "googlemail.com"] {
                fixture.opt_in(&format!("{dots}y@{domain}")).await;
            }
        }
        assert_eq!(fixture.mails().await.len(), 2);
    })
    .await;
}

#[tokio::test]
async fn who_unsubscribed_and_opts_in_again_is_asked_at_once() {
    on_each_database(async |fixture| {
        let link = fixture.asked("ada@example.com").await;
        fixture.press(&link).await;
        let unsubscribe = unsubscribe::link(&fixture.service, "ada@example.com").await;
        fixture.press(&unsubscribe).await;
        assert!(fixture.recipients().await.is_empty());

        fixture.opt_in("ada@example.com").await;
        let mails = fixture.mails().await;
        assert_eq!(mails.len(), 1);
        assert!(fixture.recipients().await.is_empty(), "not before she confirms");
        assert_eq!(fixture.press(&link).await.status, 404, "unsubscribing has ended the first link");
        fixture.press(&super::link(&mails[0])).await;
        assert_eq!(fixture.recipients().await, ["ada@example.com"]);
    })
    .await;
}

#[tokio::test]
async fn whoever_has_an_unsubscribe_link_cannot_have_the_mailbox_asked_again_and_again() {
    on_each_database(async |fixture| {
        let link = fixture.asked("ada@example.com").await;
        fixture.press(&link).await;
        let unsubscribe = unsubscribe::link(&fixture.service, "ada@example.com").await;
        for round in 0..3 {
            fixture.press(&unsubscribe).await;
            fixture.opt_in("ada@example.com").await;
            assert_eq!(
                fixture.mails().await.len(),
                usize::from(round == 0),
                "only her own opt-in can be ended and renewed"
            );
        }
    })
    .await;
}

#[tokio::test]
async fn not_me_for_a_variant_that_waits_leaves_the_address_that_counts() {
    on_each_database(async |fixture| {
        let invented = fixture.asked("ada+invented@example.com").await;
        fixture.service.clock.advance(Duration::from_secs(1));
        let own = fixture.asked("ada@example.com").await;
        fixture.press(&own).await;
        assert_eq!(fixture.service.send(Method::POST, &invented, &[FORM], "reason=not-me").await.status, 200);
        assert_eq!(fixture.recipients().await, ["ada@example.com"]);
        fixture.opt_in("ada+more@example.com").await;
        assert!(fixture.mails().await.is_empty());
    })
    .await;
}

#[tokio::test]
async fn an_erased_person_is_not_asked_again_until_thirty_days_are_over() {
    on_each_database(async |fixture| {
        let link = fixture.asked("ada@example.com").await;
        let (code, output) = fixture.command(&["people", "erase", "ada@example.com", "--yes"]);
        assert_eq!(code, 0, "{output}");
        assert!(output.contains("Kept as a hash for 30 days"), "{output}");
        assert_eq!(fixture.service.get(&link).await.status, 404);
        assert_eq!(fixture.service.database.count("confirmations").await, 0);
        let (code, output) = fixture.command(&["people", "show", "ada@example.com"]);
        assert_eq!(code, 1, "{output}");
        assert!(output.contains("that it was asked to confirm an opt-in"), "{output}");

        fixture.opt_in("ada@example.com").await;
        assert!(fixture.mails().await.is_empty());
        fixture.days_pass(30).await;
        fixture.opt_in("ada@example.com").await;
        assert_eq!(fixture.mails().await.len(), 1);
    })
    .await;
}

#[tokio::test]
async fn at_most_three_hundred_people_are_asked_in_an_hour_and_the_rest_later() {
    on_each_database(async |fixture| {
        let limit = usize::try_from(MAX_CONFIRMATION_MAILS).expect("a few hundred");
        let opt_in = async |number| fixture.opt_in(&format!("p{number}@example.com")).await;
        join_all((0..limit + 5).map(opt_in)).await;
        let other = sender(&fixture.service, &fixture.server);
        loop {
            // Two instances share the limit.
            let (one, two) = tokio::join!(Box::pin(fixture.sender.step()), Box::pin(other.step()));
            let idle = |step| matches!(step, Ok(SendStep::Idle(_)));
            if idle(one) && idle(two) {
                break;
            }
        }
        let mut asked: Vec<_> = fixture.server.mails().await.into_iter().flat_map(|mail| mail.recipients).collect();
        assert_eq!(asked.len(), limit);
        let SendStep::Idle(Some(later)) = fixture.step().await else { panic!("the limit is reached") };
        assert_eq!(later, fixture.service.clock.now().after(HOUR));
        fixture.service.clock.advance(HOUR);
        let rest = fixture.mails().await;
        assert_eq!(rest.len(), 5);
        asked.extend(rest.into_iter().flat_map(|mail| mail.recipients));
        asked.sort_unstable();
        asked.dedup();
        assert_eq!(asked.len(), limit + 5, "nobody was asked twice");
        other.store.close().await;
    })
    .await;
}

#[tokio::test]
async fn a_mail_that_fails_is_retried_with_the_same_message_id_and_a_refused_mailbox_is_given_up() {
    on_each_database(async |fixture| {
        fixture.opt_in("ada@example.com").await;
        fixture.server.command("drop answer").await;
        assert!(matches!(fixture.step().await, SendStep::Failed(_)));
        let first = fixture.server.mails().await;
        fixture.server.command("accept").await;
        assert!(matches!(fixture.step().await, SendStep::Idle(Some(_))), "not at once");
        fixture.service.clock.advance(HOUR);
        let again = fixture.mails().await;
        assert_eq!(again.len(), 1);
        assert_eq!(first[0].header("message-id"), again[0].header("message-id"), "it may have arrived");
        assert_eq!(link(&first[0]), link(&again[0]));
        assert_eq!(fixture.press(&link(&again[0])).await.status, 200);

        fixture.opt_in("bob@example.com").await;
        fixture.server.command("reply recipient 554 5.7.1 relay access denied").await;
        assert!(matches!(fixture.step().await, SendStep::Failed(_)));
        let (_, checks) = fixture.command(&["check"]);
        assert!(checks.contains("1 person still waits for the mail"), "{checks}");
        fixture.server.command("accept").await;
        fixture.service.clock.advance(HOUR);
        assert_eq!(fixture.mails().await.len(), 1, "the fault was that of the mail server");

        fixture.opt_in("nobody@example.com").await;
        fixture.server.command("reply recipient 550 5.1.1 no such user").await;
        assert!(matches!(fixture.step().await, SendStep::Failed(_)));
        fixture.server.command("accept").await;
        fixture.service.clock.advance(24 * HOUR);
        assert!(fixture.mails().await.is_empty(), "given up");
        let (_, checks) = fixture.command(&["check"]);
        assert!(checks.contains("1 person could not be asked to confirm the opt-in"), "{checks}");
        assert_eq!(fixture.recipients().await, ["ada@example.com"]);
    })
    .await;
}

#[tokio::test]
async fn a_rejected_address_and_one_that_must_not_be_asked_hold_up_no_other() {
    on_each_database(async |fixture| {
        for number in 0..15 {
            fixture.opt_in(&format!("later{number}@example.com")).await;
            fixture.opt_in(&format!("ada+{number}@example.com")).await;
            fixture.service.clock.advance(Duration::from_millis(1));
        }
        fixture.opt_in("bob@example.com").await;
        fixture.server.command("reject later 450 4.2.0 try again").await;
        let mut asked = Vec::new();
        for _ in 0..2 {
            // No time passes: each step goes on where the one before has stopped.
            assert!(!matches!(fixture.step().await, SendStep::Idle(_)));
            asked.extend(fixture.server.mails().await.into_iter().flat_map(|mail| mail.recipients));
        }
        asked.sort_unstable();
        assert_eq!(asked, ["ada+0@example.com", "bob@example.com"]);
    })
    .await;
}

#[tokio::test]
async fn who_waits_is_asked_although_the_setting_was_turned_off() {
    for database in each_migrated_database().await {
        let mut server = MailServer::start().await;
        let service = Service::start(confirming(), database.clone()).await;
        service.post("/api/download", &json!({ "email": "ada@example.com", "updates": true })).await.expect_ok();
        service.stop().await;
        let settings = RawSettings { confirm_updates: None, smtp_url: Some(server.url()), ..confirming() };
        let service = Service::start(settings, database).await;
        assert_eq!(server.next_mail().await.recipients, ["ada@example.com"]);
        service.stop().await;
    }
}

#[tokio::test]
async fn a_mail_whose_next_try_is_a_year_ahead_because_the_clock_was_is_sent_now() {
    on_each_database(async |fixture| {
        fixture.opt_in("ada@example.com").await;
        fixture.server.command("reply recipient 451 4.3.0 later").await;
        let mut ahead = sender(&fixture.service, &fixture.server);
        ahead.clock = Clock::manual(fixture.service.clock.now().after(365 * 24 * HOUR));
        assert!(matches!(ahead.step().await, Ok(SendStep::Failed(_))));
        ahead.store.close().await;
        fixture.server.command("accept").await;
        assert_eq!(fixture.mails().await.len(), 1);
    })
    .await;
}

#[tokio::test]
async fn a_mail_whose_outcome_stays_unknown_is_sent_twice_at_most() {
    on_each_database(async |fixture| {
        fixture.opt_in("ada@example.com").await;
        fixture.server.command("drop answer").await;
        for _ in 0..5 {
            fixture.step().await;
            fixture.service.clock.advance(24 * HOUR);
        }
        assert_eq!(fixture.server.mails().await.len(), 2);
    })
    .await;
}

#[tokio::test]
async fn who_is_unsuppressed_is_asked_after_the_next_opt_in() {
    on_each_database(async |fixture| {
        assert_eq!(fixture.command(&["people", "suppress", "ada@example.com"]).0, 0);
        fixture.opt_in("ada@example.com").await;
        assert!(fixture.mails().await.is_empty());
        assert_eq!(fixture.command(&["people", "unsuppress", "ada@example.com"]).0, 0);
        let link = fixture.asked("ada@example.com").await;
        fixture.press(&link).await;
        assert_eq!(fixture.recipients().await, ["ada@example.com"]);
        assert_eq!(fixture.service.database.count("consents").await, 1);
    })
    .await;
}
