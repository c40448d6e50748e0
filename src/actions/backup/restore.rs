//! Restores a backup into an empty database, and its images into the folder or the bucket of the settings.

use std::fmt::Display;
use std::fs;
use std::io;
use std::path::Path;

use super::bucket_download::Download;
use super::folder::{BackupFolder, CopiedImages, CopyMode, Manifest, verify};
use crate::actions::releases::ImageStore;
use crate::bucket::Bucket;
use crate::domain::releases::{Release, Releases};
use crate::store::{
    CopyFailure, CopyOutcome, Database, MigrationState, SourceWrites, Store, StoreFailure, TableSummary, Task,
};

/// What was restored and what was not.
#[derive(Debug)]
pub struct Restored {
    pub tables: Vec<TableSummary>,
    pub images: Vec<String>,
    /// Published images that were not restored, and why.
    pub missing: Vec<(String, String)>,
    /// Whether the database was empty, and not restored before.
    pub is_new: bool,
}

/// Why nothing was restored, as a sentence.
#[derive(Debug, thiserror::Error)]
#[error("Nothing was restored: {0}")]
pub struct RestoreFailure(String);

impl From<CopyFailure> for RestoreFailure {
    fn from(failure: CopyFailure) -> Self {
        Self(format!("{failure}."))
    }
}

impl From<StoreFailure> for RestoreFailure {
    fn from(failure: StoreFailure) -> Self {
        CopyFailure::from(failure).into()
    }
}

fn unreadable(path: &Path, why: impl Display) -> RestoreFailure {
    RestoreFailure(format!("{} cannot be read: {why}.", path.display()))
}

