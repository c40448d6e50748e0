//! Several instances on one database, killed instances, and messages from before mail was configured.

use std::time::Duration;

use futures_util::future::join_all;
use porchlight::actions::SendStep;

use super::{MailFixture, forwarder, message, messages_in, on_each_database};

#[tokio::test]
async fn several_instances_share_the_messages_without_doubling() {
    on_each_database(async |fixture| {
        let instances: Vec<_> = (0..4).map(|_| forwarder(&fixture.service, &fixture.server.url())).collect();
        let mut messages = Vec::new();
        for round in 0..10 {
            for number in 1..=4 {
                fixture.write(&message(round * 4 + number)).await;
            }
            join_all(instances.iter().map(async |instance| while let Ok(SendStep::Sent) = instance.step().await {}))
                .await;
            fixture.service.clock.advance(Duration::from_hours(1));
            messages.extend(fixture.server.mails().await.iter().flat_map(messages_in));
        }
        fixture.run().await;
        messages.extend(fixture.server.mails().await.iter().flat_map(messages_in));
        messages.sort_unstable();
        assert_eq!(messages, (1..=40).collect::<Vec<_>>());
        for instance in instances {
            instance.store.close().await;
        }
    })
    .await;
}

/// Starts to send a mail, and dies before the mail server has accepted it.
async fn die_while_sending(fixture: &mut MailFixture) {
    fixture.server.command("hold").await;
    let dies = async {
        fixture.server.wait_for("held").await;
    };
    tokio::select! {
        step = fixture.forwarder.step() => panic!("{step:?}"),
        () = dies => {}
    }
    fixture.server.command("accept").await;
}

#[tokio::test]
async fn a_lease_of_a_dead_instance_expires_and_the_same_mail_goes_again() {
    on_each_database(async |fixture| {
        fixture.write_many(7).await;
        die_while_sending(fixture).await;
        assert_eq!(fixture.states().await, ["leased"; 7]);
        let names = fixture.service.database.texts("SELECT DISTINCT mail FROM outbox").await;

        fixture.write(&message(8)).await;
        fixture.run().await;
        assert_eq!(messages_in(&fixture.server.next_mail().await), [8], "nobody else touches what is claimed");
        assert!(fixture.advance_to_next_try().await <= Duration::from_mins(1));
        fixture.run().await;
        let again = fixture.server.next_mail().await;
        assert_eq!(messages_in(&again), [1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(again.header("message-id"), format!("<{}@troupe.example>", names[0]));
        assert_eq!(fixture.states().await, ["sent"; 8]);
    })
    .await;
}

#[tokio::test]
async fn a_renewed_lease_is_respected() {
    on_each_database(async |fixture| {
        fixture.write(&message(1)).await;
        die_while_sending(fixture).await;
        let [lease] = fixture.service.database.texts("SELECT lease FROM outbox").await.try_into().expect("one claim");
        let later = fixture.service.clock.now().after(Duration::from_mins(10));
        fixture.forwarder.store.renew_lease(lease.parse().expect("a name"), later).await.expect("to be kept");
        fixture.service.clock.advance(Duration::from_mins(9));
        assert!(matches!(fixture.step().await, SendStep::Idle(Some(then)) if then == later));
    })
    .await;
}

#[tokio::test]
async fn a_message_that_another_instance_has_leased_is_not_discarded() {
    on_each_database(async |fixture| {
        fixture.write_many(2).await;
        let ids = fixture.service.database.texts("SELECT id FROM messages ORDER BY at").await;
        let now = fixture.service.clock.now();
        let until = now.after(Duration::from_mins(1)).unix_millis();
        let lease = format!("UPDATE outbox SET state = 'leased', at = {until} WHERE id = '{}'", ids[0]);
        fixture.service.database.execute(&lease).await;
        let ids: Vec<_> = ids.iter().map(|id| id.parse().expect("an id")).collect();
        assert_eq!(fixture.forwarder.store.discard_messages(&ids, now).await.expect("a discard"), 1);
        assert_eq!(fixture.states().await, ["leased"]);
        assert_eq!(fixture.service.database.texts("SELECT body FROM messages").await, ["Number 1."]);
    })
    .await;
}
