//! Why a command failed: one sentence for standard error, and the exit code.

use std::fmt::Display;
use std::io;

use crate::actions::{AppMismatch, PersonFailure, RetryFailure};
use crate::config::{InvalidSettings, Settings};
use crate::serve::ServeFailure;
use crate::site::SiteFailure;
use crate::store::{CopyFailure, Database, StoreFailure};

#[derive(Debug)]
pub struct Failure {
    pub(super) sentence: String,
    pub(super) exit_code: u8,
    /// Set if the database file is damaged.
    damage: Option<StoreFailure>,
}

impl Failure {
    /// A failure with exit code 1.
    pub(super) fn new(sentence: impl Display) -> Self {
        Self { sentence: sentence.to_string(), exit_code: 1, damage: None }
    }

    pub(super) fn with_exit_code(self, exit_code: u8) -> Self {
        Self { exit_code, ..self }
    }

    /// A failure of the database; `outcome` says what it led to, such as "Nothing was done".
    pub(super) fn store(failure: StoreFailure, outcome: &str) -> Self {
        let sentence = failure.sentence(outcome);
        Self {
            damage: Some(failure).filter(|failure| matches!(failure, StoreFailure::Damaged(_))),
            ..Self::new(sentence)
        }
    }

    /// As [`Self::store`], for a failed copy.
    pub(super) fn copy(failure: CopyFailure, outcome: &str) -> Self {
        match failure {
            CopyFailure::Store(failure) => Self::store(failure, outcome),
            other => Self::new(other.sentence(outcome)),
        }
    }

    /// Names the database whose file is damaged.
    pub(super) fn with_database(self, settings: &Settings) -> Self {
        match (&self.damage, Database::from_settings(settings)) {
            (Some(damage), Ok(database)) => {
                Self::new(damage.sentence(&format!("The database ({database}) cannot be used")))
                    .with_exit_code(self.exit_code)
            }
            _ => self,
        }
    }
}

impl From<InvalidSettings> for Failure {
    fn from(invalid: InvalidSettings) -> Self {
        Self::new(invalid).with_exit_code(2)
    }
}

impl From<StoreFailure> for Failure {
    fn from(failure: StoreFailure) -> Self {
        Self::store(failure, "Nothing was done")
    }
}

impl From<SiteFailure> for Failure {
    fn from(failure: SiteFailure) -> Self {
        Self::new(failure)
    }
}

impl From<AppMismatch> for Failure {
    fn from(mismatch: AppMismatch) -> Self {
        match mismatch {
            AppMismatch::Site(failure) => failure.into(),
            AppMismatch::Store(failure) => failure.into(),
            AppMismatch::OtherApp(why) => Self::new(format!("Nothing was done: {why}.")),
        }
    }
}

impl From<PersonFailure> for Failure {
    fn from(failure: PersonFailure) -> Self {
        match failure {
            PersonFailure::Store(failure) => failure.into(),
            unknown @ PersonFailure::Unknown(_) => Self::new(unknown),
        }
    }
}

impl From<RetryFailure> for Failure {
    fn from(failure: RetryFailure) -> Self {
        match failure {
            RetryFailure::Store(failure) => failure.into(),
            other => Self::new(other),
        }
    }
}

impl From<ServeFailure> for Failure {
    fn from(failure: ServeFailure) -> Self {
        match failure {
            ServeFailure::Settings(invalid) => invalid.into(),
            other => Self::new(other),
        }
    }
}

/// The runtime, a signal handler or standard input is unavailable.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::new(format!("The program could not start: {error}."))
    }
}

/// Turns an error into the failure of a command.
pub(super) trait OrFail<T, E> {
    /// The sentence is made from the error.
    fn or_fail<S: Display>(self, sentence: impl FnOnce(E) -> S) -> Result<T, Failure>;
}

impl<T, E> OrFail<T, E> for Result<T, E> {
    fn or_fail<S: Display>(self, sentence: impl FnOnce(E) -> S) -> Result<T, Failure> {
        self.map_err(|error| Failure::new(sentence(error)))
    }
}
