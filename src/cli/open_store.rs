//! Which command may do what to the database that it opens: the one place that decides.

use std::fs::File;
use std::io;
use std::path::Path;

use super::CommandFailure;
use crate::config::Settings;
use crate::store::{Database, Schema, Store, StoreFailure};

/// What a command is about to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    /// Only reads. The database has to be there, of this version, and stays as it is.
    Read,
    /// Changes what is there already. The database has to be there, and is brought up to date.
    Amend,
    /// May be the first to write. The database is made if there is none, and brought up to date.
    Begin,
}

/// Why the database cannot be opened for what the command is about to do.
#[derive(Debug, thiserror::Error)]
pub(super) enum OpenFailure {
    #[error(
        "Nothing was done: the database ({0}) is not there. Check `{1}` and the folder in which you are; \
         `porchlight serve` makes a new one."
    )]
    Missing(Database, &'static str),
    #[error(
        "Nothing was done: the database ({0}) holds no data of porchlight. Check `{1}`; \
         `porchlight serve` makes the tables in an empty one."
    )]
    NotOurs(Database, &'static str),
    #[error("Nothing was done: the database ({0}) may not be read: {1}. Run this as the user that runs the service.")]
    Unreadable(Database, io::Error),
    #[error(
        "Nothing was done: the database ({0}) is of an older version of porchlight. Start `porchlight serve` of this \
         version once, which brings it up to date, or do this with the version that made it."
    )]
    Older(Database),
    #[error("The database ({0}) cannot be used: {1}.{hint}", hint = what_to_check(.0))]
    Unusable(Database, String),
    #[error("{}", .1.sentence(&format!("The database ({}) cannot be used", .0)))]
    Damaged(Database, StoreFailure),
}

const fn what_to_check(database: &Database) -> &'static str {
    match database {
        Database::Sqlite(_) => "",
        Database::Postgres(_) => " See whether it runs, and whether `database_url` names its host and port.",
    }
}

/// The database of the settings.
pub(super) async fn open_store(settings: &Settings, access: Access) -> Result<Store, CommandFailure> {
    let database = named_in_full(Database::of(settings)?);
    let setting = if settings.database_url.is_some() { "database_url" } else { "data_dir" };
    if access != Access::Begin {
        look(&database, setting, access).await?;
    }
    if access == Access::Read {
        return Ok(Store::open_existing(&database)?);
    }
    let store = Store::open(&database)?;
    store.prepare().await.map_err(|failure| unusable(database, failure))?;
    Ok(store)
}

/// Whether there is a database that this may be done to. Nothing is changed by looking.
async fn look(database: &Database, setting: &'static str, access: Access) -> Result<(), CommandFailure> {
    if let Database::Sqlite(path) = database {
        match File::open(path) {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(OpenFailure::Missing(database.clone(), setting).into());
            }
            Err(error) => return Err(OpenFailure::Unreadable(database.clone(), error).into()),
        }
    }
    let store = Store::open_existing(database)?;
    let schema = store.schema().await;
    store.close().await;
    match schema.map_err(|failure| unusable(database.clone(), failure))? {
        Schema::None => Err(OpenFailure::NotOurs(database.clone(), setting).into()),
        Schema::Older(_) if access == Access::Read => Err(OpenFailure::Older(database.clone()).into()),
        Schema::Older(_) | Schema::Current(_) => Ok(()),
    }
}

fn unusable(database: Database, failure: StoreFailure) -> CommandFailure {
    match failure {
        StoreFailure::Unavailable(why) | StoreFailure::Refused(why) => OpenFailure::Unusable(database, why).into(),
        damaged @ StoreFailure::Damaged(_) => OpenFailure::Damaged(database, damaged).into(),
        failure @ StoreFailure::Unusable(_) => failure.into(),
    }
}

/// Whoever is in the wrong folder sees where was looked.
fn named_in_full(database: Database) -> Database {
    match database {
        Database::Sqlite(path) => Database::Sqlite(std::path::absolute::<&Path>(&path).unwrap_or(path)),
        postgres @ Database::Postgres(_) => postgres,
    }
}
