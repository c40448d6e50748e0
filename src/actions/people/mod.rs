//! What the makers do with people: list them, show what is stored about one, suppress, erase.

mod change;
mod list;
mod record;

pub use change::{ErasedPerson, LEFT_ELSEWHERE, erase_person, suppress_person, unsuppress_person};
pub use list::{FoundPeople, PeoplePage, find_people, people_notes, people_page};
pub use record::{PersonFailure, find_person, person_facts, person_history, person_json};
