//! The failure type of the store.

use std::fmt::Display;

use sqlx::migrate::MigrateError;

/// The reason of [`StoreFailure::timed_out`].
const NO_RESPONSE: &str = "it did not respond in time";

#[derive(Clone, Debug, thiserror::Error)]
pub enum StoreFailure {
    /// The database is unreachable, locked, full or slow. A retry may succeed.
    #[error("the database is unavailable: {0}")]
    Unavailable(String),
    /// The transaction conflicted with another one. It may succeed if repeated at once.
    #[error("the database is unavailable: {0}")]
    Conflict(String),
    /// The database rejected the statement. A retry will not help.
    #[error("the database rejected a statement: {0}")]
    Rejected(String),
    /// The database returned values that do not parse. A retry will not help.
    #[error("the database contains invalid data: {0}")]
    InvalidData(String),
    /// The SQLite file is corrupt, or not a database. Only a backup helps.
    #[error("the database file is damaged ({0})")]
    Damaged(String),
    /// The settings or the schema have to be changed first.
    #[error("{0}")]
    Unusable(String),
}

impl StoreFailure {
    /// Returns one sentence for people; `outcome` says what the failure led to, such as "Nothing was done".
    pub fn sentence(&self, outcome: &str) -> String {
        match self {
            damaged @ Self::Damaged(_) => {
                format!(
                    "{outcome}: {damaged}. Move the file aside, then restore the latest backup with `porchlight restore`."
                )
            }
            other => format!("{outcome}: {other}."),
        }
    }

    /// Returns one sentence that says why `database` cannot be used, except for [`Self::Unusable`], which is one itself.
    pub fn cannot_be_used(&self, database: impl Display) -> String {
        match self {
            Self::Unavailable(why) | Self::Conflict(why) | Self::Rejected(why) | Self::InvalidData(why) => {
                format!("{database} cannot be used: {why}.")
            }
            other => other.sentence(&format!("{database} cannot be used")),
        }
    }

    /// The database did not respond within a time limit.
    pub fn timed_out() -> Self {
        Self::Unavailable(NO_RESPONSE.to_owned())
    }

    /// A stored value that no version of this program has written.
    pub(in crate::store) fn invalid(what: &str) -> Self {
        Self::InvalidData(format!("{what} is invalid"))
    }

    /// The PostgreSQL server takes no writes until it is promoted.
    pub(in crate::store) fn standby() -> Self {
        Self::Unavailable("this PostgreSQL server is a standby and accepts no writes".to_owned())
    }

    /// A copy of a database whose newest migration is `version`, unknown to this program, would lack data.
    pub fn incomplete_copy(version: i64) -> Self {
        Self::Unusable(format!(
            "the data was written by a newer porchlight (it has migration {version}), and a copy by this version would lack \
             what it does not know; use that version"
        ))
    }

    /// Whether SQLite called fsync, and it failed.
    pub(in crate::store) fn is_failed_sync(error: &sqlx::Error) -> bool {
        const IOERR_FSYNC: &str = "1034";
        const IOERR_DIR_FSYNC: &str = "1290";
        matches!(code(error).as_deref(), Some(IOERR_FSYNC | IOERR_DIR_FSYNC))
    }
}

impl From<sqlx::Error> for StoreFailure {
    fn from(error: sqlx::Error) -> Self {
        match (&error, code(&error).as_deref()) {
            (sqlx::Error::Migrate(migration), _) => Self::from_migration(migration),
            // Serialization failure, deadlock detected, or a person who was erased meanwhile.
            (sqlx::Error::Database(_), Some("40001" | "40P01" | "23503")) => Self::Conflict(message(&error)),
            (sqlx::Error::Database(_), Some(code)) if is_transient(code) => Self::Unavailable(message(&error)),
            (sqlx::Error::Database(_), Some(code)) if is_denied(code) => {
                Self::Unusable(format!("the database denied access: {}; check `database_url`", message(&error)))
            }
            (sqlx::Error::Database(error), Some(code)) if is_damage(code) => Self::Damaged(error.message().to_owned()),
            (sqlx::Error::Decode(_) | sqlx::Error::ColumnDecode { .. }, _) => Self::InvalidData(message(&error)),
            (
                sqlx::Error::Database(_)
                | sqlx::Error::Encode(_)
                | sqlx::Error::ColumnNotFound(_)
                | sqlx::Error::RowNotFound,
                _,
            ) => Self::Rejected(message(&error)),
            _ => Self::Unavailable(message(&error)),
        }
    }
}

impl From<MigrateError> for StoreFailure {
    fn from(error: MigrateError) -> Self {
        match error {
            MigrateError::Execute(error) | MigrateError::ExecuteMigration(error, _) => error.into(),
            other => Self::from_migration(&other),
        }
    }
}

impl StoreFailure {
    fn from_migration(error: &MigrateError) -> Self {
        Self::Unusable(format!("the database could not be migrated: {error}"))
    }
}

/// Where to look when TLS fails.
const TLS_SETTINGS: &str =
    "in `database_url`, `sslrootcert` names the authority to trust and `sslmode` what is verified";

/// The database's own message where there is one, otherwise the driver's.
fn message(error: &sqlx::Error) -> String {
    match error {
        sqlx::Error::Database(error) => error.message().to_owned(),
        // The driver would prefix it with "encountered unexpected or invalid data".
        sqlx::Error::Protocol(text) => text.clone(),
        sqlx::Error::PoolTimedOut => NO_RESPONSE.to_owned(),
        sqlx::Error::Tls(why) => format!("{why} ({TLS_SETTINGS})"),
        sqlx::Error::Io(error) if error.get_ref().and_then(|why| why.downcast_ref::<rustls::Error>()).is_some() => {
            format!("{error} ({TLS_SETTINGS})")
        }
        other => other.to_string(),
    }
}

fn code(error: &sqlx::Error) -> Option<String> {
    error.as_database_error()?.code().map(Into::into)
}

/// Whether the condition may pass.
fn is_transient(code: &str) -> bool {
    // Connection exception, transaction rollback, insufficient resources, operator intervention, system error.
    const POSTGRES_CLASSES: [&str; 5] = ["08", "40", "53", "57", "58"];
    // Read-only transaction, database accepts no connections, lock not available.
    const POSTGRES_CODES: [&str; 3] = ["25006", "55000", "55P03"];
    // Busy, locked, out of memory, read-only, I/O error, full, cannot open.
    const SQLITE_CODES: [u32; 7] = [5, 6, 7, 8, 10, 13, 14];
    match sqlite_code(code) {
        Some(primary) => SQLITE_CODES.contains(&primary),
        None => POSTGRES_CLASSES.iter().any(|class| code.starts_with(class)) || POSTGRES_CODES.contains(&code),
    }
}

/// `SQLITE_CORRUPT` and `SQLITE_NOTADB`.
fn is_damage(code: &str) -> bool {
    matches!(sqlite_code(code), Some(11 | 26))
}

/// The primary code of an extended SQLite code, which is its low byte. `None` for the five characters of an SQLSTATE.
fn sqlite_code(code: &str) -> Option<u32> {
    if code.len() == 5 { None } else { code.parse::<u32>().ok().map(|code| code & 0xff) }
}

/// Invalid authorization (class 28), or no such database.
fn is_denied(code: &str) -> bool {
    code.len() == 5 && (code.starts_with("28") || code == "3D000")
}