/// Restores the backup in `folder`, which stays unchanged. A backup of an older version is migrated on the way. With
/// `unverified`, it need not be as its manifest describes it. The images of one from a bucket are downloaded one after the other.
pub async fn restore(
    folder: &Path,
    unverified: bool,
    download: Option<&Download<'_>>,
    target: &Database,
    target_images: &ImageStore,
    mut progress: impl FnMut(&'static str, u64, u64),
) -> Result<Restored, RestoreFailure> {
    let backup = BackupFolder::new(folder);
    match fs::metadata(&backup.database) {
        Ok(_) if backup.is_in_use() => {
            return Err(RestoreFailure(format!(
                "{} is not a backup but a database in use, or a copy of one. To back it up, set `data_dir` to it and run \
                 `porchlight backup`.",
                folder.display()
            )));
        }
        Ok(metadata) if metadata.is_file() => {}
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(unreadable(&backup.database, error)),
        _ => {
            let folder = folder.display();
            return Err(RestoreFailure(format!("{folder} holds no complete backup: it has no porchlight.db.")));
        }
    }
    let source = open(&backup, unverified, &mut progress).await?;
    let database = Store::open(target)?;
    let restored = restore_database(&source, &database, target, target_images, &mut progress).await;
    if let (Ok(_), Some(made)) = (&restored, backup.made()) {
        // What is restored has this backup. That it is not known does no harm.
        database.record_task(Task::Backup, made).await.ok();
    }
    source.close().await;
    database.close().await;
    let (copied, releases) = restored?;
    let is_new = matches!(copied, CopyOutcome::Copied(_));
    let (CopyOutcome::Copied(tables) | CopyOutcome::AlreadyPresent(tables)) = copied;

    let mut copied = CopiedImages::of(&releases);
    for release in releases.iter().filter(|release| release.external_url.is_none()) {
        let image = backup.images.join(&release.file);
        let fetched = match download {
            Some(download) => download.fetch_image(release, target_images, &mut progress).await,
            None => Ok(()),
        };
        let mode = if download.is_some() { CopyMode::Link } else { CopyMode::Copy };
        match (fetched, target_images) {
            (Err(why), _) => copied.add(release, Err(why)),
            (Ok(()), ImageStore::Folder(to)) => copied.copy(release, &backup.images, to, mode, &mut progress),
            (Ok(()), ImageStore::Bucket(bucket)) => copied.add(release, upload(&image, bucket, release).await),
        }
        if download.is_some() {
            let _ = fs::remove_file(image);
        }
    }
    let CopiedImages { images, missing, .. } = copied;
    Ok(Restored { tables, images, missing, is_new })
}

/// Uploads an image of the backup, if the bucket lacks it. A backup of a service with a bucket has no images, and the
/// bucket still has them.
async fn upload(path: &Path, bucket: &Bucket, release: &Release) -> Result<(), String> {
    let present = bucket.check(release).await;
    if present.is_ok() || !path.exists() {
        return present.map_err(|why| why.to_string());
    }
    verify(path, release, |_| {}).map_err(|why| why.to_string())?;
    bucket.upload(path, release, |_| {}).await.map_err(|why| why.to_string())
}

/// Opens the database of the backup after comparing it with the manifest, and migrates a copy of an older one.
async fn open(
    backup: &BackupFolder,
    unverified: bool,
    mut progress: impl FnMut(&'static str, u64, u64),
) -> Result<Store, RestoreFailure> {
    let path = backup.database.display();
    let failed = |failure: CopyFailure| match failure {
        CopyFailure::Store(StoreFailure::Damaged(why)) => {
            RestoreFailure(format!("the backup is damaged ({path}: {why}). Use another one."))
        }
        CopyFailure::Store(failure @ StoreFailure::Unusable(_)) => failure.into(),
        other => unreadable(&backup.database, other),
    };
    let file = Store::open_backup_file(&backup.database);
    let schema = file.migration_state().await.map_err(|failure| failed(failure.into()))?;
    let version = match schema {
        MigrationState::None => {
            return Err(RestoreFailure(format!(
                "{path} is not a Porchlight database. Choose a folder that `porchlight backup` has written."
            )));
        }
        MigrationState::Newer(version) => return Err(StoreFailure::incomplete_copy(version).into()),
        MigrationState::Older(version) | MigrationState::Current(version) => version,
    };
    let written = if unverified { None } else { Some(read_manifest(&backup.manifest)?.tables) };
    let found = file.table_summaries(version, |done, total| progress("verifying backup", done, total));
    let found = found.await.map_err(failed)?;
    if let Some(what) = written.and_then(|written| first_changed_table(&written, &found)) {
        return Err(changed(&backup.database, what));
    }
    if schema == MigrationState::Current(version) {
        return Ok(file);
    }
    let migrated = file.migrated_copy(version, progress).await.map_err(failed);
    file.close().await;
    migrated
}

fn changed(path: &Path, what: impl Display) -> RestoreFailure {
    RestoreFailure(format!(
        "the backup was changed after it was written ({}: {what}). Use another one; if you changed it yourself, run the \
         command again with --unverified.",
        path.display()
    ))
}

fn read_manifest(path: &Path) -> Result<Manifest, RestoreFailure> {
    let manifest = Manifest::read(path).map_err(|error| changed(path, error))?;
    manifest.ok_or_else(|| {
        RestoreFailure(format!(
            "{} is missing, so nobody can tell whether the backup was changed. Use another one; if you trust this one, run \
             the command again with --unverified.",
            path.display()
        ))
    })
}

/// Describes the first table that differs.
fn first_changed_table(written: &[TableSummary], found: &[TableSummary]) -> Option<String> {
    let TableSummary { table, rows, .. } = found.iter().find(|found| !written.contains(found))?;
    Some(match written.iter().find(|written| written.table == *table) {
        Some(written) if written.rows != *rows => {
            format!("the table {table} has {rows} rows instead of {}", written.rows)
        }
        _ => format!("rows of the table {table} were changed"),
    })
}

async fn restore_database(
    source: &Store,
    database: &Store,
    target: &Database,
    target_images: &ImageStore,
    progress: impl FnMut(&'static str, u64, u64),
) -> Result<(CopyOutcome, Releases), RestoreFailure> {
    let releases = source.releases().await?;
    if let ImageStore::Folder(folder) = target_images {
        for release in releases.iter() {
            let path = folder.join(&release.file);
            if path.exists() && verify(&path, release, |_| {}).is_err() {
                return Err(RestoreFailure(format!(
                    "{} exists and differs from the image of that name in the backup. Rename or move that file, then try \
                     again.",
                    path.display()
                )));
            }
        }
    }
    match source.copy_to(database, SourceWrites::Allowed, progress).await {
        Ok(copied) => Ok((copied, releases)),
        Err(CopyFailure::NotEmpty | CopyFailure::Diverged(_)) => Err(RestoreFailure(format!(
            "the database ({target}) is not empty. Set `database_url` or `data_dir` to an empty database."
        ))),
        Err(failure) => Err(failure.into()),
    }
}
