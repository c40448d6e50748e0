//! A maker brings back what was backed up, into an empty place.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::backup::{BackupFolder, forget, place_image, verify};
use crate::store::{Carried, CarryFailure, Contents, Database, Others, Store, StoreFailure, make_private_folder};

/// What was brought back.
#[derive(Debug)]
pub struct Restored {
    pub tables: Vec<Contents>,
    pub images: Vec<String>,
    /// Images on offer that the backup does not have.
    pub missing: Vec<String>,
}

#[derive(Debug, thiserror::Error)]
pub enum RestoreFailure {
    #[error("{} holds no whole backup: there is no porchlight.db in it.", .0.display())]
    NoBackup(PathBuf),
    #[error(
        "Nothing was restored: the database ({0}) holds something already. Name an empty one with `database_url` or `data_dir`."
    )]
    Occupied(Database),
    #[error("Nothing was restored: {} is there, and is not the image of that name in the backup. Move it away.", .0.display())]
    OtherImage(PathBuf),
    #[error("Nothing was restored: {} cannot be written to: {why}.", .path.display())]
    Unwritable { path: PathBuf, why: io::Error },
    #[error("{}", .0.sentence("Nothing was restored"))]
    Carry(CarryFailure),
    #[error("The data is back, but the image {0} is not: {1}. The same command goes on from here.")]
    Image(String, io::Error),
}

impl From<StoreFailure> for RestoreFailure {
    fn from(failure: StoreFailure) -> Self {
        Self::Carry(failure.into())
    }
}

/// Where things go.
#[derive(Debug)]
pub struct EmptyPlace<'a> {
    pub database: &'a Database,
    pub data_dir: &'a Path,
    pub releases_dir: &'a Path,
}

/// Brings back the backup in `folder`, which stays as it is. A backup of an older version is brought
/// up to date on the way.
///
/// # Errors
/// With the reason why nothing was restored, or not all.
pub async fn restore(
    folder: &Path,
    place: &EmptyPlace<'_>,
    mut progress: impl FnMut(&'static str, u64, u64),
) -> Result<Restored, RestoreFailure> {
    let backup = BackupFolder::at(folder);
    if !backup.database.is_file() {
        return Err(RestoreFailure::NoBackup(folder.to_owned()));
    }
    let target = Store::open(place.database)?;
    let copy = WorkingCopy::of(&backup.database, place.data_dir)?;
    let source = Store::open(&Database::Sqlite(copy.0.clone()))?;
    let tables = bring_data(&source, &target, place, &mut progress).await;
    source.close().await;
    let tables = tables?;

    let releases = target.releases().await?;
    target.close().await;
    fs::create_dir_all(place.releases_dir)
        .map_err(|why| RestoreFailure::Unwritable { path: place.releases_dir.to_owned(), why })?;
    let mut done = Restored { tables, images: Vec::new(), missing: Vec::new() };
    let count = releases.iter().count() as u64;
    for (number, release) in (1..).zip(releases.iter()).filter(|(_, release)| release.elsewhere.is_none()) {
        if backup.images.join(&release.file).exists() {
            place_image(&backup.images, place.releases_dir, release)
                .map_err(|why| RestoreFailure::Image(release.file.clone(), why))?;
            done.images.push(release.file.clone());
        } else if release.withdrawn.is_none() {
            done.missing.push(release.file.clone());
        }
        progress("images", number, count);
    }
    Ok(done)
}

async fn bring_data(
    source: &Store,
    target: &Store,
    place: &EmptyPlace<'_>,
    progress: impl FnMut(&'static str, u64, u64),
) -> Result<Vec<Contents>, RestoreFailure> {
    source.prepare().await?;
    for release in source.releases().await?.iter() {
        let path = place.releases_dir.join(&release.file);
        if path.exists() && verify(&path, release).is_err() {
            return Err(RestoreFailure::OtherImage(path));
        }
    }
    match source.carry_to(target, Others::MayWrite, progress).await {
        Ok(Carried::Now(tables) | Carried::Before(tables)) => Ok(tables),
        Err(CarryFailure::Occupied) => Err(RestoreFailure::Occupied(place.database.clone())),
        Err(failure) => Err(RestoreFailure::Carry(failure)),
    }
}

/// A copy of the backup's database, to be brought up to date. It goes when it has been used.
struct WorkingCopy(PathBuf);

impl WorkingCopy {
    fn of(database: &Path, data_dir: &Path) -> Result<Self, RestoreFailure> {
        let copy = Self(data_dir.join(".restoring.db"));
        let made = make_private_folder(data_dir).and_then(|()| {
            copy.clear();
            fs::copy(database, &copy.0)
        });
        made.map_err(|why| RestoreFailure::Unwritable { path: copy.0.clone(), why })?;
        Ok(copy)
    }

    fn clear(&self) {
        for log in ["", "-wal", "-shm"] {
            let mut file = self.0.clone().into_os_string();
            file.push(log);
            let _ = forget(Path::new(&file));
        }
    }
}

impl Drop for WorkingCopy {
    fn drop(&mut self) {
        self.clear();
    }
}
