//! The keys that name people in addresses of the desk, and whom one names.

use crate::domain::mail::EmailAddress;
use crate::domain::people::{Person, PersonKey};
use crate::domain::time::Timestamp;
use crate::store::connection::{Store, StoreFailure, values};

const SELECT_FIRST_SEEN: &str = "SELECT first_seen_at FROM people WHERE address = $1";

/// An import may have added everybody at one time.
const SELECT_SEEN_AT: &str =
    "SELECT address, email FROM people WHERE first_seen_at = $1 AND address > $2 ORDER BY address LIMIT $3";

/// How many people who were first seen at one time are read from the database at once.
const BATCH_SIZE: usize = 1000;

impl Store {
    /// Returns `None` for an address that neither downloaded nor joined.
    pub async fn person_key(&self, email: &EmailAddress) -> Result<Option<PersonKey>, StoreFailure> {
        let first_seen: Option<Timestamp> = self.run(SELECT_FIRST_SEEN, values![email.key()]).await?.column()?.pop();
        let Some(first_seen) = first_seen else { return Ok(None) };
        Ok(Some(PersonKey::new(&self.address_hash_key().await?, email, first_seen)))
    }

    /// Returns people with their keys.
    pub async fn with_keys(&self, people: Vec<Person>) -> Result<Vec<(PersonKey, Person)>, StoreFailure> {
        let key = self.address_hash_key().await?;
        Ok(people.into_iter().map(|person| (PersonKey::new(&key, &person.email, person.first_seen), person)).collect())
    }

    /// Returns the address of a person, as first typed.
    pub async fn person_by_key(&self, wanted: &PersonKey) -> Result<Option<EmailAddress>, StoreFailure> {
        let (key, mut last) = (self.address_hash_key().await?, String::new());
        loop {
            let rows = self.run(SELECT_SEEN_AT, values![wanted.first_seen(), &last, BATCH_SIZE]).await?;
            let rows: Vec<(String, String)> = rows.all()?;
            let Some((address, _)) = rows.last() else { return Ok(None) };
            last.clone_from(address);
            let mut people = rows.into_iter().map(|(address, email)| EmailAddress::from_stored(email, address));
            if let Some(found) = people.find(|email| PersonKey::new(&key, email, wanted.first_seen()) == *wanted) {
                return Ok(Some(found));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::connection::tests::{empty_store, plan};

    #[tokio::test]
    async fn a_person_is_found_over_the_index() {
        let (_folder, store) = empty_store().await;
        let plan = plan(&store, SELECT_SEEN_AT).await;
        assert_eq!(plan, "SEARCH people USING INDEX people_by_first_seen (first_seen_at=? AND address>?)\n");
    }
}
