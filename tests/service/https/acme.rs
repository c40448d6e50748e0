//! Certificates from a real ACME authority, which validates over HTTP.

use std::net::Ipv4Addr;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use porchlight::actions::CertificateOrders;
use porchlight::clock::Clock;
use porchlight::config::AcmeSettings;
use porchlight::domain::time::Timestamp;
use porchlight::http_client::roots_in;
use rustix::process::Signal;
use rustls::ClientConfig;
use rustls::pki_types::{CertificateDer, ServerName};
use serde_json::Value;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsConnector;

use super::{FURTHER, HOST, curl};
use crate::harness::{
    Authority, Database, Pebble, Program, Site, each_database, each_migrated_database, free_port, wait_until,
};

/// How many seconds a certificate is valid that is not renewed during a test.
const LONG: u32 = 24 * 3600;

struct Instance {
    program: Program,
    https: u16,
    ops: u16,
}

impl Instance {
    fn start(folder: &Path, database: &Database, pebble: &Pebble, redirect: u16) -> Self {
        Self::start_at(folder, database, (&pebble.directory(), &pebble.ca_file()), redirect)
    }

    fn start_at(folder: &Path, database: &Database, authority: (&str, &Path), redirect: u16) -> Self {
        Self::start_with(folder, database, authority, redirect, (FURTHER, "me@troupe.example"))
    }

    /// Starts the program by the system's clock, since pebble has no other. An authority is its directory and the root by
    /// which it is trusted.
    fn start_with(
        folder: &Path,
        database: &Database,
        (directory, ca_file): (&str, &Path),
        redirect: u16,
        (also_hosts, email): (&str, &str),
    ) -> Self {
        let (https, ops) = (free_port(), free_port());
        let mut command = Program::command(folder, &["serve", "--database-url", database.url()]);
        command.args(["--base-url", &format!("https://{HOST}"), "--also-hosts", also_hosts]);
        command.args(["--listen", &format!("127.0.0.1:{https}")]);
        command.args(["--redirect-listen", &format!("127.0.0.1:{redirect}")]);
        command.args(["--ops-listen", &format!("127.0.0.1:{ops}")]);
        command.args(["--acme-email", email, "--acme-directory", directory, "--acme-ca-file"]);
        command.arg(ca_file).env_remove("PORCHLIGHT_TEST_NOW");
        Self { program: Program::start(command, "Porchlight is serving"), https, ops }
    }

    /// The status of `/readyz`, and what it says of the certificate.
    async fn readiness(&self) -> (u16, String) {
        let answer = reqwest::get(format!("http://127.0.0.1:{}/readyz", self.ops)).await.expect("an answer");
        let status = answer.status().as_u16();
        let report: Value = serde_json::from_str(&answer.text().await.expect("a text")).expect("JSON");
        (status, report["parts"]["certificate"].as_str().expect("a part").to_owned())
    }

    async fn wait_for_certificate(&self) {
        wait_until("a certificate", async || self.readiness().await.1 == "ok").await;
    }

    /// The certificate that it presents, if a client accepts it that trusts this root alone. In this process, because some tests
    /// ask many times.
    async fn certificate(&self, root: &Path) -> Option<CertificateDer<'static>> {
        let roots = roots_in(root).expect("a root");
        let config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
        let stream = TcpStream::connect(("127.0.0.1", self.https)).await.expect("a connection");
        let name = ServerName::try_from(HOST).expect("a name");
        let stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await.ok()?;
        Some(stream.get_ref().1.peer_certificates()?[0].clone().into_owned())
    }

    async fn is_trusted_by(&self, root: &Path) -> bool {
        self.certificate(root).await.is_some()
    }

    fn stop(self) -> String {
        self.program.signal(Signal::TERM);
        self.program.end().1
    }
}

