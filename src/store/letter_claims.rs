//! Claims on the recipients of a letter, and the outcome for each.
//!
//! One transaction claims a recipient: it reads opt-in and suppression again, takes the person's only row in
//! `letter_months` for this month, and marks the recipient as `uncertain`. The mail is sent after the commit, so
//! no recipient is claimed twice, even if the process is killed.

use super::statement::{Statement, in_transaction};
use super::unsubscribe::{Recipient, SELECT_HASH_KEY, SUPPRESS, parse_hash_key, parse_origin};
use super::{Store, StoreFailure};
use crate::domain::bounce::BounceTag;
use crate::domain::email::EmailAddress;
use crate::domain::sha256::Sha256;
use crate::domain::suppression::SuppressionReason;
use crate::domain::time::Timestamp;
use crate::domain::unsubscribe::UnsubscribeToken;

/// The result of claiming the next recipient.
#[derive(Debug)]
pub enum LetterClaim {
    /// This recipient is marked as uncertain until the outcome is recorded.
    Claimed(Box<ClaimedRecipient>),
    /// This recipient must not be mailed any more.
    Skipped,
    /// No recipient can be claimed now: the remaining ones are deferred until at least this time, or are being claimed by
    /// another sender.
    NotDueUntil(Timestamp),
    NoneLeft,
}

#[derive(Clone, Debug)]
pub struct ClaimedRecipient {
    pub recipient: Recipient,
    pub token: UnsubscribeToken,
    /// The tag of the envelope sender, `None` if there was none at any attempt.
    pub bounce_tag: Option<BounceTag>,
    /// How often the letter to this recipient was deferred, by the mail server or because it was unavailable.
    pub tries: u32,
}

/// The outcome for a claimed recipient.
#[derive(Clone, Debug)]
pub enum LetterOutcome {
    Sent {
        /// Earlier recipients whose mailbox was refused, to be suppressed now that the mail server accepted a letter.
        suppress: Vec<EmailAddress>,
    },
    /// Not delivered; to be retried.
    Deferred { until: Timestamp, reason: String },
    /// Rejected permanently.
    Rejected {
        reason: String,
        /// Whether the address is to be suppressed.
        suppress: bool,
    },
}

/// In the order of the times that [`start_letter`](Store::start_letter) gave them.
const SELECT_DUE: Statement = Statement {
    sqlite: "SELECT address, tries, bounce_tag FROM letter_recipients WHERE letter = $1 AND state = 'waiting' AND at <= $2 \
             ORDER BY at LIMIT 1",
    postgres: "SELECT address, tries, bounce_tag FROM letter_recipients WHERE letter = $1 AND state = 'waiting' AND at <= $2 \
               ORDER BY at LIMIT 1 FOR UPDATE SKIP LOCKED",
};

const SELECT_NEXT: &str = "SELECT MIN(at) FROM letter_recipients WHERE letter = $1 AND state = 'waiting'";

/// Locks the person until the commit, so that they cannot unsubscribe in between.
const SELECT_OPTED_IN: Statement = Statement {
    sqlite: "SELECT p.email, c.at, c.via, c.from_program, t.token FROM people p JOIN consents c ON c.id = p.opt_in \
             JOIN unsubscribe_tokens t ON t.address = p.address WHERE p.address = $1",
    postgres: "SELECT p.email, c.at, c.via, c.from_program, t.token FROM people p JOIN consents c ON c.id = p.opt_in \
               JOIN unsubscribe_tokens t ON t.address = p.address WHERE p.address = $1 FOR UPDATE OF p",
};

const COUNT_SUPPRESSIONS: &str = "SELECT COUNT(*) FROM suppressions WHERE hash = $1";

/// One letter per person and calendar month: inserts nothing if the person has had one.
const TAKE_MONTH: &str =
    "INSERT INTO letter_months (hash, month, letter) VALUES ($1, $2, $3) ON CONFLICT (hash, month) DO NOTHING";

/// The rows in `letter_months` of earlier months are deleted, and a clock that is set back may return to one of them.
const SELECT_OTHER_LETTERS: &str = "SELECT at FROM letter_recipients \
     WHERE address = $1 AND letter <> $2 AND state IN ('sent', 'uncertain')";

