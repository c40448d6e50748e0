//! The mail server is away, slow, or says no: nothing is lost, and nothing is hurried.

use std::time::Duration;

use futures_util::future::join_all;
use porchlight::actions::ForwardStep;
use porchlight::mail::SendFailure;
use porchlight::store::InboxFilter;

use super::{letter, letters_in, on_each_database, on_one_database};

#[tokio::test]
async fn a_message_is_tried_for_a_week_with_growing_pauses_and_then_kept_as_failed() {
    on_each_database(async |post| {
        post.server.command("stop-listening").await;
        post.write(&letter(1)).await;
        let began = post.service.clock.now();
        let mut pauses = Vec::new();
        while post.states().await == ["waiting"] {
            assert!(matches!(post.is_stuck().await, SendFailure::Unavailable(_)));
            if post.states().await == ["waiting"] {
                pauses.push(post.wait().await);
            }
        }
        assert!(pauses[0] <= Duration::from_mins(1), "{pauses:?}");
        assert!(pauses.is_sorted() && pauses.last() <= Some(&Duration::from_hours(3)), "{pauses:?}");
        assert!(began.until(post.service.clock.now()) >= Duration::from_hours(7 * 24));
        assert_eq!(post.states().await, ["failed"]);

        let failed = post.forwarder.store.inbox_page(InboxFilter::Failed, None, 10).await.expect("a list");
        let [entry] = failed.try_into().expect("one message");
        assert_eq!((entry.state.as_str(), entry.received.message.message.as_str()), ("failed", "Letter 1."));
        assert!(entry.last_error.is_some() && entry.tries > 10, "{entry:?}");

        post.server.command("listen-again").await;
        assert!(matches!(post.step().await, ForwardStep::Idle(None)), "nobody has asked for another try");
        let now = post.service.clock.now();
        assert_eq!(post.forwarder.store.retry_messages(None, now).await.expect("to be done"), 1);
        post.run().await;
        assert_eq!(letters_in(&post.server.next_mail().await), [1]);
        assert_eq!(post.states().await, ["sent"]);
    })
    .await;
}

#[tokio::test]
async fn messages_of_an_outage_all_arrive_once_it_is_over() {
    on_each_database(async |post| {
        post.server.command("stop-listening").await;
        for number in 1..=30 {
            post.write(&letter(number)).await;
            post.step().await;
            post.service.clock.advance(Duration::from_mins(10));
        }
        post.server.command("listen-again").await;
        post.service.clock.advance(Duration::from_hours(3));
        post.run().await;
        let mails = post.server.mails().await;
        let mut letters: Vec<_> = mails.iter().flat_map(letters_in).collect();
        letters.sort_unstable();
        assert_eq!(letters, (1..=30).collect::<Vec<_>>());
        assert!(mails.len() <= 2, "{} mails", mails.len());
    })
    .await;
}

#[tokio::test]
async fn what_waits_long_goes_as_soon_as_the_mail_server_is_known_to_be_back() {
    on_each_database(async |post| {
        post.server.command("stop-listening").await;
        post.write(&letter(1)).await;
        for _ in 0..12 {
            post.is_stuck().await;
            post.wait().await;
        }
        post.is_stuck().await;
        post.server.command("listen-again").await;
        assert!(matches!(post.step().await, ForwardStep::Idle(Some(_))));
        post.write(&letter(2)).await;
        post.run().await;
        assert_eq!(post.server.mails().await.iter().flat_map(letters_in).collect::<Vec<_>>(), [2, 1]);
    })
    .await;
}

#[tokio::test]
async fn a_refusal_whether_for_now_or_for_good_is_tried_again() {
    on_one_database(async |post| {
        let mut number = 0;
        for stage in ["sender", "recipient", "content"] {
            for reply in ["451 4.3.0 later", "550 5.7.1 never"] {
                number += 1;
                post.server.command(&format!("reply {stage} {reply}")).await;
                post.write(&letter(number)).await;
                let trouble = post.is_stuck().await;
                assert_eq!(matches!(trouble, SendFailure::MessageRejected { .. }), stage == "content", "{trouble:?}");
                let (number_of_reply, words) = (&reply[..3], &reply[4..]);
                assert!(trouble.detail().contains(words), "{trouble:?}");
                let logged = trouble.to_string();
                assert!(logged.contains(number_of_reply) && !logged.contains(words), "{logged}");
                post.server.command("accept").await;
                assert!(post.wait().await <= Duration::from_mins(1));
                post.run().await;
                let [mail] = post.server.mails().await.try_into().expect("one mail");
                assert_eq!(letters_in(&mail), [number], "{stage} {reply}");
            }
        }
    })
    .await;
}

#[tokio::test]
async fn a_mail_that_may_have_arrived_goes_again_as_the_same_mail() {
    on_each_database(async |post| {
        let mut written = 0;
        for (count, place) in [(1, "answer"), (7, "answer"), (1, "content"), (7, "content")] {
            println!("{count} messages, dropped at the {place}");
            post.service.clock.advance(Duration::from_hours(1));
            for _ in 0..count {
                written += 1;
                post.write(&letter(written)).await;
            }
            post.server.command(&format!("drop {place}")).await;
            assert!(matches!(post.is_stuck().await, SendFailure::Uncertain(_)));
            let first = post.server.mails().await;
            assert_eq!(first.len(), usize::from(place == "answer"));

            // What comes meanwhile does not change what may be there already.
            written += 1;
            post.write(&letter(written)).await;
            post.server.command("accept").await;
            post.service.clock.advance(Duration::from_mins(1));
            post.run().await;
            let [again, other] = post.server.mails().await.try_into().expect("two mails");
            assert_eq!((letters_in(&again).len(), letters_in(&other)), (count, vec![written]));
            if let [first] = first.as_slice() {
                assert_eq!(first.header("message-id"), again.header("message-id"));
                assert_eq!(first.text, again.text);
            }
        }
    })
    .await;
}

#[tokio::test]
async fn a_message_that_the_mail_server_does_not_like_holds_up_no_other() {
    on_each_database(async |post| {
        post.server.command("poison 13.").await;
        post.write_many(20).await;
        assert!(matches!(post.is_stuck().await, SendFailure::MessageRejected { permanent: true, .. }));
        let mut arrived = Vec::new();
        for _ in 0..8 {
            post.service.clock.advance(Duration::from_hours(3));
            while !matches!(post.step().await, ForwardStep::Idle(_)) {}
            arrived.extend(post.server.mails().await.iter().flat_map(letters_in));
        }
        arrived.sort_unstable();
        assert_eq!(arrived, (1..=20).filter(|number| *number != 13).collect::<Vec<_>>());
        assert_eq!(post.states().await.iter().filter(|state| *state == "waiting").count(), 1);

        post.server.command("accept").await;
        post.service.clock.advance(Duration::from_hours(3));
        post.run().await;
        assert_eq!(letters_in(&post.server.next_mail().await), [13]);
    })
    .await;
}

#[tokio::test]
async fn the_same_words_twice_are_mailed_once() {
    on_each_database(async |post| {
        let words = letter(1);
        join_all((0..20).map(|_| post.write(&words))).await;
        post.run().await;
        post.write(&letter(1)).await;
        post.run().await;
        assert_eq!(post.server.mails().await.len(), 1);
    })
    .await;
}
