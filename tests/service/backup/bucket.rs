//! Encrypted backups in a bucket: one a day, whatever instances and clocks do, and back again.

mod documented;
mod faults;
mod restoring;
mod rotation;

use std::process::Command;
use std::time::Duration;

use porchlight::actions::{BackupKey, BucketBackupStep, BucketBackups, ImageStore};
use porchlight::clock::Clock;
use porchlight::store::Database as StoredIn;
use tokio_util::sync::CancellationToken;

use super::{home, lived_in};
use crate::harness::{Bucket, NOW, Program, Service, each_migrated_database, wait_until};
use crate::releases::live;

const HOUR: Duration = Duration::from_hours(1);
const DAY: Duration = Duration::from_hours(24);

/// A bucket, and the key that its backups are made for.
struct Offsite {
    bucket: Bucket,
    key: BackupKey,
}

impl Offsite {
    fn new() -> Self {
        Self { bucket: Bucket::new(), key: BackupKey::generate() }
    }

    /// An instance of the service with a folder and a clock of its own, whose steps the test runs.
    fn instance(&self, service: &Service, clock: Clock) -> Instance {
        let folder = crate::harness::folder::new();
        let bucket = self.bucket.settings("key-of-the-tests");
        let backups = BucketBackups {
            database: StoredIn::parse(service.database.url()).expect("a database"),
            images: ImageStore::Folder(service.releases_dir().into()),
            bucket: porchlight::bucket::Bucket::open(&bucket, clock.clone()).expect("a bucket"),
            recipient: self.key.recipient(),
            data_dir: folder.path().join("data"),
            piece_bytes: 150_000,
            clock: clock.clone(),
        };
        Instance { backups, folder, clock, stop: CancellationToken::new() }
    }

    /// The days of which there is a backup.
    fn days(&self) -> Vec<String> {
        let day = |key: String| Some(key.strip_prefix("site/")?.strip_suffix("/contents")?.to_owned());
        self.bucket.objects().into_iter().filter_map(day).collect()
    }

    /// Waits until a piece of a database was uploaded.
    async fn has_part_of_a_backup(&self) {
        let is_there = async || self.bucket.objects().iter().any(|key| key.contains("porchlight.db"));
        wait_until("an upload of the database", is_there).await;
    }

    /// The objects of disk images.
    fn images(&self) -> Vec<String> {
        self.bucket.objects().into_iter().filter(|key| key.starts_with("site/images/")).collect()
    }

    /// `porchlight …` with the settings of this bucket, beside the service.
    fn command(&self, service: &Service, arguments: &[&str]) -> Command {
        let mut command = super::command(service, arguments);
        command
            .env("PORCHLIGHT_BACKUP_URL", format!("s3://{}/site", self.bucket.name))
            .env("PORCHLIGHT_BACKUP_RECIPIENT", self.key.recipient().to_string())
            .envs(Bucket::environment());
        command
    }
}

struct Instance {
    backups: BucketBackups,
    folder: tempfile::TempDir,
    clock: Clock,
    stop: CancellationToken,
}

impl Instance {
    async fn step(&self) -> BucketBackupStep {
        let step = self.backups.step(&self.stop).await.expect("a database that answers");
        let left = std::fs::read_dir(self.folder.path().join("data")).map_or(0, Iterator::count);
        assert_eq!(left, 0, "no copy of the data is left on the machine");
        step
    }
}

const MADE: BucketBackupStep = BucketBackupStep::Made(None);

#[tokio::test]
async fn of_two_instances_with_different_clocks_one_makes_a_backup_on_each_day() {
    for database in each_migrated_database().await {
        println!("on {database:?}");
        let service = Service::start(live(), database).await;
        for ahead in [Duration::from_mins(14), HOUR * 7] {
            let offsite = Offsite::new();
            let one = offsite.instance(&service, Clock::manual(NOW));
            let other = offsite.instance(&service, Clock::manual(NOW.after(ahead)));
            let mut made = 0;
            for _ in 0..12 {
                for instance in [&one, &other] {
                    made += u32::from(instance.step().await == MADE);
                    instance.clock.advance(HOUR * 6);
                }
            }
            let days = offsite.days();
            assert_eq!((made as usize, days.len()), (days.len(), 4), "{days:?}");
            assert_eq!(days.first().map(String::as_str), Some("2026-11-15"));
        }
        service.stop().await;
    }
}