const RELEASE_MONTH: &str = "DELETE FROM letter_months WHERE hash = $1 AND month = $2 AND letter = $3";

const SET_STATE: &str =
    "UPDATE letter_recipients SET state = $3, at = $4, trouble = $5 WHERE letter = $1 AND address = $2";

const SET_TAG: &str = "UPDATE letter_recipients SET bounce_tag = $3 WHERE letter = $1 AND address = $2";

const DEFER: &str = "UPDATE letter_recipients SET state = 'waiting', at = $3, trouble = $4, tries = tries + 1 \
                       WHERE letter = $1 AND address = $2";

const WAIT_AGAIN: &str = "UPDATE letter_recipients SET state = 'waiting', at = $3 \
                            WHERE letter = $1 AND address = $2 AND state IN ('refused', 'uncertain')";

type OptedIn = (String, i64, String, Option<i64>, String);

impl Store {
    /// Claims the next recipient for the calendar month of `now`. `new_tag` is for one that has no tag yet.
    pub async fn claim_recipient(
        &self,
        letter: &Sha256,
        new_tag: Option<&BounceTag>,
        now: Timestamp,
    ) -> Result<LetterClaim, StoreFailure> {
        let (id, month, at) = (letter.hex(), now.month(), now.unix_millis());
        let claim = in_transaction!(self, |tx, sql| {
            let due: Option<(String, i64, Option<String>)> =
                sqlx::query_as(sql(SELECT_DUE)).bind(&id).bind(at).fetch_optional(&mut *tx).await?;
            let Some((address, tries, tag)) = due else {
                let (next,): (Option<i64>,) = sqlx::query_as(SELECT_NEXT).bind(&id).fetch_one(&mut *tx).await?;
                return Ok(next.map_or(LetterClaim::NoneLeft, |next| {
                    LetterClaim::NotDueUntil(Timestamp::from_unix_millis(next))
                }));
            };
            let opted_in: Option<OptedIn> =
                sqlx::query_as(sql(SELECT_OPTED_IN)).bind(&address).fetch_optional(&mut *tx).await?;
            let (key,): (String,) = sqlx::query_as(SELECT_HASH_KEY).fetch_one(&mut *tx).await?;
            let key = parse_hash_key(&key)?;
            // Kept from an earlier attempt, so that a returned mail is recognized whichever attempt it is about.
            let tag = tag.as_deref().and_then(BounceTag::parse).or_else(|| new_tag.cloned());
            let claimed = opted_in.map(|row| claimed_recipient(&address, row, tries, tag));
            let skip_reason = match &claimed {
                None => Some("opted out since"),
                Some(None) => Some("the unsubscribe link is damaged"),
                Some(Some(claimed)) => {
                    let hash = key.hash(&claimed.recipient.email);
                    let (suppressed,): (i64,) =
                        sqlx::query_as(COUNT_SUPPRESSIONS).bind(&hash).fetch_one(&mut *tx).await?;
                    if suppressed > 0 {
                        Some("suppressed")
                    } else {
                        let others = sqlx::query_scalar(SELECT_OTHER_LETTERS).bind(&address).bind(&id);
                        let others: Vec<i64> = others.fetch_all(&mut *tx).await?;
                        let take = sqlx::query(TAKE_MONTH).bind(&hash).bind(&month).bind(&id);
                        let had_one = others.into_iter().any(|at| Timestamp::from_unix_millis(at).month() == month)
                            || take.execute(&mut *tx).await?.rows_affected() == 0;
                        had_one.then_some("had a letter this month")
                    }
                }
            };
            let state = if skip_reason.is_some() { "skipped" } else { "uncertain" };
            let mark = sqlx::query(SET_STATE).bind(&id).bind(&address).bind(state).bind(at).bind(skip_reason);
            mark.execute(&mut *tx).await?;
            match claimed.flatten().filter(|_| skip_reason.is_none()) {
                Some(claimed) => {
                    if let Some(tag) = &claimed.bounce_tag {
                        sqlx::query(SET_TAG).bind(&id).bind(&address).bind(tag.as_str()).execute(&mut *tx).await?;
                    }
                    LetterClaim::Claimed(Box::new(claimed))
                }
                None => LetterClaim::Skipped,
            }
        });
        Ok(claim)
    }

