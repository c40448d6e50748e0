//! The log of recent mails to the makers, which all instances share. It enforces the limit of `domain/outbox.rs`.

use uuid::Uuid;

use crate::domain::limits::MAKER_MAIL_PERIOD;
use crate::domain::outbox::{MakerMailKind, RecentMails};
use crate::domain::time::Timestamp;
use crate::store::connection::{Statement, Store, StoreFailure, Transaction, Value, count, values};

/// A time that is far ahead was written with a wrong clock. One that is a little ahead was written by another instance.
const SELECT_RECENT: &str = "SELECT COUNT(*), CAST(COALESCE(SUM(bytes), 0) AS BIGINT), \
         COUNT(CASE WHEN kind = 'summary' THEN 1 END), MIN(at), MAX(at) FROM maker_mails WHERE at > $1 AND at <= $2";

/// Serializes reservations: in PostgreSQL two transactions could otherwise both find the last place free.
const LOCK: Statement =
    Statement { sqlite: "SELECT 1", postgres: "LOCK TABLE maker_mails IN SHARE ROW EXCLUSIVE MODE" };

const DELETE_OLD: &str = "DELETE FROM maker_mails WHERE at <= $1 OR at > $2";

const INSERT: &str = "INSERT INTO maker_mails (id, kind, at, bytes) VALUES ($1, $2, $3, $4)";

const CONFIRM: &str = "UPDATE maker_mails SET at = $2 WHERE id = $1";

const CANCEL: &str = "DELETE FROM maker_mails WHERE id = $1";

type RecentRow = (i64, i64, i64, Option<Timestamp>, Option<Timestamp>);

impl Transaction {
    /// Records that a reserved mail was accepted at this time.
    pub(in crate::store) async fn confirm_maker_mail(&mut self, id: Uuid, at: Timestamp) -> Result<(), StoreFailure> {
        self.run(CONFIRM, values![id, at]).await.map(drop)
    }

    /// Frees the place of a mail that certainly did not arrive.
    pub(in crate::store) async fn cancel_maker_mail(&mut self, id: Uuid) -> Result<(), StoreFailure> {
        self.run(CANCEL, values![id]).await.map(drop)
    }
}

impl Store {
    /// Returns the mails of the period that ends now.
    pub async fn recent_maker_mails(&self, now: Timestamp) -> Result<RecentMails, StoreFailure> {
        Ok(recent_mails(self.run(SELECT_RECENT, &period_around(now).map(Value::from)).await?.one()?))
    }

    /// Reserves a place for a mail that is sent next. Returns `false` if the limit does not allow it.
    pub async fn reserve_maker_mail(
        &self,
        id: Uuid,
        kind: MakerMailKind,
        bytes: usize,
        now: Timestamp,
    ) -> Result<bool, StoreFailure> {
        let period = period_around(now).map(Value::from);
        let mut tx = self.begin().await?;
        tx.run(LOCK, &[]).await?;
        let recent = recent_mails(tx.run(SELECT_RECENT, &period).await?.one()?);
        let has_room = recent.has_room_for(kind, bytes as u64);
        if has_room {
            tx.run(DELETE_OLD, &period).await?;
            tx.run(INSERT, values![id, kind.as_str(), now, bytes]).await?;
            tx.commit().await?;
        }
        Ok(has_room)
    }
}

/// The times of mails that count.
fn period_around(now: Timestamp) -> [Timestamp; 2] {
    [now.before(MAKER_MAIL_PERIOD), now.after(MAKER_MAIL_PERIOD)]
}

fn recent_mails((mails, bytes, summaries, oldest, latest): RecentRow) -> RecentMails {
    let mails = u32::try_from(mails).unwrap_or(u32::MAX);
    RecentMails { count: mails, bytes: count(bytes), has_summary: summaries > 0, oldest, latest }
}