#[tokio::test]
async fn an_instance_with_a_wrong_clock_keeps_no_other_from_making_backups() {
    for database in each_migrated_database().await {
        println!("on {database:?}");
        let service = Service::start(live(), database).await;
        let offsite = Offsite::new();
        let right = offsite.instance(&service, Clock::manual(NOW));
        let early = offsite.instance(&service, Clock::manual(NOW.before(DAY * 9000)));
        let late = offsite.instance(&service, Clock::manual(NOW.after(DAY * 900)));
        for _ in 0..3 {
            for instance in [&late, &early, &right] {
                assert_eq!(instance.step().await, MADE);
                instance.clock.advance(DAY);
            }
        }
        let days = offsite.days();
        assert_eq!(days.len(), 9, "none is lost: {days:?}");
        assert!(
            ["2026-11-15", "2026-11-16", "2026-11-17"].iter().all(|day| days.contains(&(*day).to_owned())),
            "{days:?}"
        );
        service.stop().await;
    }
}

#[tokio::test]
async fn two_instances_at_the_same_time_make_one_backup() {
    for database in each_migrated_database().await {
        println!("on {database:?}");
        let service = Service::start(live(), database).await;
        let offsite = Offsite::new();
        let [one, other] = [0, 1].map(|_| offsite.instance(&service, service.clock.clone()));
        let steps = tokio::join!(one.step(), other.step());
        assert!(matches!(&steps, (MADE, BucketBackupStep::Waiting) | (BucketBackupStep::Waiting, MADE)), "{steps:?}");
        assert_eq!(one.step().await, BucketBackupStep::Present);
        assert_eq!(other.step().await, BucketBackupStep::Present);
        assert_eq!(offsite.days(), ["2026-11-15"]);
        service.stop().await;
    }
}

#[tokio::test]
async fn a_backup_that_is_killed_in_the_middle_is_made_by_another_instance_within_the_hour() {
    for database in each_migrated_database().await {
        println!("on {database:?}");
        let service = Service::start(live(), database).await;
        service.publish("1.4.0");
        let offsite = Offsite::new();
        let [killed, other] = [0, 1].map(|_| offsite.instance(&service, service.clock.clone()));
        offsite.bucket.command("hang:manifest");
        tokio::select! {
            step = killed.step() => panic!("it was to be killed: {step:?}"),
            () = offsite.has_part_of_a_backup() => {}
        }
        offsite.bucket.command("work");
        let images = offsite.images();
        assert_eq!((other.step().await, offsite.days().len()), (BucketBackupStep::Waiting, 0));
        service.clock.advance(HOUR);
        assert_eq!((other.step().await, offsite.days().len()), (MADE, 1));
        assert_eq!(offsite.images(), images, "what was sent is not sent again");

        std::fs::create_dir_all(killed.folder.path().join("data/bucket-backup/releases")).expect("what a kill leaves");
        assert_eq!(killed.step().await, BucketBackupStep::Present, "and leaves no copy behind");

        // The pieces that belong to no backup are gone once they cannot be a part of one any more.
        let objects = |day: &str| offsite.bucket.objects().iter().filter(|key| key.contains(day)).count();
        let with_leftovers = objects("2026-11-15");
        for _ in 0..2 {
            service.clock.advance(DAY);
            assert_eq!(other.step().await, MADE);
        }
        assert!(objects("2026-11-15") < with_leftovers && objects("2026-11-15") == objects("2026-11-16"));
        service.stop().await;
    }
}

#[tokio::test]
async fn a_backup_that_is_stopped_in_the_middle_is_made_at_once_by_another_instance() {
    for database in each_migrated_database().await {
        println!("on {database:?}");
        let service = Service::start(live(), database).await;
        let offsite = Offsite::new();
        let [stopped, other] = [0, 1].map(|_| offsite.instance(&service, service.clock.clone()));
        offsite.bucket.command("hang:manifest");
        let stop = async {
            offsite.has_part_of_a_backup().await;
            stopped.stop.cancel();
        };
        assert_eq!(tokio::join!(stopped.step(), stop).0, BucketBackupStep::Waiting);
        offsite.bucket.command("work");
        assert_eq!(other.step().await, MADE);
        service.stop().await;
    }
}

