//! Makes an encrypted backup in a bucket once a day.
//!
//! The names of the objects decide: on a day without a backup in the bucket, one of all instances makes it. A backup
//! that fails, or whose instance is killed, is made again half an hour later by whichever instance comes first. With clocks that
//! differ by more than that, two may make one at the same time; each writes objects of its own, and the first one counts.

use std::collections::BTreeSet;
use std::error::Error;
use std::fs::{self, File, Permissions};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use age::x25519::Recipient;
use tempfile::TempDir;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::bucket_layout::{Objects, contents_key, image_name, kept, piece_key, piece_name, pieces};
use super::create_and_rotate::create_backup;
use super::encryption::encrypt;
use super::folder::BackupFolder;
use crate::actions::releases::ImageStore;
use crate::bucket::{Bucket, BucketFailure, Object};
use crate::clock::Clock;
use crate::domain::sha256::Sha256;
use crate::domain::time::{Day, Timestamp};
use crate::store::{Database, Store, StoreFailure, Task, make_private_folder};

/// Where in `data_dir` a backup is until it was sent.
const FOLDER: &str = "bucket-backup";
/// For how long nobody else begins after somebody has begun, was heard of, or has failed.
const RETRY_INTERVAL: Duration = Duration::from_mins(30);
const CLAIM_INTERVAL: Duration = Duration::from_mins(1);
/// More than the keys of all objects of a backup take.
pub(super) const MAX_CONTENTS_BYTES: usize = 16 * 1024 * 1024;

#[derive(Clone, Debug)]
pub struct BucketBackups {
    pub database: Database,
    pub images: ImageStore,
    pub bucket: Bucket,
    pub recipient: Recipient,
    pub data_dir: PathBuf,
    /// The size of the pieces of a file.
    pub piece_bytes: u64,
    pub clock: Clock,
}

/// What came of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BucketBackupStep {
    /// There is a backup of this day now. Something may be wrong all the same.
    Made(Option<String>),
    /// The bucket had it already.
    Present,
    /// Another instance makes it, or it has failed a short time ago.
    Waiting,
    /// There is none, for this reason.
    Failed(String),
}

/// A phrase that says why there is no backup.
type Phrase = Box<dyn Error + Send + Sync>;

impl BucketBackups {
    /// Makes the backup of this day, unless the bucket has it or another instance makes it. After `stop` another one may begin.
    pub async fn step(&self, stop: &CancellationToken) -> Result<BucketBackupStep, StoreFailure> {
        let store = Store::open(&self.database)?;
        let result = self.step_on(&store, stop).await;
        store.close().await;
        result
    }

    async fn step_on(&self, store: &Store, stop: &CancellationToken) -> Result<BucketBackupStep, StoreFailure> {
        let now = self.clock.now();
        if !store.try_claim(Task::BucketBackupClaim, now, RETRY_INTERVAL).await? {
            return Ok(BucketBackupStep::Waiting);
        }
        store.record_task(Task::BucketBackupClaim, now).await?;
        let outcome = tokio::select! {
            made = self.make(store, now) => made.unwrap_or_else(|why| BucketBackupStep::Failed(why.to_string())),
            () = self.keep_claim(store) => BucketBackupStep::Waiting,
            () = stop.cancelled() => BucketBackupStep::Waiting,
        };
        let is_known = store.last_time(Task::BucketBackup).await?.map(Day::of) == Some(Day::of(now));
        match &outcome {
            BucketBackupStep::Made(flaw) => {
                store.record_outcome(Task::BucketBackup, now, flaw.as_deref()).await?;
            }
            BucketBackupStep::Present if !is_known => store.record_outcome(Task::BucketBackup, now, None).await?,
            _ => {}
        }
        let (claim, failure) = match &outcome {
            BucketBackupStep::Failed(why) => (self.clock.now(), Some(why.as_str())),
            _ => (Timestamp::from_unix_millis(0), None),
        };
        store.record_outcome(Task::BucketBackupClaim, claim, failure).await?;
        Ok(outcome)
    }

    /// Does not end. If the database is away, no other instance can begin either.
    async fn keep_claim(&self, store: &Store) {
        loop {
            sleep(CLAIM_INTERVAL).await;
            let _ = store.record_task(Task::BucketBackupClaim, self.clock.now()).await;
        }
    }

