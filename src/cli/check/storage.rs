//! Where things are kept: the database, and room on disk.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access, statvfs};

use super::finding::Finding;
use crate::config::Settings;
use crate::store::{Database, Store, StoreFailure};

/// Less room than this is told.
const LITTLE_ROOM: u64 = 1_000_000_000;

/// The store only if it can be asked.
pub(super) async fn about_database(settings: &Settings) -> (Finding, Option<Store>) {
    const NAME: &str = "database";
    let database = match Database::from_settings(settings) {
        Ok(database) => database,
        Err(failure) => return (Finding::trouble(NAME, failure.to_string()), None),
    };
    if let Database::Sqlite(path) = &database
        && !path.exists()
    {
        return (not_made_yet(NAME, &database, path), None);
    }
    let store = match Store::open_for_requests(&database) {
        Ok(store) => store,
        Err(failure) => return (Finding::trouble(NAME, failure.to_string()), None),
    };
    match store.health().await {
        Ok(condition) => {
            let schema =
                condition.schema.map_or_else(|| "no tables yet".to_owned(), |number| format!("schema {number}"));
            let mut notes = vec![format!("{database}, {schema}.")];
            if condition.pending_migrations > 0 {
                notes.push("The next start brings it up to date.".to_owned());
            }
            if let Some(risk) = condition.durability_risk {
                notes
                    .push(format!("The server has `{risk}` off: a power cut may lose what was confirmed. Turn it on."));
            }
            let finding = match notes.as_slice() {
                [_] => Finding::good(NAME, format!("{database}, {schema}, takes writes")),
                notes => Finding::note(NAME, notes.join(" ")),
            };
            if condition.schema.is_none() {
                store.close().await;
                return (finding, None);
            }
            (finding, Some(store))
        }
        Err(StoreFailure::Unusable(sentence)) => (Finding::trouble(NAME, format!("{database}: {sentence}")), None),
        Err(StoreFailure::Unavailable(why) | StoreFailure::Refused(why)) => {
            (Finding::trouble(NAME, format!("{database} cannot be used: {why}.")), None)
        }
        Err(damaged @ StoreFailure::Damaged(_)) => {
            (Finding::trouble(NAME, damaged.sentence(&format!("{database} cannot be used"))), None)
        }
    }
}

fn not_made_yet(name: &'static str, database: &Database, file: &Path) -> Finding {
    let folder = nearest_folder(file);
    if access(&folder, Access::WRITE_OK | Access::EXEC_OK).is_ok() {
        return Finding::note(name, format!("{database} is not there yet. The first start makes it."));
    }
    let words = format!("{database} cannot be made: {} may not be written to.", folder.display());
    Finding::trouble(name, words)
}

/// The folder itself, or the one above it in which it will be made.
fn nearest_folder(path: &Path) -> PathBuf {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    absolute.ancestors().find(|folder| folder.is_dir()).unwrap_or(Path::new("/")).to_owned()
}

pub(super) fn about_disks(settings: &Settings) -> Vec<Finding> {
    let (data, releases) = (nearest_folder(&settings.data_dir), nearest_folder(&settings.releases_dir));
    let device = |folder: &Path| folder.metadata().map(|about| about.dev()).ok();
    if device(&data) == device(&releases) {
        return vec![about_disk("disk", "`data_dir`", &data)];
    }
    vec![about_disk("disk", "`data_dir`", &data), about_disk("images", "`releases_dir`", &releases)]
}

fn about_disk(name: &'static str, setting: &str, folder: &Path) -> Finding {
    let about = match statvfs(folder) {
        Ok(about) => about,
        Err(why) => return Finding::note(name, format!("{} cannot be measured: {why}.", folder.display())),
    };
    let free = about.f_bavail.saturating_mul(about.f_frsize);
    #[expect(clippy::cast_precision_loss, reason = "one digit after the point is shown")]
    let words = format!("{:.1} GB are free for {setting} ({})", free as f64 / 1e9, folder.display());
    if free < LITTLE_ROOM {
        return Finding::note(name, format!("{words}. That is little: make room before it is full."));
    }
    Finding::good(name, words)
}
