//! People: what is stored about each, and its erasure.

mod erasure;
mod import;
mod keys;
mod list;
mod purge;
mod records;

pub use erasure::Erased;
pub use import::{Imported, ImportedPerson};
pub use purge::{MatchingSignups, Purged, SignupFilter};
pub use records::{BounceRecord, ConsentRecord, EventRecord, LetterRecord, PersonRecord};
