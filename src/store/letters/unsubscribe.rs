//! Unsubscribe tokens, and the end of the opt-ins of a mailbox.

use crate::domain::letters::{UnsubscribeKind, UnsubscribeToken};
use crate::domain::mail::EmailAddress;
use crate::domain::people::SuppressionReason;
use crate::domain::statistics::{CountedEvent, Counts};
use crate::domain::time::{Day, Timestamp};
use crate::store::connection::{BatchStatement, Statement, Store, StoreFailure, Transaction, values};

const INSERT_TOKENS: BatchStatement = BatchStatement::new(
    "token text, address text, at bigint",
    "INSERT INTO unsubscribe_tokens (token, address, at) SELECT * FROM batch \
     WHERE address IN (SELECT address FROM people) ON CONFLICT (address) DO NOTHING",
);

const COUNT_TOKENS: &str = "SELECT COUNT(*) FROM unsubscribe_tokens WHERE token = $1";

const SELECT_OWNER: &str = "SELECT p.address, p.email FROM unsubscribe_tokens t JOIN people p ON p.address = t.address \
     WHERE t.token = $1";

/// The people of a mailbox, with the times of the opt-in that counts and of one that waits. Locks them until the commit, in the
/// order in which signups do, so that no opt-in comes in between.
macro_rules! select_mailbox {
    ($lock:literal) => {
        concat!(
            "SELECT p.address, c.at, w.at FROM people p LEFT JOIN consents c ON c.id = p.opt_in \
                 LEFT JOIN confirmations f ON f.address = p.address LEFT JOIN consents w ON w.id = f.consent \
             WHERE p.address = $1 OR p.mailbox = $1 ORDER BY p.address",
            $lock
        )
    };
}

const LOCK_MAILBOX: Statement =
    Statement { sqlite: select_mailbox!(""), postgres: select_mailbox!(" FOR NO KEY UPDATE OF p") };

/// Records the withdrawal of the current consents.
const INSERT_WITHDRAWALS: BatchStatement = BatchStatement::new(
    "address text, at bigint, how text",
    "INSERT INTO withdrawals (consent, address, at, how) SELECT p.opt_in, p.address, batch.at, batch.how \
     FROM batch JOIN people p ON p.address = batch.address WHERE p.opt_in IS NOT NULL ON CONFLICT (consent) DO NOTHING",
);

const CLEAR_OPT_INS: BatchStatement = BatchStatement::new(
    "address text",
    "UPDATE people SET opt_in = NULL WHERE opt_in IS NOT NULL AND address IN (SELECT address FROM batch)",
);

/// Whoever opts in again is asked at once.
const FORGET_ASKED: &str = "DELETE FROM asked_mailboxes WHERE mailbox = $1";

/// An address of a mailbox, and when its opt-in came that counts, or waits.
type MailboxAddress = (String, Option<Timestamp>, Option<Timestamp>);

/// Returns the address whose opt-in counts for longest, if it is another one and older than the opt-in of `own`.
fn older_opt_in<'a>(mailbox: &'a [MailboxAddress], own: &str) -> Option<&'a str> {
    let (address, oldest) =
        mailbox.iter().filter_map(|(address, at, _)| Some((address, (*at)?))).min_by_key(|(_, at)| *at)?;
    let own_at = mailbox.iter().find(|(address, ..)| address == own).and_then(|(_, at, pending)| at.or(*pending));
    (address != own && own_at.is_none_or(|own_at| oldest < own_at)).then_some(address)
}

impl Transaction {
    /// Ends every opt-in of a mailbox, and counts those that counted. [`UnsubscribeKind::NotMe`] also suppresses the mailbox. If
    /// another address of it has an older opt-in, that one stays and is still mailed. Returns the addresses without an opt-in now.
    pub(in crate::store) async fn end_opt_ins(
        &mut self,
        email: &EmailAddress,
        kind: UnsubscribeKind,
        at: Timestamp,
    ) -> Result<Vec<String>, StoreFailure> {
        let mailbox = email.mailbox();
        let people: Vec<MailboxAddress> = self.run(LOCK_MAILBOX, values![&mailbox]).await?.all()?;
        let kept = older_opt_in(&people, email.key()).filter(|_| kind == UnsubscribeKind::NotMe);
        let ended = people.iter().map(|(address, ..)| address).filter(|address| Some(address.as_str()) != kept);
        let ended: Vec<_> = ended.cloned().collect();
        let rows = ended.iter().map(|address| [address.into(), at.into(), kind.as_str().into()]).collect();
        let withdrawn = self.run_batch(INSERT_WITHDRAWALS, rows).await?.affected;
        self.run_batch(CLEAR_OPT_INS, ended.iter().map(|address| [address.into()]).collect()).await?;
        match kind {
            UnsubscribeKind::Unsubscribe => {
                let hash = self.address_hash_key().await?.hash(&mailbox);
                self.run(FORGET_ASKED, values![hash]).await?;
            }
            UnsubscribeKind::NotMe => self.suppress(email, SuppressionReason::NotMe, kept, at).await?,
        }
        let mut counts = Counts::default();
        for _ in 0..withdrawn {
            counts.add_unnamed(Day::of(at), CountedEvent::Unsubscribe, None);
        }
        self.add_counts(&counts).await?;
        Ok(ended)
    }

    /// Gives an unsubscribe token to each of these people who has none. People who were erased meanwhile get none.
    pub(in crate::store) async fn insert_unsubscribe_tokens(
        &mut self,
        new: &[(EmailAddress, UnsubscribeToken)],
        at: Timestamp,
    ) -> Result<(), StoreFailure> {
        let rows = new.iter().map(|(email, token)| [token.as_str().into(), email.key().into(), at.into()]).collect();
        self.run_batch(INSERT_TOKENS, rows).await.map(drop)
    }
}

impl Store {
    pub async fn token_exists(&self, token: &UnsubscribeToken) -> Result<bool, StoreFailure> {
        Ok(self.run(COUNT_TOKENS, values![token.as_str()]).await?.one::<(i64,)>()?.0 > 0)
    }

    /// Ends every opt-in of the mailbox of the token's owner, as in `Transaction::end_opt_ins`, with those that wait for their
    /// confirmation. Returns `false` if the token is unknown.
    pub async fn unsubscribe(
        &self,
        token: &UnsubscribeToken,
        kind: UnsubscribeKind,
        at: Timestamp,
    ) -> Result<bool, StoreFailure> {
        // Anybody can invent tokens. An unknown one must not take the write lock.
        if !self.token_exists(token).await? {
            return Ok(false);
        }
        let mut tx = self.begin().await?;
        let owner = tx.run(SELECT_OWNER, values![token.as_str()]).await?;
        let Some((address, email)) = owner.first::<(String, String)>()? else { return Ok(false) };
        let ended = tx.end_opt_ins(&EmailAddress::from_stored(email, address), kind, at).await?;
        tx.delete_confirmations(&ended).await?;
        tx.commit().await?;
        Ok(true)
    }
}
