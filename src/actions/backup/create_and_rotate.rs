//! Writes a backup while the service keeps running.
//!
//! The database is read as one snapshot, written to one file, and read back from there. The images are those of that
//! snapshot.
//!
//! Also names and deletes the backups of a rotation.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::folder::{BackupFolder, CopiedImages, CopyMode, Manifest, remove_if_exists};
use crate::actions::releases::ImageStore;
use crate::domain::releases::Releases;
use crate::domain::time::Timestamp;
use crate::store::{
    CopyFailure, CopyOutcome, Database, MigrationState, SourceWrites, Store, StoreFailure, TableSummary,
    make_private_folder,
};

/// What a backup contains and what it lacks.
#[derive(Debug)]
pub struct CreatedBackup {
    pub tables: Vec<TableSummary>,
    pub images: Vec<String>,
    /// Names and URLs of images on another host or in a bucket, which are not backed up.
    pub external: Vec<(String, String)>,
    /// Published images that could not be read, and why.
    pub missing: Vec<(String, String)>,
    pub releases: Releases,
}

/// Why there is no backup.
#[derive(Debug, thiserror::Error)]
pub enum BackupFailure {
    #[error("Nothing was backed up: {} is not empty. Choose an empty or new folder.", .0.display())]
    NotEmpty(PathBuf),
    #[error("Nothing was backed up: {} cannot be written: {why}.", .path.display())]
    Unwritable { path: PathBuf, why: io::Error },
    #[error("{}", .0.sentence("Nothing was backed up"))]
    Copy(#[from] CopyFailure),
    #[error("The backup cannot be used: the data read back differs from the data written. Try another disk.")]
    VerificationFailed,
}

impl From<StoreFailure> for BackupFailure {
    fn from(failure: StoreFailure) -> Self {
        Self::Copy(failure.into())
    }
}

/// Writes a backup to `folder`.
pub async fn create_backup(
    store: &Store,
    images: &ImageStore,
    folder: &Path,
    now: Timestamp,
    mut progress: impl FnMut(&'static str, u64, u64),
) -> Result<CreatedBackup, BackupFailure> {
    let backup = BackupFolder::new(folder);
    let unwritable = |why| BackupFailure::Unwritable { path: folder.to_owned(), why };
    if !prepare_folder(&backup).map_err(unwritable)? {
        return Err(BackupFailure::NotEmpty(folder.to_owned()));
    }
    let file = Store::open(&Database::Sqlite(backup.partial.clone()))?;
    let copied = store.copy_to(&file, SourceWrites::Allowed, &mut progress).await;
    file.close().await;
    let (CopyOutcome::Copied(tables) | CopyOutcome::AlreadyPresent(tables)) = copied?;
    progress("checking integrity", 0, 1);
    Store::finalize_backup_file(&backup.partial).await?;
    let file = Store::open_backup_file(&backup.partial);
    let (MigrationState::Current(version) | MigrationState::Older(version)) = file.migration_state().await? else {
        return Err(BackupFailure::VerificationFailed);
    };
    let read_back = file.table_summaries(version, |done, total| progress("verifying backup", done, total));
    if read_back.await? != tables {
        return Err(BackupFailure::VerificationFailed);
    }

    let releases = file.releases().await?;
    file.close().await;
    let mut copied = CopiedImages::of(&releases);
    let external =
        releases.iter().filter_map(|release| Some((release.file.to_string(), release.external_url.clone()?)));
    let mut external: Vec<_> = external.collect();
    for release in releases.iter().filter(|release| release.external_url.is_none()) {
        match images {
            ImageStore::Folder(from) => copied.copy(release, from, &backup.images, CopyMode::Link, &mut progress),
            ImageStore::Bucket(_) if release.withdrawn.is_some() => {}
            ImageStore::Bucket(bucket) => match bucket.check(release).await {
                Ok(()) => external.push((release.file.to_string(), bucket.object_name(release))),
                Err(why) => copied.missing.push((release.file.to_string(), why.to_string())),
            },
        }
    }
    let CopiedImages { images, missing, .. } = copied;
    let created = CreatedBackup { tables, images, external, missing, releases };
    let finish = || {
        let missing = created.missing.iter().map(|(image, _)| image.clone()).collect();
        Manifest::new(now, &created.tables, missing).write(&backup.manifest)?;
        fs::rename(&backup.partial, &backup.database)?;
        File::open(&backup.images)?.sync_all()?;
        File::open(&backup.folder)?.sync_all()
    };
    finish().map_err(unwritable)?;
    Ok(created)
}

/// Creates the folder and removes the leftovers of an interrupted backup. Returns `false` if it contains anything else.
fn prepare_folder(backup: &BackupFolder) -> io::Result<bool> {
    if backup.folder.exists() && fs::read_dir(&backup.folder)?.next().is_some() && !backup.partial.exists() {
        return Ok(false);
    }
    for suffix in ["", "-wal", "-shm", "-journal"] {
        let mut file = backup.partial.clone().into_os_string();
        file.push(suffix);
        remove_if_exists(Path::new(&file))?;
    }
    make_private_folder(&backup.images)?;
    // An existing folder may be readable by other users.
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(&backup.partial)?;
    Ok(true)
}

/// A backup that was begun longer ago and is not complete was interrupted.
const INTERRUPTED_AFTER: Duration = Duration::from_hours(24);

/// Returns the folder for a backup that is made now: `2026-11-15T12-00-00Z` inside of `parent`.
pub fn rotated_backup_folder(parent: &Path, now: Timestamp) -> PathBuf {
    parent.join(name(now))
}

/// Deletes all but the newest `keep` backups in the folder, and what interrupted ones left. If all of those lack an image, the
/// newest one that lacks none is kept, too. Leaves alone whatever has another
/// name than [`rotated_backup_folder`] gives, or one of the future, which a wrong clock gave it. Stops at the first that cannot
/// be deleted, and returns it.
pub fn delete_old_backups(
    parent: &Path,
    keep: usize,
    now: Timestamp,
    deleted: impl Fn(&Path),
) -> Result<(), (PathBuf, io::Error)> {
    for folder in old_backups(parent, keep, now).map_err(|why| (parent.to_owned(), why))? {
        fs::remove_dir_all(&folder).map_err(|why| (folder.clone(), why))?;
        deleted(&folder);
    }
    Ok(())
}

fn old_backups(parent: &Path, keep: usize, now: Timestamp) -> io::Result<Vec<PathBuf>> {
    let (mut complete, mut old) = (Vec::new(), Vec::new());
    for entry in fs::read_dir(parent)? {
        let entry = entry?;
        let begun = entry.file_name().to_str().and_then(time).filter(|begun| *begun <= now);
        let Some(begun) = begun.filter(|_| entry.file_type().is_ok_and(|kind| kind.is_dir())) else { continue };
        let folder = entry.path();
        match BackupFolder::new(&folder).database.try_exists() {
            Ok(true) => complete.push((begun, folder)),
            Ok(false) if begun.after(INTERRUPTED_AFTER) < now => old.push(folder),
            // Being written, or of another user.
            Ok(false) | Err(_) => {}
        }
    }
    complete.sort_unstable_by(|(one, _), (other, _)| other.cmp(one));
    let whole = complete.iter().position(|(_, folder)| BackupFolder::new(folder).has_all_images());
    let is_old = |index: &usize| *index >= keep && Some(*index) != whole;
    old.extend(complete.into_iter().enumerate().filter(|(index, _)| is_old(index)).map(|(_, (_, folder))| folder));
    old.sort_unstable();
    Ok(old)
}

/// Some file systems allow no colon in a name.
fn name(time: Timestamp) -> String {
    time.rfc3339().replace(':', "-")
}

fn time(name: &str) -> Option<Timestamp> {
    let (day, hour) = name.split_once('T')?;
    Timestamp::parse(&format!("{day}T{}", hour.replace('-', ":"))).filter(|time| self::name(*time) == name)
}
