//! What waits for a time that is too far ahead: it was written with a wrong clock, and would otherwise wait until then.

use std::time::Duration;

use super::statement::on_pool;
use super::{Store, StoreFailure};
use crate::domain::limits::MAX_ROWS_PER_STEP;
use crate::domain::time::Timestamp;

/// Longer than any lease and any pause between two attempts, by so much that the clocks of instances may differ.
const MAX_WAIT: Duration = Duration::from_hours(4);

/// A kind of mail that waits in the database.
#[derive(Clone, Copy, Debug)]
pub enum WaitingMail {
    Messages,
    Confirmations,
}

macro_rules! statements {
    ($table:literal, $key:literal) => {
        [
            concat!("SELECT COUNT(*) FROM ", $table, " WHERE state IN ('waiting', 'leased') AND at > $1"),
            concat!(
                "UPDATE ",
                $table,
                " SET at = $2 WHERE ",
                $key,
                " IN (SELECT ",
                $key,
                " FROM ",
                $table,
                " WHERE state IN ('waiting', 'leased') AND at > $1 LIMIT $3)"
            ),
        ]
    };
}

impl WaitingMail {
    const fn statements(self) -> [&'static str; 2] {
        match self {
            Self::Messages => statements!("outbox", "message"),
            Self::Confirmations => statements!("confirmations", "address"),
        }
    }
}

impl Store {
    /// Makes mails due that wait for longer than any mail may, a bounded number at a time. Returns whether there were any.
    pub async fn end_impossible_waits(&self, kind: WaitingMail, now: Timestamp) -> Result<bool, StoreFailure> {
        let [count, make_due] = kind.statements();
        let far_ahead = now.after(MAX_WAIT).unix_millis();
        Ok(on_pool!(self, |pool| {
            // A statement that changes rows would wait for other writers, although there is nearly always nothing to do.
            let waiting: i64 = sqlx::query_scalar(count).bind(far_ahead).fetch_one(pool).await?;
            if waiting > 0 {
                let make_due = sqlx::query(make_due).bind(far_ahead).bind(now.unix_millis()).bind(MAX_ROWS_PER_STEP);
                make_due.execute(pool).await?;
            }
            waiting > 0
        }))
    }
}
