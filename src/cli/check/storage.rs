//! Checks the database, its backups, the opt-ins in it, the free disk space, and the bucket of the images.

use std::path::Path;

use rustix::fs::{Access, access};

use super::finding::Finding;
use crate::actions::{
    DiskSpace, FREE_UP_SPACE, ImageStore, LastBackup, MAKE_A_BACKUP, confirmations_in_words, nearest_folder,
};
use crate::clock::Clock;
use crate::config::Settings;
use crate::domain::plural::quantity;
use crate::domain::time::Timestamp;
use crate::store::{Database, MailKind, MigrationState, OptInCounts, PostgresTls, Store, StoreFailure};

/// Also returns the store, if it can be queried.
pub(super) async fn check_database(settings: &Settings) -> (Finding, Option<Store>) {
    const NAME: &str = "database";
    let database = match Database::from_settings(settings) {
        Ok(database) => database,
        Err(failure) => return (Finding::failed(NAME, failure.to_string()), None),
    };
    if let Database::Sqlite(path) = &database
        && !path.exists()
    {
        return (not_created_yet(NAME, &database, path), None);
    }
    let store = match Store::open_for_requests(&database) {
        Ok(store) => store,
        Err(failure) => return (Finding::failed(NAME, failure.to_string()), None),
    };
    match store.health().await {
        Ok(health) => {
            let (schema, note) = match health.migrations {
                MigrationState::None => ("no tables yet".to_owned(), Some("The next start creates them.")),
                MigrationState::Older(version) => {
                    (format!("schema {version}"), Some("The next start updates the schema."))
                }
                MigrationState::Current(version) => (format!("schema {version}"), None),
                MigrationState::Newer(version) => (
                    format!("schema {version}"),
                    Some("A newer version of Porchlight has updated the schema; this version still works with it."),
                ),
            };
            let tls = database.tls();
            let in_use = store.host_in_use().map(|host| format!(" ({host} takes writes and is used)"));
            let database = format!("{database}{}", in_use.unwrap_or_default());
            let place = tls.map_or_else(|| database.clone(), |tls| format!("{database}, {}", tls.as_str()));
            let mut notes = vec![format!("{place}, {schema}.")];
            notes.extend(note.map(ToOwned::to_owned));
            notes.extend(tls.and_then(PostgresTls::risk).map(ToOwned::to_owned));
            if let Some(risk) = health.durability_risk {
                notes.push(format!(
                    "`{risk}` is off on the server: a power failure may lose confirmed writes. Turn it on."
                ));
            }
            let finding = match notes.as_slice() {
                [_] => Finding::ok(NAME, format!("{place}, {schema}, accepts writes")),
                notes => Finding::note(NAME, notes.join(" ")),
            };
            if health.migrations == MigrationState::None {
                store.close().await;
                return (finding, None);
            }
            (finding, Some(store))
        }
        Err(StoreFailure::Unusable(why)) => (Finding::failed(NAME, format!("{database}: {why}.")), None),
        Err(
            StoreFailure::Unavailable(why)
            | StoreFailure::Conflict(why)
            | StoreFailure::Rejected(why)
            | StoreFailure::InvalidData(why),
        ) => (Finding::failed(NAME, format!("{database} cannot be used: {why}.")), None),
        Err(damaged @ StoreFailure::Damaged(_)) => {
            (Finding::failed(NAME, damaged.sentence(&format!("{database} cannot be used"))), None)
        }
    }
}

fn not_created_yet(name: &'static str, database: &Database, file: &Path) -> Finding {
    let folder = nearest_folder(file);
    if access(&folder, Access::WRITE_OK | Access::EXEC_OK).is_ok() {
        return Finding::note(name, format!("{database} does not exist yet. The first start creates it."));
    }
    Finding::failed(name, format!("{database} cannot be created: {} is not writable.", folder.display()))
}

/// Returns `None` if images are in a folder.
pub(super) async fn check_bucket(settings: &Settings) -> Option<Finding> {
    const NAME: &str = "images";
    match ImageStore::open(&settings.images, Clock::System) {
        Ok(ImageStore::Folder(_)) => None,
        Ok(ImageStore::Bucket(bucket)) => Some(match bucket.probe().await {
            Ok(()) => Finding::ok(NAME, format!("{} can be read", bucket.name())),
            Err(failure) => Finding::failed(NAME, format!("{} cannot be used: {failure}.", bucket.name())),
        }),
        Err(error) => Some(Finding::failed(NAME, error.to_string())),
    }
}

pub(super) fn check_disks(settings: &Settings) -> Vec<Finding> {
    let disks = DiskSpace::of(&settings.data_dir, settings.images.folder());
    ["disk", "images"].into_iter().zip(disks).map(|(name, disk)| check_disk(name, &disk)).collect()
}

fn check_disk(name: &'static str, disk: &DiskSpace) -> Finding {
    match disk.in_words() {
        detail if disk.is_low() => Finding::note(name, format!("{detail}. {FREE_UP_SPACE}")),
        detail if disk.is_known() => Finding::ok(name, detail),
        detail => Finding::note(name, format!("{detail}.")),
    }
}

/// Returns `None` if no backup was ever made. A database of an older version does not know.
pub(super) async fn check_backup(store: &Store, now: Timestamp) -> Option<Finding> {
    const NAME: &str = "backup";
    let last = LastBackup::of(store, now).await.ok()??;
    Some(match last.in_words() {
        detail if last.is_overdue() => Finding::note(NAME, format!("{detail}. {MAKE_A_BACKUP}")),
        detail => Finding::ok(NAME, detail),
    })
}

/// Returns nothing if there is nothing to say.
pub(super) async fn check_opt_ins(settings: &Settings, store: &Store) -> Option<Finding> {
    const NAME: &str = "opt-ins";
    let counts = store.opt_in_counts().await.ok()?;
    let mails = store.backlog(MailKind::Confirmation).await.ok()?;
    let mut sentences = opt_in_sentences(counts, settings.confirm_updates);
    if mails.waiting + mails.leased + mails.failed > 0 {
        sentences.push(format!("{}.", confirmations_in_words(&mails)));
    }
    match (sentences.is_empty(), counts.unconfirmed_from_programs + mails.failed > 0) {
        (true, _) => None,
        (false, true) => Some(Finding::note(NAME, sentences.join(" "))),
        (false, false) => Some(Finding::ok(NAME, sentences.join(" "))),
    }
}

/// What makers should know before they send a letter.
pub(in crate::cli) fn opt_in_sentences(counts: OptInCounts, confirm_updates: bool) -> Vec<String> {
    let mut sentences = Vec::new();
    if counts.pending > 0 {
        sentences.push(format!(
            "{} not confirmed yet and {} no letter.",
            quantity(counts.pending, "opt-in is", "opt-ins are"),
            if counts.pending == 1 { "gets" } else { "get" },
        ));
    }
    if counts.unconfirmed_from_programs > 0 {
        let came = quantity(counts.unconfirmed_from_programs, "opt-in", "opt-ins");
        let remedy = if confirm_updates { "" } else { " `confirm_updates` asks people by mail first." };
        sentences.push(format!("{came} came through programs, and nobody confirmed them by mail.{remedy}"));
    }
    sentences
}
