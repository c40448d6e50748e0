//! Makes an encrypted backup in a bucket once a day.
//!
//! The names of the objects decide: on a day without a backup in the bucket, one of all instances makes it. A backup
//! that fails, or whose instance is killed, is made again half an hour later by whichever instance comes first. With clocks that
//! differ by more than that, two may make one at the same time; each writes objects of its own, and the last one counts.

use std::collections::BTreeSet;
use std::error::Error;
use std::fs::{self, File, Permissions};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use age::x25519::Recipient;
use tempfile::TempDir;
use tokio::sync::Mutex;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::bucket_layout::{Objects, contents_key, image_name, kept, piece_key, piece_name, pieces};
use super::create_and_rotate::copy_to_file;
use super::encryption::encrypt;
use super::folder::{BackupFolder, CopiedImages, Manifest, verify};
use crate::bucket::{Bucket, BucketFailure, Object};
use crate::clock::Clock;
use crate::domain::releases::Release;
use crate::domain::sha256::Sha256;
use crate::domain::time::{Day, Timestamp};
use crate::store::{Database, Store, StoreFailure, Task, make_private_folder};

/// For how long nobody else begins after somebody has begun, was heard of, or has failed.
const CLAIM: Duration = Duration::from_mins(30);
const EXTEND_INTERVAL: Duration = Duration::from_mins(1);
/// More than the keys of all objects of a backup take.
pub(super) const MAX_CONTENTS_BYTES: usize = 16 * 1024 * 1024;

#[derive(Clone, Debug)]
pub struct BucketBackups {
    pub database: Database,
    /// The folder of the disk images. `None`: they are in a bucket, which keeps them.
    pub releases_dir: Option<PathBuf>,
    pub bucket: Bucket,
    pub recipient: Recipient,
    /// Where a copy of the database is while a backup is made.
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
        let claimed_until = now.after(CLAIM);
        if !store.claim_until(Task::BucketBackupClaim, now, claimed_until).await? {
            return Ok(BucketBackupStep::Waiting);
        }
        let attempt = Attempt { of: self, store, now, today: Day::of(now), claimed_until: Mutex::new(claimed_until) };
        let outcome = tokio::select! {
            made = attempt.make() => made.unwrap_or_else(|why| BucketBackupStep::Failed(why.to_string())),
            () = attempt.keep_claim() => BucketBackupStep::Waiting,
            () = stop.cancelled() => BucketBackupStep::Waiting,
        };
        let is_known = store.last_time(Task::BucketBackup).await?.map(Day::of) == Some(attempt.today);
        let problem = match &outcome {
            BucketBackupStep::Failed(why) | BucketBackupStep::Made(Some(why)) => Some(why.as_str()),
            _ => None,
        };
        let is_there = matches!(outcome, BucketBackupStep::Made(_) | BucketBackupStep::Present);
        if is_there && !is_known {
            store.record_task(Task::BucketBackup, now).await?;
        }
        if problem.is_some() || (is_there && !is_known) {
            store.record_failure(Task::BucketBackupFailure, now, problem).await?;
        }
        if !matches!(outcome, BucketBackupStep::Failed(_)) {
            attempt.extend_claim(Timestamp::from_unix_millis(0)).await?;
        }
        Ok(outcome)
    }
}

/// The right to make a backup, and what it needs.
struct Attempt<'a> {
    of: &'a BucketBackups,
    store: &'a Store,
    now: Timestamp,
    today: Day,
    claimed_until: Mutex<Timestamp>,
}

