//! The free space of the disks that the service writes to, for `check` and for the mail to the makers.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::statvfs;

use crate::blocking::blocking;
use crate::domain::limits::LOW_DISK_BYTES;

/// What to do about a disk that is almost full.
pub const FREE_UP_SPACE: &str = "Free up space before the disk is full.";

/// The disk of a folder.
#[derive(Clone, Debug)]
pub struct DiskSpace {
    setting: &'static str,
    /// The folder of the setting, or its closest parent that exists.
    folder: PathBuf,
    /// In bytes, or why it is not known.
    free: Result<u64, String>,
}

impl DiskSpace {
    /// Returns the disk of `data_dir`, and that of `releases_dir` if there is one and it is on another disk.
    pub fn of(data_dir: &Path, releases_dir: Option<&Path>) -> Vec<Self> {
        blocking(|| Self::measure_all(data_dir, releases_dir))
    }

    /// A network folder may keep this waiting.
    fn measure_all(data_dir: &Path, releases_dir: Option<&Path>) -> Vec<Self> {
        let (data, releases) = (nearest_folder(data_dir), releases_dir.map(nearest_folder));
        let device = |folder: &Path| folder.metadata().map(|metadata| metadata.dev()).ok();
        let other = releases.filter(|releases| device(&data) != device(releases));
        let other = other.map(|releases| Self::measure("releases_dir", releases));
        std::iter::once(Self::measure("data_dir", data)).chain(other).collect()
    }

    fn measure(setting: &'static str, folder: PathBuf) -> Self {
        let free = statvfs(&folder).map(|stats| stats.f_bavail.saturating_mul(stats.f_frsize));
        Self { setting, folder, free: free.map_err(|error| error.to_string()) }
    }

    pub fn is_known(&self) -> bool {
        self.free.is_ok()
    }

    pub fn is_low(&self) -> bool {
        self.free.as_ref().is_ok_and(|free| *free < LOW_DISK_BYTES)
    }

    /// A sentence without its full stop.
    #[expect(clippy::cast_precision_loss, reason = "one decimal is printed")]
    pub fn in_words(&self) -> String {
        let folder = self.folder.display();
        match &self.free {
            Ok(free) if self.is_low() => {
                format!("Only {} MB are free in `{}` ({folder})", free / 1_000_000, self.setting)
            }
            Ok(free) => format!("{:.1} GB free in `{}` ({folder})", *free as f64 / 1e9, self.setting),
            Err(error) => format!("The free space of {folder} is unknown: {error}"),
        }
    }
}

/// Returns the folder itself, or its closest parent that exists.
pub fn nearest_folder(path: &Path) -> PathBuf {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    absolute.ancestors().find(|folder| folder.is_dir()).unwrap_or(Path::new("/")).to_owned()
}
