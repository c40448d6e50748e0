//! Uploads that do not reach their end: nothing is left of them, and they can be repeated.

use std::path::Path;
use std::process::Command;

use rustix::process::Signal;

use super::{RELEASES, listed, open, put, token};
use crate::harness::{
    Connection, Database, Program, Service, SmallDisk, disk_image, each_migrated_database, folder,
    on_each_database_with, wait_until,
};

const LENGTH: usize = 600_000;

/// Sends the head of an upload and the first half of the image.
pub(super) async fn begin(connection: &mut Connection, token: &str, version: &str, image: &[u8]) {
    let length = image.len();
    let head = format!(
        "PUT {RELEASES}{version} HTTP/1.1\r\nHost: troupe.example\r\nAuthorization: Bearer {token}\r\n\
         Content-Length: {length}\r\nConnection: close\r\n\r\n"
    );
    connection.send(head).await;
    connection.send(&image[..length / 2]).await;
}

pub(super) async fn wait_for_half(folder: &Path, image: &[u8]) {
    let half = (image.len() / 2) as u64;
    let arrived = async || folder.join(".partial").metadata().is_ok_and(|partial| partial.len() == half);
    wait_until("half of the image", arrived).await;
}

pub(super) async fn wait_for_nothing(folder: &Path) {
    wait_until("nothing of the image", async || !folder.join(".partial").exists()).await;
}

#[tokio::test]
async fn of_two_uploads_at_a_time_one_wins_and_the_other_can_be_repeated() {
    on_each_database_with(open(), async |service| {
        let (token, image) = (token(service), disk_image(LENGTH, 7));
        let mut first = Connection::open(service.address()).await;
        begin(&mut first, &token, "1.1.0", &image).await;
        wait_for_half(&service.releases_dir(), &image).await;
        for version in ["1.1.0", "1.2.0"] {
            let answer = put(service, &token, version, &image).await;
            answer.expect_problem(503, "busy");
            assert!(!answer.header("retry-after").is_empty());
        }
        first.send(&image[LENGTH / 2..]).await;
        let answer = first.read_to_end().await;
        assert!(answer.starts_with("HTTP/1.1 201 "), "{answer}");
        put(service, &token, "1.1.0", &image).await.expect_ok();
        put(service, &token, "1.1.0", &disk_image(LENGTH, 8)).await.expect_problem(409, "version_used");
        assert!(service.get("/releases/Troupe-1.1.0.dmg").await.body == image);
    })
    .await;
}

#[tokio::test]
async fn a_cut_connection_leaves_nothing_and_the_upload_can_be_repeated() {
    on_each_database_with(open(), async |service| {
        let (token, image) = (token(service), disk_image(LENGTH, 7));
        for closes_one_side in [true, false] {
            let mut connection = Connection::open(service.address()).await;
            begin(&mut connection, &token, "1.1.0", &image).await;
            wait_for_half(&service.releases_dir(), &image).await;
            if closes_one_side {
                connection.end_sending().await;
                connection.read_to_end().await;
            }
            drop(connection);
            wait_for_nothing(&service.releases_dir()).await;
            assert_eq!(listed(service), serde_json::json!([]));
            let files: Vec<_> = std::fs::read_dir(service.releases_dir()).unwrap().map(Result::unwrap).collect();
            assert_eq!(files.len(), 1, "the lock: {files:?}");
        }
        assert_eq!(put(service, &token, "1.1.0", &image).await.status, 201);
    })
    .await;
}

#[tokio::test]
async fn while_the_database_is_away_nothing_is_accepted_and_the_upload_can_be_repeated() {
    let [_, postgres] = each_migrated_database().await;
    let service = Service::start(open(), postgres).await;
    let (token, image) = (token(&service), disk_image(LENGTH, 7));
    service.database.refuse_connections().await;
    put(&service, &token, "1.1.0", &image).await.expect_problem(503, "unavailable");
    service.database.accept_connections().await;

    let mut connection = Connection::open(service.address()).await;
    begin(&mut connection, &token, "1.1.0", &image).await;
    wait_for_half(&service.releases_dir(), &image).await;
    service.database.refuse_connections().await;
    connection.send(&image[LENGTH / 2..]).await;
    let answer = connection.read_to_end().await;
    assert!(answer.starts_with("HTTP/1.1 503 ") && answer.contains("\"code\": \"unavailable\""), "{answer}");
    wait_for_nothing(&service.releases_dir()).await;
    service.database.accept_connections().await;
    assert_eq!(put(&service, &token, "1.1.0", &image).await.status, 201);
    service.stop().await;
}

