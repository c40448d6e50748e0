//! The only room with SQL: one database, embedded or PostgreSQL, behind one face. Floor 1.
//!
//! Knows nothing of HTTP or mail and decides no rule of the service beyond what must hold in the
//! data itself.

mod backlog;
mod backup_file;
mod carry;
mod condition;
mod connect;
mod counts;
mod erasure;
mod existing;
mod failure;
mod import;
mod inbox;
mod leaving;
mod letters;
mod messages;
mod outbox;
mod people;
mod releases;
mod remains;
mod signups;
mod statement;
mod tables;
mod writer;

pub use backlog::Backlog;
pub use carry::{Carried, CarryFailure, Others};
pub use condition::{Condition, Schema};
pub(crate) use connect::make_private_folder;
pub use connect::{Database, Store};
pub use counts::CountedOn;
pub use erasure::Erased;
pub use failure::StoreFailure;
pub use import::ImportedPerson;
pub use inbox::{InboxEntry, Progress, Which};
pub use leaving::Recipient;
pub use letters::{Claimed, LetterClaim, LetterOutcome, StartedLetter};
pub use outbox::{Claim, DueMessage, Setback};
pub use people::{Held, HeldConsent, HeldEvent, HeldLetter};
pub use releases::ReleasesState;
pub use remains::Remains;
pub use signups::{Act, SignupRecord};
pub use tables::Contents;
pub use writer::Writer;
