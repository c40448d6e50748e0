//! Disk images, and the command that publishes them beside a running service.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Database, Program, Service, wait_for};

/// The bytes of a file with the trailer of a disk image; images with different seeds differ.
pub fn disk_image(length: usize, seed: u8) -> Vec<u8> {
    let data = length - 512;
    let mut image: Vec<u8> = (0..=250).map(|byte| byte ^ seed).cycle().take(data).collect();
    image.extend(trailer(data as u64));
    image
}

/// The last 512 bytes of an image with `data` bytes before them.
pub fn trailer(data: u64) -> [u8; 512] {
    let mut trailer = [0; 512];
    trailer[..12].copy_from_slice(b"koly\0\0\0\x04\0\0\x02\0");
    trailer[0x20..0x28].copy_from_slice(&data.to_be_bytes());
    trailer
}

impl Service {
    /// Writes a file into the data directory of this service.
    pub fn file(&self, name: &str, contents: impl AsRef<[u8]>) -> PathBuf {
        let path = self.folder.path().join(name);
        std::fs::write(&path, contents).expect("a file");
        path
    }

    pub fn releases_dir(&self) -> PathBuf {
        self.folder.path().join("releases")
    }

    /// `porchlight release …` as a maker types it on this machine.
    pub fn release_command(&self, arguments: &[&str]) -> Command {
        let mut command = release_command(&self.database, &self.releases_dir(), arguments);
        Program::set_clock(&mut command, self.time_of_next_command());
        command
    }

    /// Runs it; returns the exit code and all output. The service need not wait until it looks for changes.
    pub fn release(&self, arguments: &[&str]) -> (i32, String) {
        let ended = Program::run(self.release_command(arguments));
        self.read_releases();
        ended
    }

    /// Makes the service look for changes of the releases now, instead of within half a second.
    pub fn read_releases(&self) {
        let catalog = self.running.catalog().clone();
        self.runtime.run_blocking(async move { catalog.refresh().await.ok() });
    }

    /// Publishes an image of that version, and returns its bytes.
    pub fn publish(&self, version: &str) -> Vec<u8> {
        self.publish_with(version, &[])
    }

    pub fn publish_with(&self, version: &str, more: &[&str]) -> Vec<u8> {
        let seed = version.bytes().fold(0, |seed, byte| seed ^ byte.rotate_left(3));
        let image = disk_image(20_000, seed);
        let path = self.file("image.dmg", &image);
        let path = path.to_str().expect("a path in UTF-8");
        let arguments = [&["publish", path, "--version", version], more].concat();
        let (code, printed) = self.release(&arguments);
        assert_eq!(code, 0, "{printed}");
        image
    }

    /// Waits until a page contains `words`; the service rebuilds pages within a second or so.
    pub async fn wait_for_text(&self, path: &str, words: &str) -> String {
        wait_for(&format!("{words:?} at {path}"), async || {
            Some(self.get(path).await.text()).filter(|text| text.contains(words))
        })
        .await
    }
}

pub fn release_command(database: &Database, folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Program::command(folder.parent().expect("a folder above"), &["release"]);
    command.args(arguments).arg("--database-url").arg(database.url()).arg("--releases-dir").arg(folder);
    command
}
