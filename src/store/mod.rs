//! All SQL: one database, SQLite or PostgreSQL, behind the type [`Store`]. Layer 1.
//!
//! Knows nothing of HTTP or mail. The store enforces a rule only where that needs SQL; the action's doc comment says
//! which.

mod app;
mod backup;
mod certificate;
mod connection;
mod contact;
mod desk;
mod health;
mod letters;
mod maker_mails;
mod outbox;
mod people;
mod releases;
mod revisions;
mod signups;
mod statistics;
mod tasks;
mod tokens;
mod writer;

pub use backup::{CopyFailure, CopyOutcome, SourceWrites, TableSummary};
pub use certificate::{CertificateKey, OrderClaim, StoredCertificate};
pub use connection::make_private_folder;
pub use connection::{Database, MaintenanceFailure, MigrationState, PostgresTls, Store, StoreFailure};
pub use contact::{DeliveryState, DueMessage, InboxEntry, InboxFilter, InboxQuery, MessageLease};
pub use desk::SignInLink;
pub use health::Health;
pub use letters::{
    ClaimTerms, ClaimedRecipient, ConfirmationLease, LeasedConfirmation, LetterClaim, LetterOutcome, ListedRecipient,
    OptInCounts, Recipient, RecipientsPage, RecordedBounce, StartedLetter,
};
pub use outbox::{Backlog, DeliveryFailure, LeasedText, MailKind};
pub use people::{
    BounceRecord, ConsentRecord, Erased, EventRecord, Imported, ImportedPerson, LetterRecord, MatchingSignups,
    PersonRecord, Purged, SignupFilter,
};
pub use revisions::Revision;
pub use statistics::DailyCount;
pub use tasks::Task;
pub use writer::Writer;
