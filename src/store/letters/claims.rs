//! Claims on the recipients of a letter, and the outcome for each.
//!
//! One transaction claims a recipient: it reads opt-in and suppression again, takes the mailbox's only row in
//! `letter_months` for this month, and marks the recipient as `uncertain`. The mail is sent after the commit, so
//! no recipient is claimed twice, even if the process is killed.

use std::time::Duration;

use super::recipients::CountChange;
use crate::domain::letters::{BounceTag, LetterRun, RecipientState, UnsubscribeToken};
use crate::domain::limits;
use crate::domain::mail::EmailAddress;
use crate::domain::people::SuppressionReason;
use crate::domain::sha256::Sha256;
use crate::domain::signups::opt_in_origin;
use crate::domain::time::Timestamp;
use crate::store::connection::{Statement, Store, StoreFailure, Transaction, values};
use crate::store::tasks::Task;

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
    /// Another sender has this turn. The next one is at this time.
    NotYet(Timestamp),
    /// This sender may not send the letter any more.
    NotOurs(LetterRun),
}

/// Who claims recipients, and how often.
#[derive(Clone, Copy, Debug)]
pub struct ClaimTerms {
    pub run: LetterRun,
    /// Between two copies, of all senders together. `None`: as soon as possible.
    pub interval: Option<Duration>,
}

/// A person who gets the letter, and their current opt-in.
#[derive(Clone, Debug)]
pub struct Recipient {
    pub email: EmailAddress,
    pub opted_in_at: Timestamp,
    pub origin: &'static str,
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
    /// Rejected for now; to be retried.
    Deferred { until: Timestamp, reason: String },
    /// The mail server was unavailable; to be retried at once.
    NotTried { reason: String },
    /// Rejected permanently.
    Rejected {
        reason: String,
        /// Whether the address is to be suppressed.
        suppress: bool,
    },
}

/// In the order of the times that [`record_recipients`](Store::record_recipients) gave them.
const SELECT_DUE: Statement = Statement {
    sqlite: "SELECT address, tries, bounce_tag FROM letter_recipients WHERE letter = $1 AND state = 'waiting' AND at <= $2 \
             ORDER BY at LIMIT 1",
    postgres: "SELECT address, tries, bounce_tag FROM letter_recipients WHERE letter = $1 AND state = 'waiting' AND at <= $2 \
               ORDER BY at LIMIT 1 FOR UPDATE SKIP LOCKED",
};

const SELECT_RUN: &str = "SELECT run FROM letters WHERE id = $1";

const SELECT_NEXT: &str = "SELECT MIN(at) FROM letter_recipients WHERE letter = $1 AND state = 'waiting'";

/// Locks the person until the commit, so that they cannot unsubscribe in between.
const SELECT_OPTED_IN: Statement = Statement {
    sqlite: "SELECT p.email, c.at, c.via, c.from_program, t.token FROM people p JOIN consents c ON c.id = p.opt_in \
             JOIN unsubscribe_tokens t ON t.address = p.address WHERE p.address = $1",
    postgres: "SELECT p.email, c.at, c.via, c.from_program, t.token FROM people p JOIN consents c ON c.id = p.opt_in \
               JOIN unsubscribe_tokens t ON t.address = p.address WHERE p.address = $1 FOR NO KEY UPDATE OF p",
};

/// One letter per mailbox and calendar month: inserts nothing if the mailbox has had one.
const TAKE_MONTH: &str =
    "INSERT INTO letter_months (hash, month, letter) VALUES ($1, $2, $3) ON CONFLICT (hash, month) DO NOTHING";

/// The rows in `letter_months` of earlier months are deleted, and a clock that is set back may return to one of them.
const SELECT_OTHER_LETTERS: &str = "SELECT at FROM letter_recipients \
     WHERE address = $1 AND letter <> $2 AND state IN ('sent', 'uncertain')";

const RELEASE_MONTH: &str = "DELETE FROM letter_months WHERE hash = $1 AND month = $2 AND letter = $3";

/// `$3` is the state before.
const SET_STATE: &str = "UPDATE letter_recipients SET state = $4, at = $5, last_error = $6, tries = tries + $7 \
     WHERE letter = $1 AND address = $2 AND state = $3";

const SET_TAG: &str = "UPDATE letter_recipients SET bounce_tag = $3 WHERE letter = $1 AND address = $2";

type OptedIn = (String, Timestamp, String, Option<i64>, String);

