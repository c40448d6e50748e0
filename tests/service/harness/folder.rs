//! Temporary folders for databases.

use std::path::PathBuf;
use std::sync::LazyLock;

/// In memory where there is plenty of it: tests wait for disks more than for anything else.
pub static PARENT: LazyLock<PathBuf> = LazyLock::new(|| {
    const PLENTY: u64 = 6 << 30;
    let memory = PathBuf::from("/dev/shm");
    let free = rustix::fs::statvfs(&memory).map_or(0, |disk| disk.f_bavail * disk.f_frsize);
    if free > PLENTY { memory } else { std::env::temp_dir() }
});

pub fn new() -> tempfile::TempDir {
    tempfile::tempdir_in(&*PARENT).expect("a folder")
}
