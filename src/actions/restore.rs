//! A maker brings back what was backed up, into an empty place.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::backup_folder::{BackupFolder, ImageCopier, Manifest, Progress, verify};
use crate::domain::release::Releases;
use crate::store::{Copied, CopyFailure, Database, Schema, SourceWrites, Store, StoreFailure, TableSummary};

/// What was brought back, and what was not.
#[derive(Debug)]
pub struct Restored {
    pub tables: Vec<TableSummary>,
    pub images: Vec<String>,
    /// Images on offer that are not back, and why.
    pub missing: Vec<(String, String)>,
}

#[derive(Debug, thiserror::Error)]
pub enum RestoreFailure {
    #[error("{} holds no whole backup: there is no porchlight.db in it.", .0.display())]
    NoBackup(PathBuf),
    #[error("Nothing was restored: {} holds no data of porchlight. Name a folder that `porchlight backup` wrote.", .0.display())]
    NotOurs(PathBuf),
    #[error(
        "Nothing was restored: {} is no backup but a database in use, or a copy of one. `porchlight backup` makes a \
         backup of it if you name it with `data_dir`.",
        .0.display()
    )]
    InUse(PathBuf),
    #[error("Nothing was restored: the backup is damaged ({}: {why}). Take another one.", .path.display())]
    Damaged { path: PathBuf, why: String },
    #[error(
        "Nothing was restored: the backup is not what was written ({}: {what}). Take another one; \
         if you changed it yourself, delete manifest.json and run the command again.",
        .path.display()
    )]
    Changed { path: PathBuf, what: String },
    #[error("Nothing was restored: {} cannot be read: {why}.", .path.display())]
    Unreadable { path: PathBuf, why: String },
    #[error("{}", .0.sentence("Nothing was restored"))]
    Unusable(StoreFailure),
    #[error(
        "Nothing was restored: the database ({0}) holds something already. Name an empty one with `database_url` or `data_dir`."
    )]
    Occupied(Database),
    #[error("Nothing was restored: {} is there, and is not the image of that name in the backup. Move it away.", .0.display())]
    OtherImage(PathBuf),
    #[error("{}", .0.sentence("Nothing was restored"))]
    Copy(CopyFailure),
}

impl From<StoreFailure> for RestoreFailure {
    fn from(failure: StoreFailure) -> Self {
        Self::Copy(failure.into())
    }
}

/// Where things go.
#[derive(Debug)]
pub struct RestoreTarget<'a> {
    pub database: &'a Database,
    pub releases_dir: &'a Path,
}

/// Brings back the backup in `folder`, which stays as it is. A backup of an older version is brought
/// up to date on the way.
///
/// # Errors
/// With the reason why nothing was restored.
pub async fn restore(
    folder: &Path,
    place: &RestoreTarget<'_>,
    mut progress: impl FnMut(Progress),
) -> Result<Restored, RestoreFailure> {
    let backup = BackupFolder::at(folder);
    match fs::metadata(&backup.database) {
        Ok(_) if backup.is_in_use() => return Err(RestoreFailure::InUse(folder.to_owned())),
        Ok(about) if about.is_file() => {}
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(RestoreFailure::Unreadable { path: backup.database, why: error.to_string() });
        }
        _ => return Err(RestoreFailure::NoBackup(folder.to_owned())),
    }
    let source = open(&backup, &mut progress).await?;
    let target = Store::open(place.database)?;
    let brought = bring_data(&source, &target, place, &mut progress).await;
    source.close().await;
    target.close().await;
    let (tables, releases) = brought?;

    let mut done = Restored { tables, images: Vec::new(), missing: Vec::new() };
    let mut copier = ImageCopier::of(&releases, &backup.images, place.releases_dir, progress);
    for release in releases.iter().filter(|release| release.elsewhere.is_none()) {
        let file = release.file.clone();
        let placed = if backup.images.join(&file).exists() {
            fs::create_dir_all(place.releases_dir).and_then(|()| copier.place(release)).map_err(|why| why.to_string())
        } else {
            Err("it is not in the backup".to_owned())
        };
        match placed {
            Ok(()) => done.images.push(file),
            // Makers may have deleted what they had withdrawn.
            Err(_) if release.withdrawn.is_some() => {}
            Err(why) => done.missing.push((file, why)),
        }
    }
    Ok(done)
}

