//! The one way to run a statement on either database: [`Store::run`], and the same on a [`Transaction`].
//!
//! A statement is written once. Where the two dialects differ, a [`Statement`] has a text for each. A
//! [`BatchStatement`] works on many rows at once.

use std::sync::Arc;

use futures_util::stream::{BoxStream, TryStreamExt};
use sqlx::postgres::{PgArguments, PgQueryResult, PgRow};
use sqlx::sqlite::{SqliteArguments, SqlitePool, SqliteQueryResult, SqliteRow};
use sqlx::{Arguments, AssertSqlSafe, Either, Executor, FromRow, Postgres, SqlSafeStr, SqlStr, Sqlite};

use super::batch_statement::{Argument, Batch, BatchStatement, postgres_batches, sqlite_batches};
use super::postgres_pool::{PostgresPool, Session};
use super::{Store, StoreFailure};

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

/// The parameters of a statement, `$1` first.
macro_rules! values {
    ($($value:expr),* $(,)?) => { &[$($crate::store::value::Value::from($value)),*] };
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

pub(super) use super::value::Value;
pub(super) use {from_row_struct, values};

/// Where a statement runs.
enum Target<'a> {
    Sqlite(&'a SqlitePool),
    SqliteTransaction(&'a mut sqlx::Transaction<'static, Sqlite>),
    Postgres(&'a PostgresPool),
    PostgresTransaction(&'a mut Session),
}

impl Target<'_> {
    const fn is_sqlite(&self) -> bool {
        matches!(self, Self::Sqlite(_) | Self::SqliteTransaction(_))
    }

    async fn run(self, statement: Statement, values: &[Value<'_>]) -> Result<Rows, StoreFailure> {
        let text = if self.is_sqlite() { statement.sqlite } else { statement.postgres };
        self.run_text(text.into_sql_str(), values.iter().cloned().map(Argument::Value).collect()).await
    }

    async fn run_batches(self, batches: Vec<Batch<'_>>) -> Result<Rows, StoreFailure> {
        let batches: Vec<_> = batches.into_iter().filter(|batch| batch.rows > 0).collect();
        if batches.is_empty() {
            return Ok(Rows::default());
        }
        let (text, arguments) = if self.is_sqlite() { sqlite_batches(batches) } else { postgres_batches(batches) };
        self.run_text(AssertSqlSafe(text).into_sql_str(), arguments).await
    }

    async fn run_text(self, text: SqlStr, arguments: Vec<Argument<'_>>) -> Result<Rows, StoreFailure> {
        Ok(match self {
            Self::Sqlite(pool) => run_sqlite(pool, text, sqlite_arguments(arguments)?).await?,
            Self::SqliteTransaction(tx) => run_sqlite(&mut **tx, text, sqlite_arguments(arguments)?).await?,
            // Boxed: the compiler limits how deeply futures may nest, which shows in release builds alone.
            Self::Postgres(pool) => Box::pin(pool.run(text, postgres_arguments(arguments)?)).await?,
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
        rows: Vec<[Value<'_>; COLUMNS]>,
    ) -> Result<Rows, StoreFailure> {
        self.target().run_batches(vec![statement.of(rows)]).await
    }

    /// Begins a transaction that writes. In SQLite no other can write until its end.
    pub(super) async fn begin(&self) -> Result<Transaction, StoreFailure> {
        Ok(match self {
            Self::Sqlite(pool) => Transaction::Sqlite(pool.begin_with("BEGIN IMMEDIATE").await?),
            Self::Postgres(pool) => Transaction::Postgres(Box::pin(pool.begin()).await?),
        })
    }
}

/// Is rolled back if it is dropped.
#[derive(Debug)]
pub(super) enum Transaction {
    Sqlite(sqlx::Transaction<'static, Sqlite>),
    Postgres(Session),
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
        rows: Vec<[Value<'_>; COLUMNS]>,
    ) -> Result<Rows, StoreFailure> {
        self.target().run_batches(vec![statement.of(rows)]).await
    }

    /// Runs several statements over rows of their own in one round trip, and returns the rows of all. PostgreSQL runs them in any
    /// order.
    pub(super) async fn run_batches(&mut self, batches: Vec<Batch<'_>>) -> Result<Rows, StoreFailure> {
        self.target().run_batches(batches).await
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
            Argument::Value(Value::Text(text)) => arguments.add(text.as_deref().map(Arc::<str>::from)),
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

/// A count that the database returned.
pub(super) fn count(number: i64) -> u64 {
    u64::try_from(number).unwrap_or_default()
}
