//! Several instances on one database, instances that die, and messages from before there was mail.

use std::time::Duration;

use futures_util::future::join_all;
use porchlight::actions::ForwardStep;
use porchlight::config::RawSettings;

use super::{Post, forwarder, letter, letters_in, on_each_database};
use crate::harness::{MailServer, Service, each_database};

#[tokio::test]
async fn several_instances_share_the_messages_without_doubling() {
    on_each_database(async |post| {
        let instances: Vec<_> = (0..4).map(|_| forwarder(&post.service, &post.server.url())).collect();
        let mut letters = Vec::new();
        for round in 0..10 {
            for number in 1..=4 {
                post.write(&letter(round * 4 + number)).await;
            }
            join_all(instances.iter().map(async |instance| while let Ok(ForwardStep::Sent) = instance.step().await {}))
                .await;
            post.service.clock.advance(Duration::from_hours(1));
            letters.extend(post.server.mails().await.iter().flat_map(letters_in));
        }
        post.run().await;
        letters.extend(post.server.mails().await.iter().flat_map(letters_in));
        letters.sort_unstable();
        assert_eq!(letters, (1..=40).collect::<Vec<_>>());
        for instance in instances {
            instance.store.close().await;
        }
    })
    .await;
}

/// Begins to hand a mail over, and dies before the mail server has said yes.
async fn die_while_handing_over(post: &mut Post) {
    post.server.command("hold").await;
    let dies = async {
        post.server.wait_for("held").await;
    };
    tokio::select! {
        step = post.forwarder.step() => panic!("{step:?}"),
        () = dies => {}
    }
    post.server.command("accept").await;
}

#[tokio::test]
async fn what_a_dead_instance_had_in_hand_goes_again_as_the_same_mail() {
    on_each_database(async |post| {
        post.write_many(7).await;
        die_while_handing_over(post).await;
        assert_eq!(post.states().await, ["leased"; 7]);
        let names = post.service.database.texts("SELECT DISTINCT mail FROM outbox").await;

        post.write(&letter(8)).await;
        post.run().await;
        assert_eq!(letters_in(&post.server.next_mail().await), [8], "nobody else touches what is claimed");
        assert!(post.wait().await <= Duration::from_mins(1));
        post.run().await;
        let again = post.server.next_mail().await;
        assert_eq!(letters_in(&again), [1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(again.header("message-id"), format!("<{}@troupe.example>", names[0]));
        assert_eq!(post.states().await, ["sent"; 8]);
    })
    .await;
}

#[tokio::test]
async fn a_claim_that_is_kept_up_is_left_alone() {
    on_each_database(async |post| {
        post.write(&letter(1)).await;
        die_while_handing_over(post).await;
        let [lease] = post.service.database.texts("SELECT lease FROM outbox").await.try_into().expect("one claim");
        let later = post.service.clock.now().after(Duration::from_mins(10));
        post.forwarder.store.renew_lease(lease.parse().expect("a name"), later).await.expect("to be kept");
        post.service.clock.advance(Duration::from_mins(9));
        assert!(matches!(post.step().await, ForwardStep::Idle(Some(then)) if then == later));
    })
    .await;
}

#[tokio::test]
async fn messages_from_before_there_was_mail_are_forwarded() {
    for database in each_database().await {
        println!("on {database:?}");
        let service = Service::start(RawSettings::default(), database.clone()).await;
        for number in 1..=3 {
            service.post("/api/contact", &letter(number)).await.is_ok();
        }
        service.stop().await;
        database.execute("DROP TABLE outbox; DELETE FROM _sqlx_migrations WHERE version = 3").await;

        let server = MailServer::start().await;
        let service = Service::start(RawSettings::default(), database).await;
        let forwarder = forwarder(&service, &server.url());
        let mut post = Post { service, server, forwarder };
        post.run().await;
        let mut letters: Vec<_> = post.server.mails().await.iter().flat_map(letters_in).collect();
        letters.sort_unstable();
        assert_eq!(letters, [1, 2, 3]);
        post.forwarder.store.close().await;
        post.service.stop().await;
    }
}
