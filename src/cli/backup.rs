//! `porchlight backup`, `porchlight restore` and `porchlight move`

use std::fs;
use std::path::Path;
use std::time::Duration;

use indicatif::ProgressBar;

use super::activity::record;
use super::failure::{Failure, OrFail};
use super::run::{Access, block_on, check_owner, open_store, with_store};
use super::terminal::{eprint_line, exit_on_interrupt, print_line, progress_style, sanitize_line};
use crate::actions::{
    BackupFailure, BackupKey, BucketSource, CreatedBackup, ImageStore, Restored, create_backup, delete_old_backups,
    parse_day, restore, rotated_backup_folder,
};
use crate::bucket::Bucket;
use crate::clock::Clock;
use crate::config::{ImagePlace, InvalidSettings, Settings};
use crate::domain::desk::Change;
use crate::store::{CopyFailure, CopyOutcome, Database, SourceWrites, Store, TableSummary, Task};

/// How often the progress bar redraws, even without progress.
const TICK_INTERVAL: Duration = Duration::from_millis(200);

pub(super) fn run_backup(settings: &Settings, folder: &Path) -> Result<(), Failure> {
    back_up(settings, folder, || Ok(()))
}

/// Runs `rotate` once there is a backup, even if that lacks an image.
fn back_up(settings: &Settings, folder: &Path, rotate: impl FnOnce() -> Result<(), Failure>) -> Result<(), Failure> {
    exit_on_interrupt(format!(
        "Interrupted: the backup in {} is incomplete. Run the command again.",
        folder.display()
    ))?;
    let images = ImageStore::open(&settings.images, Clock::System)?;
    with_store(settings, Access::Read, async |store| {
        let (now, (bar, progress)) = (Clock::System.now(), progress_bar());
        let backup = create_backup(store, &images, folder, now, progress).await;
        bar.finish_and_clear();
        let CreatedBackup { tables, images, external, missing, .. } = backup.map_err(|failure| match failure {
            BackupFailure::Copy(failure) => Failure::copy(failure, "Nothing was backed up"),
            other => Failure::new(other),
        })?;
        print_contents(&tables, &images);
        for (file, url) in &external {
            eprint_line(&format!("{file} is hosted at {url} and is not in the backup."));
        }
        if missing.is_empty()
            && let Err(failure) = store.record_task(Task::Backup, now).await
        {
            let note = "The database does not know of this backup, so you may be told that none was made";
            eprint_line(&failure.sentence(note));
        }
        if missing.is_empty() {
            eprint_line(&format!("The backup in {} is complete and was verified.", folder.display()));
            return rotate();
        }
        let rotated = rotate();
        let missing = join_images(&missing);
        let missing = format!("The database is backed up, but some images are missing: {missing}.");
        Err(Failure::new(match rotated {
            Ok(()) => missing,
            Err(failure) => format!("{missing} {}", failure.sentence),
        }))
    })
}

/// Backs up to a new folder inside of `parent`, then deletes all but the newest backups there, and the newest one with all images.
pub(super) fn run_rotation(settings: &Settings, parent: &Path, keep: u32) -> Result<(), Failure> {
    let now = Clock::System.now();
    let keep = usize::try_from(keep).unwrap_or(usize::MAX);
    let deleted = |folder: &Path| eprint_line(&format!("Deleted the old backup in {}.", folder.display()));
    back_up(settings, &rotated_backup_folder(parent, now), || {
        delete_old_backups(parent, keep, now, deleted).or_fail(|(folder, why)| {
            format!("An old backup could not be deleted ({}: {why}). Delete it yourself.", folder.display())
        })
    })
}

/// `porchlight backup key`
pub(super) fn print_key() {
    let key = BackupKey::generate();
    print_line(key.file().trim_end());
    eprint_line("This is the only copy of the secret key. Keep it where neither the server nor the bucket is.");
    eprint_line(&format!("The server gets the public key, as a setting: backup_recipient = \"{}\"", key.recipient()));
}

/// A backup in a bucket as it is named on the command line: `s3://bucket/prefix/DAY`, or without the day.
fn bucket_source(url: &str, key_file: Option<&Path>) -> Result<BucketSource, Failure> {
    let key_file = key_file.ok_or_else(|| {
        Failure::new("Nothing was restored: a backup in a bucket needs its key: add `--key FILE`.".to_owned())
    })?;
    let text = fs::read_to_string(key_file);
    let key = text.map_err(|error| error.to_string()).and_then(|text| {
        BackupKey::parse(&text).ok_or_else(|| "it has no secret key such as `porchlight backup key` prints".to_owned())
    });
    let key =
        key.or_fail(|why| format!("Nothing was restored: the key in {} cannot be used: {why}.", key_file.display()))?;
    let named = url.trim_end_matches('/').rsplit_once('/').and_then(|(url, day)| Some((url, parse_day(day)?)));
    let (url, day) = named.map_or((url, None), |(url, day)| (url, Some(day)));
    let bucket = Bucket::open(&Settings::bucket_argument(url)?, Clock::System)?;
    Ok(BucketSource { bucket, day, key })
}

