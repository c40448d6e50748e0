//! A folder of backups of which only the newest are kept.

use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fs, io};

use super::backup_folder::BackupFolder;
use crate::domain::time::Timestamp;

/// A backup that was begun longer ago and is not complete was interrupted.
const INTERRUPTED_AFTER: Duration = Duration::from_hours(24);

/// Returns the folder for a backup that is made now: `2026-11-15T12-00-00Z` inside of `parent`.
#[must_use]
pub fn rotated_backup_folder(parent: &Path, now: Timestamp) -> PathBuf {
    parent.join(name(now))
}

/// Deletes all but the newest `keep` complete backups in the folder, and what interrupted ones left. Leaves alone whatever has
/// another name than [`rotated_backup_folder`] gives. Returns the deleted folders.
///
/// # Errors
/// When a folder cannot be read or deleted.
pub fn delete_old_backups(parent: &Path, keep: usize, now: Timestamp) -> io::Result<Vec<PathBuf>> {
    let mut complete = Vec::new();
    let mut old = Vec::new();
    for entry in fs::read_dir(parent)? {
        let entry = entry?;
        let Some(begun) = entry.file_name().to_str().and_then(time) else { continue };
        if !entry.file_type()?.is_dir() {
            continue;
        }
        let folder = entry.path();
        if BackupFolder::new(&folder).database.exists() {
            complete.push((begun, folder));
        } else if begun.after(INTERRUPTED_AFTER) < now {
            old.push(folder);
        }
    }
    complete.sort_unstable_by(|(one, _), (other, _)| other.cmp(one));
    old.extend(complete.into_iter().skip(keep).map(|(_, folder)| folder));
    old.sort_unstable();
    for folder in &old {
        fs::remove_dir_all(folder)?;
    }
    Ok(old)
}

/// Some file systems allow no colon in a name.
fn name(time: Timestamp) -> String {
    time.rfc3339().replace(':', "-")
}

fn time(name: &str) -> Option<Timestamp> {
    let (day, hour) = name.split_once('T')?;
    Timestamp::parse(&format!("{day}T{}", hour.replace('-', ":"))).filter(|time| self::name(*time) == name)
}
