//! The backups there are: a folder of which only the newest are kept, and when the last one was made.

use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fs, io};

use super::folder::BackupFolder;
use crate::domain::limits::MAX_BACKUP_AGE;
use crate::domain::text::quantity;
use crate::domain::time::Timestamp;
use crate::store::{Store, StoreFailure, Task};

/// A backup that was begun longer ago and is not complete was interrupted.
const INTERRUPTED_AFTER: Duration = Duration::from_hours(24);

/// Returns the folder for a backup that is made now: `2026-11-15T12-00-00Z` inside of `parent`.
pub fn rotated_backup_folder(parent: &Path, now: Timestamp) -> PathBuf {
    parent.join(name(now))
}

/// Deletes all but the newest `keep` backups in the folder, and what interrupted ones left. Leaves alone whatever has another
/// name than [`rotated_backup_folder`] gives, or one of the future, which a wrong clock gave it. Stops at the first that cannot
/// be deleted, and returns it.
pub fn delete_old_backups(
    parent: &Path,
    keep: usize,
    now: Timestamp,
    deleted: impl Fn(&Path),
) -> Result<(), (PathBuf, io::Error)> {
    for folder in old_backups(parent, keep, now).map_err(|why| (parent.to_owned(), why))? {
        fs::remove_dir_all(&folder).map_err(|why| (folder.clone(), why))?;
        deleted(&folder);
    }
    Ok(())
}

fn old_backups(parent: &Path, keep: usize, now: Timestamp) -> io::Result<Vec<PathBuf>> {
    let (mut complete, mut old) = (Vec::new(), Vec::new());
    for entry in fs::read_dir(parent)? {
        let entry = entry?;
        let begun = entry.file_name().to_str().and_then(time).filter(|begun| *begun <= now);
        let Some(begun) = begun.filter(|_| entry.file_type().is_ok_and(|kind| kind.is_dir())) else { continue };
        let folder = entry.path();
        match BackupFolder::new(&folder).database.try_exists() {
            Ok(true) => complete.push((begun, folder)),
            Ok(false) if begun.after(INTERRUPTED_AFTER) < now => old.push(folder),
            // Being written, or of another user.
            Ok(false) | Err(_) => {}
        }
    }
    complete.sort_unstable_by(|(one, _), (other, _)| other.cmp(one));
    old.extend(complete.into_iter().skip(keep).map(|(_, folder)| folder));
    old.sort_unstable();
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

/// What to do if it is too long ago.
pub const MAKE_A_BACKUP: &str =
    "`porchlight backup FOLDER` makes one. If a timer or cron job does it, look why it failed.";

#[derive(Clone, Copy, Debug)]
pub struct LastBackup {
    at: Timestamp,
    now: Timestamp,
}

impl LastBackup {
    /// Returns `None` if no backup was ever made: nobody expects one then.
    pub async fn of(store: &Store, now: Timestamp) -> Result<Option<Self>, StoreFailure> {
        Ok(store.last_time(Task::Backup).await?.map(|at| Self { at, now }))
    }

    pub fn is_overdue(&self) -> bool {
        self.at.until(self.now) > MAX_BACKUP_AGE
    }

    /// A sentence without its full stop.
    pub fn in_words(&self) -> String {
        let days = self.at.until(self.now).as_secs() / (24 * 60 * 60);
        format!("The last backup was made on {}, {} ago", self.at.date(), quantity(days, "day", "days"))
    }
}
