//! The only room with SQL: one database, embedded or PostgreSQL, behind one face. Floor 1.
//!
//! Knows nothing of HTTP or mail and decides no rule of the service beyond what must hold in the
//! data itself.

mod backlog;
mod connect;
mod counts;
mod failure;
mod leaving;
mod letters;
mod messages;
mod outbox;
mod releases;
mod signups;
mod statement;
mod writer;

pub use backlog::Backlog;
pub use connect::{Database, Store};
pub use counts::CountedOn;
pub use failure::StoreFailure;
pub use leaving::Recipient;
pub use letters::{Claimed, LetterClaim, LetterOutcome, StartedLetter};
pub use outbox::{Claim, DueMessage, InboxEntry, Setback};
pub use releases::ReleasesState;
pub use signups::{Act, SignupRecord};
pub use writer::Writer;
