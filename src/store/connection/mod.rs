//! Connections to either database and statements on them. Knows no tables but `_sqlx_migrations` and
//! `schema_versions`.

mod batch;
mod database;
mod failure;
mod hosts;
mod migrate;
mod migrations;
mod pools_and_durability;
mod postgres_pool;
mod postgres_tls;
mod rows;
mod selected_host;
mod statement;
mod statement_limit;
mod steps;
mod timeouts;
pub(in crate::store) mod value;

pub(in crate::store) use batch::{Batch, BatchStatement};
pub use database::Database;
pub use failure::StoreFailure;
pub use migrate::MigrationState;
pub(in crate::store) use migrations::{SQLITE_MIGRATIONS, migrations_up_to};
pub(in crate::store) use pools_and_durability::check_durability;
pub use pools_and_durability::{MaintenanceFailure, Store, make_private_folder};
pub use postgres_tls::PostgresTls;
pub(in crate::store) use rows::{Rows, count, from_row_struct};
pub(in crate::store) use statement::{Statement, Transaction, values};
pub(in crate::store) use steps::MAX_ATTEMPTS;
pub(in crate::store) use timeouts::{BATCH_TIMEOUT, MAX_BATCH_DURATION, MAX_EXPECTED_WAIT, WRITE_TIMEOUT};
pub(in crate::store) use value::{Value, parse_id};

#[cfg(test)]
pub(in crate::store) mod tests;
