//! Opens the database for a command. Commands that change data migrate it, and only those that can store the first
//! data create it.

use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::CommandFailure;
use crate::config::Settings;
use crate::store::{Database, MigrationState, Store, StoreFailure};

/// What a command may do to the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    /// Reads only. The database must exist with a schema that is not older, and is not changed.
    Read,
    /// As [`Self::Read`], and the server may be a standby.
    ReadStandby,
    /// Changes existing data. The database must exist, and is migrated if its schema is older.
    Write,
    /// May write the first data. The database is created if it is missing, and migrated if its schema is older.
    Create,
}

impl Access {
    const fn only_reads(self) -> bool {
        matches!(self, Self::Read | Self::ReadStandby)
    }

    /// Opens an existing database without changing it.
    fn open_existing(self, database: &Database) -> Result<Store, StoreFailure> {
        match self {
            Self::ReadStandby => Store::open_existing_or_standby(database),
            Self::Read | Self::Write | Self::Create => Store::open_existing(database),
        }
    }
}

/// Why the database cannot be opened.
#[derive(Debug, thiserror::Error)]
pub(super) enum OpenFailure {
    #[error(
        "Nothing was done: the database ({0}) does not exist. Check `{1}` and the working directory; \
         `porchlight serve` creates a new one."
    )]
    Missing(Database, &'static str),
    #[error(
        "Nothing was done: the database ({0}) has no Porchlight tables. Check `{1}`; \
         `porchlight serve` creates the tables in an empty database."
    )]
    NoTables(Database, &'static str),
    #[error("Nothing was done: the database ({0}) cannot be read: {1}. Run this as the user that runs the service.")]
    Unreadable(Database, io::Error),
    #[error(
        "Nothing was done: {0} belongs to another user (id {1}), who could not use what root writes there. Run this as \
         that user, such as with `sudo -u porchlight`."
    )]
    OtherOwner(String, u32),
    #[error(
        "Nothing was done: the database ({0}) was written by an older version of Porchlight. Start `porchlight serve` \
         of this version once to migrate it, or use the version that wrote it."
    )]
    Older(Database),
    #[error("The database ({0}) cannot be used: {1}.{hint}", hint = hint(.0))]
    Unusable(Database, String),
    #[error("{}", .1.sentence(&format!("The database ({}) cannot be used", .0)))]
    Damaged(Database, StoreFailure),
}

const fn hint(database: &Database) -> &'static str {
    match database {
        Database::Sqlite(_) => "",
        Database::Postgres(_) => " Check that it is running and that `database_url` has the right host and port.",
    }
}

/// Opens the database named in the settings.
pub(super) async fn open_store(settings: &Settings, access: Access) -> Result<Store, CommandFailure> {
    let database = with_absolute_path(Database::from_settings(settings)?);
    let setting = if settings.database_url.is_some() { "database_url" } else { "data_dir" };
    if !access.only_reads() {
        check_owner(settings, &database)?;
    }
    if access != Access::Create {
        check_existing(&database, setting, access).await?;
    }
    if access.only_reads() {
        return Ok(access.open_existing(&database)?);
    }
    let store = Store::open(&database)?;
    store.migrate().await.map_err(|failure| unusable(database, failure))?;
    Ok(store)
}

/// Refuses to write as root where another user runs the service: a new database or image would be root's alone.
pub(super) fn check_owner(settings: &Settings, database: &Database) -> Result<(), OpenFailure> {
    if !rustix::process::geteuid().is_root() {
        return Ok(());
    }
    let mut paths: Vec<_> =
        settings.images.folder().into_iter().flat_map(|folder| [Some(folder), folder.parent()]).flatten().collect();
    if let Database::Sqlite(file) = database {
        paths.extend([Some(file.as_path()), file.parent()].into_iter().flatten());
    }
    for path in paths {
        if let Some(owner) = path.metadata().ok().map(|metadata| metadata.uid()).filter(|owner| *owner != 0) {
            return Err(OpenFailure::OtherOwner(path.display().to_string(), owner));
        }
    }
    Ok(())
}

/// Checks, without changing anything, that the database exists and that its schema allows the access.
async fn check_existing(database: &Database, setting: &'static str, access: Access) -> Result<(), CommandFailure> {
    if let Database::Sqlite(path) = database {
        match File::open(path) {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(OpenFailure::Missing(database.clone(), setting).into());
            }
            Err(error) => return Err(OpenFailure::Unreadable(database.clone(), error).into()),
        }
    }
    let store = access.open_existing(database)?;
    let schema = store.migration_state().await;
    store.close().await;
    match schema.map_err(|failure| unusable(database.clone(), failure))? {
        MigrationState::None => Err(OpenFailure::NoTables(database.clone(), setting).into()),
        MigrationState::Older(_) if access.only_reads() => Err(OpenFailure::Older(database.clone()).into()),
        MigrationState::Older(_) | MigrationState::Current(_) | MigrationState::Newer(_) => Ok(()),
    }
}

fn unusable(database: Database, failure: StoreFailure) -> CommandFailure {
    match failure {
        StoreFailure::Unavailable(why)
        | StoreFailure::Conflict(why)
        | StoreFailure::Rejected(why)
        | StoreFailure::InvalidData(why) => OpenFailure::Unusable(database, why).into(),
        damaged @ StoreFailure::Damaged(_) => OpenFailure::Damaged(database, damaged).into(),
        failure @ StoreFailure::Unusable(_) => failure.into(),
    }
}

/// An absolute path in an error message reveals a wrong working directory.
fn with_absolute_path(database: Database) -> Database {
    match database {
        Database::Sqlite(path) => Database::Sqlite(std::path::absolute::<&Path>(&path).unwrap_or(path)),
        postgres @ Database::Postgres(_) => postgres,
    }
}