#[tokio::test]
async fn the_first_certificate_comes_by_itself_and_a_restart_orders_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let (redirect, root) = (free_port(), folder.path().join("root.pem"));
    let pebble = Pebble::start(Ipv4Addr::LOCALHOST, redirect, LONG).await;
    pebble.save_root(&root);
    for database in each_database().await {
        let instance = Instance::start(folder.path(), &database, &pebble, redirect);
        instance.wait_for_certificate().await;
        assert!(instance.is_trusted_by(&root).await);
        let further = curl(instance.https, &root, &["-I", "https://www.troupe.example/about"]).1;
        assert!(further.to_lowercase().contains("location: https://troupe.example/about\r\n"), "{further}");
        let unknown = reqwest::get(format!("http://127.0.0.1:{redirect}/.well-known/acme-challenge/unknown")).await;
        assert_eq!(unknown.expect("an answer").status(), 404);
        let certificate = instance.certificate(&root).await;
        let log = instance.stop();
        assert_eq!(log.matches("ordering a certificate").count(), 1, "{log}");

        let instance = Instance::start(folder.path(), &database, &pebble, redirect);
        assert_eq!(instance.readiness().await.1, "ok", "from the first moment");
        assert_eq!(instance.certificate(&root).await, certificate);
        let log = instance.stop();
        assert!(!log.contains("ordering a certificate"), "{log}");
        assert!(!log.contains("PRIVATE KEY"), "{log}");
    }
}

/// Passes connections on to the ports in turn.
async fn round_robin(port: u16, targets: [u16; 2]) {
    let listener = TcpListener::bind(("127.0.0.1", port)).await.expect("a port");
    let turn = Arc::new(AtomicUsize::new(0));
    while let Ok((mut client, _)) = listener.accept().await {
        let target = targets[turn.fetch_add(1, Ordering::Relaxed) % targets.len()];
        tokio::spawn(async move {
            if let Ok(mut server) = TcpStream::connect(("127.0.0.1", target)).await {
                let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
            }
        });
    }
}

/// Pebble validates three times at once, so both instances are asked for answers that one of them has.
#[tokio::test]
async fn of_two_instances_one_orders_both_answer_and_both_serve_and_renew_the_same_certificate() {
    let [_, database] = each_database().await;
    let folder = tempfile::tempdir().expect("a folder");
    let (front, redirects) = (free_port(), [free_port(), free_port()]);
    let front_task = tokio::spawn(round_robin(front, redirects));
    let lifetime = 45;
    let pebble = Pebble::start(Ipv4Addr::LOCALHOST, front, lifetime).await;
    let instances = redirects.map(|redirect| Instance::start(folder.path(), &database, &pebble, redirect));
    for instance in &instances {
        instance.wait_for_certificate().await;
    }
    let root = folder.path().join("root.pem");
    pebble.save_root(&root);
    let first = instances[0].certificate(&root).await;
    assert!(first.is_some());
    assert_eq!(instances[1].certificate(&root).await, first);
    for instance in &instances {
        let renewed = async || instance.certificate(&root).await.is_some_and(|renewed| Some(renewed) != first);
        wait_until("the renewed certificate", renewed).await;
    }
    let same = async || instances[0].certificate(&root).await == instances[1].certificate(&root).await;
    wait_until("the same certificate", same).await;
    let logs = instances.map(Instance::stop);
    let orders = logs.iter().map(|log| log.matches("certificate issued").count()).sum::<usize>();
    assert!((2..=3).contains(&orders), "one at the start, and one each half minute: {orders}");
    front_task.abort();
}

#[tokio::test]
async fn without_the_authority_the_service_waits_says_why_and_orders_nothing_early_after_a_restart() {
    let [database, _] = each_database().await;
    let folder = tempfile::tempdir().expect("a folder");
    let redirect = free_port();
    let mut pebble = Pebble::start(Ipv4Addr::LOCALHOST, redirect, LONG).await;
    pebble.stop();
    for restarted in [false, true] {
        let instance = Instance::start(folder.path(), &database, &pebble, redirect);
        wait_until("a reason", async || instance.readiness().await.1.contains("cannot be reached")).await;
        let (status, reason) = instance.readiness().await;
        assert_eq!(status, 503);
        assert!(reason.contains("the next attempt is at"), "{reason}");
        assert_eq!(curl(instance.https, &pebble.ca_file(), &["-k", "https://troupe.example/"]).0, 35, "no handshake");
        let client = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).build().expect("a client");
        let page = client.get(format!("http://127.0.0.1:{redirect}/about")).send().await.expect("an answer");
        assert_eq!(page.status(), 308, "it redirects all the same");
        let log = instance.stop();
        assert_eq!(log.contains("ordering a certificate"), !restarted, "{log}");
    }
}