    async fn make(&self, store: &Store, now: Timestamp) -> Result<BucketBackupStep, Phrase> {
        // First, so that no copy of the data stays behind that a killed process has left, whoever makes the backup instead.
        let folder = temporary_folder(&self.data_dir, FOLDER)?;
        let (today, objects) = (Day::of(now), Objects(self.bucket.list().await?));
        if objects.backups().contains(&today) {
            return Ok(BucketBackupStep::Present);
        }
        let (backup, mut contents) = (BackupFolder::new(folder.path()), String::new());
        let created = create_backup(store, &self.images, folder.path(), now, |_, _, _| {}).await;
        let created = created.map_err(|failure| {
            failure.to_string().trim_start_matches("Nothing was backed up: ").trim_end_matches('.').to_owned()
        })?;
        for release in created.releases.iter() {
            let image = backup.images.join(&release.file);
            if image.exists() {
                let name = image_name(release.sha256, &self.recipient);
                self.send(&name, &image, &objects, &mut contents).await?;
            }
        }
        for (name, file) in [("porchlight.db", &backup.database), ("manifest.json", &backup.manifest)] {
            self.send(&format!("{}/{name}", today.date()), file, &objects, &mut contents).await?;
        }
        let objects = Objects(self.bucket.list().await?);
        if objects.backups().contains(&today) {
            return Ok(BucketBackupStep::Present);
        }
        if let Some(gone) = contents.lines().find(|key| objects.find(key).is_none()) {
            return Err(format!("{gone} was deleted from the bucket meanwhile").into());
        }
        let file = folder.path().join("contents");
        fs::write(&file, &contents)?;
        let object = Object::new(contents_key(today), contents.len() as u64, Sha256::of(contents.as_bytes()));
        self.upload(&file, object).await?;
        let missing: Vec<_> = created.missing.iter().map(|(file, why)| format!("{file} ({why})")).collect();
        Ok(BucketBackupStep::Made(match self.rotate(today).await {
            Err(why) => Some(format!("old backups could not be deleted: {why}")),
            Ok(()) if missing.is_empty() => None,
            Ok(()) => Some(format!("it lacks images: {}", missing.join(", "))),
        }))
    }

    /// Sends the pieces of a file that the bucket lacks, encrypted, and adds the keys of all to the contents of the backup.
    async fn send(&self, name: &str, file: &Path, objects: &Objects, contents: &mut String) -> Result<(), Phrase> {
        for (first, length) in pieces(file.metadata()?.len(), self.piece_bytes) {
            let piece = piece_name(name, first, length);
            if let Some(object) = objects.find(&piece) {
                match self.bucket.check(object.clone()).await {
                    Err(BucketFailure::Missing | BucketFailure::Changed(_)) => self.bucket.delete(&object.key).await?,
                    known => {
                        known?;
                        contents.extend([object.key.as_str(), "\n"]);
                        continue;
                    }
                }
            }
            let mut source = File::open(file)?;
            source.seek(SeekFrom::Start(first))?;
            let encrypted = self.data_dir.join(FOLDER).join("piece.age");
            let (length, sha256) = encrypt(source.take(length), &self.recipient, &encrypted)
                .map_err(|error| format!("{} cannot be written: {error}", encrypted.display()))?;
            let key = piece_key(&piece, sha256);
            self.upload(&encrypted, Object::new(key.clone(), length, sha256)).await?;
            contents.extend([key.as_str(), "\n"]);
        }
        Ok(())
    }

    /// Uploads a file and reads it back.
    async fn upload(&self, file: &Path, object: Object) -> Result<(), BucketFailure> {
        let uploaded = match self.bucket.upload(file, object.clone(), |_| {}).await {
            Ok(()) => self.bucket.read_back(&object).await,
            failed => failed,
        };
        if uploaded.is_err() {
            // What was not verified must not be taken for a part of a backup.
            let _ = self.bucket.delete(&object.key).await;
        }
        uploaded
    }

    /// Deletes old backups, and what no backup needs.
    async fn rotate(&self, today: Day) -> Result<(), Phrase> {
        let objects = Objects(self.bucket.list().await?);
        let (kept, mut contents) = (kept(&objects.backups(), today), BTreeSet::new());
        for day in &kept {
            let text = self.bucket.get(&contents_key(*day), MAX_CONTENTS_BYTES).await?;
            contents.extend(String::from_utf8_lossy(&text).lines().map(ToOwned::to_owned));
        }
        for key in objects.unneeded(&kept, &contents, today) {
            self.bucket.delete(key).await?;
        }
        Ok(())
    }
}

/// Creates a folder for its owner alone, which is deleted with what is in it. A process that was killed may have left one.
pub(super) fn temporary_folder(data_dir: &Path, name: &str) -> io::Result<TempDir> {
    make_private_folder(data_dir)?;
    let _ = fs::remove_dir_all(data_dir.join(name));
    let private = Permissions::from_mode(0o700);
    tempfile::Builder::new().prefix(name).rand_bytes(0).permissions(private).tempdir_in(data_dir)
}
