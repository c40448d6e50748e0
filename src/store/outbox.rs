//! The outbox: all mail that waits, leases on it, and the outcome of each attempt.
//!
//! A lease expires on its own, so no transaction is open during SMTP, and the mail of a worker that died becomes due again.
//! `actions/outbox/next_mail.rs` decides what goes in a mail, and `domain/outbox.rs` when to retry.

use std::time::Duration;

use uuid::Uuid;

use crate::domain::limits::{MAX_COUNTED_MAILS, MAX_ROWS_PER_STEP};
use crate::domain::parse::word_enum;
use crate::domain::time::Timestamp;
use crate::store::connection::{Store, StoreFailure, count, parse_id, values};
use crate::store::tasks::Task;

word_enum! {
    /// What waits in the outbox.
    pub enum MailKind {
        /// A contact message, to the makers.
        Message = "message",
        /// Asks a person to confirm their opt-in.
        Confirmation = "confirmation",
        /// Tells the makers what needs attention.
        Alert = "alert",
        /// Has a link that signs a maker in to the desk.
        SignIn = "sign-in",
    }
}

/// A mail whose text is in the outbox, and that is leased to us.
#[derive(Clone, Debug)]
pub struct LeasedText {
    pub id: Uuid,
    pub at: Timestamp,
    pub subject: String,
    pub text: String,
    pub tries: u32,
}

/// The outcome of a failed attempt.
#[derive(Clone, Debug)]
pub struct DeliveryFailure {
    pub at: Timestamp,
    pub retry_at: Timestamp,
    /// What was first tried no later than this is given up.
    pub give_up_if_first_tried_by: Timestamp,
    /// Whether this attempt may have reached the mailbox, so that it counts as a mail to the makers.
    pub may_have_been_sent: bool,
    /// Whether this attempt or an earlier one may have: the messages must be sent again in the same mail.
    pub may_have_arrived: bool,
    /// The largest digest from now on, if the mail server did not accept this mail.
    pub max_digest: Option<usize>,
    pub reason: String,
}

/// The mails of one kind that were not sent, by state. [`MAX_COUNTED_MAILS`] stands for as many or more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backlog {
    pub waiting: u64,
    pub leased: u64,
    /// Not retried automatically any more.
    pub failed: u64,
    /// When the oldest waiting or leased one was stored.
    pub oldest: Option<Timestamp>,
}

const SELECT_NEXT_DUE: &str = "SELECT MIN(at) FROM (SELECT MIN(at) AS at FROM outbox WHERE kind = $1 AND state = 'waiting' \
     UNION ALL SELECT MIN(at) FROM outbox WHERE kind = $1 AND state = 'leased') AS next";

/// Longer than any lease and any pause between two attempts, by so much that the clocks of instances may differ. What waits
/// for longer was written with a wrong clock.
const MAX_WAIT: Duration = Duration::from_hours(4);

const REQUEUE: &str = "UPDATE outbox SET at = $2 WHERE id IN (SELECT id FROM outbox \
     WHERE kind = $1 AND state IN ('waiting', 'leased') AND at > $3 LIMIT $4)";

const LEASE_TEXT: &str = "UPDATE outbox SET state = 'leased', lease = $1, at = $3, \
         first_tried_at = COALESCE(first_tried_at, $2) \
     WHERE id = (SELECT id FROM outbox WHERE kind = $4 AND state IN ('waiting', 'leased') AND at <= $2 LIMIT 1) \
         AND state IN ('waiting', 'leased') AND at <= $2 RETURNING id, subject, body, tries";

const RENEW: &str = "UPDATE outbox SET at = $2 WHERE lease = $1";

const RECORD_SENT: &str =
    "UPDATE outbox SET state = 'sent', at = $2, tries = tries + 1, lease = NULL, last_error = NULL WHERE lease = $1";

/// Makes mails due that are waiting, at most `$3` of them, except those that the mail server did not accept alone.
const END_BACKOFF: &str = "UPDATE outbox SET at = $2 WHERE id IN (SELECT id FROM outbox \
     WHERE kind = $1 AND state = 'waiting' AND at > $2 AND COALESCE(max_digest, 0) <> 1 ORDER BY at LIMIT $3)";

