//! The one way to run a statement on either database: [`Store::run`], and the same on a [`Transaction`].
//!
//! A statement is written once. Where the two dialects differ, a [`Statement`] has a text for each. A [`BatchStatement`] works
//! on many rows at once.

use std::borrow::Cow;

use futures_util::stream::{BoxStream, TryStreamExt};
use sqlx::postgres::{PgArguments, PgQueryResult, PgRow};
use sqlx::sqlite::{SqliteArguments, SqliteQueryResult, SqliteRow};
use sqlx::{Arguments, AssertSqlSafe, Either, Executor, FromRow, Postgres, SqlSafeStr, SqlStr, Sqlite};

use super::postgres_pool::PostgresTransaction;
use super::{Store, StoreFailure};
use crate::domain::time::Timestamp;

/// One statement in both dialects.
#[derive(Clone, Copy, Debug)]
pub(super) struct Statement {
    pub sqlite: &'static str,
    pub postgres: &'static str,
}

impl From<&'static str> for Statement {
    fn from(text: &'static str) -> Self {
        Self { sqlite: text, postgres: text }
    }
}

/// A parameter of a statement. `None` is NULL.
#[derive(Clone, Debug)]
pub(super) enum Value<'a> {
    Integer(Option<i64>),
    Text(Option<Cow<'a, str>>),
}

