//! Runs a command to its end, and opens its database. Commands that change data migrate it, and only those that can store
//! the first data create it.

use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;

use super::failure::{Failure, OrFail};
use crate::actions::check_app;
use crate::config::Settings;
use crate::store::{Database, MigrationState, Store, StoreFailure};

/// Runs a command to completion on a single-threaded runtime.
pub(super) fn block_on<T>(command: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let result = runtime.block_on(command);
    // Do not wait for blocking tasks, such as a DNS lookup: their results are no longer needed.
    runtime.shutdown_background();
    result
}

/// What a command may do to the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    /// Reads only. The database must exist with a schema that is not older, and is not changed. The server may be a standby.
    Read,
    /// Changes existing data. The database must exist, and is migrated if its schema is older.
    Write,
    /// May write the first data. The database is created if it is missing, and migrated if its schema is older.
    Create,
}

/// Runs a command on the database named in the settings, and closes the database.
pub(super) fn with_store(
    settings: &Settings,
    access: Access,
    command: impl AsyncFnOnce(&Store) -> Result<(), Failure>,
) -> Result<(), Failure> {
    block_on(async {
        let store = open_store(settings, access).await?;
        let result = command(&store).await;
        store.close().await;
        result
    })
}

/// Opens the database named in the settings. To be written, it must belong to the app of the site.
pub(super) async fn open_store(settings: &Settings, access: Access) -> Result<Store, Failure> {
    let store = open_store_of_any_app(settings, access).await?;
    if access != Access::Read {
        check_app(&store, settings).await?;
    }
    Ok(store)
}

pub(super) async fn open_store_of_any_app(settings: &Settings, access: Access) -> Result<Store, Failure> {
    let database = match Database::from_settings(settings)? {
        // An absolute path in an error message reveals a wrong working directory.
        Database::Sqlite(path) => Database::Sqlite(std::path::absolute(&path).unwrap_or(path)),
        postgres @ Database::Postgres(_) => postgres,
    };
    let setting = if settings.database_url.is_some() { "database_url" } else { "data_dir" };
    if access != Access::Read {
        check_owner(settings, &database)?;
    }
    if access != Access::Create {
        let store = open_existing(&database, setting, access).await?;
        if access == Access::Read {
            return Ok(store);
        }
        store.close().await;
    }
    let store = Store::open(&database)?;
    store.migrate().await.map_err(|failure| unusable(&database, failure))?;
    Ok(store)
}

/// Refuses to write as root where another user runs the service: a new database or image would be root's alone.
pub(super) fn check_owner(settings: &Settings, database: &Database) -> Result<(), Failure> {
    if !rustix::process::geteuid().is_root() {
        return Ok(());
    }
    let file = match database {
        Database::Sqlite(file) => Some(file.as_path()),
        Database::Postgres(_) => None,
    };
    for path in settings.images.folder().into_iter().chain(file).flat_map(|path| [Some(path), path.parent()]).flatten()
    {
        if let Some(owner) = path.metadata().ok().map(|metadata| metadata.uid()).filter(|owner| *owner != 0) {
            return Err(Failure::new(format!(
                "Nothing was done: {} belongs to another user (id {owner}), who could not use what root writes there. Run \
                 this as that user, such as with `sudo -u porchlight`.",
                path.display()
            )));
        }
    }
    Ok(())
}

/// Opens the database without changing it. It must exist, and its schema must allow the access.
async fn open_existing(database: &Database, setting: &str, access: Access) -> Result<Store, Failure> {
    if let Database::Sqlite(path) = database {
        File::open(path).or_fail(|error| match error.kind() {
            io::ErrorKind::NotFound => format!(
                "Nothing was done: the database ({database}) does not exist. Check `{setting}` and the working directory; \
                 `porchlight serve` creates a new one."
            ),
            _ => format!(
                "Nothing was done: the database ({database}) cannot be read: {error}. Run this as the user that runs the \
                 service."
            ),
        })?;
    }
    let store = Store::open_existing(database);
    match store.migration_state().await.map_err(|failure| unusable(database, failure))? {
        MigrationState::None => Err(Failure::new(format!(
            "Nothing was done: the database ({database}) has no Porchlight tables. Check `{setting}`; \
             `porchlight serve` creates the tables in an empty database."
        ))),
        MigrationState::Older(_) if access == Access::Read => Err(Failure::new(format!(
            "Nothing was done: the database ({database}) was written by an older version of Porchlight. Start \
             `porchlight serve` of this version once to migrate it, or use the version that wrote it."
        ))),
        MigrationState::Older(_) | MigrationState::Current(_) | MigrationState::Newer(_) => Ok(store),
    }
}

fn unusable(database: &Database, failure: StoreFailure) -> Failure {
    let hint = match database {
        Database::Sqlite(_) => "",
        Database::Postgres(_) => " Check that it is running and that `database_url` has the right host and port.",
    };
    match failure {
        failure @ StoreFailure::Unusable(_) => failure.into(),
        other => Failure::new(other.cannot_be_used(format!("The database ({database})")) + hint),
    }
}
