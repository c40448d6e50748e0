//! Checks the database and the free disk space.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access, statvfs};

use super::finding::Finding;
use crate::config::Settings;
use crate::store::{Database, MigrationState, PostgresTls, Store, StoreFailure};

/// Less free space than this is reported.
const LOW_DISK_BYTES: u64 = 1_000_000_000;

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
            let place = tls.map_or_else(|| database.to_string(), |tls| format!("{database}, {}", tls.as_str()));
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
        Err(StoreFailure::Unavailable(why) | StoreFailure::Rejected(why) | StoreFailure::InvalidData(why)) => {
            (Finding::failed(NAME, format!("{database} cannot be used: {why}.")), None)
        }
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

/// Returns the folder itself, or its closest parent that exists.
fn nearest_folder(path: &Path) -> PathBuf {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    absolute.ancestors().find(|folder| folder.is_dir()).unwrap_or(Path::new("/")).to_owned()
}

pub(super) fn check_disks(settings: &Settings) -> Vec<Finding> {
    let (data, releases) = (nearest_folder(&settings.data_dir), nearest_folder(&settings.releases_dir));
    let device = |folder: &Path| folder.metadata().map(|metadata| metadata.dev()).ok();
    if device(&data) == device(&releases) {
        return vec![check_disk("disk", "`data_dir`", &data)];
    }
    vec![check_disk("disk", "`data_dir`", &data), check_disk("images", "`releases_dir`", &releases)]
}

fn check_disk(name: &'static str, setting: &str, folder: &Path) -> Finding {
    let stats = match statvfs(folder) {
        Ok(stats) => stats,
        Err(error) => {
            return Finding::note(name, format!("The free space of {} is unknown: {error}.", folder.display()));
        }
    };
    let free = stats.f_bavail.saturating_mul(stats.f_frsize);
    #[expect(clippy::cast_precision_loss, reason = "one decimal is printed")]
    let detail = format!("{:.1} GB free in {setting} ({})", free as f64 / 1e9, folder.display());
    if free < LOW_DISK_BYTES {
        return Finding::note(name, format!("{detail}. Free up space before the disk is full."));
    }
    Finding::ok(name, detail)
}
