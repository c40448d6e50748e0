//! Restores a backup into an empty database, and its images into the folder or the bucket of the settings.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::backup_folder::{
    BackupFolder, CopiedImages, CopyMode, ImageCopier, Manifest, Progress, unreadable_images, verify,
};
use super::image_store::ImageStore;
use crate::bucket::Bucket;
use crate::domain::release::{Release, Releases};
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
}

#[derive(Debug, thiserror::Error)]
pub enum RestoreFailure {
    #[error("{} holds no complete backup: it has no porchlight.db.", .0.display())]
    Incomplete(PathBuf),
    #[error("Nothing was restored: {} is not a Porchlight database. Choose a folder that `porchlight backup` has written.", .0.display())]
    NotPorchlight(PathBuf),
    #[error(
        "Nothing was restored: {} is not a backup but a database in use, or a copy of one. To back it up, set \
         `data_dir` to it and run `porchlight backup`.",
        .0.display()
    )]
    InUse(PathBuf),
    #[error(
        "Nothing was restored: {} is a symbolic link or not a regular file, and a backup has none of these. Replace it by \
         the file itself, if you trust it.",
        .0.display()
    )]
    SpecialFile(PathBuf),
    #[error("Nothing was restored: the backup is damaged ({}: {why}). Use another one.", .path.display())]
    Damaged { path: PathBuf, why: String },
    #[error(
        "Nothing was restored: the backup was changed after it was written ({}: {what}). Use another one; \
         if you changed it yourself, run the command again with --unverified.",
        .path.display()
    )]
    Changed { path: PathBuf, what: String },
    #[error(
        "Nothing was restored: {} is missing, so nobody can tell whether the backup was changed. Use another one; \
         if you trust this one, run the command again with --unverified.",
        .0.display()
    )]
    NoManifest(PathBuf),
    #[error("Nothing was restored: {} cannot be read: {why}.", .path.display())]
    Unreadable { path: PathBuf, why: String },
    #[error("{}", .0.sentence("Nothing was restored"))]
    Unusable(StoreFailure),
    #[error(
        "Nothing was restored: the database ({0}) is not empty. Set `database_url` or `data_dir` to an empty database."
    )]
    NotEmpty(Database),
    #[error("Nothing was restored: {} exists and differs from the image of that name in the backup. Rename or move that file, then try again.", .0.display())]
    OtherImage(PathBuf),
    #[error("{}", .0.sentence("Nothing was restored"))]
    Copy(CopyFailure),
}

impl From<StoreFailure> for RestoreFailure {
    fn from(failure: StoreFailure) -> Self {
        Self::Copy(failure.into())
    }
}

/// Where to restore to.
#[derive(Debug)]
pub struct RestoreTarget<'a> {
    pub database: &'a Database,
    pub images: &'a ImageStore,
}

/// Whether a backup has to be as its manifest describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ManifestCheck {
    Required,
    /// The makers changed the backup themselves, or trust one without a manifest.
    Skipped,
}

