//! `porchlight backup` and `porchlight restore`

use std::io;
use std::path::Path;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use super::open_store::check_owner;
use super::terminal::{exit_on_interrupt, sanitize_line};
use super::{Access, CommandFailure, block_on, eprint_line, open_store, print_line};
use crate::actions::{
    BackupFailure, CreatedBackup, DeletedBackups, ImageStore, ManifestCheck, Progress, RestoreFailure, RestoreTarget,
    Restored, create_backup, delete_old_backups, restore, rotated_backup_folder,
};
use crate::clock::Clock;
use crate::config::{ImagePlace, Settings};
use crate::store::{Database, TableSummary};

/// Why `backup` or `restore` failed, in one sentence.
#[derive(Debug, thiserror::Error)]
pub(super) enum BackupCommandFailure {
    #[error(transparent)]
    Backup(#[from] BackupFailure),
    #[error("The backup is complete, but an old one could not be deleted ({0}: {1}). Delete it yourself.")]
    OldBackup(String, io::Error),
    #[error(transparent)]
    Restore(#[from] RestoreFailure),
    #[error("The database is backed up, but some images are missing: {0}.")]
    ImagesNotBackedUp(String),
    #[error(
        "The database is restored, but some images are missing: {0}. Copy them to {1}, or to the backup and run the same \
         command again."
    )]
    ImagesNotRestored(String, String),
    #[error(
        "The database is restored, but images are missing in {1}: {0}. When the bucket can be used, copy them to the backup and \
         run the same command again."
    )]
    NotInBucket(String, String),
}

/// How often the progress bar redraws, even without progress.
const TICK_INTERVAL: Duration = Duration::from_millis(200);

pub(super) fn run_backup(settings: &Settings, folder: &Path) -> Result<(), CommandFailure> {
    exit_on_interrupt(format!(
        "Interrupted: the backup in {} is incomplete. Run the command again.",
        folder.display()
    ))?;
    block_on(async {
        let images = ImageStore::open(&settings.images, Clock::System)?;
        let store = open_store(settings, Access::ReadStandby).await?;
        let (bar, progress) = progress_bar();
        let backup = create_backup(&store, &images, folder, Clock::System.now(), progress).await;
        bar.finish_and_clear();
        store.close().await;
        let CreatedBackup { tables, images, external, missing, unrecorded } =
            backup.map_err(BackupCommandFailure::from)?;
        print_contents(&tables, &images);
        for (file, url) in &external {
            eprint_line(&format!("{file} is hosted at {url} and is not in the backup."));
        }
        if let Some(failure) = unrecorded {
            let note = "The database does not know of this backup, so you may be told that none was made";
            eprint_line(&failure.sentence(note));
        }
        if !missing.is_empty() {
            return Err(BackupCommandFailure::ImagesNotBackedUp(join_images(&missing)).into());
        }
        eprint_line(&format!("The backup in {} is complete and was verified.", folder.display()));
        Ok(())
    })
}

/// Backs up to a new folder inside of `parent`, then deletes all but the newest backups there. Keeps all of them if the new one
/// lacks something.
pub(super) fn run_rotation(settings: &Settings, parent: &Path, keep: u32) -> Result<(), CommandFailure> {
    let now = Clock::System.now();
    run_backup(settings, &rotated_backup_folder(parent, now))?;
    let keep = usize::try_from(keep).unwrap_or(usize::MAX);
    let failed = |folder: &Path, why| BackupCommandFailure::OldBackup(folder.display().to_string(), why);
    let DeletedBackups { folders, failures } =
        delete_old_backups(parent, keep, now).map_err(|why| failed(parent, why))?;
    for folder in folders {
        eprint_line(&format!("Deleted the old backup in {}.", folder.display()));
    }
    let mut failures = failures.into_iter().map(|(folder, why)| failed(&folder, why));
    let first = failures.next();
    for other in failures {
        eprint_line(&other.to_string());
    }
    first.map_or(Ok(()), |failure| Err(failure.into()))
}

pub(super) fn run_restore(settings: &Settings, folder: &Path, unverified: bool) -> Result<(), CommandFailure> {
    let manifest_check = if unverified { ManifestCheck::Skipped } else { ManifestCheck::Required };
    block_on(async {
        let database = Database::from_settings(settings)?;
        check_owner(settings, &database)?;
        let images = ImageStore::open(&settings.images, Clock::System)?;
        let target = RestoreTarget { database: &database, images: &images };
        let (bar, progress) = progress_bar();
        let restored = restore(folder, &target, manifest_check, progress).await;
        bar.finish_and_clear();
        let Restored { tables, images, missing } = restored.map_err(BackupCommandFailure::from)?;
        print_contents(&tables, &images);
        if !missing.is_empty() {
            let missing = join_images(&missing);
            return Err(match &settings.images {
                ImagePlace::Folder(folder) => {
                    BackupCommandFailure::ImagesNotRestored(missing, folder.display().to_string())
                }
                ImagePlace::Bucket(bucket) => BackupCommandFailure::NotInBucket(missing, bucket.name.clone()),
            }
            .into());
        }
        eprint_line(&format!("Everything was restored to {database}."));
        Ok(())
    })
}

/// Joins images and what is wrong with each.
fn join_images(images: &[(String, String)]) -> String {
    images.iter().map(|(file, reason)| format!("{} ({reason})", sanitize_line(file))).collect::<Vec<_>>().join(", ")
}

/// Prints the tables with their numbers of rows, then the images.
pub(super) fn print_contents(tables: &[TableSummary], images: &[String]) {
    for TableSummary { table, rows, .. } in tables {
        print_line(&format!("{table:<20} {rows:>10}"));
    }
    for image in images {
        print_line(image);
    }
}

/// Returns a progress bar and the function that updates it.
pub(super) fn progress_bar() -> (ProgressBar, impl FnMut(Progress)) {
    let styled = |template| ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    let rows = styled("  {msg:>18} {bar:32} {human_pos} of {human_len} rows, {eta} left");
    let bytes = styled("  {msg:>18} {bar:32} {bytes} of {total_bytes}, {eta} left");
    let spinner = styled("  {msg:>18} {spinner} {elapsed}");
    let bar = ProgressBar::new(0).with_style(spinner.clone());
    let (updated, mut current) = (bar.clone(), "");
    let update = move |progress| {
        let (style, phase, done, total) = match progress {
            Progress::Rows { phase, done, total } => (&rows, phase, done, total),
            Progress::Bytes { phase, done, total } => (&bytes, phase, done, total),
            Progress::Indeterminate { phase } => (&spinner, phase, 0, 0),
        };
        if current != phase {
            current = phase;
            updated.reset();
            updated.set_length(total);
            updated.set_style(style.clone());
            updated.set_message(phase);
            updated.enable_steady_tick(TICK_INTERVAL);
        }
        updated.set_length(total);
        updated.set_position(done);
    };
    (bar, update)
}
