//! Uploads into a bucket, through one instance or two.

use std::process::Command;

use rustix::process::Signal;

use super::interrupted::{Running, begin};
use crate::harness::{Bucket, Connection, Database, Program, disk_image, each_migrated_database, wait_until};

const LENGTH: usize = 600_000;

struct Makers {
    running: Running,
    bucket: Bucket,
}

impl Makers {
    fn new(database: Database) -> Self {
        Self { running: Running::new(database), bucket: Bucket::new() }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.running.command(arguments);
        self.bucket.configure(&mut command, "?proxy=true");
        command
    }

    fn serve(&self) -> Program {
        Running::serve(self.command(&[]))
    }

    fn list(&self) -> String {
        String::from_utf8(Program::run_to_end(&mut self.command(&["release", "list"])).stdout).expect("UTF-8")
    }

    fn nothing_is_kept_here(&self) -> bool {
        !self.running.folder.path().join("data/uploads/.partial").exists()
    }
}

async fn upload(program: &Program, token: &str, version: &str, image: &[u8]) -> String {
    let mut connection = Connection::open(program.address()).await;
    begin(&mut connection, token, version, image).await;
    connection.send(&image[image.len() / 2..]).await;
    connection.read_to_end().await
}

#[track_caller]
fn assert_answer(answer: &str, status: u16, words: &str) {
    assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")) && answer.contains(words), "{answer}");
}

#[tokio::test]
async fn an_upload_ends_in_the_bucket_and_nothing_stays_on_the_disk() {
    for database in each_migrated_database().await {
        let makers = Makers::new(database);
        let (token, image, program) = (makers.running.token(), disk_image(LENGTH, 7), makers.serve());
        assert_answer(&upload(&program, &token, "1.1.0", &image).await, 201, "\"version\": \"1.1.0\"");
        assert!(makers.nothing_is_kept_here());
        assert_eq!(makers.bucket.objects().len(), 1);
        let url = format!("http://{}/releases/Troupe-1.1.0.dmg", program.address());
        assert!(reqwest::get(url).await.unwrap().bytes().await.unwrap() == image);
        assert_answer(&upload(&program, &token, "1.1.0", &image).await, 200, "\"version\": \"1.1.0\"");
        assert_answer(&upload(&program, &token, "1.1.0", &disk_image(LENGTH, 8)).await, 409, "\"version_used\"");
        assert_eq!(makers.bucket.objects().len(), 1);

        makers.bucket.command("fail");
        let answer = upload(&program, &token, "1.2.0", &image).await;
        assert_answer(&answer, 503, "\"code\": \"bucket_unavailable\"");
        assert!(makers.nothing_is_kept_here() && !makers.list().contains("1.2.0"));
        makers.bucket.command("work");
        assert_answer(&upload(&program, &token, "1.2.0", &image).await, 201, "\"version\": \"1.2.0\"");
    }
}

#[tokio::test]
async fn at_a_stop_an_upload_to_a_bucket_that_hangs_is_answered() {
    let makers = Makers::new(Database::migrated_sqlite().await);
    let (token, image, program) = (makers.running.token(), disk_image(LENGTH, 7), makers.serve());
    makers.bucket.command("hang");
    let mut connection = Connection::open(program.address()).await;
    begin(&mut connection, &token, "1.1.0", &image).await;
    connection.send(&image[LENGTH / 2..]).await;
    let partial = makers.running.folder.path().join("data/uploads/.partial");
    let arrived = async || partial.metadata().is_ok_and(|partial| partial.len() == LENGTH as u64);
    wait_until("the whole image", arrived).await;
    program.signal(Signal::TERM);
    assert_answer(&connection.read_to_end().await, 503, "\"code\": \"stopping\"");
    let (status, log) = program.end();
    assert_eq!(status.code(), Some(0), "{log}");
    makers.bucket.command("work");
    assert!(makers.nothing_is_kept_here() && makers.list().is_empty());
}

#[tokio::test]
async fn of_two_instances_one_publishes_a_version() {
    let [_, postgres] = each_migrated_database().await;
    let makers = Makers::new(postgres);
    let (token, image, first) = (makers.running.token(), disk_image(LENGTH, 7), makers.serve());
    let mut other_place = makers.command(&[]);
    other_place.env("PORCHLIGHT_DATA_DIR", makers.running.folder.path().join("other"));
    let second = Running::serve(other_place);
    let mut slow = Connection::open(first.address()).await;
    begin(&mut slow, &token, "1.1.0", &image).await;
    let other = disk_image(LENGTH, 8);
    assert_answer(&upload(&second, &token, "1.1.0", &other).await, 201, "\"version\": \"1.1.0\"");
    slow.send(&image[LENGTH / 2..]).await;
    assert_answer(&slow.read_to_end().await, 409, "\"code\": \"version_used\"");
    assert_answer(&upload(&first, &token, "1.1.0", &other).await, 200, "\"version\": \"1.1.0\"");

    let mut revoke = makers.command(&["token", "revoke", "ci"]);
    assert!(Program::run_to_end(&mut revoke).status.success());
    for program in [&first, &second] {
        assert_answer(&upload(program, &token, "1.1.0", &other).await, 401, "\"code\": \"unauthorized\"");
    }
}
