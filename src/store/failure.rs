//! The failure type of the store.

use sqlx::migrate::MigrateError;

#[derive(Clone, Debug, thiserror::Error)]
pub enum StoreFailure {
    /// The database is unreachable, locked, full or slow. A retry may succeed.
    #[error("the database is unavailable: {0}")]
    Unavailable(String),
    /// The database rejected the statement, or returned values that do not parse. A retry will not help.
    #[error("the database rejected a statement: {0}")]
    Rejected(String),
    /// The SQLite file is corrupt, or not a database. Only a backup helps.
    #[error("the database file is damaged ({0})")]
    Damaged(String),
    /// The settings or the schema have to be changed first. Holds a whole sentence.
    #[error("{0}")]
    Unusable(String),
}

impl StoreFailure {
    /// Returns one sentence for people; `outcome` says what the failure led to, such as "Nothing was done".
    #[must_use]
    pub fn sentence(&self, outcome: &str) -> String {
        match self {
            Self::Unusable(sentence) => sentence.clone(),
            damaged @ Self::Damaged(_) => {
                format!("{outcome}: {damaged}. Move it away, and restore the newest backup with `porchlight restore`.")
            }
            other => format!("{outcome}: {other}."),
        }
    }

    /// Whether the transaction conflicted with another one, and may succeed if repeated at once.
    pub(super) fn is_conflict(error: &sqlx::Error) -> bool {
        matches!(code(error).as_deref(), Some("40001" | "40P01"))
    }
}

impl From<sqlx::Error> for StoreFailure {
    fn from(error: sqlx::Error) -> Self {
        match (&error, code(&error)) {
            (sqlx::Error::Migrate(migration), _) => Self::from_migration(migration),
            (sqlx::Error::Database(_), Some(code)) if is_transient(&code) => Self::Unavailable(message(&error)),
            (sqlx::Error::Database(_), Some(code)) if is_denied(&code) => {
                Self::Unusable(format!("The database denied access: {}. Check `database_url`.", message(&error)))
            }
            (sqlx::Error::Database(error), Some(code)) if is_damage(&code) => Self::Damaged(error.message().to_owned()),
            (
                sqlx::Error::Database(_)
                | sqlx::Error::Encode(_)
                | sqlx::Error::Decode(_)
                | sqlx::Error::ColumnDecode { .. }
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
        Self::Unusable(match error {
            MigrateError::VersionMissing(version) => format!(
                "The database was created by a newer porchlight (it has migration {version}, unknown to this one). \
                 Run that version, or restore an older backup."
            ),
            other => format!("The database could not be migrated: {other}."),
        })
    }
}

/// The database's own message, without what the driver adds and without PostgreSQL's source line.
fn message(error: &sqlx::Error) -> String {
    match error {
        sqlx::Error::Database(error) => error.message().to_owned(),
        sqlx::Error::PoolTimedOut => "it did not respond in time".to_owned(),
        other => other.to_string(),
    }
}

fn code(error: &sqlx::Error) -> Option<String> {
    error.as_database_error()?.code().map(Into::into)
}

/// Whether the condition may pass. PostgreSQL's codes have five characters; 55000 means that the database accepts no
/// connections at the moment. SQLite's extended codes are numbers whose low byte is the primary code: busy, locked, out
/// of memory, read-only, I/O error, full, cannot open.
fn is_transient(code: &str) -> bool {
    if code.len() == 5 {
        return ["08", "40", "53", "57", "58"].iter().any(|class| code.starts_with(class))
            || matches!(code, "25006" | "55000" | "55P03");
    }
    code.parse::<u32>().is_ok_and(|code| matches!(code & 0xff, 5 | 6 | 7 | 8 | 10 | 13 | 14))
}

/// `SQLITE_CORRUPT` and `SQLITE_NOTADB`.
fn is_damage(code: &str) -> bool {
    code.len() != 5 && code.parse::<u32>().is_ok_and(|code| matches!(code & 0xff, 11 | 26))
}

fn is_denied(code: &str) -> bool {
    code.len() == 5 && (code.starts_with("28") || code == "3D000")
}
