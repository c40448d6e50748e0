//! `porchlight backup` and `porchlight restore`

use std::path::Path;

use indicatif::{ProgressBar, ProgressStyle};

use super::terminal::when_interrupted;
use super::{CommandFailure, at_work, open_existing_store, say, tell};
use crate::actions::{BackUpFailure, BackedUp, EmptyPlace, RestoreFailure, Restored, back_up, restore};
use crate::config::Settings;
use crate::store::{Contents, Database};

/// What a command about backups could not do, in one sentence.
#[derive(Debug, thiserror::Error)]
pub(super) enum BackupCommandFailure {
    #[error(transparent)]
    BackUp(#[from] BackUpFailure),
    #[error(transparent)]
    Restore(#[from] RestoreFailure),
    #[error("The data is backed up, but not every image: {0}.")]
    Missing(String),
}

pub(super) fn back_up_to(settings: &Settings, folder: &Path) -> Result<(), CommandFailure> {
    when_interrupted(format!("Stopped: there is no backup in {}. Run the command again.", folder.display()))?;
    at_work(async {
        let store = open_existing_store(settings).await?;
        let (bar, progress) = progress_bar();
        let done = back_up(&store, &settings.releases_dir, folder, progress).await;
        bar.finish_and_clear();
        store.close().await;
        let BackedUp { tables, images, elsewhere, missing } = done.map_err(BackupCommandFailure::from)?;
        list(&tables, &images);
        for (file, url) in &elsewhere {
            tell(&format!("{file} is at {url}, and not in the backup."));
        }
        if !missing.is_empty() {
            let missing: Vec<_> = missing.into_iter().map(|(file, why)| format!("{file} ({why})")).collect();
            return Err(BackupCommandFailure::Missing(missing.join(", ")).into());
        }
        tell(&format!("Everything is in {}, and was read back from there.", folder.display()));
        Ok(())
    })
}

pub(super) fn restore_from(settings: &Settings, folder: &Path) -> Result<(), CommandFailure> {
    at_work(async {
        let database = Database::of(settings)?;
        let (data_dir, releases_dir) = (&settings.data_dir, &settings.releases_dir);
        let place = EmptyPlace { database: &database, data_dir, releases_dir };
        let (bar, progress) = progress_bar();
        let done = restore(folder, &place, progress).await;
        bar.finish_and_clear();
        let Restored { tables, images, missing } = done.map_err(BackupCommandFailure::from)?;
        list(&tables, &images);
        for file in &missing {
            tell(&format!("{file} is not in the backup. Put it into {}.", releases_dir.display()));
        }
        tell(&format!("Everything is back in {database}."));
        Ok(())
    })
}

/// The tables and their rows, then the images, for people and programs alike.
pub(super) fn list(tables: &[Contents], images: &[String]) {
    for Contents { table, rows, .. } in tables {
        say(&format!("{table:<20} {rows:>10}"));
    }
    for image in images {
        say(image);
    }
}

/// A bar, and how it is told what is being done.
pub(super) fn progress_bar() -> (ProgressBar, impl FnMut(&'static str, u64, u64)) {
    let style = ProgressStyle::with_template("  {msg:>9} {bar:32} {pos} of {len}, {eta} left")
        .unwrap_or_else(|_| ProgressStyle::default_bar());
    let bar = ProgressBar::new(0).with_style(style);
    let told = bar.clone();
    let progress = move |what, done, all| {
        told.set_message(what);
        told.set_length(all);
        told.set_position(done);
    };
    (bar, progress)
}
