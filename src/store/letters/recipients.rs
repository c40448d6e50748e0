//! Who gets the monthly letter now: people with a current opt-in who are not suppressed. They are read in pages, so that the
//! memory that this takes does not depend on their number.

use crate::domain::mail::EmailAddress;
use crate::domain::people::AddressHashKey;
use crate::store::connection::{BatchStatement, Rows, Store, StoreFailure, Transaction, Value, values};

/// People per page.
const PAGE_SIZE: i64 = 1000;

/// Some of the recipients, in the order of their normalized addresses.
#[derive(Debug)]
pub struct RecipientsPage {
    pub people: Vec<EmailAddress>,
    /// The next page begins after this normalized address.
    pub last: String,
}

/// The people after `$1` with a current opt-in, suppressed or not. The opt-in of a person has their address, so the join needs
/// no second condition. With one, PostgreSQL expects next to no rows, and reads all consents for each page.
macro_rules! select_opted_in {
    ($join:literal) => {
        concat!(
            "SELECT p.address, p.email FROM people p JOIN consents c ON c.id = p.opt_in ",
            $join,
            " WHERE p.address > $1 ORDER BY p.address LIMIT $2"
        )
    };
}

const SELECT_OPTED_IN: &str = select_opted_in!("");

/// Only those who have an unsubscribe token.
const SELECT_WITH_TOKEN: &str =
    select_opted_in!("JOIN unsubscribe_tokens t ON t.address = p.address AND t.address > $1");

/// Those of the hashes that are suppressed.
const SELECT_SUPPRESSED: BatchStatement =
    BatchStatement::new("hash text", "SELECT hash FROM suppressions WHERE hash IN (SELECT hash FROM batch)");

/// A page before suppressed people are left out.
struct OptedIn {
    people: Vec<EmailAddress>,
    hashes: Vec<String>,
}

impl OptedIn {
    fn read(rows: Rows, key: &AddressHashKey) -> Result<Self, StoreFailure> {
        let rows: Vec<(String, String)> = rows.all()?;
        let people: Vec<_> =
            rows.into_iter().map(|(address, email)| EmailAddress::from_stored(email, address)).collect();
        let hashes = people.iter().map(|email| key.hash(email)).collect();
        Ok(Self { people, hashes })
    }

    fn hash_rows(&self) -> Vec<[Value<'_>; 1]> {
        self.hashes.iter().map(|hash| [hash.into()]).collect()
    }

    /// Returns `None` if nobody is left.
    fn without(self, suppressed: &[String]) -> Option<RecipientsPage> {
        let last = self.people.last()?.key().to_owned();
        let people = self.people.into_iter().zip(self.hashes);
        let people = people.filter(|(_, hash)| !suppressed.contains(hash)).map(|(email, _)| email).collect();
        Some(RecipientsPage { people, last })
    }
}

impl Transaction {
    /// As [`Store::recipients_page`], of those who have an unsubscribe token.
    pub(in crate::store) async fn recipients_page(
        &mut self,
        after: &str,
        key: &AddressHashKey,
    ) -> Result<Option<RecipientsPage>, StoreFailure> {
        let page = OptedIn::read(self.run(SELECT_WITH_TOKEN, values![after, PAGE_SIZE]).await?, key)?;
        let suppressed = self.run_batch(SELECT_SUPPRESSED, page.hash_rows()).await?.column::<String>()?;
        Ok(page.without(&suppressed))
    }
}

impl Store {
    /// Returns the recipients that follow a normalized address, the first ones after `""`. A page may have none. Returns `None`
    /// after the last page.
    pub async fn recipients_page(&self, after: &str) -> Result<Option<RecipientsPage>, StoreFailure> {
        let key = self.address_hash_key().await?;
        let page = OptedIn::read(self.run(SELECT_OPTED_IN, values![after, PAGE_SIZE]).await?, &key)?;
        let suppressed = self.run_batch(SELECT_SUPPRESSED, page.hash_rows()).await?.column::<String>()?;
        Ok(page.without(&suppressed))
    }

    pub async fn count_recipients(&self) -> Result<u64, StoreFailure> {
        let (mut count, mut after) = (0, String::new());
        while let Some(page) = self.recipients_page(&after).await? {
            count += page.people.len() as u64;
            after = page.last;
        }
        Ok(count)
    }
}
