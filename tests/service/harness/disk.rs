//! A small disk, to test what happens when it is full.

use std::path::Path;
use std::process::Command;

/// A tmpfs of one and a half megabytes, unmounted on drop.
pub struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let mounted =
            as_root(&["mount", "-t", "tmpfs", "-o", "size=1536k,mode=0777", "porchlight-tests"], folder.path());
        assert!(mounted, "to mount a file system, tests need root or sudo");
        Self(folder)
    }

    pub fn folder(&self) -> &Path {
        self.0.path()
    }

    /// Makes the disk larger.
    pub fn grow(&self) {
        assert!(as_root(&["mount", "-o", "remount,size=64m"], self.folder()));
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        as_root(&["umount", "--lazy"], self.folder());
    }
}

fn as_root(command: &[&str], folder: &Path) -> bool {
    let is_root = rustix::process::geteuid().is_root();
    let sudo: &[&str] = if is_root { &[] } else { &["sudo", "-n"] };
    let words: Vec<_> = sudo.iter().chain(command).collect();
    Command::new(words[0]).args(&words[1..]).arg(folder).status().is_ok_and(|status| status.success())
}
