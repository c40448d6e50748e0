//! What can go wrong with the database.

use sqlx::migrate::MigrateError;

#[derive(Clone, Debug, thiserror::Error)]
pub enum StoreFailure {
    /// The database is away, locked, full or slow: later it may work.
    #[error("the database is not available: {0}")]
    Unavailable(String),
    /// The database refused the statement itself: trying again will not help.
    #[error("the database refused what it was asked: {0}")]
    Refused(String),
    /// The file of an embedded database is not what was written: only a backup helps.
    #[error("the file of the database is damaged ({0})")]
    Damaged(String),
    /// Settings or schema do not fit: somebody has to act.
    #[error("{0}")]
    Unusable(String),
}

impl StoreFailure {
    /// One sentence for people: `outcome` is what came of it, such as "Nothing was done".
    #[must_use]
    pub fn sentence(&self, outcome: &str) -> String {
        match self {
            Self::Unusable(sentence) => sentence.clone(),
            damaged @ Self::Damaged(_) => {
                format!(
                    "{outcome}: {damaged}. Put it aside, and bring the newest backup back with `porchlight restore`."
                )
            }
            passing => format!("{outcome}: {passing}."),
        }
    }

    /// Whether the same transaction may go through when tried again at once.
    pub(super) fn is_conflict(error: &sqlx::Error) -> bool {
        matches!(code(error).as_deref(), Some("40001" | "40P01"))
    }
}

impl From<sqlx::Error> for StoreFailure {
    fn from(error: sqlx::Error) -> Self {
        match (&error, code(&error)) {
            (sqlx::Error::Migrate(migration), _) => Self::from_migration(migration),
            (sqlx::Error::Database(_), Some(code)) if is_passing(&code) => Self::Unavailable(words(&error)),
            (sqlx::Error::Database(_), Some(code)) if is_denied(&code) => {
                Self::Unusable(format!("The database does not let us in: {}. Check `database_url`.", words(&error)))
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
            ) => Self::Refused(words(&error)),
            _ => Self::Unavailable(words(&error)),
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
                "The database was made by a newer porchlight (it has migration {version}, unknown here). \
                 Run that version, or restore an older backup."
            ),
            other => format!("The database could not be brought up to date: {other}."),
        })
    }
}

/// What happened, without the driver's view of it and without the line of PostgreSQL's own source.
fn words(error: &sqlx::Error) -> String {
    match error {
        sqlx::Error::Database(said) => said.message().to_owned(),
        sqlx::Error::PoolTimedOut => "it did not answer in time".to_owned(),
        other => other.to_string(),
    }
}

fn code(error: &sqlx::Error) -> Option<String> {
    error.as_database_error()?.code().map(Into::into)
}

/// Codes of troubles that pass. PostgreSQL's have five characters, and 55000 is how it says that a
/// database takes no connections just now. SQLite's extended codes are numbers whose low byte is the
/// kind: busy, locked, out of memory, read-only, I/O, full, cannot open.
fn is_passing(code: &str) -> bool {
    if code.len() == 5 {
        return ["08", "40", "53", "57", "58"].iter().any(|class| code.starts_with(class))
            || matches!(code, "25006" | "55000" | "55P03");
    }
    code.parse::<u32>().is_ok_and(|code| matches!(code & 0xff, 5 | 6 | 7 | 8 | 10 | 13 | 14))
}

/// SQLite's codes for a file that makes no sense, or never was a database.
fn is_damage(code: &str) -> bool {
    code.len() != 5 && code.parse::<u32>().is_ok_and(|code| matches!(code & 0xff, 11 | 26))
}

fn is_denied(code: &str) -> bool {
    code.len() == 5 && (code.starts_with("28") || code == "3D000")
}
