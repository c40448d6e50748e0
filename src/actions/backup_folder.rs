//! What a backup is made of: a folder with the database as one file, what that held when it was made, and the published
//! images.
//!
//! The database gets its name last. A folder without it is no backup, but what is left of one.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::domain::release::{Release, Releases};
use crate::domain::sha256::Sha256Hasher;
use crate::domain::time::Timestamp;
use crate::store::TableSummary;

/// How far long work has come.
#[derive(Clone, Copy, Debug)]
pub enum Progress {
    /// Rows of all tables together.
    Rows { doing: &'static str, done: u64, all: u64 },
    /// Bytes of all images together.
    Bytes { doing: &'static str, done: u64, all: u64 },
    /// Nobody can tell how far that is.
    Unknown { doing: &'static str },
}

#[derive(Clone, Debug)]
pub(super) struct BackupFolder {
    pub folder: PathBuf,
    pub database: PathBuf,
    /// The database before it is whole.
    pub partial: PathBuf,
    pub manifest: PathBuf,
    pub images: PathBuf,
}

impl BackupFolder {
    pub fn at(folder: &Path) -> Self {
        Self {
            folder: folder.to_owned(),
            database: folder.join("porchlight.db"),
            partial: folder.join("porchlight.db.partial"),
            manifest: folder.join("manifest.json"),
            images: folder.join("releases"),
        }
    }

    /// Whether something was committed that is not in the database file yet, as while it is in use. No backup has that.
    pub fn is_in_use(&self) -> bool {
        fs::metadata(self.folder.join("porchlight.db-wal")).is_ok_and(|log| log.len() > 0)
    }
}

/// What the database of a backup held when it was made, so that a changed one is known.
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

    /// None in backups of the first versions.
    pub fn read(path: &Path) -> io::Result<Option<Self>> {
        match fs::read(path) {
            Ok(text) => Ok(Some(serde_json::from_slice(&text)?)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// Images on their way from one folder to another.
pub(super) struct ImageCopier<'a, P> {
    from: &'a Path,
    to: &'a Path,
    /// Bytes of all images that lie here.
    all: u64,
    copied: u64,
    checked: u64,
    progress: P,
}

impl<'a, P: FnMut(Progress)> ImageCopier<'a, P> {
    pub fn of(releases: &Releases, from: &'a Path, to: &'a Path, progress: P) -> Self {
        let here = releases.iter().filter(|release| release.elsewhere.is_none());
        Self { from, to, all: here.map(|release| release.length).sum(), copied: 0, checked: 0, progress }
    }

    /// Puts an image, whole, where it belongs: as another name of the same file where that is possible,
    /// as a copy elsewhere. One that is there already is left as it is.
    pub fn place(&mut self, release: &Release) -> io::Result<()> {
        let (from, to) = (self.from.join(&release.file), self.to.join(&release.file));
        if to.exists() {
            return self.check(&to, release);
        }
        let partial = to.with_extension("partial");
        forget(&partial)?;
        let placed = self.bring(&from, &partial, release).and_then(|()| fs::rename(&partial, &to));
        if placed.is_err() {
            forget(&partial)?;
        }
        placed
    }

    fn bring(&mut self, from: &Path, to: &Path, release: &Release) -> io::Result<()> {
        if fs::hard_link(from, to).is_err() {
            let mut copy = File::create_new(to)?;
            in_pieces(from, |piece| {
                self.copied += piece.len() as u64;
                (self.progress)(Progress::Bytes { doing: "copying images", done: self.copied, all: self.all });
                copy.write_all(piece)
            })?;
            copy.sync_all()?;
        }
        self.check(to, release)
    }

    fn check(&mut self, path: &Path, release: &Release) -> io::Result<()> {
        verify(path, release, |bytes| {
            self.checked += bytes;
            (self.progress)(Progress::Bytes { doing: "checking images", done: self.checked, all: self.all });
        })
    }
}

/// Whether the file is what was published. `progress` hears of each piece how many bytes it has.
pub(super) fn verify(path: &Path, release: &Release, mut progress: impl FnMut(u64)) -> io::Result<()> {
    let (mut hasher, mut length) = (Sha256Hasher::default(), 0);
    in_pieces(path, |piece| {
        hasher.update(piece);
        length += piece.len() as u64;
        progress(piece.len() as u64);
        Ok(())
    })?;
    if length == release.length && hasher.finish() == release.sha256 {
        return Ok(());
    }
    Err(io::Error::other("it is not what was published under that name"))
}

/// How much of an image is in memory at a time.
const PIECE: usize = 1024 * 1024;

fn in_pieces(path: &Path, mut take: impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
    let mut file = BufReader::with_capacity(PIECE, File::open(path)?);
    loop {
        let piece = file.fill_buf()?;
        if piece.is_empty() {
            return Ok(());
        }
        take(piece)?;
        let count = piece.len();
        file.consume(count);
    }
}

/// Removes a file, if it is there.
pub(super) fn forget(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