/// The parameters of a statement, `$1` first.
macro_rules! values {
    ($($value:expr),* $(,)?) => { &[$($crate::store::statement::Value::from($value)),*] };
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

pub(super) use {from_row_struct, values};

/// A statement over many rows, which are its table `batch`. It can also have parameters.
///
/// SQLite gets the values one by one, which is several times faster than one JSON array. There is one text per power of two,
/// so that few statements are prepared; the rows that are too many are NULL. PostgreSQL gets an array for each column.
/// SQLite allows 32,766 values, so a batch has at most a few thousand rows.
#[derive(Clone, Copy, Debug)]
pub(super) struct BatchStatement {
    /// Names and types, `text` or `bigint`, such as `address text, at bigint`. The first column is never NULL.
    pub columns: &'static str,
    pub text: &'static str,
}

impl BatchStatement {
    pub(super) const fn new(columns: &'static str, text: &'static str) -> Self {
        Self { columns, text }
    }

    fn names(&self) -> String {
        let names = self.columns.split(',').filter_map(|column| column.split_whitespace().next());
        names.collect::<Vec<_>>().join(", ")
    }

    fn sqlite<const COLUMNS: usize>(
        &self,
        values: &[Value<'_>],
        rows: Vec<[Value<'_>; COLUMNS]>,
    ) -> Result<(SqlStr, SqliteArguments), sqlx::Error> {
        let count = rows.len().next_power_of_two();
        let row = |number: usize| {
            let first = values.len() + number * COLUMNS + 1;
            let places: Vec<_> = (first..first + COLUMNS).map(|place| format!("?{place}")).collect();
            format!("({})", places.join(","))
        };
        let places = (0..count).map(row).collect::<Vec<_>>().join(",");
        let (names, text) = (self.names(), self.text);
        let sql = format!("WITH batch({names}) AS (SELECT * FROM (VALUES {places}) WHERE column1 IS NOT NULL) {text}");
        let unused = std::iter::repeat_n([const { Value::Text(None) }; COLUMNS], count - rows.len());
        let arguments = values.iter().cloned().chain(rows.into_iter().chain(unused).flatten());
        Ok((AssertSqlSafe(sql).into_sql_str(), sqlite_arguments(arguments)?))
    }

    fn postgres<const COLUMNS: usize>(
        &self,
        values: &[Value<'_>],
        rows: &[[Value<'_>; COLUMNS]],
    ) -> Result<(SqlStr, PgArguments), sqlx::Error> {
        let types = self.columns.split(',').filter_map(|column| column.split_whitespace().nth(1));
        let arrays: Vec<_> =
            (values.len() + 1..).zip(types).map(|(place, name)| format!("${place}::{name}[]")).collect();
        let (names, text) = (self.names(), self.text);
        let sql = format!("WITH batch AS (SELECT * FROM unnest({}) AS batch ({names})) {text}", arrays.join(", "));
        let mut arguments = postgres_arguments(values)?;
        for (column, array) in arrays.iter().enumerate() {
            let column = rows.iter().map(|row| &row[column]);
            let added = if array.ends_with("text[]") {
                arguments.add(column.map(Value::text).collect::<Vec<_>>())
            } else {
                arguments.add(column.map(Value::integer).collect::<Vec<_>>())
            };
            added.map_err(sqlx::Error::Encode)?;
        }
        Ok((AssertSqlSafe(sql).into_sql_str(), arguments))
    }
}

/// What a statement returned.
#[derive(Debug, Default)]
pub(super) struct Rows {
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
pub(super) trait ReadRow: for<'r> FromRow<'r, SqliteRow> + for<'r> FromRow<'r, PgRow> {}

impl<T: for<'r> FromRow<'r, SqliteRow> + for<'r> FromRow<'r, PgRow>> ReadRow for T {}

impl Rows {
    pub(super) fn all<T: ReadRow>(self) -> Result<Vec<T>, StoreFailure> {
        let read = |row: &Row| match row {
            Row::Sqlite(row) => T::from_row(row),
            Row::Postgres(row) => T::from_row(row),
        };
        self.rows.iter().map(|row| read(row).map_err(StoreFailure::from)).collect()
    }

    pub(super) fn first<T: ReadRow>(self) -> Result<Option<T>, StoreFailure> {
        Ok(self.all()?.into_iter().next())
    }

    /// The only row, such as that of `SELECT COUNT(*)`.
    pub(super) fn one<T: ReadRow>(self) -> Result<T, StoreFailure> {
        self.first()?.ok_or_else(|| sqlx::Error::RowNotFound.into())
    }

    /// The only column of each row.
    pub(super) fn column<T>(self) -> Result<Vec<T>, StoreFailure>
    where
        (T,): ReadRow,
    {
        Ok(self.all::<(T,)>()?.into_iter().map(|(value,)| value).collect())
    }
}

impl Store {
    /// Runs one statement.
    pub(super) async fn run(
        &self,
        statement: impl Into<Statement>,
        values: &[Value<'_>],
    ) -> Result<Rows, StoreFailure> {
        let statement = statement.into();
        Ok(match self {
            Self::Sqlite(pool) => {
                let arguments = sqlite_arguments(values.iter().cloned())?;
                run_sqlite(pool, statement.sqlite.into_sql_str(), arguments).await?
            }
            Self::Postgres(pool) => pool.run(statement.postgres.into_sql_str(), postgres_arguments(values)?).await?,
        })
    }

    /// Runs one statement over these rows.
    pub(super) async fn run_batch<const COLUMNS: usize>(
        &self,
        statement: BatchStatement,
        values: &[Value<'_>],
        rows: Vec<[Value<'_>; COLUMNS]>,
    ) -> Result<Rows, StoreFailure> {
        Ok(match self {
            _ if rows.is_empty() => Rows::default(),
            Self::Sqlite(pool) => {
                let (sql, arguments) = statement.sqlite(values, rows)?;
                run_sqlite(pool, sql, arguments).await?
            }
            Self::Postgres(pool) => {
                let (sql, arguments) = statement.postgres(values, &rows)?;
                pool.run(sql, arguments).await?
            }
        })
    }

    /// Begins a transaction that writes. In SQLite no other can write until its end.
    pub(super) async fn begin(&self) -> Result<Transaction, StoreFailure> {
        Ok(match self {
            Self::Sqlite(pool) => Transaction::Sqlite(pool.begin_with("BEGIN IMMEDIATE").await?),
            Self::Postgres(pool) => Transaction::Postgres(pool.begin().await?),
        })
    }
}

/// Is rolled back if it is dropped.
#[derive(Debug)]
pub(super) enum Transaction {
    Sqlite(sqlx::Transaction<'static, Sqlite>),
    Postgres(PostgresTransaction),
}

impl Transaction {
    /// As [`Store::run`], within the transaction.
    pub(super) async fn run(
        &mut self,
        statement: impl Into<Statement>,
        values: &[Value<'_>],
    ) -> Result<Rows, StoreFailure> {
        let statement = statement.into();
        let text = if matches!(self, Self::Sqlite(_)) { statement.sqlite } else { statement.postgres };
        self.run_sql(text.into_sql_str(), values).await
    }

    /// As [`Self::run`], with a text that is made when it is needed.
    pub(super) async fn run_text(&mut self, text: String, values: &[Value<'_>]) -> Result<Rows, StoreFailure> {
        self.run_sql(AssertSqlSafe(text).into_sql_str(), values).await
    }

    async fn run_sql(&mut self, sql: SqlStr, values: &[Value<'_>]) -> Result<Rows, StoreFailure> {
        Ok(match self {
            Self::Sqlite(tx) => run_sqlite(&mut **tx, sql, sqlite_arguments(values.iter().cloned())?).await?,
            Self::Postgres(tx) => tx.run(sql, postgres_arguments(values)?).await?,
        })
    }

    /// As [`Store::run_batch`], within the transaction.
    pub(super) async fn run_batch<const COLUMNS: usize>(
        &mut self,
        statement: BatchStatement,
        values: &[Value<'_>],
        rows: Vec<[Value<'_>; COLUMNS]>,
    ) -> Result<Rows, StoreFailure> {
        Ok(match self {
            _ if rows.is_empty() => Rows::default(),
            Self::Sqlite(tx) => {
                let (sql, arguments) = statement.sqlite(values, rows)?;
                run_sqlite(&mut **tx, sql, arguments).await?
            }
            Self::Postgres(tx) => {
                let (sql, arguments) = statement.postgres(values, &rows)?;
                tx.run(sql, arguments).await?
            }
        })
    }

    pub(super) async fn commit(self) -> Result<(), StoreFailure> {
        match self {
            Self::Sqlite(tx) => tx.commit().await?,
            Self::Postgres(tx) => tx.commit().await?,
        }
        Ok(())
    }
}

async fn run_sqlite<'c>(
    executor: impl Executor<'c, Database = Sqlite>,
    sql: SqlStr,
    arguments: SqliteArguments,
) -> Result<Rows, sqlx::Error> {
    collect_sqlite(executor.fetch_many(sqlx::query_with(sql, arguments))).await
}

async fn collect_sqlite(
    mut parts: BoxStream<'_, Result<Either<SqliteQueryResult, SqliteRow>, sqlx::Error>>,
) -> Result<Rows, sqlx::Error> {
    let mut rows = Rows::default();
    while let Some(part) = parts.try_next().await? {
        match part {
            Either::Left(result) => rows.affected += result.rows_affected(),
            Either::Right(row) => rows.rows.push(Row::Sqlite(row)),
        }
    }
    Ok(rows)
}

pub(super) async fn run_postgres<'c>(
    executor: impl Executor<'c, Database = Postgres>,
    sql: SqlStr,
    arguments: PgArguments,
    is_named: bool,
) -> Result<Rows, sqlx::Error> {
    let mut parts: BoxStream<'_, Result<Either<PgQueryResult, PgRow>, _>> =
        executor.fetch_many(sqlx::query_with(sql, arguments).persistent(is_named));
    let mut rows = Rows::default();
    while let Some(part) = parts.try_next().await? {
        match part {
            Either::Left(result) => rows.affected += result.rows_affected(),
            Either::Right(row) => rows.rows.push(Row::Postgres(row)),
        }
    }
    Ok(rows)
}

fn sqlite_arguments<'a>(values: impl Iterator<Item = Value<'a>>) -> Result<SqliteArguments, sqlx::Error> {
    let mut arguments = SqliteArguments::default();
    for value in values {
        let added = match value {
            Value::Integer(number) => arguments.add(number),
            Value::Text(text) => arguments.add(text.map(Cow::into_owned)),
        };
        added.map_err(sqlx::Error::Encode)?;
    }
    Ok(arguments)
}

fn postgres_arguments(values: &[Value<'_>]) -> Result<PgArguments, sqlx::Error> {
    let mut arguments = PgArguments::default();
    for value in values {
        let added = match value {
            Value::Integer(number) => arguments.add(number),
            Value::Text(text) => arguments.add(text.as_deref()),
        };
        added.map_err(sqlx::Error::Encode)?;
    }
    Ok(arguments)
}

impl Value<'_> {
    fn integer(&self) -> Option<i64> {
        match self {
            Self::Integer(number) => *number,
            Self::Text(_) => None,
        }
    }

    fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => text.as_deref(),
            Self::Integer(_) => None,
        }
    }
}

impl From<i64> for Value<'_> {
    fn from(number: i64) -> Self {
        Self::Integer(Some(number))
    }
}

/// A flag is 0 or 1.
impl From<bool> for Value<'_> {
    fn from(flag: bool) -> Self {
        Self::Integer(Some(flag.into()))
    }
}

impl From<u64> for Value<'_> {
    fn from(number: u64) -> Self {
        Self::Integer(Some(i64::try_from(number).unwrap_or(i64::MAX)))
    }
}

impl From<usize> for Value<'_> {
    fn from(number: usize) -> Self {
        Self::from(number as u64)
    }
}

/// A time is stored as milliseconds since 1970.
impl From<Timestamp> for Value<'_> {
    fn from(time: Timestamp) -> Self {
        Self::from(time.unix_millis())
    }
}

impl From<Option<Timestamp>> for Value<'_> {
    fn from(time: Option<Timestamp>) -> Self {
        Self::Integer(time.map(Timestamp::unix_millis))
    }
}

impl From<Option<i64>> for Value<'_> {
    fn from(number: Option<i64>) -> Self {
        Self::Integer(number)
    }
}

impl<'a> From<&'a str> for Value<'a> {
    fn from(text: &'a str) -> Self {
        Self::Text(Some(text.into()))
    }
}

impl<'a> From<&'a String> for Value<'a> {
    fn from(text: &'a String) -> Self {
        Self::Text(Some(text.into()))
    }
}

impl From<String> for Value<'_> {
    fn from(text: String) -> Self {
        Self::Text(Some(text.into()))
    }
}

impl<'a> From<Option<&'a str>> for Value<'a> {
    fn from(text: Option<&'a str>) -> Self {
        Self::Text(text.map(Cow::from))
    }
}

