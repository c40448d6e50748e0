//! The mail server is unavailable, slow, or rejects mails: nothing is lost, and retries back off.

use std::time::Duration;

use futures_util::future::join_all;
use porchlight::actions::SendStep;
use porchlight::domain::paging::PageStart;
use porchlight::mail::SendFailure;
use porchlight::store::{InboxFilter, InboxQuery};

use super::{message, messages_in, on_each_database, on_one_database};

#[tokio::test]
async fn a_message_is_tried_for_a_week_with_growing_pauses_and_then_kept_as_failed() {
    on_each_database(async |fixture| {
        fixture.server.command("stop-listening").await;
        fixture.write(&message(1)).await;
        let began = fixture.service.clock.now();
        let mut pauses = Vec::new();
        while fixture.states().await == ["waiting"] {
            assert!(matches!(fixture.failed_step().await, SendFailure::Unavailable(_)));
            if fixture.states().await == ["waiting"] {
                pauses.push(fixture.advance_to_next_try().await);
            }
        }
        assert!(pauses[0] <= Duration::from_mins(1), "{pauses:?}");
        assert!(pauses.is_sorted() && pauses.last() <= Some(&Duration::from_hours(3)), "{pauses:?}");
        assert!(began.until(fixture.service.clock.now()) >= Duration::from_hours(7 * 24));
        assert_eq!(fixture.states().await, ["failed"]);

        let query = InboxQuery { filter: InboxFilter::Failed, search: None };
        let failed = fixture.forwarder.store.inbox_page(&query, &PageStart::Newest, 10).await.expect("a list");
        let [entry] = failed.try_into().expect("one message");
        assert_eq!((entry.state.as_str(), entry.received.contact.text.as_str()), ("failed", "Number 1."));
        assert!(entry.last_error.is_some() && entry.tries > 10, "{entry:?}");

        fixture.server.command("listen-again").await;
        assert!(matches!(fixture.step().await, SendStep::Idle(None)), "nobody has asked for another try");
        let now = fixture.service.clock.now();
        assert_eq!(fixture.forwarder.store.retry_all_messages(now).await.expect("to be done"), 1);
        fixture.run().await;
        assert_eq!(messages_in(&fixture.server.next_mail().await), [1]);
        assert_eq!(fixture.states().await, ["sent"]);
    })
    .await;
}

#[tokio::test]
async fn messages_of_an_outage_all_arrive_once_it_is_over() {
    on_each_database(async |fixture| {
        fixture.server.command("stop-listening").await;
        for number in 1..=30 {
            fixture.write(&message(number)).await;
            fixture.step().await;
            fixture.service.clock.advance(Duration::from_mins(10));
        }
        fixture.server.command("listen-again").await;
        fixture.service.clock.advance(Duration::from_hours(3));
        fixture.run().await;
        let mails = fixture.server.mails().await;
        let mut messages: Vec<_> = mails.iter().flat_map(messages_in).collect();
        messages.sort_unstable();
        assert_eq!(messages, (1..=30).collect::<Vec<_>>());
        assert!(mails.len() <= 2, "{} mails", mails.len());
    })
    .await;
}

#[tokio::test]
async fn what_waits_long_goes_as_soon_as_the_mail_server_is_known_to_be_back() {
    on_each_database(async |fixture| {
        fixture.server.command("stop-listening").await;
        fixture.write(&message(1)).await;
        for _ in 0..12 {
            fixture.failed_step().await;
            fixture.advance_to_next_try().await;
        }
        fixture.failed_step().await;
        fixture.server.command("listen-again").await;
        assert!(matches!(fixture.step().await, SendStep::Idle(Some(_))));
        fixture.write(&message(2)).await;
        fixture.run().await;
        assert_eq!(fixture.server.mails().await.iter().flat_map(messages_in).collect::<Vec<_>>(), [2, 1]);
    })
    .await;
}

#[tokio::test]
async fn a_refusal_whether_for_now_or_for_good_is_tried_again() {
    on_one_database(async |fixture| {
        let mut number = 0;
        for stage in ["sender", "recipient", "data", "content"] {
            for reply in ["451 4.3.0 later", "550 5.7.1 never"] {
                number += 1;
                fixture.server.command(&format!("reply {stage} {reply}")).await;
                fixture.write(&message(number)).await;
                let trouble = fixture.failed_step().await;
                let is_of_message = matches!(trouble, SendFailure::MessageRejected { .. });
                assert_eq!(is_of_message, matches!(stage, "data" | "content"), "{trouble:?}");
                let (number_of_reply, words) = (&reply[..3], &reply[4..]);
                assert!(trouble.detail().contains(words), "{trouble:?}");
                let logged = trouble.to_string();
                assert!(logged.contains(number_of_reply) && !logged.contains(words), "{logged}");
                fixture.server.command("accept").await;
                assert!(fixture.advance_to_next_try().await <= Duration::from_mins(1));
                fixture.run().await;
                let [mail] = fixture.server.mails().await.try_into().expect("one mail");
                assert_eq!(messages_in(&mail), [number], "{stage} {reply}");
            }
        }
    })
    .await;
}

