//! The layout of a backup: a folder with the database as one file, a manifest, and the published images.
//!
//! The database file is renamed last. A folder without it is an interrupted backup.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tempfile::TempPath;

use crate::actions::releases::read_image;
use crate::domain::releases::{Release, Releases};
use crate::domain::time::Timestamp;
use crate::store::TableSummary;

#[derive(Clone, Debug)]
pub(super) struct BackupFolder {
    pub folder: PathBuf,
    pub database: PathBuf,
    /// The database file while it is being written.
    pub partial: PathBuf,
    pub manifest: PathBuf,
    pub images: PathBuf,
}

impl BackupFolder {
    pub fn new(folder: &Path) -> Self {
        Self {
            folder: folder.to_owned(),
            database: folder.join("porchlight.db"),
            partial: folder.join("porchlight.db.partial"),
            manifest: folder.join("manifest.json"),
            images: folder.join("releases"),
        }
    }

    /// When the backup was made, if its manifest says so.
    pub fn made(&self) -> Option<Timestamp> {
        Timestamp::parse(&Manifest::read(&self.manifest).ok()??.made)
    }

    /// Whether it has every image that was published. Only those images of a backup are known that its manifest names.
    pub fn has_all_images(&self) -> bool {
        matches!(Manifest::read(&self.manifest), Ok(Some(manifest)) if manifest.missing_images.is_empty())
    }

    /// Whether the database file has a WAL with content: then it is a live database, or a copy of one, and no backup.
    pub fn is_in_use(&self) -> bool {
        fs::metadata(self.folder.join("porchlight.db-wal")).is_ok_and(|wal| wal.len() > 0)
    }
}

/// Row count and checksum of each table at the time of the backup, to detect later changes.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct Manifest {
    /// The version of the program.
    pub porchlight: String,
    pub made: String,
    pub tables: Vec<TableSummary>,
    /// Published images that the backup lacks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing_images: Vec<String>,
}

impl Manifest {
    pub fn new(made: Timestamp, tables: &[TableSummary], missing_images: Vec<String>) -> Self {
        let porchlight = env!("CARGO_PKG_VERSION").to_owned();
        Self { porchlight, made: made.rfc3339(), tables: tables.to_vec(), missing_images }
    }

    pub fn write(&self, path: &Path) -> io::Result<()> {
        let mut file = File::create(path)?;
        serde_json::to_writer_pretty(&file, self)?;
        file.write_all(b"\n")?;
        file.sync_all()
    }

    /// Returns `None` if there is no manifest.
    pub fn read(path: &Path) -> io::Result<Option<Self>> {
        match fs::read(path) {
            Ok(text) => Ok(Some(serde_json::from_slice(&text)?)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// How images come from one folder to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CopyMode {
    /// As hard links on the same disk, which take no space: for a backup.
    Link,
    /// As files of their own: whoever owns the file of a backup could otherwise change what is served.
    Copy,
}

/// The images that were copied, and the published ones that were not, each with the reason.
#[derive(Debug)]
pub(super) struct CopiedImages {
    pub images: Vec<String>,
    pub missing: Vec<(String, String)>,
    /// The number of verified bytes, and of those of all images.
    progress: (u64, u64),
}

impl CopiedImages {
    /// Nothing is copied yet. The image of a release whose row cannot be read never is.
    pub fn of(releases: &Releases) -> Self {
        let reason = "its row in the database is damaged";
        let missing = releases.unreadable().iter();
        let missing = missing.map(|version| (format!("the image of {version}"), reason.to_owned())).collect();
        let own = releases.iter().filter(|release| release.external_url.is_none());
        Self { images: Vec::new(), missing, progress: (0, own.map(|release| release.length).sum()) }
    }

    pub fn add(&mut self, release: &Release, copied: Result<(), String>) {
        let file = release.file.to_string();
        match copied {
            Ok(()) => self.images.push(file),
            // Makers may delete the image of a withdrawn release.
            Err(_) if release.withdrawn.is_some() => {}
            Err(why) => self.missing.push((file, why)),
        }
    }

    /// Copies the image of a release from one folder to another and verifies it. `progress` gets the phase, and the number of
    /// verified bytes and of all bytes.
    pub fn copy(
        &mut self,
        release: &Release,
        from: &Path,
        to: &Path,
        mode: CopyMode,
        mut progress: impl FnMut(&'static str, u64, u64),
    ) {
        let (mut done, total) = self.progress;
        let copied = copy_image(release, from, to, mode, |bytes| {
            done += bytes;
            progress("copying images", done, total);
        });
        self.progress.0 = done;
        self.add(release, copied.map_err(|why| why.to_string()));
    }
}

/// Links or copies an image, verifies it, and gives it its name last. An existing image is only verified.
fn copy_image(release: &Release, from: &Path, to: &Path, mode: CopyMode, progress: impl FnMut(u64)) -> io::Result<()> {
    let (source, target) = (from.join(&release.file), to.join(&release.file));
    if mode == CopyMode::Copy && !source.exists() {
        return Err(io::Error::other("it is not in the backup"));
    }
    if target.exists() {
        return verify(&target, release, progress);
    }
    fs::create_dir_all(to)?;
    // The name is fixed, so that the next run removes what an interrupted one left.
    let partial = target.with_extension("partial");
    remove_if_exists(&partial)?;
    let partial = TempPath::try_from_path(partial)?;
    // Of a symbolic link the file behind it is copied, so that the copy depends on nothing else.
    let may_link = mode == CopyMode::Link && !source.is_symlink();
    if !may_link || fs::hard_link(&source, &partial).is_err() {
        fs::copy(&source, &partial)?;
        File::open(&partial)?.sync_all()?;
    }
    verify(&partial, release, progress)?;
    Ok(partial.persist(&target)?)
}

/// Compares the file with the length and SHA-256 of the release. `progress` gets the size of each chunk.
pub(super) fn verify(path: &Path, release: &Release, mut progress: impl FnMut(u64)) -> io::Result<()> {
    let read = read_image(
        File::open(path)?,
        |error| error,
        |chunk| {
            progress(chunk.len() as u64);
            Ok(())
        },
    );
    if read? == (release.length, release.sha256) {
        return Ok(());
    }
    Err(io::Error::other("its length or SHA-256 differs from the published release"))
}

pub(super) fn remove_if_exists(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
