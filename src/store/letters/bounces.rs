//! Letters that were returned as undeliverable.

use super::recipients::CountChange;
use crate::domain::letters::{Bounce, BounceTag};
use crate::domain::mail::EmailAddress;
use crate::domain::people::SuppressionReason;
use crate::domain::time::Timestamp;
use crate::store::connection::{Statement, Store, StoreFailure, values};

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
    sqlite: "SELECT r.letter, p.address, p.email, r.bounce FROM letter_recipients r JOIN people p ON p.address = r.address \
             WHERE r.bounce_tag = $1 AND r.state IN ('sent', 'uncertain')",
    postgres: "SELECT r.letter, p.address, p.email, r.bounce FROM letter_recipients r JOIN people p ON p.address = r.address \
               WHERE r.bounce_tag = $1 AND r.state IN ('sent', 'uncertain') FOR UPDATE OF r",
};

const SET_BOUNCE: &str = "UPDATE letter_recipients SET bounce = $2, bounced_at = $3 WHERE bounce_tag = $1";

/// Letter, address, address as typed, bounce.
type Returned = (String, String, String, Option<String>);

impl Store {
    /// Records that the letter with this tag was returned, and suppresses its recipient if the mailbox does not exist.
    pub async fn record_bounce(
        &self,
        tag: &BounceTag,
        bounce: &Bounce,
        at: Timestamp,
    ) -> Result<RecordedBounce, StoreFailure> {
        // Anybody can invent tags. An unknown one must not take the write lock.
        let (known,): (i64,) = self.run(COUNT_TAGS, values![tag.as_str()]).await?.one()?;
        if known == 0 {
            return Ok(RecordedBounce::UnknownTag);
        }
        let mut tx = self.begin().await?;
        let returned = tx.run(SELECT_RETURNED, values![tag.as_str()]).await?;
        let Some((letter, address, email, stored)) = returned.first::<Returned>()? else {
            return Ok(RecordedBounce::UnknownTag);
        };
        if !bounce.adds_to(stored.as_deref()) {
            return Ok(RecordedBounce::Repeated);
        }
        tx.run(SET_BOUNCE, values![tag.as_str(), bounce.code().as_str(), at]).await?;
        let email = EmailAddress::from_stored(email, address);
        if bounce.suppresses() {
            tx.suppress(&email, SuppressionReason::NoMailbox, None, at).await?;
        }
        if stored.is_none() {
            tx.count_recipients(&letter, &CountChange::of_bounced(1)).await?;
        }
        tx.commit().await?;
        Ok(RecordedBounce::Recorded(email))
    }
}
