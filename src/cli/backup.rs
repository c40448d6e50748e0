//! `porchlight backup` and `porchlight restore`

use std::path::Path;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use super::terminal::when_interrupted;
use super::{Access, CommandFailure, at_work, open_store, say, tell};
use crate::actions::{
    BackupFailure, CreatedBackup, Progress, RestoreFailure, RestoreTarget, Restored, create_backup, restore,
};
use crate::clock::Clock;
use crate::config::Settings;
use crate::store::{Contents, Database};

/// What a command about backups could not do, in one sentence.
#[derive(Debug, thiserror::Error)]
pub(super) enum BackupCommandFailure {
    #[error(transparent)]
    BackUp(#[from] BackupFailure),
    #[error(transparent)]
    Restore(#[from] RestoreFailure),
    #[error("The data is backed up, but not every image: {0}.")]
    NotBackedUp(String),
    #[error(
        "The data is back, but not every image: {0}. Put them into {1}, or into the backup and run the same command again."
    )]
    NotBack(String, String),
}

/// So often a bar moves by itself, to show that work goes on.
const TICK: Duration = Duration::from_millis(200);

pub(super) fn back_up_to(settings: &Settings, folder: &Path) -> Result<(), CommandFailure> {
    when_interrupted(format!("Stopped: there is no backup in {}. Run the command again.", folder.display()))?;
    at_work(async {
        let store = open_store(settings, Access::Read).await?;
        let (bar, progress) = progress_bar();
        let done = create_backup(&store, &settings.releases_dir, folder, Clock::System.now(), progress).await;
        bar.finish_and_clear();
        store.close().await;
        let CreatedBackup { tables, images, elsewhere, missing } = done.map_err(BackupCommandFailure::from)?;
        list(&tables, &images);
        for (file, url) in &elsewhere {
            tell(&format!("{file} is at {url}, and not in the backup."));
        }
        if !missing.is_empty() {
            return Err(BackupCommandFailure::NotBackedUp(listed(&missing)).into());
        }
        tell(&format!("Everything is in {}, and was read back from there.", folder.display()));
        Ok(())
    })
}

pub(super) fn restore_from(settings: &Settings, folder: &Path) -> Result<(), CommandFailure> {
    at_work(async {
        let database = Database::of(settings)?;
        let releases_dir = &settings.releases_dir;
        let place = RestoreTarget { database: &database, releases_dir };
        let (bar, progress) = progress_bar();
        let done = restore(folder, &place, progress).await;
        bar.finish_and_clear();
        let Restored { tables, images, missing } = done.map_err(BackupCommandFailure::from)?;
        list(&tables, &images);
        if !missing.is_empty() {
            let folder = releases_dir.display().to_string();
            return Err(BackupCommandFailure::NotBack(listed(&missing), folder).into());
        }
        tell(&format!("Everything is back in {database}."));
        Ok(())
    })
}

/// Images that something is the matter with, and what.
fn listed(images: &[(String, String)]) -> String {
    images.iter().map(|(file, why)| format!("{file} ({why})")).collect::<Vec<_>>().join(", ")
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
pub(super) fn progress_bar() -> (ProgressBar, impl FnMut(Progress)) {
    let styled = |template| ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    let rows = styled("  {msg:>18} {bar:32} {human_pos} of {human_len} rows, {eta} left");
    let bytes = styled("  {msg:>18} {bar:32} {bytes} of {total_bytes}, {eta} left");
    let somewhere = styled("  {msg:>18} {spinner} {elapsed}");
    let bar = ProgressBar::new(0).with_style(somewhere.clone());
    let (told, mut now) = (bar.clone(), "");
    let progress = move |headway| {
        let (style, doing, done, all) = match headway {
            Progress::Rows { doing, done, all } => (&rows, doing, done, all),
            Progress::Bytes { doing, done, all } => (&bytes, doing, done, all),
            Progress::Unknown { doing } => (&somewhere, doing, 0, 0),
        };
        if now != doing {
            now = doing;
            told.reset();
            told.set_length(all);
            told.set_style(style.clone());
            told.set_message(doing);
            told.enable_steady_tick(TICK);
        }
        told.set_length(all);
        told.set_position(done);
    };
    (bar, progress)
}
