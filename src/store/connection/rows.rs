//! The rows that a statement returns, on either database, and how Rust values are read from them.

use futures_util::stream::{BoxStream, TryStreamExt};
use sqlx::postgres::{PgArguments, PgQueryResult, PgRow};
use sqlx::sqlite::{SqliteArguments, SqliteQueryResult, SqliteRow};
use sqlx::{Either, Executor, FromRow, Postgres, SqlStr, Sqlite};

use super::failure::StoreFailure;

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
pub(in crate::store) use from_row_struct;

/// What a statement returned.
#[derive(Debug, Default)]
pub(in crate::store) struct Rows {
    rows: Vec<Row>,
    /// How many rows the statement changed.
    pub affected: u64,
}

#[derive(Debug)]
enum Row {
    Sqlite(SqliteRow),
    Postgres(PgRow),
}

/// What can be read from a row of either database: a tuple, or a struct made by `from_row_struct!`.
pub(in crate::store) trait ReadRow:
    for<'r> FromRow<'r, SqliteRow> + for<'r> FromRow<'r, PgRow>
{
}

impl<T: for<'r> FromRow<'r, SqliteRow> + for<'r> FromRow<'r, PgRow>> ReadRow for T {}

impl Rows {
    pub(in crate::store) fn all<T: ReadRow>(self) -> Result<Vec<T>, StoreFailure> {
        let read = |row: &Row| match row {
            Row::Sqlite(row) => T::from_row(row),
            Row::Postgres(row) => T::from_row(row),
        };
        self.rows.iter().map(|row| read(row).map_err(StoreFailure::from)).collect()
    }

    pub(in crate::store) fn first<T: ReadRow>(self) -> Result<Option<T>, StoreFailure> {
        Ok(self.all()?.into_iter().next())
    }

    /// The only row, such as that of `SELECT COUNT(*)`.
    pub(in crate::store) fn one<T: ReadRow>(self) -> Result<T, StoreFailure> {
        self.first()?.ok_or_else(|| sqlx::Error::RowNotFound.into())
    }

    /// The only column of each row.
    pub(in crate::store) fn column<T>(self) -> Result<Vec<T>, StoreFailure>
    where
        (T,): ReadRow,
    {
        Ok(self.all::<(T,)>()?.into_iter().map(|(value,)| value).collect())
    }
}

pub(in crate::store) async fn run_sqlite<'c>(
    executor: impl Executor<'c, Database = Sqlite>,
    text: SqlStr,
    arguments: SqliteArguments,
) -> Result<Rows, sqlx::Error> {
    let parts = executor.fetch_many(sqlx::query_with(text, arguments));
    collect(parts, SqliteQueryResult::rows_affected, Row::Sqlite).await
}

pub(in crate::store) async fn run_postgres<'c>(
    executor: impl Executor<'c, Database = Postgres>,
    text: SqlStr,
    arguments: PgArguments,
    is_named: bool,
) -> Result<Rows, sqlx::Error> {
    let parts = executor.fetch_many(sqlx::query_with(text, arguments).persistent(is_named));
    collect(parts, PgQueryResult::rows_affected, Row::Postgres).await
}

/// `parts` are rows, and for each statement at last a result that says how many rows it changed.
async fn collect<T, R>(
    mut parts: BoxStream<'_, Result<Either<T, R>, sqlx::Error>>,
    affected: fn(&T) -> u64,
    row: fn(R) -> Row,
) -> Result<Rows, sqlx::Error> {
    let mut rows = Rows::default();
    while let Some(part) = parts.try_next().await? {
        match part {
            Either::Left(result) => rows.affected += affected(&result),
            Either::Right(part) => rows.rows.push(row(part)),
        }
    }
    Ok(rows)
}

/// A count that the database returned.
pub(in crate::store) fn count(number: i64) -> u64 {
    u64::try_from(number).unwrap_or_default()
}
