//! Copies of the whole database.

mod copy_database;
mod tables;

pub use copy_database::{CopyFailure, CopyOutcome, SourceWrites};
pub use tables::TableSummary;
