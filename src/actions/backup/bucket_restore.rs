//! Restores a backup from a bucket, with the secret key.
//!
//! What was changed in the bucket is refused: every object is authenticated by its encryption, a backup is compared with its
//! manifest, and each image with the SHA-256 of its release.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::Path;

use super::bucket_backup::{MAX_CONTENTS_BYTES, temporary_folder};
use super::bucket_layout::{Objects, contents_key, image_name};
use super::encryption::{BackupKey, decrypt};
use super::folder::{BackupFolder, CopiedImages, CopyMode};
use super::restore::{RestoreFailure, Restored, RestoredTables, restore_tables, upload};
use crate::actions::releases::ImageStore;
use crate::bucket::{Bucket, BucketFailure};
use crate::domain::time::Day;
use crate::store::{Database, make_private_folder};

/// A backup in a bucket, and the key that opens it.
#[derive(Debug)]
pub struct BucketSource {
    pub bucket: Bucket,
    /// `None`: the newest.
    pub day: Option<Day>,
    pub key: BackupKey,
}

/// Restores a backup into an empty database, with its images. `data_dir` has a copy meanwhile. Returns the day of the backup, too.
pub async fn restore_from_bucket(
    source: &BucketSource,
    data_dir: &Path,
    target: &Database,
    target_images: &ImageStore,
    mut progress: impl FnMut(&'static str, u64, u64),
) -> Result<(Day, Restored), RestoreFailure> {
    let unwritable = |why| RestoreFailure(format!("{} cannot be written: {why}.", data_dir.display()));
    let objects = Objects(source.bucket.list().await.map_err(|why| source.unusable(&why))?);
    let day = source.choose(&objects)?;
    let contents = source.bucket.get(&contents_key(day), MAX_CONTENTS_BYTES).await;
    let contents = contents.map_err(|why| source.unusable(&why))?;
    let contents = String::from_utf8_lossy(&contents);
    let folder = temporary_folder(data_dir, "bucket-restore").map_err(unwritable)?;
    let backup = BackupFolder::new(folder.path());
    make_private_folder(&backup.images).map_err(unwritable)?;
    // First the small one, which tells whether it is the right key.
    for (name, file) in [("manifest.json", &backup.manifest), ("porchlight.db", &backup.database)] {
        let fetched = source.fetch(&objects, &contents, &format!("{}/{name}", day.date()), file, &mut progress).await;
        fetched.map_err(|why| RestoreFailure(format!("{why}.")))?;
    }
    if backup.made().is_none_or(|made| Day::of(made) != day) {
        let date = day.date();
        return Err(RestoreFailure(format!("the backup of {date} is one of another day. Use another one.")));
    }
    let restored = restore_tables(folder.path(), false, target, target_images, &mut progress).await?;
    let RestoredTables { tables, is_new, releases } = restored;
    let mut copied = CopiedImages::of(&releases);
    for release in releases.iter().filter(|release| release.external_url.is_none()) {
        let file = backup.images.join(&release.file);
        let fetched = match target_images {
            ImageStore::Folder(to) if to.join(&release.file).exists() => Ok(()),
            ImageStore::Bucket(bucket) if bucket.check(release).await.is_ok() => Ok(()),
            _ => {
                let name = image_name(release.sha256, &source.key.recipient());
                source.fetch(&objects, &contents, &name, &file, &mut progress).await
            }
        };
        match (fetched, target_images) {
            (Err(why), _) => copied.add(release, Err(why)),
            (Ok(()), ImageStore::Folder(to)) => {
                copied.copy_all(&[release], &backup.images, to, CopyMode::Link, &mut progress);
            }
            (Ok(()), ImageStore::Bucket(bucket)) => copied.add(release, upload(&file, bucket, release).await),
        }
        let _ = fs::remove_file(&file);
    }
    let CopiedImages { images, missing } = copied;
    Ok((day, Restored { tables, images, missing, is_new }))
}

impl BucketSource {
    fn unusable(&self, why: &BucketFailure) -> RestoreFailure {
        RestoreFailure(format!("{} cannot be used: {why}.", self.bucket.name()))
    }

    fn choose(&self, objects: &Objects) -> Result<Day, RestoreFailure> {
        let (there, name) = (objects.backups(), self.bucket.name());
        let dates = there.iter().map(|day| day.date()).collect::<Vec<_>>().join(", ");
        let newest = there.first().ok_or_else(|| RestoreFailure(format!("there is no backup in {name}.")))?;
        let day = self.day.unwrap_or(*newest);
        let missing = || format!("there is no backup of {} in {name}. There are: {dates}.", day.date());
        there.contains(&day).then_some(day).ok_or_else(|| RestoreFailure(missing()))
    }

    /// Writes the decrypted pieces of a file that the contents of a backup have. Fails with a phrase.
    async fn fetch(
        &self,
        objects: &Objects,
        contents: &str,
        name: &str,
        file: &Path,
        mut progress: impl FnMut(&'static str, u64, u64),
    ) -> Result<(), String> {
        let unwritable = |error: io::Error| format!("{} cannot be written: {error}", file.display());
        let mut target = File::create(file).map_err(unwritable)?;
        let encrypted = file.with_extension("age");
        let is_piece = |key: &&str| key.strip_prefix(name).is_some_and(|rest| rest.starts_with('.'));
        let keys: Vec<_> = contents.lines().filter(is_piece).collect();
        if keys.is_empty() {
            return Err("it is not in the backup".to_owned());
        }
        for (done, key) in (0..).zip(&keys) {
            progress("downloading", done, keys.len() as u64);
            let object = objects.find(key).ok_or_else(|| format!("{key} is not in the bucket"))?;
            let mut piece = File::create(&encrypted).map_err(unwritable)?;
            let read = self.bucket.read_back(&object, |chunk| piece.write_all(chunk)).await;
            read.map_err(|why| format!("{key}: {why}"))?;
            decrypt(&encrypted, &self.key, &mut target).map_err(|why| format!("{key}: {why}"))?;
            fs::remove_file(&encrypted).map_err(unwritable)?;
        }
        Ok(())
    }
}
