//! Statements, each written once for both databases, and the little in which the two differ.

/// One statement in the words of each database.
#[derive(Clone, Copy)]
pub(super) struct Statement {
    pub sqlite: &'static str,
    pub postgres: &'static str,
}

/// A statement over the rows of a batch, which arrives as one JSON array in `$1`.
///
/// The rows are read as `batch`, with the columns and types given. `WHERE true` keeps SQLite from
/// taking a following `ON CONFLICT` for part of a join.
macro_rules! over_batch {
    ($before:literal, ($($column:ident $type:ident),+), $after:literal) => {
        $crate::store::statement::Statement {
            sqlite: concat!(
                $before, " FROM (SELECT key AS place", $(", value ->> '", stringify!($column), "' AS ", stringify!($column),)+
                " FROM json_each($1)) AS batch WHERE true ", $after
            ),
            postgres: concat!(
                $before, " FROM (SELECT 0 AS place, parsed.* FROM json_to_recordset($1::json) AS parsed(",
                over_batch!(@list $($column $type),+), ")) AS batch WHERE true ", $after
            ),
        }
    };
    (@list $column:ident $type:ident) => { concat!(stringify!($column), " ", stringify!($type)) };
    (@list $column:ident $type:ident, $($rest:tt)+) => {
        concat!(stringify!($column), " ", stringify!($type), ", ", over_batch!(@list $($rest)+))
    };
}

/// Runs a block in one transaction on whichever database the store has, and commits.
///
/// `$tx` is the open transaction and `$words` picks a statement's text. The block is compiled once
/// for each database; any `?` in it rolls back.
macro_rules! in_transaction {
    ($store:expr, |$tx:ident, $words:ident| $body:block) => {
        match $store {
            $crate::store::Store::Sqlite(pool) => {
                let $words = |statement: $crate::store::statement::Statement| statement.sqlite;
                let mut $tx = pool.begin_with("BEGIN IMMEDIATE").await?;
                let value = $body;
                $tx.commit().await?;
                value
            }
            $crate::store::Store::Postgres(pool) => {
                let $words = |statement: $crate::store::statement::Statement| statement.postgres;
                let mut $tx = pool.begin().await?;
                let value = $body;
                $tx.commit().await?;
                value
            }
        }
    };
}

/// Runs one statement that is the same for both on whichever database the store has.
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
macro_rules! row {
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

pub(super) use {in_transaction, on_pool, over_batch, row};