#[tokio::test]
async fn a_host_that_leads_elsewhere_gets_no_certificate_and_the_reason_is_named() {
    let [database, _] = each_database().await;
    let folder = tempfile::tempdir().expect("a folder");
    let redirect = free_port();
    let pebble = Pebble::start(Ipv4Addr::new(127, 0, 0, 9), redirect, LONG).await;
    let instance = Instance::start(folder.path(), &database, &pebble, redirect);
    let could_not = "the authority could not validate";
    wait_until("a reason", async || instance.readiness().await.1.contains(could_not)).await;
    let (_, reason) = instance.readiness().await;
    assert!(reason.contains("troupe.example") && reason.contains("127.0.0.9"), "{reason}");
    instance.stop();
}

/// After a restart pebble knows no accounts. In a real life an authority deactivates one.
#[tokio::test]
async fn a_certificate_is_renewed_with_a_new_account_if_the_authority_forgot_the_old_one() {
    let [database, _] = each_database().await;
    let folder = tempfile::tempdir().expect("a folder");
    let (redirect, root) = (free_port(), folder.path().join("root.pem"));
    let mut pebble = Pebble::start(Ipv4Addr::LOCALHOST, redirect, 30).await;
    let instance = Instance::start(folder.path(), &database, &pebble, redirect);
    instance.wait_for_certificate().await;
    pebble.restart().await;
    pebble.save_root(&root);
    assert!(!instance.is_trusted_by(&root).await);
    wait_until("a certificate of the new root", async || instance.is_trusted_by(&root).await).await;
    instance.stop();
}

#[tokio::test]
async fn a_damaged_account_is_replaced() {
    for database in each_database().await {
        let folder = tempfile::tempdir().expect("a folder");
        let redirect = free_port();
        let pebble = Pebble::start(Ipv4Addr::LOCALHOST, redirect, LONG).await;
        let damaged = format!("INSERT INTO acme_accounts VALUES ('{}', 'no credentials')", pebble.directory());
        let instance = Instance::start(folder.path(), &database, &pebble, redirect);
        instance.wait_for_certificate().await;
        instance.stop();
        database.execute("DELETE FROM acme_accounts").await;
        database.execute("DELETE FROM acme_certificates").await;
        database.execute(&damaged).await;
        let instance = Instance::start(folder.path(), &database, &pebble, redirect);
        instance.wait_for_certificate().await;
        instance.stop();
    }
}

/// Pebble has no rate limits. Let's Encrypt answers like this to too many orders.
#[tokio::test]
async fn no_order_is_repeated_before_the_time_that_the_authority_asked_for() {
    let response = "HTTP/1.1 429 Too Many Requests\r\nRetry-After: 100000\r\nContent-Type: application/problem+json\r\n\
        Content-Length: 97\r\nConnection: close\r\n\r\n\
        {\"type\":\"urn:ietf:params:acme:error:rateLimited\",\"detail\":\"too many certificates\",\"status\":429  }";
    let authority = Authority::new();
    let site = Site::start_with_response(&authority.issue_to(&["localhost"]), response);
    let directory = format!("https://localhost:{}/dir", site.port());
    for database in each_database().await {
        let folder = tempfile::tempdir().expect("a folder");
        let redirect = free_port();
        let instance = Instance::start_at(folder.path(), &database, (&directory, &authority.path()), redirect);
        wait_until("a reason", async || instance.readiness().await.1.contains("the authority asks to wait")).await;
        let (_, reason) = instance.readiness().await;
        let (_, next) = reason.split_once("the next attempt is at ").expect("a time");
        let next = Timestamp::parse(next).expect("a time");
        let wait = Clock::System.now().until(next).as_secs();
        assert!((90_000..=100_000).contains(&wait), "{reason}");
        instance.stop();

        let instance = Instance::start_at(folder.path(), &database, (&directory, &authority.path()), redirect);
        assert!(instance.readiness().await.1.contains("asks to wait"), "also after a restart");
        let log = instance.stop();
        assert!(!log.contains("ordering a certificate"), "{log}");
    }
}

