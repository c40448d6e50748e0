//! A transaction in PostgreSQL. Behind a pooler its statements have no names: between transactions the pooler hands the server's
//! sessions to others, who would have statements of the same names.

use std::ops::{Deref, DerefMut};

use futures_util::future::BoxFuture;
use futures_util::stream::{self, BoxStream, StreamExt as _, TryStreamExt as _};
use sqlx::error::BoxDynError;
use sqlx::postgres::{PgArguments, PgConnection, PgQueryResult, PgRow, PgStatement, PgTypeInfo};
use sqlx::{Either, Execute, Executor, Postgres, SqlStr, Transaction};

use super::statement_limit::StatementLimit;

/// Is rolled back if it is dropped.
#[derive(Debug)]
pub(super) struct PostgresTransaction(Statements);

/// Runs the statements of a transaction.
#[derive(Debug)]
pub(super) struct Statements {
    transaction: Transaction<'static, Postgres>,
    limit: StatementLimit,
    may_name: bool,
}

impl PostgresTransaction {
    pub(super) const fn new(
        transaction: Transaction<'static, Postgres>,
        limit: StatementLimit,
        may_name: bool,
    ) -> Self {
        Self(Statements { transaction, limit, may_name })
    }

    /// For statements that may take long.
    pub(super) fn for_long_statements(self) -> Self {
        let Statements { transaction, limit, may_name } = self.0;
        Self::new(transaction, limit.for_long_statements(), may_name)
    }

    pub(super) async fn commit(mut self) -> Result<(), sqlx::Error> {
        self.0.limit.apply(self.0.transaction.commit()).await
    }

    /// The connection, on which statements are named.
    pub(super) fn connection(&mut self) -> &mut PgConnection {
        &mut self.0.transaction
    }
}

impl Deref for PostgresTransaction {
    type Target = Statements;

    fn deref(&self) -> &Statements {
        &self.0
    }
}

impl DerefMut for PostgresTransaction {
    fn deref_mut(&mut self) -> &mut Statements {
        &mut self.0
    }
}

impl<'c> Executor<'c> for &'c mut Statements {
    type Database = Postgres;

    fn fetch_many<'e, 'q: 'e, E>(self, query: E) -> BoxStream<'e, Result<Either<PgQueryResult, PgRow>, sqlx::Error>>
    where
        'c: 'e,
        E: 'q + Execute<'q, Postgres>,
    {
        let query = Named { query, may_name: self.may_name };
        let rows = (&mut *self.transaction).fetch_many(query);
        stream::try_unfold((rows, &mut self.limit), async |(mut rows, limit)| {
            let next = limit.apply(rows.try_next()).await?;
            Ok(next.map(|row| (row, (rows, limit))))
        })
        .boxed()
    }

    fn fetch_optional<'e, 'q: 'e, E>(self, query: E) -> BoxFuture<'e, Result<Option<PgRow>, sqlx::Error>>
    where
        'c: 'e,
        E: 'q + Execute<'q, Postgres>,
    {
        let query = Named { query, may_name: self.may_name };
        Box::pin(self.limit.apply((&mut *self.transaction).fetch_optional(query)))
    }

    fn prepare_with<'e>(
        self,
        sql: SqlStr,
        parameters: &'e [PgTypeInfo],
    ) -> BoxFuture<'e, Result<PgStatement, sqlx::Error>>
    where
        'c: 'e,
    {
        Box::pin(self.limit.apply((&mut *self.transaction).prepare_with(sql, parameters)))
    }
}

/// A query whose statement has a name only if it may.
struct Named<E> {
    query: E,
    may_name: bool,
}

impl<'q, E: Execute<'q, Postgres>> Execute<'q, Postgres> for Named<E> {
    fn sql(self) -> SqlStr {
        self.query.sql()
    }

    fn statement(&self) -> Option<&PgStatement> {
        self.query.statement()
    }

    fn take_arguments(&mut self) -> Result<Option<PgArguments>, BoxDynError> {
        self.query.take_arguments()
    }

    /// The driver names the statements that it keeps.
    fn persistent(&self) -> bool {
        self.may_name && self.query.persistent()
    }
}
