//! The log of recent mails to the makers, which all instances share. It enforces the limit of `domain/maker_mail.rs`.

use uuid::Uuid;

use super::statement::{Statement, in_transaction, on_pool};
use super::{Store, StoreFailure};
use crate::domain::limits::MAKER_MAIL_PERIOD;
use crate::domain::maker_mail::{MakerMailKind, RecentMails};
use crate::domain::time::Timestamp;

/// A time that is far ahead was written with a wrong clock. One that is a little ahead was written by another instance.
const SELECT_RECENT: &str = "SELECT COUNT(*), CAST(COALESCE(SUM(bytes), 0) AS BIGINT), \
         COUNT(CASE WHEN kind = 'summary' THEN 1 END), MIN(at), MAX(at) FROM maker_mails WHERE at > $1 AND at <= $2";

/// Serializes reservations: in PostgreSQL two transactions could otherwise both find the last place free.
const LOCK: Statement =
    Statement { sqlite: "SELECT 1", postgres: "LOCK TABLE maker_mails IN SHARE ROW EXCLUSIVE MODE" };

const DELETE_OLD: &str = "DELETE FROM maker_mails WHERE at <= $1 OR at > $2";

const INSERT: &str = "INSERT INTO maker_mails (id, kind, at, bytes) VALUES ($1, $2, $3, $4)";

pub(super) const CONFIRM: &str = "UPDATE maker_mails SET at = $2 WHERE id = $1";

pub(super) const CANCEL: &str = "DELETE FROM maker_mails WHERE id = $1";

type RecentRow = (i64, i64, i64, Option<i64>, Option<i64>);

impl Store {
    /// Returns the mails of the period that ends now.
    pub async fn recent_maker_mails(&self, now: Timestamp) -> Result<RecentMails, StoreFailure> {
        let (since, until) = period_around(now);
        let row: RecentRow =
            on_pool!(self, |pool| sqlx::query_as(SELECT_RECENT).bind(since).bind(until).fetch_one(pool).await?);
        Ok(recent_mails(row))
    }

    /// Reserves a place for a mail that is sent next. Returns `false` if the limit does not allow it.
    pub async fn reserve_maker_mail(
        &self,
        id: Uuid,
        kind: MakerMailKind,
        bytes: usize,
        now: Timestamp,
    ) -> Result<bool, StoreFailure> {
        let (since, until) = period_around(now);
        let (id, bytes) = (id.to_string(), i64::try_from(bytes).unwrap_or(i64::MAX));
        Ok(in_transaction!(self, |tx, sql| {
            sqlx::query(sql(LOCK)).execute(&mut *tx).await?;
            let row: RecentRow = sqlx::query_as(SELECT_RECENT).bind(since).bind(until).fetch_one(&mut *tx).await?;
            let has_room = recent_mails(row).has_room_for(kind, bytes.unsigned_abs());
            if has_room {
                sqlx::query(DELETE_OLD).bind(since).bind(until).execute(&mut *tx).await?;
                let insert = sqlx::query(INSERT).bind(&id).bind(kind.as_str()).bind(now.unix_millis()).bind(bytes);
                insert.execute(&mut *tx).await?;
            }
            has_room
        }))
    }

    /// Records that a reserved mail was accepted at this time.
    pub async fn confirm_maker_mail(&self, id: Uuid, at: Timestamp) -> Result<(), StoreFailure> {
        let id = id.to_string();
        on_pool!(self, |pool| {
            sqlx::query(CONFIRM).bind(&id).bind(at.unix_millis()).execute(pool).await?;
        });
        Ok(())
    }

    /// Frees the place of a mail that certainly did not arrive.
    pub async fn cancel_maker_mail(&self, id: Uuid) -> Result<(), StoreFailure> {
        let id = id.to_string();
        on_pool!(self, |pool| {
            sqlx::query(CANCEL).bind(&id).execute(pool).await?;
        });
        Ok(())
    }
}

/// The times of mails that count.
fn period_around(now: Timestamp) -> (i64, i64) {
    (now.before(MAKER_MAIL_PERIOD).unix_millis(), now.after(MAKER_MAIL_PERIOD).unix_millis())
}

fn recent_mails((count, bytes, summaries, oldest, latest): RecentRow) -> RecentMails {
    RecentMails {
        count: u32::try_from(count).unwrap_or(u32::MAX),
        bytes: u64::try_from(bytes).unwrap_or_default(),
        has_summary: summaries > 0,
        oldest: oldest.map(Timestamp::from_unix_millis),
        latest: latest.map(Timestamp::from_unix_millis),
    }
}