impl From<Option<String>> for Value<'_> {
    fn from(text: Option<String>) -> Self {
        Self::Text(text.map(Cow::from))
    }
}

impl From<uuid::Uuid> for Value<'_> {
    fn from(id: uuid::Uuid) -> Self {
        Self::from(id.to_string())
    }
}

impl From<Option<uuid::Uuid>> for Value<'_> {
    fn from(id: Option<uuid::Uuid>) -> Self {
        Self::from(id.map(|id| id.to_string()))
    }
}

impl<DB: sqlx::Database> sqlx::Type<DB> for Timestamp
where
    i64: sqlx::Type<DB>,
{
    fn type_info() -> DB::TypeInfo {
        i64::type_info()
    }

    fn compatible(of: &DB::TypeInfo) -> bool {
        i64::compatible(of)
    }
}

impl<'r, DB: sqlx::Database> sqlx::Decode<'r, DB> for Timestamp
where
    i64: sqlx::Decode<'r, DB>,
{
    fn decode(value: DB::ValueRef<'r>) -> Result<Self, sqlx::error::BoxDynError> {
        i64::decode(value).map(Self::from_unix_millis)
    }
}

/// A count that the database returned.
pub(super) fn count(number: i64) -> u64 {
    u64::try_from(number).unwrap_or_default()
}
