//! When something was done last that all instances together do once in a period, or that a command did.

use std::time::Duration;

use super::statement::on_pool;
use super::{Store, StoreFailure};
use crate::domain::time::Timestamp;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Task {
    /// Expired rows are deleted.
    Prune,
    /// Messages are deleted that were forwarded long ago.
    DeleteMessages,
    /// The makers are mailed what needs a hand.
    TellMakers,
    /// A complete backup was made.
    Backup,
}

impl Task {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Prune => "prune",
            Self::DeleteMessages => "delete_messages",
            Self::TellMakers => "tell_makers",
            Self::Backup => "backup",
        }
    }
}

/// A time that is far ahead was written with a wrong clock. One that is a little ahead was written by another instance.
const TAKE_TURN: &str = "INSERT INTO tasks (name, at) VALUES ($1, $2) \
     ON CONFLICT (name) DO UPDATE SET at = excluded.at WHERE tasks.at <= $3 OR tasks.at > $4";

const RETURN_TURN: &str = "DELETE FROM tasks WHERE name = $1 AND at = $2";

const RECORD: &str = "INSERT INTO tasks (name, at) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET at = excluded.at";

const SELECT: &str = "SELECT at FROM tasks WHERE name = $1";

impl Store {
    /// Returns whether the task is due, and if so records that it begins now: for one `period`, no instance gets another turn.
    pub async fn take_turn(&self, task: Task, now: Timestamp, period: Duration) -> Result<bool, StoreFailure> {
        let taken = on_pool!(self, |pool| {
            sqlx::query(TAKE_TURN)
                .bind(task.as_str())
                .bind(now.unix_millis())
                .bind(now.before(period).unix_millis())
                .bind(now.after(period).unix_millis())
                .execute(pool)
                .await?
                .rows_affected()
        });
        Ok(taken > 0)
    }

    /// Makes a task due again whose turn was taken at this time, because it was not done.
    pub async fn return_turn(&self, task: Task, taken: Timestamp) -> Result<(), StoreFailure> {
        on_pool!(self, |pool| {
            sqlx::query(RETURN_TURN).bind(task.as_str()).bind(taken.unix_millis()).execute(pool).await?;
        });
        Ok(())
    }

    /// Records that a command did something.
    pub async fn record_task(&self, task: Task, at: Timestamp) -> Result<(), StoreFailure> {
        on_pool!(self, |pool| {
            sqlx::query(RECORD).bind(task.as_str()).bind(at.unix_millis()).execute(pool).await?;
        });
        Ok(())
    }

    /// Returns when it was done last, if it ever was.
    pub async fn last_time(&self, task: Task) -> Result<Option<Timestamp>, StoreFailure> {
        let at: Option<i64> =
            on_pool!(self, |pool| sqlx::query_scalar(SELECT).bind(task.as_str()).fetch_optional(pool).await?);
        Ok(at.map(Timestamp::from_unix_millis))
    }
}