    /// Records the outcome of a claim that was made at `claimed_at`, and suppresses the addresses that it names. A
    /// recipient who was certainly not mailed may get another letter this month.
    pub async fn record_letter_outcome(
        &self,
        letter: &Sha256,
        email: &EmailAddress,
        claimed_at: Timestamp,
        outcome: &LetterOutcome,
        at: Timestamp,
    ) -> Result<(), StoreFailure> {
        let (id, address, month) = (letter.hex(), email.key(), claimed_at.month());
        let suppress = match outcome {
            LetterOutcome::Sent { suppress } => suppress.as_slice(),
            LetterOutcome::Rejected { suppress: true, .. } => std::slice::from_ref(email),
            LetterOutcome::Rejected { .. } | LetterOutcome::Deferred { .. } => &[],
        };
        let at = at.unix_millis();
        in_transaction!(self, |tx, _sql| {
            let (key,): (String,) = sqlx::query_as(SELECT_HASH_KEY).fetch_one(&mut *tx).await?;
            let key = parse_hash_key(&key)?;
            if !matches!(outcome, LetterOutcome::Sent { .. }) {
                sqlx::query(RELEASE_MONTH).bind(key.hash(email)).bind(&month).bind(&id).execute(&mut *tx).await?;
            }
            match outcome {
                LetterOutcome::Sent { .. } => {
                    sqlx::query(SET_STATE).bind(&id).bind(address).bind("sent").bind(at).bind(None::<&str>)
                }
                LetterOutcome::Rejected { reason, .. } => {
                    sqlx::query(SET_STATE).bind(&id).bind(address).bind("refused").bind(at).bind(Some(reason.as_str()))
                }
                LetterOutcome::Deferred { until, reason } => {
                    sqlx::query(DEFER).bind(&id).bind(address).bind(until.unix_millis()).bind(reason)
                }
            }
            .execute(&mut *tx)
            .await?;
            for email in suppress {
                let reason = SuppressionReason::NoMailbox.as_str();
                sqlx::query(SUPPRESS).bind(key.hash(email)).bind(at).bind(reason).execute(&mut *tx).await?;
            }
        });
        Ok(())
    }

    /// Makes recipients wait again whom the mail server refused, recorded or just claimed.
    pub async fn take_back_refusals(
        &self,
        letter: &Sha256,
        refused: &[EmailAddress],
        at: Timestamp,
    ) -> Result<(), StoreFailure> {
        let (id, month, at) = (letter.hex(), at.month(), at.unix_millis());
        in_transaction!(self, |tx, _sql| {
            let (key,): (String,) = sqlx::query_as(SELECT_HASH_KEY).fetch_one(&mut *tx).await?;
            let key = parse_hash_key(&key)?;
            for email in refused {
                sqlx::query(WAIT_AGAIN).bind(&id).bind(email.key()).bind(at).execute(&mut *tx).await?;
                sqlx::query(RELEASE_MONTH).bind(key.hash(email)).bind(&month).bind(&id).execute(&mut *tx).await?;
            }
        });
        Ok(())
    }
}

/// Returns `None` if the token is damaged: a letter without a working unsubscribe link must not be sent.
fn claimed_recipient(
    address: &str,
    (email, opted_in_at, via, from_program, token): OptedIn,
    tries: i64,
    bounce_tag: Option<BounceTag>,
) -> Option<ClaimedRecipient> {
    Some(ClaimedRecipient {
        recipient: Recipient {
            email: EmailAddress::from_stored(email, address),
            opted_in_at: Timestamp::from_unix_millis(opted_in_at),
            origin: parse_origin(&via, from_program),
        },
        token: UnsubscribeToken::parse(&token)?,
        bounce_tag,
        tries: u32::try_from(tries).unwrap_or_default(),
    })
}
