//! People from a list that the makers brought along.

use super::{Failure, new_id};
use crate::domain::person::Person;
use crate::domain::time::Timestamp;
use crate::store::{ImportedPerson, Store};

/// Adds those who are not there yet, all of them or none, and says how many that were. Who is there
/// stays as they are, except that whoever the list calls suppressed is.
///
/// # Errors
/// `Unavailable` when they cannot be recorded.
pub async fn import_people(store: &Store, people: &[Person], at: Timestamp) -> Result<u64, Failure> {
    let named: Vec<_> = people.iter().map(named).collect();
    Ok(store.import(&named, at).await?)
}

fn named(person: &Person) -> ImportedPerson {
    let seen = person.first_seen;
    ImportedPerson {
        downloads: (0..person.downloads).map(|_| new_id(seen)).collect(),
        join: person.waitlist.then(|| new_id(seen)),
        opt_in: person.opt_in.as_ref().map(|opt_in| new_id(opt_in.at)),
        person: person.clone(),
    }
}