#[tokio::test]
async fn a_certificate_that_cannot_be_saved_is_served_all_the_same_and_saved_later() {
    for database in each_migrated_database().await {
        let (refuse, accept) = if database.is_postgres() {
            let table = "ALTER TABLE acme_certificates";
            (format!("{table} ADD CONSTRAINT refuse CHECK (chain IS NULL)"), format!("{table} DROP CONSTRAINT refuse"))
        } else {
            let trigger = "CREATE TRIGGER refuse BEFORE UPDATE OF chain ON acme_certificates BEGIN \
                 SELECT RAISE(ABORT, 'refused'); END";
            (trigger.to_owned(), "DROP TRIGGER refuse".to_owned())
        };
        database.execute(&refuse).await;
        let folder = tempfile::tempdir().expect("a folder");
        let (redirect, root) = (free_port(), folder.path().join("root.pem"));
        let pebble = Pebble::start(Ipv4Addr::LOCALHOST, redirect, LONG).await;
        pebble.save_root(&root);
        let instance = Instance::start(folder.path(), &database, &pebble, redirect);
        wait_until("the certificate", async || instance.is_trusted_by(&root).await).await;
        let certificate = instance.certificate(&root).await;
        let (status, reason) = instance.readiness().await;
        assert!(status == 200 && reason.starts_with("the new one could not be saved: "), "{status} {reason}");
        assert_eq!(folder.path().join("data/acme-certificate.pem").exists(), database.is_postgres());

        database.execute(&accept).await;
        instance.wait_for_certificate().await;
        let log = instance.stop();
        assert_eq!(log.matches("ordering a certificate").count(), 1, "{log}");
        let instance = Instance::start(folder.path(), &database, &pebble, redirect);
        assert_eq!(instance.certificate(&root).await, certificate);
        assert!(!instance.stop().contains("ordering a certificate"));
    }
}

#[tokio::test]
async fn keys_for_hosts_of_before_are_deleted_if_nobody_renews_them() {
    for database in each_migrated_database().await {
        for (hosts, year) in [("abandoned.example", 2021), ("in-use.example", 2060)] {
            let (chain, key) = issued(year);
            insert_certificate(&database, "https://production.example/dir", hosts, &chain, &key).await;
        }
        let folder = tempfile::tempdir().expect("a folder");
        let (redirect, root) = (free_port(), folder.path().join("root.pem"));
        let pebble = Pebble::start(Ipv4Addr::LOCALHOST, redirect, LONG).await;
        pebble.save_root(&root);
        let instance = Instance::start(folder.path(), &database, &pebble, redirect);
        wait_until("the new certificate", async || instance.is_trusted_by(&root).await).await;
        instance.stop();
        let hosts = database.texts("SELECT hosts FROM acme_certificates ORDER BY hosts").await;
        assert_eq!(hosts, ["in-use.example".to_owned(), format!("{HOST},{FURTHER}")]);
    }
}

#[tokio::test]
async fn a_certificate_from_before_serves_until_there_is_one_for_the_changed_hosts() {
    let [database, _] = each_database().await;
    let folder = tempfile::tempdir().expect("a folder");
    let (redirect, root) = (free_port(), folder.path().join("root.pem"));
    let mut pebble = Pebble::start(Ipv4Addr::LOCALHOST, redirect, LONG).await;
    pebble.save_root(&root);
    let instance = Instance::start(folder.path(), &database, &pebble, redirect);
    instance.wait_for_certificate().await;
    let certificate = instance.certificate(&root).await;
    assert!(certificate.is_some());
    instance.stop();

    pebble.stop();
    let (directory, ca_file) = (pebble.directory(), pebble.ca_file());
    let changed = ("shop.troupe.example", "me@troupe.example");
    let instance = Instance::start_with(folder.path(), &database, (&directory, &ca_file), redirect, changed);
    assert_eq!(instance.certificate(&root).await, certificate, "from the first moment");
    assert!(instance.is_trusted_by(&root).await);
    wait_until("a reason", async || instance.readiness().await.1.contains("cannot be reached")).await;
    assert_eq!(instance.readiness().await.0, 200);
    assert_eq!(instance.certificate(&root).await, certificate);

    pebble.restart().await;
    pebble.save_root(&root);
    database.execute("UPDATE acme_certificates SET next_attempt = 0 WHERE chain IS NULL").await;
    wait_until("the new certificate", async || instance.is_trusted_by(&root).await).await;
    let (code, _) = curl(instance.https, &root, &["-I", "https://shop.troupe.example/about"]);
    assert_eq!(code, 0, "the new host is in it");
    instance.wait_for_certificate().await;
    instance.stop();
}

