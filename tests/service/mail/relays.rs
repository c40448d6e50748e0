//! Encryption, certificates and passwords: how the mail server is spoken to.
//!
//! `0.0.0.0` leads to this machine without being a loopback address by name, so the rules for servers
//! elsewhere hold for it.

use std::path::PathBuf;

use porchlight::actions::ForwardStep;
use porchlight::config::RawSettings;
use porchlight::mail::SendFailure;

use super::program::{contact, serve};
use super::{Post, forwarder, letter, letters_in};
use crate::harness::{Authority, Database, Identity, MailServer, Program, Service};

const LOGIN: [&str; 4] = ["--user", "maker@mail.example", "--password", "pass/word"];
const LOGIN_IN_URL: &str = "maker%40mail.example:pass%2Fword";

/// A server that shows this certificate, and with what else the script is told.
async fn server(identity: &Identity, more: &[&str]) -> MailServer {
    let text = |path: PathBuf| path.to_str().expect("UTF-8").to_owned();
    let (certificate, key) = (text(identity.certificate()), text(identity.key()));
    MailServer::start_with(&[&["--certificate", &certificate, "--key", &key], more].concat()).await
}

/// One message, one step, with this address of the mail server.
async fn one_step(server: MailServer, url: &str) -> (ForwardStep, MailServer) {
    let service = Service::start(RawSettings::default(), Database::sqlite()).await;
    let forwarder = forwarder(&service, &url.replace("PORT", &server.port().to_string()));
    let post = Post { service, server, forwarder };
    post.write(&letter(1)).await;
    let step = post.step().await;
    post.forwarder.store.close().await;
    post.service.stop().await;
    (step, post.server)
}

#[track_caller]
fn is_away(step: &ForwardStep) {
    assert!(matches!(step, ForwardStep::Failed(SendFailure::Unavailable(_))), "{step:?}");
}

#[tokio::test]
async fn a_server_elsewhere_gets_the_password_over_a_trusted_connection() {
    let authority = Authority::new();
    let identity = authority.issue("0.0.0.0");
    for (starttls, scheme) in [(&["--starttls", "required"][..], "smtp"), (&[], "smtps")] {
        let mut server = server(&identity, &[starttls, &LOGIN].concat()).await;
        let folder = tempfile::tempdir().expect("a folder");
        let mut command = serve(folder.path(), &format!("{scheme}://{LOGIN_IN_URL}@0.0.0.0:{}", server.port()));
        command.env("SSL_CERT_FILE", authority.path());
        let program = Program::start(command, "through 0.0.0.0");
        contact(&program, 1).await;
        let mail = server.next_mail().await;
        assert_eq!((letters_in(&mail), mail.encrypted), (vec![1], true));
        assert_eq!(mail.user.as_deref(), Some("maker@mail.example"));
    }
}

#[tokio::test]
async fn a_server_elsewhere_whose_certificate_nobody_vouches_for_gets_nothing() {
    let identity = Authority::new().issue("0.0.0.0");
    for (starttls, url) in [
        (&["--starttls", "offered"][..], "smtp://LOGIN@0.0.0.0:PORT"),
        (&["--starttls", "offered"], "smtp://0.0.0.0:PORT"),
        (&[], "smtps://LOGIN@0.0.0.0:PORT"),
    ] {
        let server = server(&identity, starttls).await;
        let (step, mut server) = one_step(server, &url.replace("LOGIN", LOGIN_IN_URL)).await;
        is_away(&step);
        assert!(server.mails().await.is_empty());
    }
}

#[tokio::test]
async fn a_password_is_not_told_to_a_server_elsewhere_that_does_not_encrypt() {
    let server = MailServer::start_with(&LOGIN).await;
    let (step, mut server) = one_step(server, &format!("smtp://{LOGIN_IN_URL}@0.0.0.0:PORT")).await;
    is_away(&step);
    assert!(server.mails().await.is_empty());
}

#[tokio::test]
async fn on_this_machine_any_certificate_will_do_and_none_is_needed() {
    let identity = Authority::new().issue("0.0.0.0");
    for (server, encrypted) in [
        (MailServer::start_with(&LOGIN).await, false),
        (server(&identity, &[&["--starttls", "offered"][..], &LOGIN].concat()).await, true),
        (server(&identity, &[&["--starttls", "required"][..], &LOGIN].concat()).await, true),
    ] {
        let (step, mut server) = one_step(server, &format!("smtp://{LOGIN_IN_URL}@127.0.0.1:PORT")).await;
        assert!(matches!(step, ForwardStep::Sent), "{step:?}");
        let mail = server.next_mail().await;
        assert_eq!((mail.encrypted, mail.user.as_deref()), (encrypted, Some("maker@mail.example")));
    }
}

#[tokio::test]
async fn a_wrong_or_missing_password_is_told_and_the_message_waits() {
    for url in ["smtp://maker:wrong@127.0.0.1:PORT", "smtp://127.0.0.1:PORT"] {
        let (step, mut server) = one_step(MailServer::start_with(&LOGIN).await, url).await;
        is_away(&step);
        assert!(server.mails().await.is_empty());
    }
}
