//! What a backup is made of: a folder with the database as one file, and the published images.
//!
//! The database gets its name last. A folder without it is no backup, but what is left of one.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};

use crate::domain::digest::Digesting;
use crate::domain::release::Release;

#[derive(Clone, Debug)]
pub(super) struct BackupFolder {
    pub folder: PathBuf,
    pub database: PathBuf,
    /// The database before it is whole.
    pub partial: PathBuf,
    pub images: PathBuf,
}

impl BackupFolder {
    pub fn at(folder: &Path) -> Self {
        Self {
            folder: folder.to_owned(),
            database: folder.join("porchlight.db"),
            partial: folder.join("porchlight.db.partial"),
            images: folder.join("releases"),
        }
    }
}

/// Puts an image, whole, where it belongs: as another name of the same file where that is possible,
/// as a copy elsewhere. One that is there already is left as it is.
pub(super) fn place_image(from: &Path, to: &Path, release: &Release) -> io::Result<()> {
    let (from, to) = (from.join(&release.file), to.join(&release.file));
    if to.exists() {
        return verify(&to, release);
    }
    let partial = to.with_extension("partial");
    forget(&partial)?;
    if fs::hard_link(&from, &partial).is_err() {
        fs::copy(&from, &partial)?;
        File::open(&partial)?.sync_all()?;
    }
    match verify(&partial, release) {
        Ok(()) => fs::rename(&partial, &to),
        Err(why) => {
            forget(&partial)?;
            Err(why)
        }
    }
}

/// How much of an image is in memory at a time.
const PIECE: usize = 1024 * 1024;

/// Whether the file is what was published.
pub(super) fn verify(path: &Path, release: &Release) -> io::Result<()> {
    let (mut digesting, mut length) = (Digesting::default(), 0);
    let mut file = BufReader::with_capacity(PIECE, File::open(path)?);
    loop {
        let piece = file.fill_buf()?;
        if piece.is_empty() {
            break;
        }
        digesting.take_in(piece);
        let count = piece.len();
        length += count as u64;
        file.consume(count);
    }
    if length == release.length && digesting.finish() == release.sha256 {
        return Ok(());
    }
    Err(io::Error::other(format!("{} is not what was published under that name", path.display())))
}

/// Removes a file, if it is there.
pub(super) fn forget(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
