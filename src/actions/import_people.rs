//! Imports people from a list.

use super::{Failure, new_id};
use crate::domain::signup::Person;
use crate::domain::time::Timestamp;
use crate::store::{ImportedPerson, Store};

/// Adds the people who are not stored yet, all or none, and returns their number. People who are stored already stay
/// unchanged, except that those suppressed in the list become suppressed.
pub async fn import_people(store: &Store, people: &[Person], at: Timestamp) -> Result<u64, Failure> {
    let with_ids: Vec<_> = people.iter().map(with_ids).collect();
    Ok(store.import(&with_ids, at).await?)
}

fn with_ids(person: &Person) -> ImportedPerson {
    let seen = person.first_seen;
    ImportedPerson {
        downloads: (0..person.downloads).map(|_| new_id(seen)).collect(),
        join: person.waitlist.then(|| new_id(seen)),
        opt_in: person.opt_in.as_ref().map(|opt_in| new_id(opt_in.at)),
        person: person.clone(),
    }
}
