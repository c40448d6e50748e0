//! A file that only its owner can read, replaced atomically.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

#[derive(Debug)]
pub(super) enum PrivateFile {
    /// Written to a temporary file (mode 600) in the same folder, which is deleted unless it is persisted.
    Regular { temporary: NamedTempFile, path: PathBuf },
    /// A pipe or device, written to directly.
    Special(File),
}

impl PrivateFile {
    pub(super) fn create(path: &Path) -> io::Result<Self> {
        // Replaces the target of a symbolic link, not the link.
        let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        if fs::metadata(&path).is_ok_and(|metadata| !metadata.is_file()) {
            return Ok(Self::Special(OpenOptions::new().write(true).open(&path)?));
        }
        path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let temporary = tempfile::Builder::new().prefix(".porchlight-export-").tempfile_in(folder)?;
        Ok(Self::Regular { temporary, path })
    }

    /// Flushes the file to disk and moves it to its path.
    pub(super) fn persist(self) -> io::Result<()> {
        let Self::Regular { temporary, path } = self else { return Ok(()) };
        temporary.as_file().sync_all()?;
        temporary.persist(path)?;
        Ok(())
    }
}

impl Write for PrivateFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Regular { temporary, .. } => temporary.write(bytes),
            Self::Special(file) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Regular { temporary, .. } => temporary.flush(),
            Self::Special(file) => file.flush(),
        }
    }
}