/// `porchlight serve` with an open desk, in a folder of its own.
pub(super) struct Running {
    pub folder: tempfile::TempDir,
    pub database: Database,
}

impl Running {
    pub(super) fn new(database: Database) -> Self {
        Self { folder: folder::new(), database }
    }

    pub(super) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Program::command(self.folder.path(), arguments);
        command.env("PORCHLIGHT_DATABASE_URL", self.database.url()).env("PORCHLIGHT_DESK", "api");
        command.env("PORCHLIGHT_BASE_URL", "https://troupe.example");
        command
    }

    pub(super) fn serve(mut command: Command) -> Program {
        command.args(["serve", "--listen", "127.0.0.1:0", "--ops-listen", "off", "--log-format", "logfmt"]);
        Program::start(command, "not mailed to anybody")
    }

    pub(super) fn token(&self) -> String {
        let output = Program::run_to_end(&mut self.command(&["token", "create", "ci", "--may", "publish"]));
        String::from_utf8(output.stdout).expect("UTF-8").trim().to_owned()
    }
}

#[tokio::test]
async fn at_a_stop_an_upload_is_answered_and_nothing_is_left_of_it() {
    for database in each_migrated_database().await {
        let running = Running::new(database);
        let (token, image, releases) =
            (running.token(), disk_image(LENGTH, 7), running.folder.path().join("data/releases"));
        let program = Running::serve(running.command(&[]));
        let mut connection = Connection::open(program.address()).await;
        begin(&mut connection, &token, "1.1.0", &image).await;
        wait_for_half(&releases, &image).await;
        program.signal(Signal::TERM);
        let answer = connection.read_to_end().await;
        assert!(answer.starts_with("HTTP/1.1 503 ") && answer.contains("\"code\": \"stopping\""), "{answer}");
        let (status, log) = program.end();
        assert_eq!(status.code(), Some(0), "{log}");
        assert!(log.contains("method=PUT route=/desk/releases/{version} status=503"), "{log}");
        assert!(!log.contains(&token["porchlight_".len()..]), "{log}");
        assert!(!releases.join(".partial").exists());

        let program = Running::serve(running.command(&[]));
        let mut connection = Connection::open(program.address()).await;
        begin(&mut connection, &token, "1.1.0", &image).await;
        connection.send(&image[LENGTH / 2..]).await;
        assert!(connection.read_to_end().await.starts_with("HTTP/1.1 201 "));
        program.signal(Signal::TERM);
        let (_, log) = program.end();
        assert!(log.contains("token=ci change=\"published release 1.1.0\""), "{log}");
        assert!(log.contains("method=PUT route=/desk/releases/{version} status=201"), "{log}");
        assert!(!log.contains(&token["porchlight_".len()..]), "{log}");
    }
}

#[tokio::test]
async fn a_full_disk_refuses_an_image_before_it_is_sent_or_when_it_fills_up_meanwhile() {
    let disk = SmallDisk::new();
    let running = Running::new(Database::migrated_sqlite().await);
    let token = running.token();
    let mut command = running.command(&[]);
    command.env("PORCHLIGHT_RELEASES_DIR", disk.folder());
    let program = Running::serve(command);
    let upload = async |version, image: &[u8], meanwhile: &dyn Fn()| {
        let mut connection = Connection::open(program.address()).await;
        begin(&mut connection, &token, version, image).await;
        meanwhile();
        connection.send(&image[image.len() / 2..]).await;
        connection.read_to_end().await
    };
    // The last tenth of the disk stays free.
    for length in [3_000_000, 1_480_000] {
        let answer = upload("1.0.0", &disk_image(length, 7), &|| {}).await;
        assert!(answer.starts_with("HTTP/1.1 507 ") && answer.contains("\"code\": \"no_room\""), "{answer}");
    }

    let image = disk_image(1_000_000, 7);
    let mut connection = Connection::open(program.address()).await;
    begin(&mut connection, &token, "1.0.0", &image).await;
    wait_for_half(disk.folder(), &image).await;
    let filler = disk.folder().join("filler");
    std::fs::write(&filler, vec![0; 1_500_000]).expect_err("a full disk");
    connection.send(&image[500_000..]).await;
    let answer = connection.read_to_end().await;
    assert!(answer.starts_with("HTTP/1.1 507 ") && answer.contains("\"code\": \"no_room\""), "{answer}");
    assert!(!answer.contains(disk.folder().to_str().unwrap()), "{answer}");
    wait_for_nothing(disk.folder()).await;

    std::fs::remove_file(&filler).unwrap();
    let answer = upload("1.0.0", &image, &|| {}).await;
    assert!(answer.starts_with("HTTP/1.1 201 "), "{answer}");
}
