//! Connections to the PostgreSQL host that takes writes.
//!
//! When another host is chosen, the connections to the one before are dropped, also those that are in use: a server that
//! answers nothing would keep them for as long as TCP waits.

use std::sync::{Arc, Mutex, PoisonError};

use futures_util::future::BoxFuture;
use futures_util::stream::{self, BoxStream, StreamExt, TryStreamExt};
use sqlx::pool::PoolConnection;
use sqlx::postgres::{PgConnectOptions, PgPool, PgPoolOptions, PgQueryResult, PgRow, PgStatement, PgTypeInfo};
use sqlx::{
    AssertSqlSafe, ConnectOptions, Connection, Either, Execute, Executor, Postgres, SqlSafeStr, SqlStr, Transaction,
};
use tokio::time::timeout;

use super::StoreFailure;
use super::connect::Timeouts;
use super::hosts::{Choice, Hosts, takes_writes};
use super::migrations::POSTGRES_MIGRATIONS;

/// Cheap to clone; clones share the connections.
#[derive(Clone, Debug)]
pub struct PostgresPool(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    hosts: Arc<Hosts>,
    timeouts: Timeouts,
    size: u32,
    /// The pool of the host that was chosen last.
    pool: Mutex<Option<(Choice, PgPool)>>,
}

impl PostgresPool {
    /// Connections are opened on first use.
    pub(super) fn open(hosts: &Arc<Hosts>, timeouts: Timeouts, size: u32) -> Self {
        hosts.follow();
        Self(Arc::new(Inner { hosts: Arc::clone(hosts), timeouts, size, pool: Mutex::default() }))
    }

    /// The host that is used, if there are several, without user and password.
    pub(super) fn host_in_use(&self) -> Option<String> {
        self.0.hosts.in_use()
    }

    /// How to connect to the host that takes writes. Waits for one to be found.
    pub(super) async fn connect_options(&self) -> Result<PgConnectOptions, sqlx::Error> {
        Ok(self.0.hosts.options(self.choice().await?).clone())
    }

    pub(super) async fn acquire(&self) -> Result<PoolConnection<Postgres>, sqlx::Error> {
        loop {
            let mut choices = self.0.hosts.choice();
            let pool = self.pool(self.choice().await?);
            tokio::select! {
                connection = pool.acquire() => return connection,
                // There is no use in waiting for the host before.
                Ok(_) = choices.changed() => {}
            }
        }
    }

    pub(super) async fn begin(&self) -> Result<Transaction<'static, Postgres>, sqlx::Error> {
        Transaction::begin(self.acquire().await?, None).await
    }

    pub(super) async fn begin_with(
        &self,
        statement: &'static str,
    ) -> Result<Transaction<'static, Postgres>, sqlx::Error> {
        Transaction::begin(self.acquire().await?, Some(statement.into_sql_str())).await
    }

    /// Runs the migrations, on a connection without time limits.
    pub(super) async fn migrate(&self) -> Result<(), StoreFailure> {
        let host = self.connect_options().await?;
        let connect = timeout(self.0.timeouts.connect, host.connect());
        let mut connection = connect.await.map_err(|_| StoreFailure::timed_out())??;
        // Otherwise every start logs the notice that the table of migrations exists.
        connection.execute("SET client_min_messages = warning").await?;
        POSTGRES_MIGRATIONS.run_direct(None, &mut connection, false).await?;
        connection.close().await?;
        Ok(())
    }

    pub(super) async fn close(&self) {
        let pool = self.0.pool.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some((_, pool)) = pool {
            pool.close().await;
        }
    }

    async fn choice(&self) -> Result<Choice, sqlx::Error> {
        let mut choices = self.0.hosts.choice();
        let found = timeout(self.0.timeouts.connect, choices.wait_for(Option::is_some)).await;
        let choice = found.ok().and_then(Result::ok).and_then(|choice| *choice);
        choice.ok_or_else(|| sqlx::Error::Protocol("none of its hosts takes writes".to_owned()))
    }

    /// The pool of the host. That of an earlier choice is closed.
    fn pool(&self, choice: Choice) -> PgPool {
        let mut current = self.0.pool.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, pool)) = current.as_ref().filter(|(of, _)| *of == choice) {
            return pool.clone();
        }
        let pool = open(self.0.hosts.options(choice), self.0.timeouts, self.0.size);
        if let Some((_, before)) = current.replace((choice, pool.clone())) {
            tokio::spawn(async move { before.close().await });
        }
        pool
    }
}

fn open(host: &PgConnectOptions, timeouts: Timeouts, size: u32) -> PgPool {
    let settings = format!(
        "SET synchronous_commit = on; SET statement_timeout = {}; SET lock_timeout = {}; \
         SET default_transaction_isolation = 'read committed'",
        timeouts.statement.as_millis(),
        timeouts.lock.as_millis(),
    );
    PgPoolOptions::new()
        .max_connections(size)
        .acquire_timeout(timeouts.connect)
        // A session keeps the defaults of the time it was opened: one that is read-only stays so after the database is
        // not. The question also tells whether the connection works, so the driver's own test is not needed.
        .test_before_acquire(false)
        .before_acquire(|connection, _| Box::pin(takes_writes(connection)))
        .after_connect(move |connection, _| {
            let settings = AssertSqlSafe(settings.clone());
            Box::pin(async move {
                connection.execute(settings).await?;
                let (replica,): (bool,) =
                    sqlx::query_as("SELECT pg_is_in_recovery()").fetch_one(&mut *connection).await?;
                if replica {
                    return Err(sqlx::Error::Protocol(
                        "this PostgreSQL server is a standby and accepts no writes".to_owned(),
                    ));
                }
                Ok(())
            })
        })
        .connect_lazy_with(host.clone())
}

/// Runs each statement on a connection of its own.
impl<'p> Executor<'p> for &PostgresPool {
    type Database = Postgres;

    fn fetch_many<'e, 'q: 'e, E>(self, query: E) -> BoxStream<'e, Result<Either<PgQueryResult, PgRow>, sqlx::Error>>
    where
        'p: 'e,
        E: 'q + Execute<'q, Postgres>,
    {
        let pool = self.clone();
        let fetched = async move { pool.acquire().await?.fetch_many(query).try_collect::<Vec<_>>().await };
        stream::once(fetched).map_ok(|parts| stream::iter(parts).map(Ok)).try_flatten().boxed()
    }

    fn fetch_optional<'e, 'q: 'e, E>(self, query: E) -> BoxFuture<'e, Result<Option<PgRow>, sqlx::Error>>
    where
        'p: 'e,
        E: 'q + Execute<'q, Postgres>,
    {
        let pool = self.clone();
        Box::pin(async move { pool.acquire().await?.fetch_optional(query).await })
    }

    fn prepare_with<'e>(
        self,
        sql: SqlStr,
        parameters: &'e [PgTypeInfo],
    ) -> BoxFuture<'e, Result<PgStatement, sqlx::Error>>
    where
        'p: 'e,
    {
        let pool = self.clone();
        Box::pin(async move { pool.acquire().await?.prepare_with(sql, parameters).await })
    }
}
