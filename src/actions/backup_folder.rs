//! The layout of a backup: a folder with the database as one file, a manifest, and the published images.
//!
//! The database file is renamed last. A folder without it is an interrupted backup.

use std::fs::{self, File, FileType};
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tempfile::TempPath;

use crate::domain::release::{Release, Releases};
use crate::domain::sha256::{Sha256, Sha256Hasher};
use crate::domain::time::Timestamp;
use crate::store::TableSummary;

/// The progress of a backup, a restore or a move.
#[derive(Clone, Copy, Debug)]
pub enum Progress {
    /// Rows of all tables together.
    Rows { phase: &'static str, done: u64, total: u64 },
    /// Bytes of all images together.
    Bytes { phase: &'static str, done: u64, total: u64 },
    /// A phase of unknown length.
    Indeterminate { phase: &'static str },
}

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

    /// Returns something in the backup that is neither a file nor a folder, such as a symbolic link or a pipe. A backup is
    /// written without any, and one that leads elsewhere would restore something else than was backed up.
    pub fn find_special_file(&self) -> io::Result<Option<PathBuf>> {
        for path in [&self.database, &self.manifest, &self.images] {
            if file_type(path)?.is_some_and(is_special) {
                return Ok(Some(path.clone()));
            }
        }
        if !self.images.is_dir() {
            return Ok(None);
        }
        for image in fs::read_dir(&self.images)? {
            let image = image?;
            if is_special(image.file_type()?) {
                return Ok(Some(image.path()));
            }
        }
        Ok(None)
    }

    /// When the backup was made, if its manifest says so.
    pub fn made(&self) -> Option<Timestamp> {
        Timestamp::parse(&Manifest::read(&self.manifest).ok()??.made)
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
}

impl Manifest {
    pub fn new(made: Timestamp, tables: &[TableSummary]) -> Self {
        Self { porchlight: env!("CARGO_PKG_VERSION").to_owned(), made: made.rfc3339(), tables: tables.to_vec() }
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
#[derive(Debug, Default)]
pub(super) struct CopiedImages {
    pub images: Vec<String>,
    pub missing: Vec<(String, String)>,
}

impl CopiedImages {
    pub fn add(&mut self, release: &Release, copied: Result<(), String>) {
        let file = release.file.to_string();
        match copied {
            Ok(()) => self.images.push(file),
            // Makers may delete the image of a withdrawn release.
            Err(_) if release.withdrawn.is_some() => {}
            Err(why) => self.missing.push((file, why)),
        }
    }
}

/// Copies images from one folder to another and verifies them.
pub(super) struct ImageCopier<'a, P> {
    pub from: &'a Path,
    pub to: &'a Path,
    pub mode: CopyMode,
    pub progress: P,
}

impl<P: FnMut(Progress)> ImageCopier<'_, P> {
    /// Adds each image of these releases to `copied`.
    pub fn copy_all(mut self, releases: &[&Release], copied: &mut CopiedImages) {
        let total = releases.iter().map(|release| release.length).sum();
        let (mut copied_bytes, mut verified_bytes) = (0, 0);
        for release in releases {
            let result = self.copy(release, |phase, bytes| {
                let done = if phase == COPYING { &mut copied_bytes } else { &mut verified_bytes };
                *done += bytes;
                Progress::Bytes { phase, done: *done, total }
            });
            copied.add(release, result.map_err(|why| why.to_string()));
        }
    }

    /// Links or copies an image, verifies it, and gives it its name last. An existing image is only verified.
    /// Of a symbolic link the file behind it is copied, so that the copy depends on nothing else.
    fn copy(&mut self, release: &Release, mut done: impl FnMut(&'static str, u64) -> Progress) -> io::Result<()> {
        let (from, to) = (self.from.join(&release.file), self.to.join(&release.file));
        if self.mode == CopyMode::Copy && !from.exists() {
            return Err(io::Error::other("it is not in the backup"));
        }
        if to.exists() {
            return verify(&to, release, |bytes| (self.progress)(done(VERIFYING, bytes)));
        }
        fs::create_dir_all(self.to)?;
        // The name is fixed, so that the next run removes what an interrupted one left.
        let partial = to.with_extension("partial");
        remove_if_exists(&partial)?;
        let partial = TempPath::try_from_path(partial)?;
        let may_link = self.mode == CopyMode::Link && !file_type(&from)?.is_some_and(|kind| kind.is_symlink());
        if !may_link || fs::hard_link(&from, &partial).is_err() {
            let mut copy = File::create_new(&partial)?;
            read_image(
                &from,
                |error| error,
                |chunk| {
                    (self.progress)(done(COPYING, chunk.len() as u64));
                    copy.write_all(chunk)
                },
            )?;
            copy.sync_all()?;
        }
        verify(&partial, release, |bytes| (self.progress)(done(VERIFYING, bytes)))?;
        Ok(partial.persist(&to)?)
    }
}

const COPYING: &str = "copying images";
const VERIFYING: &str = "verifying images";

/// Compares the file with the length and SHA-256 of the release. `progress` gets the size of each chunk.
pub(super) fn verify(path: &Path, release: &Release, mut progress: impl FnMut(u64)) -> io::Result<()> {
    let read = read_image(
        path,
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

const CHUNK_SIZE: usize = 1024 * 1024;

/// Reads an image, and returns its length and SHA-256. `consume` gets each chunk.
pub(super) fn read_image<E>(
    path: &Path,
    unreadable: impl Fn(io::Error) -> E,
    mut consume: impl FnMut(&[u8]) -> Result<(), E>,
) -> Result<(u64, Sha256), E> {
    let mut file = BufReader::with_capacity(CHUNK_SIZE, File::open(path).map_err(&unreadable)?);
    let (mut length, mut hasher) = (0, Sha256Hasher::default());
    loop {
        let chunk = file.fill_buf().map_err(&unreadable)?;
        if chunk.is_empty() {
            return Ok((length, hasher.finish()));
        }
        hasher.update(chunk);
        consume(chunk)?;
        let count = chunk.len();
        length += count as u64;
        file.consume(count);
    }
}

/// Returns the releases whose rows cannot be read, each with the reason why its image is not copied.
pub(super) fn unreadable_images(releases: &Releases) -> impl Iterator<Item = (String, String)> {
    let reason = "its row in the database is damaged";
    releases.unreadable().iter().map(move |version| (format!("the image of {version}"), reason.to_owned()))
}

fn is_special(file_type: FileType) -> bool {
    !file_type.is_file() && !file_type.is_dir()
}

/// Returns what is at `path`, without following a symbolic link, or `None` if there is nothing.
fn file_type(path: &Path) -> io::Result<Option<FileType>> {
    match fs::symlink_metadata(path) {
        Ok(metadata) => Ok(Some(metadata.file_type())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

pub(super) fn remove_if_exists(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