#[tokio::test]
async fn a_mail_that_may_have_arrived_goes_again_as_the_same_mail() {
    on_each_database(async |fixture| {
        let mut written = 0;
        for (count, place) in [(1, "answer"), (7, "answer"), (1, "content"), (7, "content")] {
            println!("{count} messages, dropped at the {place}");
            fixture.service.clock.advance(Duration::from_hours(1));
            for _ in 0..count {
                written += 1;
                fixture.write(&message(written)).await;
            }
            fixture.server.command(&format!("drop {place}")).await;
            assert!(matches!(fixture.failed_step().await, SendFailure::Uncertain(_)));
            let first = fixture.server.mails().await;
            assert_eq!(first.len(), usize::from(place == "answer"));

            // What comes meanwhile does not change what may be there already.
            written += 1;
            fixture.write(&message(written)).await;
            fixture.server.command("accept").await;
            fixture.service.clock.advance(Duration::from_mins(1));
            fixture.run().await;
            let [again, other] = fixture.server.mails().await.try_into().expect("two mails");
            assert_eq!((messages_in(&again).len(), messages_in(&other)), (count, vec![written]));
            if let [first] = first.as_slice() {
                assert_eq!(first.source, again.source);
            }
        }
    })
    .await;
}

#[tokio::test]
async fn a_message_that_the_mail_server_does_not_like_holds_up_no_other() {
    for reply in ["554 5.7.1 never", "451 4.7.1 later", "421 4.3.2 closing", "drop"] {
        on_each_database(async |fixture| {
            for poison in [1, 40] {
                fixture.server.command("accept").await;
                fixture.server.command(&format!("poison ada{poison}@ {reply}")).await;
                fixture.write_many(40).await;
                let failure = fixture.failed_step().await;
                assert_eq!(failure.permanent_rejection().is_some(), reply.starts_with('5'), "{failure:?}");
                let (mut arrived, mut waited) = (Vec::new(), Duration::ZERO);
                while arrived.len() < 39 {
                    waited += fixture.advance_to_next_try().await;
                    while !matches!(fixture.step().await, SendStep::Idle(_)) {}
                    arrived.extend(fixture.server.mails().await.iter().flat_map(messages_in));
                    assert!(waited < Duration::from_mins(5), "{reply}: {arrived:?} after {waited:?}");
                }
                arrived.sort_unstable();
                assert_eq!(arrived, (1..=40).filter(|number| *number != poison).collect::<Vec<_>>(), "{reply}");
                assert_eq!(fixture.states().await.iter().filter(|state| *state == "waiting").count(), 1);

                fixture.server.command("accept").await;
                fixture.service.clock.advance(Duration::from_hours(24));
                fixture.run().await;
                assert_eq!(fixture.server.mails().await.iter().flat_map(messages_in).collect::<Vec<_>>(), [poison]);
            }
        })
        .await;
    }
}

#[tokio::test]
async fn a_digest_that_is_refused_once_and_hung_up_on_once_is_halved() {
    on_each_database(async |fixture| {
        fixture.server.command("poison ada13@ 451 4.7.1 later").await;
        fixture.write_many(20).await;
        fixture.failed_step().await;
        fixture.server.command("poison ada13@ drop").await;
        fixture.advance_to_next_try().await;
        assert!(matches!(fixture.failed_step().await, SendFailure::Uncertain(_)));
        fixture.advance_to_next_try().await;
        while !matches!(fixture.step().await, SendStep::Idle(_)) {}
        let arrived = fixture.server.mails().await;
        assert_eq!(arrived.iter().flat_map(messages_in).take(10).collect::<Vec<_>>(), (1..=10).collect::<Vec<_>>());
    })
    .await;
}

#[tokio::test]
async fn no_half_of_a_digest_is_sent_before_its_time() {
    on_each_database(async |fixture| {
        fixture.server.command("poison ada3@ 451 4.7.1 later").await;
        fixture.write_many(20).await;
        fixture.failed_step().await;
        fixture.advance_to_next_try().await;
        fixture.failed_step().await;

        let SendStep::Idle(Some(due)) = fixture.step().await else { panic!("a half is sent at once") };
        let pause = fixture.service.clock.now().until(due);
        assert!(pause >= Duration::from_secs(30), "{pause:?}");
        fixture.service.clock.advance(pause.saturating_sub(Duration::from_millis(1)));
        assert!(matches!(fixture.step().await, SendStep::Idle(_)));
        assert!(fixture.server.mails().await.is_empty());

        fixture.service.clock.advance(Duration::from_millis(1));
        fixture.failed_step().await;
        while !matches!(fixture.step().await, SendStep::Idle(_)) {}
        let arrived: Vec<_> = fixture.server.mails().await.iter().flat_map(messages_in).collect();
        assert!((11..=20).all(|number| arrived.contains(&number)), "{arrived:?}");
    })
    .await;
}

#[tokio::test]
async fn a_reply_with_control_characters_is_kept_without_them_and_never_logged() {
    on_each_database(async |fixture| {
        fixture.write(&message(1)).await;
        fixture.server.command("reply content 451 4.3.0 \0\u{1b}[2J <ada@example.com>").await;
        let failure = fixture.failed_step().await;
        let [kept] = fixture.service.database.texts("SELECT last_error FROM outbox").await.try_into().expect("one");
        assert!(kept.contains("\u{fffd}\u{fffd}[2J <ada@example.com>"), "{kept}");
        assert_eq!(failure.to_string(), "the mail server rejected a mail: it replied 451");

        fixture.server.command("reply sender no such reply to <ada@example.com>").await;
        fixture.advance_to_next_try().await;
        let failure = fixture.failed_step().await;
        assert!(failure.detail().contains("<ada@example.com>"), "{failure:?}");
        assert_eq!(failure.to_string(), "the mail server is unavailable: its reply is not one of SMTP");
    })
    .await;
}

#[tokio::test]
async fn the_same_text_twice_is_mailed_once() {
    on_each_database(async |fixture| {
        let words = message(1);
        join_all((0..20).map(|_| fixture.write(&words))).await;
        fixture.run().await;
        fixture.write(&message(1)).await;
        fixture.run().await;
        assert_eq!(fixture.server.mails().await.len(), 1);
    })
    .await;
}
