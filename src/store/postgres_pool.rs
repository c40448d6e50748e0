//! Connections to the PostgreSQL host that takes writes.
//!
//! A connection has settings that durability and the limits of time depend on. Behind a pooler they belong to each transaction
//! instead, because its sessions are handed to others, and every statement with arguments runs in a transaction.
//!
//! When another host is chosen, the next use of a pool closes its connections to the one before. A statement that is under way
//! there is not ended: the one who waits for it has a time limit, or waits until TCP gives up.

use std::sync::{Arc, Mutex, PoisonError};

use futures_util::future::BoxFuture;
use futures_util::stream::{self, BoxStream, StreamExt, TryStreamExt};
use sqlx::pool::PoolConnection;
use sqlx::postgres::{PgConnectOptions, PgPool, PgPoolOptions, PgQueryResult, PgRow, PgStatement, PgTypeInfo};
use sqlx::{
    AssertSqlSafe, ConnectOptions, Connection, Either, Execute, Executor, Postgres, Row, SqlSafeStr, SqlStr,
    Transaction,
};
use tokio::time::timeout;

use super::StoreFailure;
use super::connect::Timeouts;
use super::hosts::{Choice, Hosts, takes_writes};
use super::migrations::{POSTGRES_MIGRATIONS, POSTGRES_MIGRATIONS_WITHOUT_LOCK};
use super::postgres_transaction::PostgresTransaction;

/// Cheap to clone; clones share the connections.
#[derive(Clone, Debug)]
pub struct PostgresPool(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    hosts: Arc<Hosts>,
    timeouts: Timeouts,
    size: u32,
    /// Whether a single host may be a standby, which takes no writes.
    accepts_standby: bool,
    /// The pool of the host that was chosen last.
    pool: Mutex<HostPool>,
}

#[derive(Debug, Default)]
enum HostPool {
    #[default]
    Unused,
    Open(Choice, PgPool),
    Closed,
}

impl HostPool {
    /// Returns the pool that was open.
    fn close(&mut self) -> Option<PgPool> {
        match std::mem::replace(self, Self::Closed) {
            Self::Open(_, pool) => Some(pool),
            Self::Unused | Self::Closed => None,
        }
    }
}

impl PostgresPool {
    /// Connections are opened on first use.
    pub(super) fn open(hosts: &Arc<Hosts>, timeouts: Timeouts, size: u32) -> Self {
        hosts.follow();
        let hosts = Arc::clone(hosts);
        Self(Arc::new(Inner { hosts, timeouts, size, accepts_standby: false, pool: Mutex::default() }))
    }

    /// As [`Self::open`], for reading: a single host may be a standby.
    pub(super) fn open_for_reading(hosts: &Arc<Hosts>, timeouts: Timeouts, size: u32) -> Self {
        hosts.follow();
        let (hosts, accepts_standby) = (Arc::clone(hosts), !hosts.is_several());
        Self(Arc::new(Inner { hosts, timeouts, size, accepts_standby, pool: Mutex::default() }))
    }

    /// The host that is used, if there are several, without user and password.
    pub(super) fn host_in_use(&self) -> Option<String> {
        self.0.hosts.in_use()
    }

    /// Grows when another host is chosen.
    pub(super) fn host_number(&self) -> u64 {
        self.0.hosts.choice_number()
    }

    /// How to connect to the host that takes writes. Waits for one to be found.
    pub(super) async fn connect_options(&self) -> Result<PgConnectOptions, sqlx::Error> {
        Ok(self.0.hosts.options(self.choice().await?).clone())
    }

    pub(super) async fn acquire(&self) -> Result<PoolConnection<Postgres>, sqlx::Error> {
        let acquire = async {
            loop {
                let mut choices = self.0.hosts.choice();
                let pool = self.pool(self.choice().await?)?;
                tokio::select! {
                    biased;
                    // There is no use in waiting for the host before, whose pool may be closed already.
                    Ok(()) = choices.changed() => {}
                    connection = pool.acquire() => match connection {
                        Err(sqlx::Error::PoolClosed) => {}
                        connection => return connection,
                    },
                }
            }
        };
        timeout(self.0.timeouts.connect, acquire).await.unwrap_or(Err(sqlx::Error::PoolTimedOut))
    }

    /// Whether a session is given only for a transaction.
    pub(super) fn has_pooler(&self) -> bool {
        self.0.hosts.has_pooler()
    }

    pub(super) async fn begin(&self) -> Result<PostgresTransaction, sqlx::Error> {
        self.begin_with("BEGIN ISOLATION LEVEL READ COMMITTED").await
    }

    pub(super) async fn begin_with(&self, statement: &'static str) -> Result<PostgresTransaction, sqlx::Error> {
        let statement = if self.has_pooler() {
            AssertSqlSafe(format!("{statement}; {}", settings("SET LOCAL", self.0.timeouts))).into_sql_str()
        } else {
            statement.into_sql_str()
        };
        let transaction = Transaction::begin(self.acquire().await?, Some(statement)).await?;
        Ok(PostgresTransaction::new(transaction, !self.has_pooler()))
    }

    /// Runs the migrations, without limits of time.
    pub(super) async fn migrate(&self) -> Result<(), StoreFailure> {
        if self.has_pooler() {
            return self.migrate_in_transaction().await;
        }
        let host = self.connect_options().await?;
        let connect = timeout(self.0.timeouts.connect, host.connect());
        let mut connection = connect.await.map_err(|_| StoreFailure::timed_out())??;
        // Otherwise every start logs the notice that the table of migrations exists.
        connection.execute("SET client_min_messages = warning").await?;
        POSTGRES_MIGRATIONS.run_direct(None, &mut connection, false).await?;
        connection.close().await?;
        Ok(())
    }

