//! Downloads a backup from a bucket, to be restored with the secret key.
//!
//! Every object is authenticated by its encryption. Of what is in the wrong place, a restored database differs from its manifest,
//! and an image from the SHA-256 of its release.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::Path;
use std::pin::pin;

use futures_util::TryStreamExt as _;
use tempfile::TempDir;

use super::bucket_backup::{MAX_CONTENTS_BYTES, temporary_folder};
use super::bucket_layout::{Objects, contents_key, image_name};
use super::encryption::{BackupKey, decrypt};
use super::folder::BackupFolder;
use crate::actions::releases::ImageStore;
use crate::bucket::{Bucket, BucketFailure, IDLE_TIMEOUT};
use crate::domain::releases::Release;
use crate::domain::time::Day;
use crate::store::make_private_folder;

/// A backup in a bucket, and the key that opens it.
#[derive(Debug)]
pub struct BucketSource {
    pub bucket: Bucket,
    /// `None`: the newest.
    pub day: Option<Day>,
    pub key: BackupKey,
}

/// A backup whose database was downloaded to a temporary folder.
#[derive(Debug)]
pub struct Download<'a> {
    source: &'a BucketSource,
    objects: Objects,
    contents: String,
    pub day: Day,
    pub folder: TempDir,
}

impl BucketSource {
    /// Downloads the database and the manifest to a folder in `data_dir`. Fails with a phrase.
    pub async fn download(
        &self,
        data_dir: &Path,
        mut progress: impl FnMut(&'static str, u64, u64),
    ) -> Result<Download<'_>, String> {
        let name = self.bucket.name();
        let unusable = |why: BucketFailure| format!("{name} cannot be used: {why}");
        let unwritable = |why: io::Error| format!("{} cannot be written: {why}", data_dir.display());
        let objects = Objects(self.bucket.list().await.map_err(unusable)?);
        let there = objects.backups();
        let newest = there.first().ok_or_else(|| format!("there is no backup in {name}"))?;
        let day = self.day.unwrap_or(*newest);
        let dates = there.iter().map(|day| day.date()).collect::<Vec<_>>().join(", ");
        let with_dates = |why: String| format!("{why}. There are backups of: {dates}");
        if !there.contains(&day) {
            return Err(with_dates(format!("there is no backup of {} in {name}", day.date())));
        }
        let contents = self.bucket.get(&contents_key(day), MAX_CONTENTS_BYTES).await.map_err(unusable)?;
        let contents = String::from_utf8_lossy(&contents).into_owned();
        let folder = temporary_folder(data_dir, "bucket-restore").map_err(unwritable)?;
        let backup = BackupFolder::new(folder.path());
        make_private_folder(&backup.images).map_err(unwritable)?;
        let download = Download { source: self, objects, contents, day, folder };
        // First the small one, which tells whether it is the right key.
        for (name, file) in [("manifest.json", &backup.manifest), ("porchlight.db", &backup.database)] {
            let fetched = download.fetch(&format!("{}/{name}", day.date()), file, &mut progress).await;
            fetched.map_err(with_dates)?;
        }
        if backup.made().is_some_and(|made| Day::of(made) != day) {
            return Err(with_dates(format!("the backup of {} is one of another day", day.date())));
        }
        Ok(download)
    }
}

impl Download<'_> {
    /// Downloads an image that the target lacks.
    pub(super) async fn fetch_image(
        &self,
        release: &Release,
        target: &ImageStore,
        progress: impl FnMut(&'static str, u64, u64),
    ) -> Result<(), String> {
        match target {
            ImageStore::Folder(to) if to.join(&release.file).exists() => Ok(()),
            ImageStore::Bucket(bucket) if bucket.check(release).await.is_ok() => Ok(()),
            _ => {
                let name = image_name(release.sha256, &self.source.key.recipient());
                self.fetch(&name, &BackupFolder::new(self.folder.path()).images.join(&release.file), progress).await
            }
        }
    }

    /// Writes the decrypted pieces of a file.
    async fn fetch(
        &self,
        name: &str,
        file: &Path,
        mut progress: impl FnMut(&'static str, u64, u64),
    ) -> Result<(), String> {
        let unwritable = |error: io::Error| format!("{} cannot be written: {error}", file.display());
        let mut target = File::create(file).map_err(unwritable)?;
        let encrypted = self.folder.path().join("piece.age");
        let is_piece = |key: &&str| key.strip_prefix(name).is_some_and(|rest| rest.starts_with('.'));
        let keys: Vec<_> = self.contents.lines().filter(is_piece).collect();
        if keys.is_empty() {
            return Err(format!("{} does not list {name}", contents_key(self.day)));
        }
        for (done, key) in (0..).zip(&keys) {
            progress("downloading", done, keys.len() as u64);
            let object = self.objects.find(key).ok_or_else(|| format!("{key} is not in the bucket"))?;
            let mut piece = File::create(&encrypted).map_err(unwritable)?;
            let read = self.source.bucket.read(IDLE_TIMEOUT, object.clone(), 0, object.length).await;
            let mut chunks = pin!(read.map_err(|why| format!("{key}: {why}"))?);
            while let Some(chunk) =
                chunks.try_next().await.map_err(|why| format!("{key}: the download broke off: {why}"))?
            {
                piece.write_all(&chunk).map_err(unwritable)?;
            }
            decrypt(&encrypted, &self.source.key, &mut target).map_err(|why| format!("{key}: {why}"))?;
        }
        fs::remove_file(&encrypted).map_err(unwritable)
    }
}