/// The messages were not tried: their retry period has not begun.
const RELEASE: &str = "UPDATE outbox SET state = 'waiting', at = $2, lease = NULL, \
         mail = CASE WHEN $3 = 1 THEN mail END, \
         first_tried_at = CASE WHEN tries > 0 THEN first_tried_at END \
     WHERE lease = $1";

/// When the first attempt at a message was. If its mail may have arrived, the last of all its messages counts: they are
/// given up together.
macro_rules! first_tried_at {
    () => {
        "CASE WHEN $5 = 1 THEN (SELECT MAX(o.first_tried_at) FROM outbox o WHERE o.lease = $1) \
             ELSE first_tried_at END"
    };
}

const RECORD_FAILED_ATTEMPT: &str = concat!(
    "UPDATE outbox SET state = CASE WHEN ",
    first_tried_at!(),
    " <= $3 THEN 'failed' ELSE 'waiting' END, at = CASE WHEN ",
    first_tried_at!(),
    " <= $3 THEN $2 ELSE $4 END, \
         mail = CASE WHEN $5 = 1 THEN mail END, \
         max_digest = COALESCE($6, max_digest), \
         tries = tries + 1, lease = NULL, last_error = $7 \
     WHERE lease = $1"
);

/// An earlier one that was not sent yet says less.
const DELETE_ALERTS: &str = "DELETE FROM outbox WHERE kind = 'alert' AND state <> 'leased'";

const ENQUEUE_ALERT: &str =
    "INSERT INTO outbox (id, kind, state, at, subject, body) VALUES ($1, 'alert', 'waiting', $2, $3, $4)";

/// No more than `$2` of each state, so that a flood does not make the count slow.
const COUNT_UNSENT: &str = "SELECT state, COUNT(*), MIN(id) FROM \
     (SELECT * FROM (SELECT state, id FROM outbox WHERE kind = $1 AND state = 'waiting' ORDER BY at LIMIT $2) AS waiting \
     UNION ALL SELECT * FROM (SELECT state, id FROM outbox WHERE kind = $1 AND state = 'leased' ORDER BY at LIMIT $2) AS leased \
     UNION ALL SELECT * FROM (SELECT state, id FROM outbox WHERE kind = $1 AND state = 'failed' ORDER BY at LIMIT $2) AS failed) \
     AS unsent GROUP BY state";

impl Store {
    /// Returns when the next mail of this kind becomes due.
    pub async fn next_due(&self, kind: MailKind, now: Timestamp) -> Result<Option<Timestamp>, StoreFailure> {
        let (next,): (Option<Timestamp>,) = self.run(SELECT_NEXT_DUE, values![kind.as_str()]).await?.one()?;
        if next.is_none_or(|next| next <= now.after(MAX_WAIT)) {
            return Ok(next);
        }
        self.run(REQUEUE, values![kind.as_str(), now, now.after(MAX_WAIT), MAX_ROWS_PER_STEP]).await?;
        Ok(Some(now))
    }

    /// Leases an alert or a link to sign in that is due.
    pub async fn lease_text(
        &self,
        kind: MailKind,
        lease: Uuid,
        now: Timestamp,
        until: Timestamp,
    ) -> Result<Option<LeasedText>, StoreFailure> {
        type Row = (String, Option<String>, Option<String>, i64);
        let Some((id, subject, text, tries)) =
            self.run(LEASE_TEXT, values![lease, now, until, kind.as_str()]).await?.first::<Row>()?
        else {
            return Ok(None);
        };
        let id = parse_id(&id)?;
        Ok(Some(LeasedText {
            id,
            at: time_of(id).unwrap_or(now),
            subject: subject.unwrap_or_default(),
            text: text.unwrap_or_default(),
            tries: u32::try_from(tries).unwrap_or(u32::MAX),
        }))
    }