    /// One transaction for all, because it holds the lock. The driver names its statements here, so that names which an earlier
    /// user of the session left are removed first, and its own ones afterwards.
    async fn migrate_in_transaction(&self) -> Result<(), StoreFailure> {
        let mut transaction = self.begin().await?;
        let prepare = "DEALLOCATE ALL; SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = 0; \
                       SET LOCAL client_min_messages = warning; \
                       SELECT pg_advisory_xact_lock(hashtext('porchlight migrations'))";
        transaction.execute(prepare).await?;
        POSTGRES_MIGRATIONS_WITHOUT_LOCK.run_direct(None, transaction.connection(), false).await?;
        transaction.execute("DEALLOCATE ALL").await?;
        transaction.commit().await?;
        Ok(())
    }

    /// Runs one statement on a connection of its own.
    async fn run<'q, E: Execute<'q, Postgres> + 'q>(
        &self,
        mut query: E,
    ) -> Result<Vec<Either<PgQueryResult, PgRow>>, sqlx::Error> {
        if !self.has_pooler() {
            return self.acquire().await?.fetch_many(query).try_collect().await;
        }
        // Without arguments it is one message, so it needs no transaction. `VACUUM` must not be in one.
        let Some(arguments) = query.take_arguments().map_err(sqlx::Error::Encode)? else {
            return self.acquire().await?.fetch_many(query.sql()).try_collect().await;
        };
        let mut transaction = self.begin().await?;
        let parts = transaction.fetch_many((query.sql(), Some(arguments))).try_collect().await?;
        transaction.commit().await?;
        Ok(parts)
    }

    /// Closes the connections, and opens no others.
    pub(super) async fn close(&self) {
        let pool = self.0.pool.lock().unwrap_or_else(PoisonError::into_inner).close();
        if let Some(pool) = pool {
            pool.close().await;
        }
    }

    async fn choice(&self) -> Result<Choice, sqlx::Error> {
        let mut choices = self.0.hosts.choice();
        let found = timeout(self.0.timeouts.connect, choices.wait_for(Option::is_some)).await;
        let choice = found.ok().and_then(Result::ok).and_then(|choice| *choice);
        choice.ok_or_else(|| sqlx::Error::Protocol("none of its hosts takes writes".to_owned()))
    }

    /// The pool of the host. That of an earlier choice is closed, and a later one stays.
    fn pool(&self, choice: Choice) -> Result<PgPool, sqlx::Error> {
        let mut current = self.0.pool.lock().unwrap_or_else(PoisonError::into_inner);
        match &*current {
            HostPool::Closed => return Err(sqlx::Error::Protocol("the connections to it are closed".to_owned())),
            HostPool::Open(of, pool) if of.is_as_late_as(choice) => return Ok(pool.clone()),
            HostPool::Open(..) | HostPool::Unused => {}
        }
        let (host, Inner { timeouts, size, accepts_standby, .. }) = (self.0.hosts.options(choice), &*self.0);
        let pool = if *accepts_standby {
            PgPoolOptions::new()
                .max_connections(*size)
                .acquire_timeout(timeouts.connect)
                .connect_lazy_with(host.clone())
        } else {
            open(host, *timeouts, *size, self.has_pooler())
        };
        if let HostPool::Open(_, before) = std::mem::replace(&mut *current, HostPool::Open(choice, pool.clone())) {
            tokio::spawn(async move { before.close().await });
        }
        Ok(pool)
    }
}

/// What a session or a transaction needs, whatever the server has as its defaults.
fn settings(set: &str, timeouts: Timeouts) -> String {
    let (statement, lock) = (timeouts.statement.as_millis(), timeouts.lock.as_millis());
    format!("{set} synchronous_commit = on; {set} statement_timeout = {statement}; {set} lock_timeout = {lock}")
}

fn open(host: &PgConnectOptions, timeouts: Timeouts, size: u32, has_pooler: bool) -> PgPool {
    let question = "SELECT pg_is_in_recovery()";
    let begin_session = if has_pooler {
        question.to_owned()
    } else {
        let settings = settings("SET", timeouts);
        format!("{settings}; SET default_transaction_isolation = 'read committed'; {question}")
    };
    PgPoolOptions::new()
        .max_connections(size)
        .acquire_timeout(timeouts.connect)
        // A session keeps the defaults of the time it was opened: one that is read-only stays so after the database is
        // not. The question also tells whether the connection works, so the driver's own test is not needed.
        .test_before_acquire(false)
        .before_acquire(|connection, _| Box::pin(takes_writes(connection)))
        .after_connect(move |connection, _| {
            let begin_session = AssertSqlSafe(begin_session.clone());
            Box::pin(async move {
                let is_standby: bool = connection.fetch_one(begin_session).await?.try_get(0)?;
                if is_standby {
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
        let fetched = async move { pool.run(query).await };
        stream::once(fetched).map_ok(|parts| stream::iter(parts).map(Ok)).try_flatten().boxed()
    }

    fn fetch_optional<'e, 'q: 'e, E>(self, query: E) -> BoxFuture<'e, Result<Option<PgRow>, sqlx::Error>>
    where
        'p: 'e,
        E: 'q + Execute<'q, Postgres>,
    {
        let pool = self.clone();
        Box::pin(async move { Ok(pool.run(query).await?.into_iter().find_map(Either::right)) })
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
