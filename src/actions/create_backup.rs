//! A maker backs everything up, while the service goes on.
//!
//! The database is read as one moment has it, written as one file, and read back from there. The
//! images are those which that file names.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use super::backup_folder::{BackupFolder, ImageCopier, Manifest, Progress, forget};
use crate::domain::time::Timestamp;
use crate::store::{
    Copied, CopyFailure, Database, Schema, SourceWrites, Store, StoreFailure, TableSummary, make_private_folder,
};

/// What was backed up, and what was not.
#[derive(Debug)]
pub struct CreatedBackup {
    pub tables: Vec<TableSummary>,
    pub images: Vec<String>,
    /// Images that another host has: their names and addresses.
    pub external: Vec<(String, String)>,
    /// Images on offer that could not be read, and why.
    pub missing: Vec<(String, String)>,
}

/// There is no backup, and why.
#[derive(Debug, thiserror::Error)]
pub enum BackupFailure {
    #[error("Nothing was backed up: {} is not empty. Name a folder that is not there yet; it will be made.", .0.display())]
    Occupied(PathBuf),
    #[error("Nothing was backed up: {} cannot be written to: {why}.", .path.display())]
    Unwritable { path: PathBuf, why: io::Error },
    #[error("{}", .0.sentence("Nothing was backed up"))]
    Copy(#[from] CopyFailure),
    #[error("The backup is of no use: read back, it is not what was written. Try another disk.")]
    Unlike,
}

impl From<StoreFailure> for BackupFailure {
    fn from(failure: StoreFailure) -> Self {
        Self::Copy(failure.into())
    }
}

/// Writes a backup to `folder`.
///
/// # Errors
/// With the reason why there is no backup.
pub async fn create_backup(
    store: &Store,
    releases_dir: &Path,
    folder: &Path,
    now: Timestamp,
    mut progress: impl FnMut(Progress),
) -> Result<CreatedBackup, BackupFailure> {
    let place = BackupFolder::at(folder);
    let unwritable = |why| BackupFailure::Unwritable { path: folder.to_owned(), why };
    clear(&place).map_err(unwritable)?.then_some(()).ok_or_else(|| BackupFailure::Occupied(folder.to_owned()))?;

    let file = Store::open(&Database::Sqlite(place.partial.clone()))?;
    let carried = store.copy_to(&file, SourceWrites::Allowed, |doing, done, all| {
        progress(Progress::Rows { doing, done, all });
    });
    let carried = carried.await;
    file.close().await;
    let (Copied::Now(tables) | Copied::Earlier(tables)) = carried?;
    progress(Progress::Unknown { doing: "checking integrity" });
    Store::finalize_backup_file(&place.partial).await?;
    let sealed = Store::open_backup_file(&place.partial);
    let (Schema::Current(version) | Schema::Older(version)) = sealed.schema().await? else {
        return Err(BackupFailure::Unlike);
    };
    let found =
        sealed.table_summaries(version, |done, all| progress(Progress::Rows { doing: "verifying backup", done, all }));
    if found.await? != tables {
        return Err(BackupFailure::Unlike);
    }

    let mut done = CreatedBackup { tables, images: Vec::new(), external: Vec::new(), missing: Vec::new() };
    let releases = sealed.releases().await?;
    sealed.close().await;
    let mut copier = ImageCopier::of(&releases, releases_dir, &place.images, progress);
    for release in releases.iter() {
        let file = release.file.clone();
        match &release.elsewhere {
            Some(url) => done.external.push((file, url.clone())),
            None => match copier.place(release) {
                Ok(()) => done.images.push(file),
                // Makers may delete what they have withdrawn.
                Err(_) if release.withdrawn.is_some() => {}
                Err(why) => done.missing.push((file, why.to_string())),
            },
        }
    }
    let give_name = || {
        Manifest::new(now, &done.tables).write(&place.manifest)?;
        fs::rename(&place.partial, &place.database)?;
        File::open(&place.images)?.sync_all()?;
        File::open(&place.folder)?.sync_all()
    };
    give_name().map_err(unwritable)?;
    Ok(done)
}

/// Makes the folder, and takes away what an earlier backup left that was cut off. False when the
/// folder holds anything else.
fn clear(place: &BackupFolder) -> io::Result<bool> {
    if place.folder.exists() && fs::read_dir(&place.folder)?.next().is_some() && !place.partial.exists() {
        return Ok(false);
    }
    for log in ["", "-wal", "-shm", "-journal"] {
        let mut file = place.partial.clone().into_os_string();
        file.push(log);
        forget(Path::new(&file))?;
    }
    make_private_folder(&place.images)?;
    // The folder may be one that others can look into.
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(&place.partial)?;
    Ok(true)
}
