//! Letters that were returned as undeliverable.

use super::statement::{Statement, in_transaction, on_pool};
use super::unsubscribe::{SELECT_HASH_KEY, SUPPRESS, parse_hash_key};
use super::{Store, StoreFailure};
use crate::domain::bounce::{Bounce, BounceTag};
use crate::domain::email::EmailAddress;
use crate::domain::suppression::SuppressionReason;
use crate::domain::time::Timestamp;

/// What became of a returned letter.
#[derive(Clone, Debug)]
pub enum RecordedBounce {
    /// This is the recipient of the letter.
    Recorded(EmailAddress),
    /// It adds nothing to what was recorded before.
    Repeated,
    /// The tag belongs to no letter that was sent, or its recipient was erased.
    UnknownTag,
}

const COUNT_TAGS: &str = "SELECT COUNT(*) FROM letter_recipients WHERE bounce_tag = $1";

/// Only a letter that was sent, or may have been, can be returned.
const SELECT_RETURNED: Statement = Statement {
    sqlite: "SELECT p.address, p.email, r.bounce FROM letter_recipients r JOIN people p ON p.address = r.address \
             WHERE r.bounce_tag = $1 AND r.state IN ('sent', 'uncertain')",
    postgres: "SELECT p.address, p.email, r.bounce FROM letter_recipients r JOIN people p ON p.address = r.address \
               WHERE r.bounce_tag = $1 AND r.state IN ('sent', 'uncertain') FOR UPDATE OF r",
};

const SET_BOUNCE: &str = "UPDATE letter_recipients SET bounce = $2, bounced_at = $3 WHERE bounce_tag = $1";

impl Store {
    /// Records that the letter with this tag was returned, and suppresses its recipient if the mailbox does not exist.
    pub async fn record_bounce(
        &self,
        tag: &BounceTag,
        bounce: &Bounce,
        at: Timestamp,
    ) -> Result<RecordedBounce, StoreFailure> {
        // Anybody can invent tags. An unknown one must not take the write lock.
        let (known,): (i64,) =
            on_pool!(self, |pool| sqlx::query_as(COUNT_TAGS).bind(tag.as_str()).fetch_one(pool).await?);
        if known == 0 {
            return Ok(RecordedBounce::UnknownTag);
        }
        let at = at.unix_millis();
        let recorded = in_transaction!(self, |tx, sql| {
            let returned: Option<(String, String, Option<String>)> =
                sqlx::query_as(sql(SELECT_RETURNED)).bind(tag.as_str()).fetch_optional(&mut *tx).await?;
            let Some((address, email, stored)) = returned else { return Ok(RecordedBounce::UnknownTag) };
            if !bounce.adds_to(stored.as_deref()) {
                return Ok(RecordedBounce::Repeated);
            }
            let set = sqlx::query(SET_BOUNCE).bind(tag.as_str()).bind(bounce.code().as_str()).bind(at);
            set.execute(&mut *tx).await?;
            let email = EmailAddress::from_stored(email, address);
            if bounce.suppresses() {
                let (key,): (String,) = sqlx::query_as(SELECT_HASH_KEY).fetch_one(&mut *tx).await?;
                let (hash, reason) = (parse_hash_key(&key)?.hash(&email), SuppressionReason::NoMailbox.as_str());
                sqlx::query(SUPPRESS).bind(hash).bind(at).bind(reason).execute(&mut *tx).await?;
            }
            RecordedBounce::Recorded(email)
        });
        Ok(recorded)
    }
}