#[tokio::test]
async fn nobody_who_holds_the_bucket_or_the_server_reads_a_backup() {
    let [sqlite, _] = each_migrated_database().await;
    let (service, _server) = lived_in(sqlite).await;
    let offsite = Offsite::new();
    assert_eq!(offsite.instance(&service, service.clock.clone()).step().await, MADE);
    let encrypted = offsite.bucket.objects_with("age-encryption.org/v1");
    let others: Vec<_> = offsite.bucket.objects().into_iter().filter(|key| !encrypted.contains(key)).collect();
    assert_eq!(others, ["site/2026-11-15/contents"]);
    for text in ["@example.com", "example", "SQLite format 3", "koly", "Troupe", "porchlight.toml"] {
        let readable = offsite.bucket.objects_with(text);
        assert_eq!(readable, Vec::<String>::new(), "{text}");
    }
    let mut restore = offsite.command(&service, &["restore", &format!("s3://{}/site", offsite.bucket.name)]);
    restore.args(["--key", "public.key", "--data-dir", "elsewhere"]);
    service.file("public.key", offsite.key.recipient().to_string());
    let (code, output) = Program::run(restore);
    assert!(code == 1 && output.contains("it has no secret key"), "{output}");
    service.stop().await;
}

#[tokio::test]
async fn an_image_is_sent_once_and_a_damaged_one_again() {
    for database in each_migrated_database().await {
        println!("on {database:?}");
        let service = Service::start(live(), database).await;
        service.publish("1.4.0");
        let offsite = Offsite::new();
        let mut instance = offsite.instance(&service, service.clock.clone());
        instance.backups.piece_bytes = 9_000;
        assert_eq!(instance.step().await, MADE);
        let first = offsite.images();
        assert_eq!(first.len(), 3, "20,000 bytes in pieces of 9,000: {first:?}");
        service.publish("1.5.0");
        service.clock.advance(DAY);
        assert_eq!(instance.step().await, MADE);
        let both = offsite.images();
        assert!(both.len() == 6 && first.iter().all(|key| both.contains(key)), "{both:?}");

        offsite.bucket.command(&format!("damage:{}", first[0]));
        service.clock.advance(DAY);
        assert_eq!(instance.step().await, MADE);
        let repaired = offsite.images();
        assert!(repaired.len() == 6 && !repaired.contains(&first[0]), "{repaired:?}");
        assert_eq!(repaired.iter().filter(|key| both.contains(key)).count(), 5, "no other was sent again");

        let other_key = Offsite { key: BackupKey::generate(), ..offsite };
        let instance = other_key.instance(&service, service.clock.clone());
        service.clock.advance(DAY);
        assert_eq!(instance.step().await, MADE);
        assert_eq!(other_key.images().len(), 8, "for another key, images are encrypted anew");
        service.stop().await;
    }
}

#[tokio::test]
async fn an_image_that_cannot_be_read_is_named_and_the_rest_is_backed_up() {
    for database in each_migrated_database().await {
        println!("on {database:?}");
        let service = Service::start(live(), database).await;
        service.publish("1.4.0");
        std::fs::write(home(&service).join("releases/Troupe-1.4.0.dmg"), "something else").expect("a file");
        let offsite = Offsite::new();
        let instance = offsite.instance(&service, service.clock.clone());
        let BucketBackupStep::Made(Some(problem)) = instance.step().await else { panic!("an image is missing") };
        assert!(problem.starts_with("it lacks images: Troupe-1.4.0.dmg (its length"), "{problem}");
        assert_eq!(offsite.days(), ["2026-11-15"]);
        let (_, output) = Program::run(offsite.command(&service, &["check"]));
        assert!(output.contains("The backup in the bucket fails: it lacks images: Troupe-1.4.0.dmg"), "{output}");
        service.stop().await;
    }
}
