//! The one way to run a statement on either database: [`Store::run`], and the same on a [`Transaction`].
//!
//! A statement is written once. Where the two dialects differ, a [`Statement`] has a text for each. A
//! [`BatchStatement`] works on many rows at once.

use std::sync::Arc;

use sqlx::postgres::PgArguments;
use sqlx::sqlite::{SqliteArguments, SqlitePool};
use sqlx::{Arguments, AssertSqlSafe, SqlSafeStr, SqlStr, Sqlite};

use super::batch::{Argument, Batch, BatchStatement, postgres_batches, sqlite_batches};
use super::failure::StoreFailure;
use super::pools_and_durability::Store;
use super::postgres_pool::{PostgresPool, Session};
use super::rows::{Rows, run_sqlite};

/// One statement in both dialects.
#[derive(Clone, Copy, Debug)]
pub(in crate::store) struct Statement {
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
    ($($value:expr),* $(,)?) => { &[$($crate::store::connection::value::Value::from($value)),*] };
}

pub(in crate::store) use super::value::Value;
pub(in crate::store) use values;

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

impl Store {
    fn target(&self) -> Target<'_> {
        match self {
            Self::Sqlite(pool) => Target::Sqlite(pool),
            Self::Postgres(pool) => Target::Postgres(pool),
        }
    }

    /// Runs one statement.
    pub(in crate::store) async fn run(
        &self,
        statement: impl Into<Statement>,
        values: &[Value<'_>],
    ) -> Result<Rows, StoreFailure> {
        self.target().run(statement.into(), values).await
    }

    /// Runs one statement over these rows, unless there are none.
    pub(in crate::store) async fn run_batch<const COLUMNS: usize>(
        &self,
        statement: BatchStatement,
        rows: Vec<[Value<'_>; COLUMNS]>,
    ) -> Result<Rows, StoreFailure> {
        self.target().run_batches(vec![statement.of(rows)]).await
    }

    /// Begins a transaction that writes. In SQLite no other can write until its end.
    pub(in crate::store) async fn begin(&self) -> Result<Transaction, StoreFailure> {
        Ok(match self {
            Self::Sqlite(pool) => Transaction::Sqlite(pool.begin_with("BEGIN IMMEDIATE").await?),
            Self::Postgres(pool) => Transaction::Postgres(Box::pin(pool.begin()).await?),
        })
    }
}

/// Is rolled back if it is dropped.
#[derive(Debug)]
pub(in crate::store) enum Transaction {
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
    pub(in crate::store) async fn run(
        &mut self,
        statement: impl Into<Statement>,
        values: &[Value<'_>],
    ) -> Result<Rows, StoreFailure> {
        self.target().run(statement.into(), values).await
    }

    /// As [`Self::run`], with a text that is made when it is needed.
    pub(in crate::store) async fn run_text(
        &mut self,
        text: String,
        values: &[Value<'_>],
    ) -> Result<Rows, StoreFailure> {
        let arguments = values.iter().cloned().map(Argument::Value).collect();
        self.target().run_text(AssertSqlSafe(text).into_sql_str(), arguments).await
    }

    /// As [`Store::run_batch`], within the transaction.
    pub(in crate::store) async fn run_batch<const COLUMNS: usize>(
        &mut self,
        statement: BatchStatement,
        rows: Vec<[Value<'_>; COLUMNS]>,
    ) -> Result<Rows, StoreFailure> {
        self.target().run_batches(vec![statement.of(rows)]).await
    }

    /// Runs several statements over rows of their own in one round trip, and returns the rows of all. PostgreSQL runs them in any
    /// order.
    pub(in crate::store) async fn run_batches(&mut self, batches: Vec<Batch<'_>>) -> Result<Rows, StoreFailure> {
        self.target().run_batches(batches).await
    }

    pub(in crate::store) async fn commit(self) -> Result<(), StoreFailure> {
        match self {
            Self::Sqlite(tx) => tx.commit().await?,
            Self::Postgres(tx) => tx.commit().await?,
        }
        Ok(())
    }
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