/// Restores the backup in `folder`, which stays unchanged. A backup of an older version is migrated on the way.
pub async fn restore(
    folder: &Path,
    target: &RestoreTarget<'_>,
    manifest_check: ManifestCheck,
    mut progress: impl FnMut(Progress),
) -> Result<Restored, RestoreFailure> {
    let backup = BackupFolder::new(folder);
    match backup.find_special_file() {
        Ok(None) => {}
        Ok(Some(path)) => return Err(RestoreFailure::SpecialFile(path)),
        Err(error) => return Err(RestoreFailure::Unreadable { path: folder.to_owned(), why: error.to_string() }),
    }
    match fs::metadata(&backup.database) {
        Ok(_) if backup.is_in_use() => return Err(RestoreFailure::InUse(folder.to_owned())),
        Ok(metadata) if metadata.is_file() => {}
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(RestoreFailure::Unreadable { path: backup.database, why: error.to_string() });
        }
        _ => return Err(RestoreFailure::Incomplete(folder.to_owned())),
    }
    let source = open(&backup, manifest_check, &mut progress).await?;
    let database = Store::open(target.database)?;
    let restored = restore_database(&source, &database, target, &mut progress).await;
    if let (Ok(_), Some(made)) = (&restored, backup.made()) {
        // What is restored has this backup. That it is not known does no harm.
        database.record_task(Task::Backup, made).await.ok();
    }
    source.close().await;
    database.close().await;
    let (tables, releases) = restored?;

    let mut copied = CopiedImages { images: Vec::new(), missing: unreadable_images(&releases).collect() };
    let own: Vec<_> = releases.iter().filter(|release| release.external_url.is_none()).collect();
    match target.images {
        ImageStore::Folder(to) => {
            let images = ImageCopier { from: &backup.images, to, mode: CopyMode::Copy, progress };
            images.copy_all(&own, &mut copied);
        }
        ImageStore::Bucket(bucket) => {
            for release in own {
                copied.add(release, upload(&backup.images.join(&release.file), bucket, release).await);
            }
        }
    }
    let CopiedImages { images, missing } = copied;
    Ok(Restored { tables, images, missing })
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
    manifest_check: ManifestCheck,
    mut progress: impl FnMut(Progress),
) -> Result<Store, RestoreFailure> {
    let path = || backup.database.clone();
    let unreadable = |failure: CopyFailure| match failure {
        CopyFailure::Store(StoreFailure::Damaged(why)) => RestoreFailure::Damaged { path: path(), why },
        CopyFailure::Store(
            StoreFailure::Unavailable(why) | StoreFailure::Rejected(why) | StoreFailure::InvalidData(why),
        ) => RestoreFailure::Unreadable { path: path(), why },
        CopyFailure::Store(failure @ StoreFailure::Unusable(_)) => RestoreFailure::Unusable(failure),
        other => RestoreFailure::Unreadable { path: path(), why: other.to_string() },
    };
    let file = Store::open_backup_file(&backup.database);
    let schema = file.migration_state().await.map_err(|failure| unreadable(failure.into()))?;
    let version = match schema {
        MigrationState::None => return Err(RestoreFailure::NotPorchlight(path())),
        MigrationState::Newer(version) => return Err(RestoreFailure::Unusable(StoreFailure::incomplete_copy(version))),
        MigrationState::Older(version) | MigrationState::Current(version) => version,
    };
    let manifest = match manifest_check {
        ManifestCheck::Required => Some(read_manifest(&backup.manifest)?),
        ManifestCheck::Skipped => None,
    };
    let contents = file
        .table_summaries(version, |done, total| progress(Progress::Rows { phase: "verifying backup", done, total }));
    let contents = contents.await.map_err(unreadable)?;
    if let Some(what) = manifest.and_then(|manifest| first_changed_table(&manifest.tables, &contents)) {
        return Err(RestoreFailure::Changed { path: path(), what });
    }
    if schema == MigrationState::Current(version) {
        return Ok(file);
    }
    let migrated = file
        .migrated_copy(version, |phase, done, total| progress(Progress::Rows { phase, done, total }))
        .await
        .map_err(unreadable);
    file.close().await;
    migrated
}

fn read_manifest(path: &Path) -> Result<Manifest, RestoreFailure> {
    let path = || path.to_owned();
    let manifest = Manifest::read(&path());
    let manifest = manifest.map_err(|why| RestoreFailure::Changed { path: path(), what: why.to_string() })?;
    manifest.ok_or_else(|| RestoreFailure::NoManifest(path()))
}

/// Describes the first table that differs.
fn first_changed_table(written: &[TableSummary], found: &[TableSummary]) -> Option<String> {
    let unchanged = |written: &TableSummary| found.iter().any(|found| found == written);
    if let Some(TableSummary { table, rows, .. }) = written.iter().find(|written| !unchanged(written)) {
        return Some(match found.iter().find(|found| found.table == *table) {
            Some(found) if found.rows != *rows => {
                format!("the table {table} has {} rows instead of {rows}", found.rows)
            }
            Some(_) => format!("rows of the table {table} were changed"),
            None => format!("the table {table} is missing"),
        });
    }
    (written.len() != found.len()).then(|| "there are more tables than were written".to_owned())
}

async fn restore_database(
    source: &Store,
    database: &Store,
    target: &RestoreTarget<'_>,
    mut progress: impl FnMut(Progress),
) -> Result<(Vec<TableSummary>, Releases), RestoreFailure> {
    let releases = source.releases().await?;
    if let ImageStore::Folder(folder) = target.images {
        for release in releases.iter() {
            let path = folder.join(&release.file);
            if path.exists() && verify(&path, release, |_| {}).is_err() {
                return Err(RestoreFailure::OtherImage(path));
            }
        }
    }
    let copied = source
        .copy_to(database, SourceWrites::Allowed, |phase, done, total| progress(Progress::Rows { phase, done, total }));
    match copied.await {
        Ok(CopyOutcome::Copied(tables) | CopyOutcome::AlreadyPresent(tables)) => Ok((tables, releases)),
        Err(CopyFailure::NotEmpty | CopyFailure::Diverged(_)) => Err(RestoreFailure::NotEmpty(target.database.clone())),
        Err(failure) => Err(RestoreFailure::Copy(failure)),
    }
}