    /// Enqueues an alert, unless there was one within this period.
    pub async fn enqueue_alert(
        &self,
        id: Uuid,
        (subject, text): (&str, &str),
        now: Timestamp,
        period: Duration,
    ) -> Result<bool, StoreFailure> {
        let mut tx = self.begin().await?;
        if !tx.claim_done(Task::Alert, now, period).await? {
            return Ok(false);
        }
        tx.run(DELETE_ALERTS, &[]).await?;
        tx.run(ENQUEUE_ALERT, values![id, now, subject, text]).await?;
        tx.commit().await?;
        Ok(true)
    }

    /// Deletes what is leased, because it has expired.
    pub async fn drop_leased(&self, lease: Uuid) -> Result<(), StoreFailure> {
        self.run("DELETE FROM outbox WHERE lease = $1", values![lease]).await.map(drop)
    }

    /// Extends the lease.
    pub async fn renew_lease(&self, lease: Uuid, until: Timestamp) -> Result<(), StoreFailure> {
        self.run(RENEW, values![lease, until]).await.map(drop)
    }

    /// Ends a lease whose messages were not tried. `mail` is kept only if it may have arrived before.
    pub async fn release_lease(&self, lease: Uuid, may_have_arrived: bool, due: Timestamp) -> Result<(), StoreFailure> {
        self.run(RELEASE, values![lease, due, may_have_arrived]).await.map(drop)
    }

    /// Records that the mail server accepted the mail.
    pub async fn record_sent(&self, lease: Uuid, at: Timestamp) -> Result<(), StoreFailure> {
        let mut tx = self.begin().await?;
        // It has a secret, and nobody reads it again.
        tx.run("DELETE FROM outbox WHERE lease = $1 AND kind = 'sign-in'", values![lease]).await?;
        tx.run(RECORD_SENT, values![lease, at]).await?;
        tx.confirm_maker_mail(lease, at).await?;
        tx.commit().await
    }

    /// Ends the backoff of other mails, because the mail server is available: of as many as one digest can hold, so
    /// that a huge backlog is worked off in short transactions.
    pub async fn end_backoff(&self, kind: MailKind, now: Timestamp) -> Result<(), StoreFailure> {
        self.run(END_BACKOFF, values![kind.as_str(), now, MAX_ROWS_PER_STEP]).await.map(drop)
    }

    /// Records a failed or uncertain attempt.
    pub async fn record_failed_attempt(&self, lease: Uuid, failure: &DeliveryFailure) -> Result<(), StoreFailure> {
        let DeliveryFailure { at, retry_at, give_up_if_first_tried_by, may_have_arrived, .. } = *failure;
        let max_digest = failure.max_digest.and_then(|size| i64::try_from(size).ok());
        let (give_up, reason) = (give_up_if_first_tried_by, &failure.reason);
        let mut tx = self.begin().await?;
        let values = values![lease, at, give_up, retry_at, may_have_arrived, max_digest, reason];
        tx.run(RECORD_FAILED_ATTEMPT, values).await?;
        if !failure.may_have_been_sent {
            tx.cancel_maker_mail(lease).await?;
        }
        tx.commit().await
    }

    /// Returns how many mails of this kind wait or failed. Ids sort by time: the smallest of the counted ones is the oldest.
    pub async fn backlog(&self, kind: MailKind) -> Result<Backlog, StoreFailure> {
        let (mut backlog, mut oldest) = (Backlog::default(), None::<String>);
        for (state, mails, first) in
            self.run(COUNT_UNSENT, values![kind.as_str(), MAX_COUNTED_MAILS]).await?.all::<(String, i64, String)>()?
        {
            match state.as_str() {
                "waiting" => backlog.waiting = count(mails),
                "leased" => backlog.leased = count(mails),
                _ => {
                    backlog.failed = count(mails);
                    continue;
                }
            }
            oldest = oldest.into_iter().chain([first]).min();
        }
        backlog.oldest = oldest.and_then(|id| Uuid::parse_str(&id).ok()).and_then(time_of);
        Ok(backlog)
    }
}

/// When an id of version 7 was made.
fn time_of(id: Uuid) -> Option<Timestamp> {
    let (seconds, nanos) = id.get_timestamp()?.to_unix();
    i64::try_from(seconds * 1000 + u64::from(nanos / 1_000_000)).ok().map(Timestamp::from_unix_millis)
}
