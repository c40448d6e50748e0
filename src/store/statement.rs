//! The one way to run a statement on either database: [`Store::run`], and the same on a [`Transaction`].
//!
//! A statement is written once. Where the two dialects differ, a [`Statement`] has a text for each. A [`BatchStatement`] works
//! on many rows at once.

use std::borrow::Cow;

use futures_util::stream::{BoxStream, TryStreamExt};
use sqlx::postgres::{PgArguments, PgQueryResult, PgRow};
use sqlx::sqlite::{SqliteArguments, SqlitePool, SqliteQueryResult, SqliteRow};
use sqlx::{Arguments, AssertSqlSafe, Either, Executor, FromRow, Postgres, SqlSafeStr, SqlStr, Sqlite};
use uuid::Uuid;

use super::postgres_pool::{PostgresPool, PostgresTransaction};
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
#[derive(Clone, Copy, Debug)]
pub(super) struct BatchStatement {
    /// Names and types, `text` or `bigint`, such as `address text, at bigint`. The first column is never NULL.
    pub columns: &'static str,
    pub text: &'static str,
}

/// A statement with its rows.
///
/// SQLite gets the values one by one, which is several times faster than one JSON array. Their places have no numbers, which it
/// would search for. There is one text per power of two, so that few statements are prepared; the rows that are too many are
/// NULL. PostgreSQL gets an array for each column. SQLite allows 32,766 values, so a batch has at most a few thousand rows.
#[derive(Debug)]
pub(super) struct Batch<'a> {
    statement: BatchStatement,
    rows: Vec<Vec<Value<'a>>>,
}

impl BatchStatement {
    pub(super) const fn new(columns: &'static str, text: &'static str) -> Self {
        Self { columns, text }
    }

    pub(super) fn of<'a, const COLUMNS: usize>(
        self,
        rows: impl IntoIterator<Item = [Value<'a>; COLUMNS]>,
    ) -> Batch<'a> {
        Batch { statement: self, rows: rows.into_iter().map(Vec::from).collect() }
    }

    /// The names of the columns, and their types.
    fn columns(&self) -> (Vec<&'static str>, Vec<&'static str>) {
        self.columns.split(',').filter_map(|column| column.trim().split_once(' ')).unzip()
    }
}

impl<'a> Batch<'a> {
    /// The text for so many rows, and its arguments. The parameters come first, in a table of their own that nothing reads:
    /// the driver counts places without a number by themselves.
    fn for_sqlite(self, values: &[Value<'a>], count: usize) -> (String, impl Iterator<Item = Argument<'a>>) {
        let (names, _) = self.statement.columns();
        let columns = names.len();
        let row = format!("({})", vec!["?"; columns].join(","));
        let places = vec![row.as_str(); count].join(",");
        let (names, text) = (names.join(", "), self.statement.text);
        let given = if values.is_empty() {
            String::new()
        } else {
            format!("given AS (SELECT {}), ", vec!["?"; values.len()].join(","))
        };
        let sql =
            format!("WITH {given}batch({names}) AS (SELECT * FROM (VALUES {places}) WHERE column1 IS NOT NULL) {text}");
        let unused = std::iter::repeat_n(Value::Text(None), columns * (count - self.rows.len()));
        let arguments = values.iter().cloned().chain(self.rows.into_iter().flatten()).chain(unused);
        (sql, arguments.map(Argument::Value))
    }

    /// The rows as a table `batch1`, the statement on it, and the arrays. The first of them has this place.
    fn for_postgres(self, number: usize, first_place: usize) -> (String, String, Vec<Argument<'a>>) {
        let (names, types) = self.statement.columns();
        let places = (first_place..).zip(&types).map(|(place, name)| format!("${place}::{name}[]"));
        let (places, names) = (places.collect::<Vec<_>>().join(", "), names.join(", "));
        let name = format!("batch{number}");
        let table = format!("{name} AS (SELECT * FROM unnest({places}) AS batch ({names}))");
        let mut columns: Vec<Vec<_>> = types.iter().map(|_| Vec::with_capacity(self.rows.len())).collect();
        for row in self.rows {
            for (column, value) in columns.iter_mut().zip(row) {
                column.push(value);
            }
        }
        let array = |(column, name)| if name == "text" { Argument::Texts(column) } else { Argument::Integers(column) };
        (table, self.statement.text.replace("batch", &name), columns.into_iter().zip(types).map(array).collect())
    }
}

/// Several statements, each over rows of its own, as one: for SQLite one after the other, for PostgreSQL all at once, so that
/// none may depend on another one.
fn sqlite_batches<'a>(values: &[Value<'a>], batches: Vec<Batch<'a>>) -> (String, Vec<Argument<'a>>) {
    let count = batches.iter().map(|batch| batch.rows.len()).max().unwrap_or(0).next_power_of_two();
    let (texts, arguments): (Vec<_>, Vec<_>) = batches.into_iter().map(|batch| batch.for_sqlite(values, count)).unzip();
    (texts.join("; "), arguments.into_iter().flatten().collect())
}