const DELETE_OLD_MONTHS: &str = "DELETE FROM letter_months WHERE (hash, month) IN \
     (SELECT hash, month FROM letter_months WHERE month < $1 LIMIT $2)";

impl Store {
    /// Deletes the hashes of the recipients of earlier months.
    pub async fn prune_letter_months(&self, now: Timestamp) -> Result<(), StoreFailure> {
        let (month, mut steps) = (now.month(), self.steps());
        let values = values![&month, limits::MAX_ROWS_PER_STEP];
        while steps.should_repeat(self.run(DELETE_OLD_MONTHS, values).await.map(|rows| rows.affected)).await? {}
        Ok(())
    }

    /// Claims the next recipient for the calendar month of `now`. `new_tag` is for one that has no tag yet.
    pub async fn claim_recipient(
        &self,
        letter: &Sha256,
        new_tag: Option<&BounceTag>,
        terms: ClaimTerms,
        now: Timestamp,
    ) -> Result<LetterClaim, StoreFailure> {
        let id = letter.hex();
        let mut tx = self.begin().await?;
        let (run,): (String,) = tx.run(SELECT_RUN, values![&id]).await?.one()?;
        if run != terms.run.as_str() {
            return Ok(LetterClaim::NotOurs(LetterRun::parse(&run).unwrap_or(LetterRun::Stopped)));
        }
        let due = tx.run(SELECT_DUE, values![&id, now]).await?;
        let Some((address, tries, tag)) = due.first::<(String, i64, Option<String>)>()? else {
            let (next,): (Option<Timestamp>,) = tx.run(SELECT_NEXT, values![&id]).await?.one()?;
            return Ok(next.map_or(LetterClaim::NoneLeft, LetterClaim::NotDueUntil));
        };
        // Kept from an earlier attempt, so that a returned mail is recognized whichever attempt it is about.
        let tag = tag.as_deref().and_then(BounceTag::parse).or_else(|| new_tag.cloned());
        let opted_in = tx.run(SELECT_OPTED_IN, values![&address]).await?.first()?;
        let claimed = opted_in.map(|row| claimed_recipient(&address, row, tries, tag));
        let skip_reason = match &claimed {
            None => Some("opted out since"),
            Some(None) => Some("the unsubscribe link is damaged"),
            Some(Some(claimed)) => tx.skip_reason(&id, &claimed.recipient.email, now).await?,
        };
        // Nothing is sent to somebody who is skipped. What was changed so far is rolled back for somebody who has to wait.
        if skip_reason.is_none()
            && let Some(interval) = terms.interval
            && let Some(next) = tx.try_claim_interval(Task::LetterTurn, now, interval).await?
        {
            return Ok(LetterClaim::NotYet(next));
        }
        let claim = match claimed.flatten().filter(|_| skip_reason.is_none()) {
            Some(claimed) => {
                if let Some(tag) = &claimed.bounce_tag {
                    tx.run(SET_TAG, values![&id, &address, tag.as_str()]).await?;
                }
                LetterClaim::Claimed(Box::new(claimed))
            }
            None => LetterClaim::Skipped,
        };
        let state = if skip_reason.is_some() { RecipientState::Skipped } else { RecipientState::Uncertain };
        let change = StateChange { from: RecipientState::Waiting, to: state, at: now, reason: skip_reason, tries: 0 };
        let mut counts = CountChange::default();
        tx.change_state(&id, &address, &change, &mut counts).await?;
        tx.count_recipients(&id, &counts).await?;
        tx.commit().await?;
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
        let (id, address) = (letter.hex(), email.key());
        let suppress = match outcome {
            LetterOutcome::Sent { suppress } => suppress.as_slice(),
            LetterOutcome::Rejected { suppress: true, .. } => std::slice::from_ref(email),
            LetterOutcome::Rejected { .. } | LetterOutcome::Deferred { .. } | LetterOutcome::NotTried { .. } => &[],
        };
        let mut tx = self.begin().await?;
        if !matches!(outcome, LetterOutcome::Sent { .. }) {
            tx.release_month(&id, email, claimed_at).await?;
        }
        let (to, until, reason, tries) = match outcome {
            LetterOutcome::Sent { .. } => (RecipientState::Sent, at, None, 0),
            LetterOutcome::Rejected { reason, .. } => (RecipientState::Refused, at, Some(reason.as_str()), 0),
            LetterOutcome::Deferred { until, reason } => (RecipientState::Waiting, *until, Some(reason.as_str()), 1),
            LetterOutcome::NotTried { reason } => (RecipientState::Waiting, at, Some(reason.as_str()), 0),
        };
        let change = StateChange { from: RecipientState::Uncertain, to, at: until, reason, tries };
        let mut counts = CountChange::default();
        tx.change_state(&id, address, &change, &mut counts).await?;
        // After the recipient, as for a mail that was returned, so that the two do not wait for each other.
        for email in suppress {
            tx.suppress(email, SuppressionReason::NoMailbox, None, at).await?;
        }
        tx.count_recipients(&id, &counts).await?;
        tx.commit().await
    }

