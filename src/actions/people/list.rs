//! Lists people, the newest first: page by page, whatever is looked for.

use crate::domain::limits::{MAX_SEARCHED_PEOPLE, MAX_SKIPPED_PEOPLE};
use crate::domain::paging::{Page, PageStart};
use crate::domain::people::{PeopleQuery, PeopleSearch, Person, PersonKey, PersonPlace};
use crate::domain::time::{Day, Timestamp};
use crate::store::{Store, StoreFailure};

/// How many people are looked at in one statement, which bounds memory and its length.
const BATCH_SIZE: usize = 1000;

/// People in the order in which they follow a start.
#[derive(Clone, Debug, Default)]
pub struct FoundPeople {
    pub people: Vec<Person>,
    /// When the last one was first seen who was looked at, if too many in a row were not in the state.
    pub gave_up_at: Option<Timestamp>,
}

/// Finds up to `limit` people. States have no index, so whoever looks for one walks over the others, up to a limit.
pub async fn find_people(
    store: &Store,
    query: &PeopleQuery,
    start: &PageStart<PersonPlace>,
    limit: usize,
) -> Result<FoundPeople, StoreFailure> {
    let batch = if query.state.is_some() { BATCH_SIZE } else { limit.min(BATCH_SIZE) };
    let (mut found, mut start, mut skipped, mut is_last) = (FoundPeople::default(), start.clone(), 0, false);
    while found.people.len() < limit && !is_last {
        let people = store.people_from(query, &start, batch).await?;
        is_last = people.len() < batch;
        let Some(last) = people.last().map(Person::place) else { break };
        for person in people {
            if !query.state.is_none_or(|state| person.is(state)) {
                skipped += 1;
            } else if found.people.len() < limit {
                skipped = 0;
                found.people.push(person);
            }
        }
        if skipped >= MAX_SKIPPED_PEOPLE && found.people.len() < limit {
            found.gave_up_at = Some(last.first_seen);
            break;
        }
        start = start.after(last);
    }
    Ok(found)
}

/// Says who was not looked at, a sentence or more for each reason.
pub async fn people_notes(
    store: &Store,
    query: &PeopleQuery,
    gave_up_at: Option<Timestamp>,
) -> Result<Vec<String>, StoreFailure> {
    let gave_up = gave_up_at.map(|oldest| {
        format!(
            "Older people were not looked at: none of the {MAX_SKIPPED_PEOPLE} before, back to {}, is in this state. `porchlight \
             people export` has everybody.",
            Day::of(oldest).long()
        )
    });
    let has_too_many = match &query.search {
        Some(PeopleSearch::Beginning(text)) => store.has_too_many_people(text).await?,
        _ => false,
    };
    let too_many = has_too_many.then(|| {
        format!(
            "More than {MAX_SEARCHED_PEOPLE} addresses begin like this, and only so many were looked at, in the order of the \
             alphabet. Search for more of the address."
        )
    });
    Ok(gave_up.into_iter().chain(too_many).collect())
}

/// A page of the list, and who was not looked at.
#[derive(Clone, Debug)]
pub struct PeoplePage {
    pub page: Page<(PersonKey, Person)>,
    pub notes: Vec<String>,
}

/// Returns a page with up to `limit` people, beside a person of another page.
pub async fn people_page(
    store: &Store,
    query: &PeopleQuery,
    start: &PageStart<PersonKey>,
    limit: usize,
) -> Result<PeoplePage, StoreFailure> {
    let mut start = match start {
        PageStart::Newest => PageStart::Newest,
        PageStart::OlderThan(key) => PageStart::OlderThan(place_of(store, key).await?),
        PageStart::NewerThan(key) => PageStart::NewerThan(place_of(store, key).await?),
    };
    let mut found = find_people(store, query, &start, limit + 1).await?;
    if start.leads_to_newest(found.people.len(), limit) {
        start = PageStart::Newest;
        found = find_people(store, query, &start, limit + 1).await?;
    }
    let page = Page::new(&start, store.with_keys(found.people).await?, limit);
    Ok(PeoplePage { page, notes: people_notes(store, query, found.gave_up_at).await? })
}

/// A person who was erased meanwhile has left a place in time.
async fn place_of(store: &Store, key: &PersonKey) -> Result<PersonPlace, StoreFailure> {
    let address = store.person_by_key(key).await?.map(|email| email.key().to_owned()).unwrap_or_default();
    Ok(PersonPlace { first_seen: key.first_seen(), address })
}
