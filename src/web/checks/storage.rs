//! Checks the database, its backups, the opt-ins in it, the free disk space, and the bucket of the images.

use std::path::Path;

use rustix::fs::{Access, access};

use super::finding::{Finding, failed, note, ok};
use crate::actions::{
    BackupState, DiskSpace, FREE_UP_SPACE, ImageStore, confirmations_in_words, empty_database_warning, nearest_folder,
    opt_in_sentences,
};
use crate::bucket::Bucket;
use crate::clock::Clock;
use crate::config::{Desk, InvalidSettings, Settings};
use crate::domain::network::BaseUrl;
use crate::domain::text::quantity;
use crate::store::{Database, MailKind, MigrationState, PostgresTls, Store, StoreFailure};

pub(super) fn open_database(settings: &Settings) -> Result<Store, Finding> {
    let database = Database::from_settings(settings).map_err(failed)?;
    match &database {
        Database::Sqlite(path) if !path.exists() => Err(not_created_yet(&database, path)),
        _ => Store::open_for_requests(&database).map_err(failed),
    }
}

/// Fails if the database cannot be used or has no tables.
pub(super) async fn check_database(settings: &Settings, store: &Store) -> Result<Finding, Finding> {
    let database = Database::from_settings(settings).map_err(failed)?;
    let health = store.health().await.map_err(|failure| match failure {
        StoreFailure::Unusable(why) => failed(format!("{database}: {why}.")),
        other => failed(other.cannot_be_used(&database)),
    })?;
    let (schema, hint) = match health.migrations {
        MigrationState::None => ("no tables yet".to_owned(), Some("The next start creates them.")),
        MigrationState::Older(version) => (format!("schema {version}"), Some("The next start updates the schema.")),
        MigrationState::Current(version) => (format!("schema {version}"), None),
        MigrationState::Newer(version) => (
            format!("schema {version}"),
            Some("A newer version of Porchlight has updated the schema; this version still works with it."),
        ),
    };
    let in_use = store.host_in_use().map(|host| format!(" ({host} takes writes and is used)")).unwrap_or_default();
    let tls = database.tls();
    let tls_words = tls.map(|tls| format!(", {}", tls.as_str())).unwrap_or_default();
    let place = format!("{database}{in_use}{tls_words}, {schema}");
    let durability = health
        .durability_risk
        .map(|risk| format!("`{risk}` is off on the server: a power failure may lose confirmed writes. Turn it on."));
    let empty = match health.migrations {
        MigrationState::None => None,
        _ => empty_database_warning(store, &settings.public_url()).await,
    };
    let risks = hint.into_iter().chain(tls.and_then(PostgresTls::risk)).chain(empty).map(ToOwned::to_owned);
    let risks = risks.chain(durability);
    let notes: Vec<_> = std::iter::once(format!("{place}.")).chain(risks).collect();
    let finding = if notes.len() == 1 { ok(format!("{place}, accepts writes")) } else { note(notes.join(" ")) };
    if health.migrations == MigrationState::None { Err(finding) } else { Ok(finding) }
}

fn not_created_yet(database: &Database, file: &Path) -> Finding {
    let folder = nearest_folder(file);
    if access(&folder, Access::WRITE_OK | Access::EXEC_OK).is_ok() {
        return note(format!("{database} does not exist yet. The first start creates it."));
    }
    failed(format!("{database} cannot be created: {} is not writable.", folder.display()))
}

/// Returns `None` if images are in a folder.
pub(super) async fn check_bucket(images: &Result<ImageStore, InvalidSettings>) -> Option<Finding> {
    match images {
        Ok(ImageStore::Folder(_)) => None,
        Ok(ImageStore::Bucket(bucket)) => Some(match bucket.probe().await {
            Ok(()) => ok(format!("{} can be read", bucket.name())),
            Err(failure) => failed(format!("{} cannot be used: {failure}.", bucket.name())),
        }),
        Err(error) => Some(failed(error)),
    }
}

pub(super) fn check_disk(disk: &DiskSpace) -> Finding {
    match disk.in_words() {
        detail if disk.is_low() => note(format!("{detail}. {FREE_UP_SPACE}")),
        detail if disk.is_known() => ok(detail),
        detail => note(format!("{detail}.")),
    }
}

/// Returns `None` if no backup was ever made, and none is expected. A database of an older version does not know.
pub(super) async fn check_backup(settings: &Settings, store: &Store, clock: &Clock) -> Option<Finding> {
    let bucket = settings.backup.as_ref().map(|backup| Bucket::open(&backup.bucket, clock.clone()));
    let state = BackupState::of(store, bucket.is_some(), clock.now()).await.ok()?;
    match bucket {
        Some(Err(error)) => return Some(failed(error)),
        Some(Ok(bucket)) => {
            if let Err(failure) = bucket.probe().await {
                return Some(failed(format!("{} cannot be used: {failure}.", bucket.name())));
            }
        }
        None => {}
    }
    Some(match state.problem() {
        Some(problem) => note(format!("{problem}. {}", state.to_do())),
        None => ok(state.in_words()?),
    })
}

/// Returns nothing unless the desk is open at the public URL.
pub(super) async fn check_desk(settings: &Settings, base_url: &BaseUrl, store: &Store) -> Option<Finding> {
    let tokens = if settings.desk == Desk::Private { return None } else { store.tokens().await.ok()?.len() };
    let place = format!("{base_url}/desk/releases/ is open to tokens");
    Some(match tokens {
        0 => note(format!("{place}, but there are none. `porchlight token create --help` shows how to make one.")),
        _ => ok(format!("{place}: {}", quantity(tokens as u64, "token", "tokens"))),
    })
}

/// Returns nothing unless people are on a waiting list that the site leaves out.
pub(super) async fn check_waitlist(has_waitlist: bool, store: &Store) -> Option<Finding> {
    let people = if has_waitlist { 0 } else { store.people_on_waitlist().await.ok()? };
    let are_on_it = quantity(people, "person is", "people are");
    let text = format!(
        "{are_on_it} on the waiting list that site.toml leaves out, so the privacy page still speaks of it. `porchlight people \
         list --json` shows who; `porchlight people erase` erases those whom you need not keep."
    );
    (people > 0).then(|| note(text))
}

/// Returns nothing if there is nothing to say.
pub(super) async fn check_opt_ins(settings: &Settings, store: &Store) -> Option<Finding> {
    let counts = store.opt_in_counts().await.ok()?;
    let mails = store.backlog(MailKind::Confirmation).await.ok()?;
    let mut sentences = opt_in_sentences(counts, settings.confirm_updates);
    if mails.waiting + mails.leased + mails.failed > 0 {
        sentences.push(format!("{}.", confirmations_in_words(&mails)));
    }
    match (sentences.is_empty(), counts.unconfirmed_from_programs + mails.failed > 0) {
        (true, _) => None,
        (false, true) => Some(note(sentences.join(" "))),
        (false, false) => Some(ok(sentences.join(" "))),
    }
}
