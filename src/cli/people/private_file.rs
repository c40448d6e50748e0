//! A file for its owner's eyes alone: whole, or as it was before.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

#[derive(Debug)]
pub(super) struct PrivateFile {
    file: File,
    /// Where it is written, and where it will be. None for what is no file, such as a pipe: that is written to as it is.
    places: Option<(PathBuf, PathBuf)>,
}

impl PrivateFile {
    pub(super) fn create(path: &Path) -> io::Result<Self> {
        // A link goes on leading to the file.
        let whole = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        if fs::metadata(&whole).is_ok_and(|about| !about.is_file()) {
            return Ok(Self { file: OpenOptions::new().write(true).open(&whole)?, places: None });
        }
        let mut name = std::ffi::OsString::from(".");
        name.push(whole.file_name().ok_or(io::ErrorKind::InvalidInput)?);
        name.push(format!(".{}.partial", std::process::id()));
        let partial = whole.with_file_name(name);
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&partial)?;
        Ok(Self { file, places: Some((partial, whole)) })
    }

    /// Puts it where it was wanted, in one step.
    pub(super) fn keep(self) -> io::Result<()> {
        let Some((partial, whole)) = &self.places else { return Ok(()) };
        self.file.sync_all()?;
        fs::rename(partial, whole)
    }
}

impl Write for PrivateFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// What was not kept is of no use to anybody.
impl Drop for PrivateFile {
    fn drop(&mut self) {
        if let Some((partial, _)) = &self.places {
            let _ = fs::remove_file(partial);
        }
    }
}