    /// Makes recipients wait again whom the mail server refused, recorded or just claimed, in bounded steps.
    pub async fn take_back_refusals(
        &self,
        letter: &Sha256,
        refused: &[EmailAddress],
        at: Timestamp,
    ) -> Result<(), StoreFailure> {
        let mut steps = self.steps();
        for step in refused.chunks(usize::try_from(limits::MAX_ROWS_PER_STEP).unwrap_or(1)) {
            loop {
                let taken_back = self.take_some_back(letter, step, at).await;
                if !steps.should_repeat_this(&taken_back).await {
                    break taken_back?;
                }
            }
        }
        Ok(())
    }

    async fn take_some_back(
        &self,
        letter: &Sha256,
        refused: &[EmailAddress],
        at: Timestamp,
    ) -> Result<(), StoreFailure> {
        let id = letter.hex();
        let (mut tx, mut counts) = (self.begin().await?, CountChange::default());
        for email in refused {
            let change = |from| StateChange { from, to: RecipientState::Waiting, at, reason: None, tries: 0 };
            let claimed = tx.change_state(&id, email.key(), &change(RecipientState::Uncertain), &mut counts).await?;
            if claimed {
                // Whoever was recorded as refused has released the month already, and the mailbox may have it under another address.
                tx.release_month(&id, email, at).await?;
            } else {
                tx.change_state(&id, email.key(), &change(RecipientState::Refused), &mut counts).await?;
            }
        }
        tx.count_recipients(&id, &counts).await?;
        tx.commit().await
    }
}

/// What becomes of a recipient.
struct StateChange<'a> {
    from: RecipientState,
    to: RecipientState,
    at: Timestamp,
    reason: Option<&'a str>,
    tries: i64,
}

impl Transaction {
    /// Changes the state of a recipient, and adds that to the counts. Returns whether they were in the state `from`.
    async fn change_state(
        &mut self,
        letter: &str,
        address: &str,
        change: &StateChange<'_>,
        counts: &mut CountChange,
    ) -> Result<bool, StoreFailure> {
        let StateChange { from, to, at, reason, tries } = *change;
        let values = values![letter, address, from.as_str(), to.as_str(), at, reason, tries];
        let changed = self.run(SET_STATE, values).await?.affected.cast_signed();
        counts.add(from, -changed);
        counts.add(to, changed);
        Ok(changed > 0)
    }

    /// Returns why a person must not get the letter. Otherwise it is their letter of this month.
    async fn skip_reason(
        &mut self,
        letter: &str,
        email: &EmailAddress,
        now: Timestamp,
    ) -> Result<Option<&'static str>, StoreFailure> {
        if self.is_suppressed(email).await? {
            return Ok(Some("suppressed"));
        }
        let (hash, month) = (self.address_hash_key().await?.hash(&email.mailbox()), now.month());
        let others = self.run(SELECT_OTHER_LETTERS, values![email.key(), letter]).await?.column::<Timestamp>()?;
        let had_one = others.into_iter().any(|at| at.month() == month)
            || self.run(TAKE_MONTH, values![&hash, &month, letter]).await?.affected == 0;
        Ok(had_one.then_some("had a letter this month"))
    }

    /// Allows another letter in the month of `at`.
    async fn release_month(&mut self, letter: &str, email: &EmailAddress, at: Timestamp) -> Result<(), StoreFailure> {
        let hash = self.address_hash_key().await?.hash(&email.mailbox());
        self.run(RELEASE_MONTH, values![hash, at.month(), letter]).await.map(drop)
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
            opted_in_at,
            origin: opt_in_origin(&via, from_program.map(|program| program != 0)),
        },
        token: UnsubscribeToken::parse(&token)?,
        bounce_tag,
        tries: u32::try_from(tries).unwrap_or_default(),
    })
}