impl Attempt<'_> {
    /// Returns `false` if another instance has the right.
    async fn extend_claim(&self, until: Timestamp) -> Result<bool, StoreFailure> {
        let mut held = self.claimed_until.lock().await;
        let extended = self.store.extend_claim(Task::BucketBackupClaim, *held, until).await?;
        *held = until;
        Ok(extended)
    }

    /// Returns once another instance has the right. While the database is away, none takes it.
    async fn keep_claim(&self) {
        loop {
            sleep(EXTEND_INTERVAL).await;
            if !self.extend_claim(self.of.clock.now().after(CLAIM)).await.unwrap_or(true) {
                return;
            }
        }
    }

    async fn require_claim(&self) -> Result<(), Phrase> {
        let is_held = self.extend_claim(self.of.clock.now().after(CLAIM)).await?;
        if is_held { Ok(()) } else { Err("another instance has begun it, too".into()) }
    }

    async fn make(&self) -> Result<BucketBackupStep, Phrase> {
        let objects = Objects(self.of.bucket.list().await?);
        if objects.backups().contains(&self.today) {
            return Ok(BucketBackupStep::Present);
        }
        let folder = temporary_folder(&self.of.data_dir, "bucket-backup")?;
        let backup = BackupFolder::new(folder.path());
        let (tables, releases) =
            copy_to_file(self.store, &backup, |_, _, _| {}).await.map_err(|failure| failure.phrase())?;
        let (mut images, mut keys) = (CopiedImages::of(&releases), BTreeSet::new());
        for release in releases.iter().filter(|release| release.external_url.is_none()) {
            let Some(releases_dir) = &self.of.releases_dir else { break };
            let image = releases_dir.join(&release.file);
            if release.withdrawn.is_some() && !image.exists() {
                continue;
            }
            let sent = self.send_image(release, &image, &objects, &folder).await?;
            images.add(release, sent.map(|sent| keys.extend(sent)));
        }
        let missing = images.missing.iter().map(|(image, _)| image.clone()).collect();
        Manifest::new(self.now, &tables, missing).write(&backup.manifest)?;
        for (name, file) in [("porchlight.db", &backup.partial), ("manifest.json", &backup.manifest)] {
            let name = format!("{}/{name}", self.today.date());
            for piece in pieces(file.metadata()?.len(), self.of.piece_bytes) {
                keys.insert(self.send(&name, file, piece, &folder).await?);
            }
        }
        self.write_contents(&keys, &folder).await?;
        if let Err(why) = self.rotate().await {
            return Ok(BucketBackupStep::Made(Some(format!("old backups could not be deleted: {why}"))));
        }
        if !images.missing.is_empty() {
            let missing: Vec<_> = images.missing.iter().map(|(file, why)| format!("{file} ({why})")).collect();
            return Ok(BucketBackupStep::Made(Some(format!("it lacks images: {}", missing.join(", ")))));
        }
        Ok(BucketBackupStep::Made(None))
    }

    /// Sends the pieces of an image that the bucket lacks, and returns the keys of all. The inner failure is that of the file.
    async fn send_image(
        &self,
        release: &Release,
        image: &Path,
        objects: &Objects,
        folder: &TempDir,
    ) -> Result<Result<Vec<String>, String>, Phrase> {
        let (name, mut keys, mut is_verified) = (image_name(release.sha256, &self.of.recipient), Vec::new(), false);
        for piece in pieces(release.length, self.of.piece_bytes) {
            if let Some(object) = objects.find(&piece_name(&name, piece)) {
                match self.of.bucket.check(object.clone()).await {
                    Err(BucketFailure::Missing | BucketFailure::Changed(_)) => {
                        self.of.bucket.delete(&object.key).await?;
                    }
                    known => {
                        keys.push(known.map(|()| object.key)?);
                        continue;
                    }
                }
            }
            if !is_verified && let Err(why) = verify(image, release, |_| {}) {
                return Ok(Err(why.to_string()));
            }
            is_verified = true;
            keys.push(self.send(&name, image, piece, folder).await?);
        }
        Ok(Ok(keys))
    }

    /// Encrypts a piece of a file and sends it. Returns its key.
    async fn send(&self, name: &str, file: &Path, piece: (u64, u64), folder: &TempDir) -> Result<String, Phrase> {
        let mut source = File::open(file)?;
        source.seek(SeekFrom::Start(piece.0))?;
        let encrypted = encrypt(source.take(piece.1), &self.of.recipient, folder.path());
        let encrypted =
            encrypted.map_err(|error| format!("a temporary file in `data_dir` cannot be written: {error}"))?;
        let key = piece_key(&piece_name(name, piece), encrypted.sha256);
        self.upload(&encrypted.path, Object::new(key.clone(), encrypted.length, encrypted.sha256)).await?;
        Ok(key)
    }

    /// Uploads a file and reads it back.
    async fn upload(&self, file: &Path, object: Object) -> Result<(), BucketFailure> {
        let uploaded = match self.of.bucket.upload(file, object.clone(), |_| {}).await {
            Ok(()) => self.of.bucket.read_back(&object, |_| Ok(())).await,
            failed => failed,
        };
        if uploaded.is_err() {
            // What was not verified must not be taken for a part of a backup.
            let _ = self.of.bucket.delete(&object.key).await;
        }
        uploaded
    }

    /// Completes a backup, if all of it is there.
    async fn write_contents(&self, keys: &BTreeSet<String>, folder: &TempDir) -> Result<(), Phrase> {
        let listed = Objects(self.of.bucket.list().await?);
        if let Some(gone) = keys.iter().find(|key| listed.find(key).is_none()) {
            return Err(format!("{gone} was deleted from the bucket meanwhile").into());
        }
        self.require_claim().await?;
        let text = keys.iter().cloned().chain([String::new()]).collect::<Vec<_>>().join("\n");
        let file = folder.path().join("contents");
        fs::write(&file, &text)?;
        let object = Object::new(contents_key(self.today), text.len() as u64, Sha256::of(text.as_bytes()));
        Ok(self.upload(&file, object).await?)
    }

    /// Deletes old backups, and what no backup needs.
    async fn rotate(&self) -> Result<(), Phrase> {
        let objects = Objects(self.of.bucket.list().await?);
        let kept = kept(&objects.backups(), self.today);
        let mut contents = BTreeSet::new();
        for day in &kept {
            let text = self.of.bucket.get(&contents_key(*day), MAX_CONTENTS_BYTES).await?;
            contents.extend(String::from_utf8_lossy(&text).lines().map(ToOwned::to_owned));
        }
        self.require_claim().await?;
        for key in objects.unneeded(&kept, &contents, self.today) {
            self.of.bucket.delete(key).await?;
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