pub(super) fn run_restore(
    settings: &Settings,
    from: &Path,
    key: Option<&Path>,
    unverified: bool,
) -> Result<(), Failure> {
    let bucket = from.to_str().filter(|url| url.starts_with("s3://"));
    let source = bucket.map(|url| bucket_source(url, key)).transpose()?;
    block_on(async {
        let database = Database::from_settings(settings)?;
        check_owner(settings, &database)?;
        let images = ImageStore::open(&settings.images, Clock::System)?;
        let (bar, mut progress) = progress_bar();
        let download = match &source {
            Some(source) => source.download(&settings.data_dir, &mut progress).await.map(Some),
            None => Ok(None),
        };
        let download = download.or_fail(|why| {
            bar.finish_and_clear();
            format!("Nothing was restored: {why}.")
        })?;
        let folder = download.as_ref().map_or(from, |download| download.folder.path());
        let restored = restore(folder, unverified, download.as_ref(), &database, &images, progress).await;
        bar.finish_and_clear();
        let Restored { tables, images, missing, is_new } = restored.map_err(Failure::new)?;
        if is_new && let Ok(store) = Store::open(&database) {
            record(&store, Change::RestoredBackup).await;
            store.close().await;
        }
        print_contents(&tables, &images);
        if !missing.is_empty() {
            let missing = join_images(&missing);
            return Err(Failure::new(match &settings.images {
                ImagePlace::Folder(folder) => format!(
                    "The database is restored, but some images are missing: {missing}. Copy them to {}, or to the backup \
                     and run the same command again.",
                    folder.display()
                ),
                ImagePlace::Bucket(bucket) => format!(
                    "The database is restored, but images are missing in {}: {missing}. When the bucket can be used, copy \
                     them to the backup and run the same command again.",
                    bucket.name
                ),
            }));
        }
        let of = download.map(|download| format!(" from the backup of {}", download.day.date())).unwrap_or_default();
        eprint_line(&format!("Everything was restored to {database}{of}."));
        Ok(())
    })
}

/// Joins images and what is wrong with each.
fn join_images(images: &[(String, String)]) -> String {
    images.iter().map(|(file, reason)| format!("{} ({reason})", sanitize_line(file))).collect::<Vec<_>>().join(", ")
}

/// Prints the tables with their numbers of rows, then the images.
fn print_contents(tables: &[TableSummary], images: &[String]) {
    for TableSummary { table, rows, .. } in tables {
        print_line(&format!("{table:<20} {rows:>10}"));
    }
    for image in images {
        print_line(image);
    }
}

/// Returns a progress bar, and the function that updates it with the phase, what is done and all there is to do.
pub(super) fn progress_bar() -> (ProgressBar, impl FnMut(&'static str, u64, u64)) {
    let style = progress_style("  {msg:>18} {spinner} {bar:32} {percent} %, {eta} left");
    let bar = ProgressBar::new(0).with_style(style);
    let (updated, mut current) = (bar.clone(), "");
    let update = move |phase, done, total| {
        if current != phase {
            current = phase;
            updated.reset();
            updated.set_message(phase);
            updated.enable_steady_tick(TICK_INTERVAL);
        }
        updated.set_length(total);
        updated.set_position(done);
    };
    (bar, update)
}

/// `porchlight move`
pub(super) fn run_move(settings: &Settings, to: &str) -> Result<(), Failure> {
    let from = Database::from_settings(settings)?;
    let to = match Database::parse(to) {
        Ok(to @ Database::Postgres(_)) => to,
        Err(error) if to.starts_with("postgres") => return Err(InvalidSettings::flag("--to", error).into()),
        _ => return Err(InvalidSettings::flag("--to", "it must start with postgres://").into()),
    };
    if matches!(from, Database::Postgres(_)) {
        return Err(Failure::new(format!(
            "Nothing was copied: {from} is not an embedded database. Use `porchlight backup` and `porchlight restore` instead."
        )));
    }
    block_on(async {
        let source = open_store(settings, Access::Read).await?;
        let target = Store::open(&to)?;
        let (bar, progress) = progress_bar();
        let copied = source.copy_to(&target, SourceWrites::Blocked, progress).await;
        bar.finish_and_clear();
        if copied.is_ok()
            && let Some(last_backup) = source.last_time(Task::Backup).await?
        {
            target.record_task(Task::Backup, last_backup).await?;
        }
        if matches!(copied, Ok(CopyOutcome::Copied(_))) {
            record(&target, Change::MovedData).await;
        }
        source.close().await;
        target.close().await;
        let copied = copied.map_err(|failure| match failure {
            CopyFailure::NotEmpty => Failure::new(format!(
                "Nothing was copied: {to} is not empty, and was not changed. Choose a new and empty database."
            )),
            CopyFailure::Diverged(difference) => Failure::new(format!(
                "Nothing was copied: {to} holds an earlier copy, and one of the two databases has changed since \
                 ({difference}). If the service already uses {to}, you are done. If it still uses the old database, \
                 choose a new and empty one."
            )),
            failure => Failure::copy(failure, &format!("Nothing was copied to {to}")),
        })?;
        let (tables, outcome) = match &copied {
            CopyOutcome::Copied(tables) => (tables, "Everything was copied to"),
            CopyOutcome::AlreadyPresent(tables) => (tables, "Everything is already in"),
        };
        print_contents(tables, &[]);
        eprint_line(&format!("{outcome} {to}, and every table was compared row by row."));
        eprint_line(
            "Set `database_url` to it and restart the service. Later writes to the old database are not copied.",
        );
        Ok(())
    })
}