#[tokio::test]
async fn an_instance_starts_with_https_while_the_database_server_is_away() {
    let [_, database] = each_database().await;
    let folder = tempfile::tempdir().expect("a folder");
    let (redirect, root) = (free_port(), folder.path().join("root.pem"));
    let pebble = Pebble::start(Ipv4Addr::LOCALHOST, redirect, LONG).await;
    pebble.save_root(&root);
    let instance = Instance::start(folder.path(), &database, &pebble, redirect);
    instance.wait_for_certificate().await;
    let copy = folder.path().join("data/acme-certificate.pem");
    wait_until("a copy", async || copy.exists()).await;
    let mode = std::fs::metadata(&copy).expect("a copy").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let certificate = instance.certificate(&root).await;
    assert!(certificate.is_some());
    instance.stop();

    database.refuse_connections().await;
    let instance = Instance::start(folder.path(), &database, &pebble, redirect);
    assert_eq!(curl(instance.https, &root, &["https://troupe.example/llms.txt"]).0, 0, "pages come over https");
    assert_eq!(instance.certificate(&root).await, certificate);
    instance.stop();

    // The copy belongs to the settings that it was ordered with.
    let (directory, ca_file) = (pebble.directory(), pebble.ca_file());
    let changed = (FURTHER, "somebody.else@troupe.example");
    let instance = Instance::start_with(folder.path(), &database, (&directory, &ca_file), redirect, changed);
    assert!(!copy.exists());
    assert!(!instance.is_trusted_by(&root).await);
    database.accept_connections().await;
    wait_until("the certificate in the database", async || instance.is_trusted_by(&root).await).await;
    wait_until("a copy", async || copy.exists()).await;
    instance.stop();
}

/// A certificate that is valid until the end of that year, and its key.
fn issued(year: i32) -> (String, String) {
    let mut params = rcgen::CertificateParams::new(vec![HOST.to_owned()]).expect("a host");
    (params.not_before, params.not_after) = (rcgen::date_time_ymd(2020, 1, 1), rcgen::date_time_ymd(year, 12, 31));
    let key = rcgen::KeyPair::generate().expect("a key");
    let chain = params.self_signed(&key).expect("a certificate").pem();
    (chain, key.serialize_pem())
}

async fn insert_certificate(database: &Database, directory: &str, hosts: &str, chain: &str, key: &str) {
    let insert = format!(
        "INSERT INTO acme_certificates (directory, hosts, chain, private_key, failures, next_attempt, lease_until) \
         VALUES ('{directory}', '{hosts}', '{chain}', '{key}', 0, 0, 0)"
    );
    database.execute(&insert).await;
}

#[tokio::test]
async fn of_the_certificates_from_before_a_valid_one_of_the_same_authority_is_served() {
    let settings = AcmeSettings {
        email: "me@troupe.example".to_owned(),
        directory: "https://production.example/dir".to_owned(),
        ca_file: None,
    };
    for database in each_migrated_database().await {
        let store = database.store();
        let orders = CertificateOrders::new(&settings, vec![HOST.to_owned()], store.clone(), Clock::System);
        let served = async || {
            let certificate = orders.state().await.expect("a database").certificate;
            certificate.map(|certificate| certificate.expires().date()).unwrap_or_default()
        };
        assert_eq!(served().await, "");
        for (year, directory, hosts, expected) in [
            (2021, "https://staging.example/dir", "a", ""),
            (2060, "https://staging.example/dir", "b", "2060-12-31"),
            (2050, &settings.directory, "c", "2050-12-31"),
            (2055, &settings.directory, "d", "2055-12-31"),
            (2021, &settings.directory, HOST, "2055-12-31"),
        ] {
            let (chain, key) = issued(year);
            insert_certificate(&database, directory, hosts, &chain, &key).await;
            assert_eq!(served().await, expected, "{year} from {directory} for {hosts}");
        }
        store.close().await;
    }
}