/// The database of the backup, if it is whole, and in any case of this version.
async fn open(backup: &BackupFolder, mut progress: impl FnMut(Progress)) -> Result<Store, RestoreFailure> {
    let path = || backup.database.clone();
    let unreadable = |failure: CopyFailure| match failure {
        CopyFailure::Store(StoreFailure::Damaged(why)) => RestoreFailure::Damaged { path: path(), why },
        CopyFailure::Store(StoreFailure::Unavailable(why) | StoreFailure::Refused(why)) => {
            RestoreFailure::Unreadable { path: path(), why }
        }
        CopyFailure::Store(failure @ StoreFailure::Unusable(_)) => RestoreFailure::Unusable(failure),
        other => RestoreFailure::Unreadable { path: path(), why: other.to_string() },
    };
    let manifest = Manifest::read(&backup.manifest)
        .map_err(|why| RestoreFailure::Changed { path: backup.manifest.clone(), what: why.to_string() })?;
    let file = Store::open_backup_file(&backup.database);
    let schema = file.schema().await.map_err(|failure| unreadable(failure.into()))?;
    let (Schema::Older(version) | Schema::Current(version)) = schema else {
        return Err(RestoreFailure::NotOurs(path()));
    };
    let contents =
        file.table_summaries(version, |done, all| progress(Progress::Rows { doing: "verifying backup", done, all }));
    let contents = contents.await.map_err(unreadable)?;
    if let Some(what) = manifest.and_then(|manifest| difference(&manifest.tables, &contents)) {
        return Err(RestoreFailure::Changed { path: path(), what });
    }
    if schema == Schema::Current(version) {
        return Ok(file);
    }
    let renewed = file
        .upgraded_copy(version, |doing, done, all| progress(Progress::Rows { doing, done, all }))
        .await
        .map_err(unreadable);
    file.close().await;
    renewed
}

/// The first table that is not as it was.
fn difference(written: &[TableSummary], found: &[TableSummary]) -> Option<String> {
    let alike = |written: &TableSummary| found.iter().any(|found| found == written);
    if let Some(TableSummary { table, rows, .. }) = written.iter().find(|written| !alike(written)) {
        return Some(match found.iter().find(|found| found.table == *table) {
            Some(found) if found.rows != *rows => {
                format!("the table {table} has {} rows, and {rows} were written", found.rows)
            }
            Some(_) => format!("rows of the table {table} were changed"),
            None => format!("the table {table} is missing"),
        });
    }
    (written.len() != found.len()).then(|| "there are more tables than were written".to_owned())
}

async fn bring_data(
    source: &Store,
    target: &Store,
    place: &RestoreTarget<'_>,
    mut progress: impl FnMut(Progress),
) -> Result<(Vec<TableSummary>, Releases), RestoreFailure> {
    let releases = source.releases().await?;
    for release in releases.iter() {
        let path = place.releases_dir.join(&release.file);
        if path.exists() && verify(&path, release, |_| {}).is_err() {
            return Err(RestoreFailure::OtherImage(path));
        }
    }
    let carried =
        source.copy_to(target, SourceWrites::Allowed, |doing, done, all| progress(Progress::Rows { doing, done, all }));
    match carried.await {
        Ok(Copied::Now(tables) | Copied::Earlier(tables)) => Ok((tables, releases)),
        Err(CopyFailure::Occupied | CopyFailure::Diverged(_)) => Err(RestoreFailure::Occupied(place.database.clone())),
        Err(failure) => Err(RestoreFailure::Copy(failure)),
    }
}