fn postgres_batches<'a>(values: &[Value<'a>], batches: Vec<Batch<'a>>) -> (String, Vec<Argument<'a>>) {
    let mut arguments: Vec<_> = values.iter().cloned().map(Argument::Value).collect();
    let (mut parts, mut last) = (Vec::new(), String::new());
    for (number, batch) in batches.into_iter().enumerate() {
        if number > 0 {
            parts.push(format!("done{number} AS ({last})"));
        }
        let (table, text, arrays) = batch.for_postgres(number, arguments.len() + 1);
        parts.push(table);
        arguments.extend(arrays);
        last = text;
    }
    (format!("WITH {} {last}", parts.join(", ")), arguments)
}

/// What is bound to a place of a statement: a value, or in PostgreSQL an array of values of one type.
enum Argument<'a> {
    Value(Value<'a>),
    Texts(Vec<Value<'a>>),
    Integers(Vec<Value<'a>>),
}

/// Where a statement runs.
enum Target<'a> {
    Sqlite(&'a SqlitePool),
    SqliteTransaction(&'a mut sqlx::Transaction<'static, Sqlite>),
    Postgres(&'a PostgresPool),
    PostgresTransaction(&'a mut PostgresTransaction),
}

impl Target<'_> {
    const fn is_sqlite(&self) -> bool {
        matches!(self, Self::Sqlite(_) | Self::SqliteTransaction(_))
    }

    async fn run(self, statement: Statement, values: &[Value<'_>]) -> Result<Rows, StoreFailure> {
        let text = if self.is_sqlite() { statement.sqlite } else { statement.postgres };
        self.run_text(text.into_sql_str(), values.iter().cloned().map(Argument::Value).collect()).await
    }

    async fn run_batches(self, values: &[Value<'_>], batches: Vec<Batch<'_>>) -> Result<Rows, StoreFailure> {
        let batches: Vec<_> = batches.into_iter().filter(|batch| !batch.rows.is_empty()).collect();
        if batches.is_empty() {
            return Ok(Rows::default());
        }
        let (text, arguments) =
            if self.is_sqlite() { sqlite_batches(values, batches) } else { postgres_batches(values, batches) };
        self.run_text(AssertSqlSafe(text).into_sql_str(), arguments).await
    }

    async fn run_text(self, text: SqlStr, arguments: Vec<Argument<'_>>) -> Result<Rows, StoreFailure> {
        Ok(match self {
            Self::Sqlite(pool) => run_sqlite(pool, text, sqlite_arguments(arguments)?).await?,
            Self::SqliteTransaction(tx) => run_sqlite(&mut **tx, text, sqlite_arguments(arguments)?).await?,
            Self::Postgres(pool) => pool.run(text, postgres_arguments(arguments)?).await?,
            Self::PostgresTransaction(tx) => tx.run(text, postgres_arguments(arguments)?).await?,
        })
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
    fn target(&self) -> Target<'_> {
        match self {
            Self::Sqlite(pool) => Target::Sqlite(pool),
            Self::Postgres(pool) => Target::Postgres(pool),
        }
    }

    /// Runs one statement.
    pub(super) async fn run(
        &self,
        statement: impl Into<Statement>,
        values: &[Value<'_>],
    ) -> Result<Rows, StoreFailure> {
        self.target().run(statement.into(), values).await
    }

    /// Runs one statement over these rows, unless there are none.
    pub(super) async fn run_batch<const COLUMNS: usize>(
        &self,
        statement: BatchStatement,
        values: &[Value<'_>],
        rows: Vec<[Value<'_>; COLUMNS]>,
    ) -> Result<Rows, StoreFailure> {
        self.target().run_batches(values, vec![statement.of(rows)]).await
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
    fn target(&mut self) -> Target<'_> {
        match self {
            Self::Sqlite(tx) => Target::SqliteTransaction(tx),
            Self::Postgres(tx) => Target::PostgresTransaction(tx),
        }
    }

    /// As [`Store::run`], within the transaction.
    pub(super) async fn run(
        &mut self,
        statement: impl Into<Statement>,
        values: &[Value<'_>],
    ) -> Result<Rows, StoreFailure> {
        self.target().run(statement.into(), values).await
    }

    /// As [`Self::run`], with a text that is made when it is needed.
    pub(super) async fn run_text(&mut self, text: String, values: &[Value<'_>]) -> Result<Rows, StoreFailure> {
        let arguments = values.iter().cloned().map(Argument::Value).collect();
        self.target().run_text(AssertSqlSafe(text).into_sql_str(), arguments).await
    }

    /// As [`Store::run_batch`], within the transaction.
    pub(super) async fn run_batch<const COLUMNS: usize>(
        &mut self,
        statement: BatchStatement,
        values: &[Value<'_>],
        rows: Vec<[Value<'_>; COLUMNS]>,
    ) -> Result<Rows, StoreFailure> {
        self.target().run_batches(values, vec![statement.of(rows)]).await
    }

    /// Runs several statements over rows of their own in one round trip. None may depend on another one.
    pub(super) async fn run_batches(&mut self, batches: Vec<Batch<'_>>) -> Result<(), StoreFailure> {
        self.target().run_batches(&[], batches).await.map(drop)
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
    text: SqlStr,
    arguments: SqliteArguments,
) -> Result<Rows, sqlx::Error> {
    let parts = executor.fetch_many(sqlx::query_with(text, arguments));
    collect(parts, SqliteQueryResult::rows_affected, Row::Sqlite).await
}

pub(super) async fn run_postgres<'c>(
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

/// SQLite has no arrays.
fn sqlite_arguments(values: Vec<Argument<'_>>) -> Result<SqliteArguments, sqlx::Error> {
    let mut arguments = SqliteArguments::default();
    for value in values {
        let added = match value {
            Argument::Value(Value::Integer(number)) => arguments.add(number),
            Argument::Value(Value::Text(text)) => arguments.add(text.map(Cow::into_owned)),
            Argument::Texts(_) | Argument::Integers(_) => Ok(()),
        };
        added.map_err(sqlx::Error::Encode)?;
    }
    Ok(arguments)
}

fn postgres_arguments(values: Vec<Argument<'_>>) -> Result<PgArguments, sqlx::Error> {
    let mut arguments = PgArguments::default();
    for value in values {
        let added = match value {
            Argument::Value(Value::Integer(number)) => arguments.add(number),
            Argument::Value(Value::Text(text)) => arguments.add(text.as_deref()),
            Argument::Texts(texts) => arguments.add(texts.iter().map(Value::text).collect::<Vec<_>>()),
            Argument::Integers(numbers) => arguments.add(numbers.iter().map(Value::integer).collect::<Vec<_>>()),
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

/// How a Rust value is stored, and how one that may be missing is.
macro_rules! stored_as {
    ($($type:ty => $variant:ident($value:ident => $stored:expr),)+) => { $(
        impl<'a> From<$type> for Value<'a> {
            fn from($value: $type) -> Self {
                Self::$variant(Some($stored))
            }
        }

        impl<'a> From<Option<$type>> for Value<'a> {
            fn from(value: Option<$type>) -> Self {
                Self::$variant(value.map(|$value| $stored))
            }
        }
    )+ };
}

stored_as! {
    i64 => Integer(number => number),
    u64 => Integer(number => i64::try_from(number).unwrap_or(i64::MAX)),
    usize => Integer(number => i64::try_from(number).unwrap_or(i64::MAX)),
    bool => Integer(flag => flag.into()),
    Timestamp => Integer(time => time.unix_millis()),
    &'a str => Text(text => text.into()),
    &'a String => Text(text => text.into()),
    String => Text(text => text.into()),
    Uuid => Text(id => id.to_string().into()),
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
