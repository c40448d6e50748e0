//! TLS, certificates and passwords on the connection to the mail server.
//!
//! `0.0.0.0` connects to this machine without being a loopback address, so the rules for remote servers apply to it.

use porchlight::actions::SendStep;
use porchlight::config::RawSettings;
use porchlight::mail::SendFailure;
use serde_json::json;

use super::program::{contact, serve};
use super::{MailFixture, forwarder, message, messages_in};
use crate::harness::{Authority, Database, Identity, MailServer, Program, Service};

const USER: &str = "maker@mail.example";
const PASSWORD: &str = "pass/word";
const LOGIN_IN_URL: &str = "maker%40mail.example:pass%2Fword";

/// A server that presents this certificate: after STARTTLS, which is `offered` or `required`, or at once.
async fn server(identity: &Identity, starttls: Option<&str>) -> MailServer {
    let (certificate, key) = (identity.certificate(), identity.key());
    MailServer::start_with(json!({ "certificate": certificate, "key": key, "starttls": starttls })).await
}

/// The same, for clients that log in.
async fn server_with_login(identity: &Identity, starttls: Option<&str>) -> MailServer {
    let (certificate, key) = (identity.certificate(), identity.key());
    let options =
        json!({ "certificate": certificate, "key": key, "starttls": starttls, "user": USER, "password": PASSWORD });
    MailServer::start_with(options).await
}

/// A server without TLS, for clients that log in.
async fn plain_server() -> MailServer {
    MailServer::start_with(json!({ "user": USER, "password": PASSWORD })).await
}

/// One message, one step, with this address of the mail server.
async fn one_step(server: MailServer, url: &str) -> (SendStep, MailServer) {
    let service = Service::start(RawSettings::default(), Database::migrated_sqlite().await).await;
    let forwarder = forwarder(&service, &url.replace("PORT", &server.port().to_string()));
    let fixture = MailFixture { service, server, forwarder };
    fixture.write(&message(1)).await;
    let step = fixture.step().await;
    fixture.forwarder.store.close().await;
    fixture.service.stop().await;
    (step, fixture.server)
}

#[track_caller]
fn is_unavailable(step: &SendStep) {
    assert!(matches!(step, SendStep::Failed(SendFailure::Unavailable(_))), "{step:?}");
}

#[tokio::test]
async fn a_remote_server_gets_the_password_over_a_trusted_connection() {
    let authority = Authority::new();
    let identity = authority.issue("0.0.0.0");
    for (starttls, scheme) in [(Some("required"), "smtp"), (None, "smtps")] {
        let mut server = server_with_login(&identity, starttls).await;
        let folder = tempfile::tempdir().expect("a folder");
        let mut command = serve(folder.path(), &format!("{scheme}://{LOGIN_IN_URL}@0.0.0.0:{}", server.port()));
        command.env("SSL_CERT_FILE", authority.path());
        let program = Program::start(command, "mail_server=0.0.0.0");
        contact(&program, 1).await;
        let mail = server.next_mail().await;
        assert_eq!((messages_in(&mail), mail.encrypted), (vec![1], true));
        assert_eq!(mail.user.as_deref(), Some(USER));
    }
}

#[tokio::test]
async fn a_remote_server_with_an_untrusted_certificate_gets_nothing() {
    let identity = Authority::new().issue("0.0.0.0");
    for (starttls, url) in [
        (Some("offered"), "smtp://LOGIN@0.0.0.0:PORT"),
        (Some("offered"), "smtp://0.0.0.0:PORT"),
        (None, "smtps://LOGIN@0.0.0.0:PORT"),
    ] {
        let server = server(&identity, starttls).await;
        let (step, mut server) = one_step(server, &url.replace("LOGIN", LOGIN_IN_URL)).await;
        is_unavailable(&step);
        assert!(format!("{step:?}").contains("`smtp_url` requires"), "{step:?}");
        assert!(server.mails().await.is_empty());
    }
}

#[tokio::test]
async fn nothing_is_sent_unencrypted_to_a_remote_server_unless_the_url_says_so() {
    let (step, mut plain) = one_step(MailServer::start().await, "smtp://0.0.0.0:PORT").await;
    is_unavailable(&step);
    assert!(format!("{step:?}").contains("`smtp_url` requires"), "{step:?}");
    assert!(plain.mails().await.is_empty());

    // Not even if it offers TLS: off is off.
    let identity = Authority::new().issue("0.0.0.0");
    let servers = [MailServer::start().await, server(&identity, Some("offered")).await];
    for server in servers {
        let (step, mut server) = one_step(server, "smtp://0.0.0.0:PORT?tls=off").await;
        assert!(matches!(step, SendStep::Sent), "{step:?}");
        assert!(!server.next_mail().await.encrypted);
    }
}

#[tokio::test]
async fn a_password_is_not_sent_unencrypted_to_a_remote_server() {
    let server = plain_server().await;
    let (step, mut server) = one_step(server, &format!("smtp://{LOGIN_IN_URL}@0.0.0.0:PORT")).await;
    is_unavailable(&step);
    assert!(server.mails().await.is_empty());
}

#[tokio::test]
async fn on_loopback_any_certificate_is_accepted_and_none_is_needed() {
    let identity = Authority::new().issue("0.0.0.0");
    for (server, encrypted) in [
        (plain_server().await, false),
        (server_with_login(&identity, Some("offered")).await, true),
        (server_with_login(&identity, Some("required")).await, true),
    ] {
        let (step, mut server) = one_step(server, &format!("smtp://{LOGIN_IN_URL}@127.0.0.1:PORT")).await;
        assert!(matches!(step, SendStep::Sent), "{step:?}");
        let mail = server.next_mail().await;
        assert_eq!((mail.encrypted, mail.user.as_deref()), (encrypted, Some(USER)));
    }
}

#[tokio::test]
async fn a_wrong_or_missing_password_is_reported_and_the_message_waits() {
    for (url, reply) in [("smtp://maker:wrong@127.0.0.1:PORT", "535"), ("smtp://127.0.0.1:PORT", "530")] {
        let (step, mut server) = one_step(plain_server().await, url).await;
        is_unavailable(&step);
        assert!(format!("{step:?}").contains(reply), "{step:?}");
        assert!(server.mails().await.is_empty());
    }
}

/// Somebody on the path appends replies of their own to the `220` that answers STARTTLS: to `EHLO`, `MAIL FROM`, `RCPT TO`,
/// `DATA` and the content. The server itself rejects the recipient.
#[tokio::test]
async fn replies_that_were_injected_before_tls_are_never_believed() {
    let identity = Authority::new().issue("0.0.0.0");
    for starttls in ["offered", "required"] {
        let mut server = server(&identity, Some(starttls)).await;
        server.command("reply recipient 550 5.1.1 no such mailbox").await;
        server.command("inject 250 250 250 354 250").await;
        let (step, mut server) = one_step(server, "smtp://127.0.0.1:PORT").await;
        is_unavailable(&step);
        assert!(format!("{step:?}").contains("is not TLS where TLS had to begin"), "{step:?}");
        assert!(server.mails().await.is_empty());
    }
}
