//! Who gets the monthly letter now: people with a current opt-in who are not suppressed. They are read in pages, so that the
//! memory that this takes does not depend on their number.

use serde_json::{Value, json};

use super::statement::{Statement, batch_statement, on_pool};
use super::{Store, StoreFailure};
use crate::domain::email::EmailAddress;
use crate::domain::suppression::AddressHashKey;

/// People per page.
pub(super) const PAGE_SIZE: i64 = 1000;

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
pub(super) const SELECT_WITH_TOKEN: &str =
    select_opted_in!("JOIN unsubscribe_tokens t ON t.address = p.address AND t.address > $1");

/// Those of the hashes that are suppressed.
pub(super) const SELECT_SUPPRESSED: Statement =
    batch_statement!("SELECT hash FROM suppressions WHERE hash IN (SELECT batch.hash", (hash text), ")");

/// Reads the page after `$after`, or `None` if nobody is left.
macro_rules! read_recipients {
    ($executor:expr, $select:expr, $select_suppressed:expr, $key:expr, $after:expr) => {{
        use $crate::store::recipients::{PAGE_SIZE, hashes_batch, without};
        let rows: Vec<(String, String)> =
            sqlx::query_as($select).bind($after).bind(PAGE_SIZE).fetch_all($executor).await?;
        let hashes = hashes_batch(&rows, $key);
        let suppressed: Vec<String> = sqlx::query_scalar($select_suppressed).bind(&hashes).fetch_all($executor).await?;
        without(rows, &suppressed, $key)
    }};
}

pub(super) use read_recipients;

impl Store {
    /// Returns the recipients that follow a normalized address, the first ones after `""`. A page may have none. Returns `None`
    /// after the last page.
    pub async fn recipients_page(&self, after: &str) -> Result<Option<RecipientsPage>, StoreFailure> {
        let key = self.address_hash_key().await?;
        let select_suppressed = match self {
            Self::Sqlite(_) => SELECT_SUPPRESSED.sqlite,
            Self::Postgres(_) => SELECT_SUPPRESSED.postgres,
        };
        Ok(on_pool!(self, |pool| read_recipients!(pool, SELECT_OPTED_IN, select_suppressed, &key, after)))
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

/// The parameter of [`SELECT_SUPPRESSED`].
pub(super) fn hashes_batch(rows: &[(String, String)], key: &AddressHashKey) -> String {
    let hashes = rows.iter().map(|(address, email)| {
        let email = EmailAddress::from_stored(email.clone(), address.clone());
        json!({ "hash": key.hash(&email) })
    });
    hashes.collect::<Value>().to_string()
}

pub(super) fn without(
    rows: Vec<(String, String)>,
    suppressed: &[String],
    key: &AddressHashKey,
) -> Option<RecipientsPage> {
    let last = rows.last()?.0.clone();
    let people = rows.into_iter().map(|(address, email)| EmailAddress::from_stored(email, address));
    let people = people.filter(|email| suppressed.is_empty() || !suppressed.contains(&key.hash(email))).collect();
    Some(RecipientsPage { people, last })
}
