//! Macros to write each statement once and run it on either database.

/// One statement in both dialects.
#[derive(Clone, Copy)]
pub(super) struct Statement {
    pub sqlite: &'static str,
    pub postgres: &'static str,
}

/// A statement over a batch of rows, which is bound as one JSON array to `$1`.
///
/// The rows are the table `batch` with the given columns and types. `WHERE true` keeps SQLite from parsing a following
/// `ON CONFLICT` as part of a join.
macro_rules! batch_statement {
    ($before:literal, ($($column:ident $type:ident),+), $after:literal) => {
        $crate::store::statement::Statement {
            sqlite: concat!(
                $before, " FROM (SELECT key AS row_index", $(", value ->> '", stringify!($column), "' AS ", stringify!($column),)+
                " FROM json_each($1)) AS batch WHERE true ", $after
            ),
            postgres: concat!(
                $before, " FROM (SELECT 0 AS row_index, parsed.* FROM json_to_recordset($1::json) AS parsed(",
                batch_statement!(@list $($column $type),+), ")) AS batch WHERE true ", $after
            ),
        }
    };
    (@list $column:ident $type:ident) => { concat!(stringify!($column), " ", stringify!($type)) };
    (@list $column:ident $type:ident, $($rest:tt)+) => {
        concat!(stringify!($column), " ", stringify!($type), ", ", batch_statement!(@list $($rest)+))
    };
}

/// Runs a block in one transaction and commits.
///
/// `$tx` is the transaction, and `$sql` returns a statement's text in the dialect of the database. The block is
/// compiled once per database; a `?` or `return` in it rolls back.
macro_rules! in_transaction {
    ($store:expr, |$tx:ident, $sql:ident| $body:block) => {
        match $store {
            $crate::store::Store::Sqlite(pool) => {
                let $sql = |statement: $crate::store::statement::Statement| statement.sqlite;
                let mut $tx = pool.begin_with("BEGIN IMMEDIATE").await?;
                let value = $body;
                $tx.commit().await?;
                value
            }
            $crate::store::Store::Postgres(pool) => {
                let $sql = |statement: $crate::store::statement::Statement| statement.postgres;
                let mut $tx = pool.begin().await?;
                let value = $body;
                $tx.commit().await?;
                value
            }
        }
    };
}

/// Runs an expression with the pool of either database, for statements that are the same in both dialects.
macro_rules! on_pool {
    ($store:expr, |$pool:ident| $body:expr) => {
        match $store {
            $crate::store::Store::Sqlite($pool) => $body,
            $crate::store::Store::Postgres($pool) => $body,
        }
    };
}

/// A struct that is read from a row of the same columns, on either database. The derive macro of sqlx would compile the
/// whole of sqlx a second time.
macro_rules! from_row_struct {
    ($(#[$meta:meta])* $visibility:vis struct $name:ident { $($field_visibility:vis $field:ident: $type:ty,)+ }) => {
        $(#[$meta])*
        $visibility struct $name { $($field_visibility $field: $type,)+ }

        impl<'r, R: sqlx::Row> sqlx::FromRow<'r, R> for $name
        where
            &'static str: sqlx::ColumnIndex<R>,
            $($type: sqlx::Decode<'r, R::Database> + sqlx::Type<R::Database>,)+
        {
            fn from_row(row: &'r R) -> Result<Self, sqlx::Error> {
                Ok(Self { $($field: row.try_get(stringify!($field))?,)+ })
            }
        }
    };
}

pub(super) use {batch_statement, from_row_struct, in_transaction, on_pool};
