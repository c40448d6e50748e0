//! All SQL: one database, SQLite or PostgreSQL, behind the type [`Store`]. Layer 1.
//!
//! Knows nothing of HTTP or mail. The store enforces a rule only where that needs SQL; the action's doc comment says
//! which.

mod backlog;
mod backup_file;
mod connect;
mod copy_database;
mod counts;
mod database;
mod delete_messages;
mod erasure;
mod failure;
mod health;
mod import;
mod inbox;
mod letter_claims;
mod letters;
mod maker_mails;
mod messages;
mod migrations;
mod notices;
mod open_existing;
mod outbox;
mod outbox_changes;
mod pending_counts;
mod people;
mod postgres_tls;
mod prune;
mod purge;
mod reads;
mod releases;
mod rows_statement;
mod schema;
mod scrub;
mod signups;
mod sources;
mod statement;
mod steps;
mod tables;
mod unsubscribe;
mod writer;

pub use backlog::Backlog;
pub use connect::Store;
pub(crate) use connect::make_private_folder;
pub use copy_database::{CopyFailure, CopyOutcome, SourceWrites};
pub use counts::DailyCount;
pub use database::Database;
pub use erasure::Erased;
pub use failure::StoreFailure;
pub use health::Health;
pub use import::ImportedPerson;
pub use inbox::{DeliveryState, InboxEntry, InboxFilter};
pub use letter_claims::{ClaimedRecipient, LetterClaim, LetterOutcome};
pub use letters::StartedLetter;
pub use outbox::{DeliveryFailure, DueMessage, MessageLease};
pub use people::{ConsentRecord, EventRecord, LetterRecord, PersonRecord};
pub use postgres_tls::PostgresTls;
pub use purge::{MatchingSignups, Purged, SignupFilter};
pub use releases::ReleasesRevision;
pub use schema::MigrationState;
pub use scrub::ScrubOutcome;
pub use signups::{SignupKind, SignupRecord};
pub use tables::TableSummary;
pub use unsubscribe::Recipient;
pub use writer::Writer;
