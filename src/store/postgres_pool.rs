//! Connections to the PostgreSQL host that takes writes.
//!
//! A connection has settings that durability and the limits of time depend on. Behind a pooler they belong to each transaction
//! instead, because its sessions are handed to others, and every statement with arguments runs in a transaction.
//!
//! When another host is chosen, the connections to the one before are closed, and statements that are under way there fail.

use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use futures_util::stream::{self, BoxStream, StreamExt, TryStreamExt};
use sqlx::error::DatabaseError;
use sqlx::pool::PoolConnection;
use sqlx::postgres::{PgArguments, PgConnectOptions, PgConnection, PgPool, PgPoolOptions};
use sqlx::{AssertSqlSafe, Connection, Executor, Postgres, Row, SqlSafeStr, SqlStr, Transaction};
use tokio::sync::watch;
use tokio::time::timeout;

use super::StoreFailure;
use super::hosts::{Choice, Hosts};
use super::migrations::POSTGRES_MIGRATIONS;
use super::statement::{Rows, run_postgres};
use super::statement_limit::StatementLimit;
use super::timeouts::Timeouts;

/// Migrations of several instances run one after another. Without `client_min_messages` every start logs the notice that the
/// table of migrations exists.
const PREPARE_MIGRATION: &str = "SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = 0; \
     SET LOCAL client_min_messages = warning; SELECT pg_advisory_xact_lock(hashtext('porchlight migrations'))";
/// How long a connection may take to finish what was under way when its user gave it back.
const RETURN_TIMEOUT: Duration = Duration::from_secs(5);

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
    /// Closes the pool of an earlier choice. Its idle connections are closed when those in use have been given back.
    fn leave_host_before(&mut self, choice: Choice) {
        if let Self::Open(of, pool) = self
            && !of.is_as_late_as(choice)
        {
            let pool = pool.clone();
            *self = Self::Unused;
            tokio::spawn(async move { pool.close().await });
        }
    }

    /// Returns the pool that was open.
    fn close(&mut self) -> Option<PgPool> {
        match std::mem::replace(self, Self::Closed) {
            Self::Open(_, pool) => Some(pool),
            Self::Unused | Self::Closed => None,
        }
    }
}

impl PostgresPool {
    /// Connections are opened on first use. If nothing is written, a single host may be a standby.
    pub(super) fn open(hosts: &Arc<Hosts>, timeouts: Timeouts, size: u32, only_reads: bool) -> Self {
        let (accepts_standby, pool) = (only_reads && !hosts.is_several(), Mutex::default());
        let pool = Arc::new(Inner { hosts: Arc::clone(hosts), timeouts, size, accepts_standby, pool });
        if hosts.is_several() {
            hosts.follow();
            tokio::spawn(leave_earlier_hosts(Arc::downgrade(&pool), hosts.choice()));
        }
        Self(pool)
    }

    /// The host that is used, if there are several, without user and password.
    pub(super) fn host_in_use(&self) -> Option<String> {
        self.0.hosts.in_use()
    }

    /// How to connect to the host that takes writes. Waits for one to be found.
    pub(super) async fn connect_options(&self) -> Result<PgConnectOptions, sqlx::Error> {
        Ok(self.0.hosts.options(self.choice().await?).clone())
    }

    /// Returns a connection, and the limit for each of its statements.
    async fn acquire(&self) -> Result<(PoolConnection<Postgres>, StatementLimit), sqlx::Error> {
        let acquire = async {
            let mut choices = self.0.hosts.choice();
            loop {
                let choice = choices.wait_for(Option::is_some).await.ok().and_then(|choice| *choice);
                let (choice, pool) = self.pool(choice.ok_or_else(no_host)?)?;
                tokio::select! {
                    biased;
                    // There is no use in waiting for the host before, whose pool may be closed already.
                    Ok(_) = choices.wait_for(|latest| *latest != Some(choice)) => {}
                    connection = pool.acquire() => match connection {
                        Err(sqlx::Error::PoolClosed) => {}
                        Err(error) => return Err(error),
                        Ok(connection) => {
                            let limit = StatementLimit::new(self.0.timeouts, choice, self.0.hosts.choice());
                            return Ok((connection, limit));
                        }
                    },
                }
            }
        };
        let acquired = timeout(self.0.timeouts.connect, acquire).await;
        acquired.unwrap_or_else(|_| {
            Err(if self.0.hosts.choice().borrow().is_some() { sqlx::Error::PoolTimedOut } else { no_host() })
        })
    }

    /// Runs a first statement that changes nothing, such as `BEGIN`. If the connection has ended since it was last used, another one
    /// is taken.
    async fn begin_on<T, F: Future<Output = Result<T, sqlx::Error>>>(
        &self,
        first: impl Fn(PoolConnection<Postgres>) -> F,
    ) -> Result<(T, StatementLimit), sqlx::Error> {
        let mut unused = self.0.size;
        loop {
            let (connection, mut limit) = self.acquire().await?;
            match limit.apply(first(connection)).await {
                Err(error) if unused > 0 && has_ended(&error) => unused -= 1,
                result => return Ok((result?, limit)),
            }
        }
    }

    /// As [`Self::begin_on`], for statements outside of a transaction, within the time for a connection.
    async fn working_connection(&self) -> Result<(PoolConnection<Postgres>, StatementLimit), sqlx::Error> {
        let working = self.begin_on(|mut connection| async move { connection.ping().await.map(|()| connection) });
        timeout(self.0.timeouts.connect, working).await.unwrap_or(Err(sqlx::Error::PoolTimedOut))
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
        let begin = |connection| Transaction::begin(connection, Some(statement.clone()));
        let (transaction, limit) = self.begin_on(begin).await?;
        Ok(PostgresTransaction { transaction, limit, is_named: !self.has_pooler() })
    }

    /// Runs the migrations, which may take long. One transaction for all, because it holds the lock. The driver names its
    /// statements here. Behind a pooler, names that an earlier user of the session left are removed first, and its own ones
    /// afterwards.
    pub(super) async fn migrate(&self) -> Result<(), StoreFailure> {
        let remove_names = if self.has_pooler() { "DEALLOCATE ALL" } else { "" };
        let mut transaction = self.begin().await?.for_long_statements();
        transaction.execute(remove_names).await?;
        transaction.execute(PREPARE_MIGRATION).await?;
        POSTGRES_MIGRATIONS.run_direct(None, &mut *transaction.transaction, false).await?;
        transaction.execute(remove_names).await?;
        Ok(transaction.commit().await?)
    }

    /// Runs one statement on a connection of its own.
    pub(super) async fn run(&self, sql: SqlStr, arguments: PgArguments) -> Result<Rows, sqlx::Error> {
        if self.has_pooler() {
            let mut transaction = self.begin().await?;
            let rows = transaction.run(sql, arguments).await?;
            transaction.commit().await?;
            return Ok(rows);
        }
        let (mut connection, mut limit) = self.working_connection().await?;
        limit.apply(run_postgres(&mut *connection, sql, arguments, true)).await
    }

    /// Runs statements without parameters outside of a transaction, such as `VACUUM`, which may take long.
    pub(super) async fn execute_long(&self, sql: &'static str) -> Result<(), sqlx::Error> {
        let (mut connection, limit) = self.working_connection().await?;
        limit.for_long_statements().apply(connection.execute(sql)).await.map(drop)
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
        choice.ok_or_else(no_host)
    }

    /// The pool of the host. That of an earlier choice is closed, and a later one stays.
    fn pool(&self, choice: Choice) -> Result<(Choice, PgPool), sqlx::Error> {
        let mut current = self.0.pool.lock().unwrap_or_else(PoisonError::into_inner);
        current.leave_host_before(choice);
        match &*current {
            HostPool::Closed => Err(sqlx::Error::Protocol("the connections to it are closed".to_owned())),
            HostPool::Open(of, pool) => Ok((*of, pool.clone())),
            HostPool::Unused => {
                let (host, Inner { timeouts, size, .. }) = (self.0.hosts.options(choice), &*self.0);
                let pool = if self.0.accepts_standby {
                    PgPoolOptions::new()
                        .max_connections(*size)
                        .acquire_timeout(timeouts.connect)
                        .connect_lazy_with(host.clone())
                } else {
                    open(host, *timeouts, *size, self.has_pooler())
                };
                *current = HostPool::Open(choice, pool.clone());
                Ok((choice, pool))
            }
        }
    }
}

/// Whether the server ended the session, or the network the connection.
fn has_ended(error: &sqlx::Error) -> bool {
    let is_shutdown = |error: &dyn DatabaseError| error.code().is_some_and(|code| code.starts_with("57P0"));
    matches!(error, sqlx::Error::Io(_)) || error.as_database_error().is_some_and(is_shutdown)
}

fn no_host() -> sqlx::Error {
    sqlx::Error::Protocol("none of its hosts takes writes".to_owned())
}

/// Closes the connections to a host when another one is chosen, even if nobody needs a connection then.
async fn leave_earlier_hosts(pool: Weak<Inner>, mut choices: watch::Receiver<Option<Choice>>) {
    while choices.changed().await.is_ok() {
        let Some(pool) = pool.upgrade() else { return };
        let choice = *choices.borrow_and_update();
        if let Some(choice) = choice {
            pool.pool.lock().unwrap_or_else(PoisonError::into_inner).leave_host_before(choice);
        }
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
        .test_before_acquire(false)
        // A session keeps the defaults of the time it was opened: one that is read-only stays so after the database is not. The
        // driver's own ping after this has no limit, and would wait for the answer to a statement that was given up.
        .after_release(|connection, _| {
            let usable = timeout(RETURN_TIMEOUT, is_usable_again(connection));
            Box::pin(async { Ok(usable.await.is_ok_and(|usable| usable.unwrap_or(false))) })
        })
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

/// Whether the session takes writes and is in no transaction. The driver forgets one that was given up before the answer to its
/// `BEGIN`, and what the next user of the connection writes would never be committed.
async fn is_usable_again(connection: &mut PgConnection) -> Result<bool, sqlx::Error> {
    let question = "SELECT now() = statement_timestamp() AND current_setting('transaction_read_only') = 'off'";
    connection.fetch_one(question).await?.try_get(0)
}

/// A transaction, with the limit for each statement. Is rolled back if it is dropped. Behind a pooler its statements have no
/// names: between transactions the pooler hands the server's sessions to others, who would have statements of the same names.
#[derive(Debug)]
pub(super) struct PostgresTransaction {
    pub transaction: Transaction<'static, Postgres>,
    pub limit: StatementLimit,
    pub is_named: bool,
}

impl PostgresTransaction {
    /// For statements that may take long.
    pub(super) fn for_long_statements(self) -> Self {
        Self { limit: self.limit.for_long_statements(), ..self }
    }

    pub(super) async fn run(&mut self, sql: SqlStr, arguments: PgArguments) -> Result<Rows, sqlx::Error> {
        self.limit.apply(run_postgres(&mut *self.transaction, sql, arguments, self.is_named)).await
    }

    /// Streams the only column of a query without parameters. Each row has the limit of a statement.
    pub(super) fn texts(&mut self, sql: String) -> BoxStream<'_, Result<String, sqlx::Error>> {
        let rows = sqlx::query_scalar(AssertSqlSafe(sql)).persistent(self.is_named).fetch(&mut *self.transaction);
        stream::try_unfold((rows, &mut self.limit), async |(mut rows, limit)| {
            let next = limit.apply(rows.try_next()).await?;
            Ok(next.map(|row| (row, (rows, limit))))
        })
        .boxed()
    }

    /// Runs statements without parameters.
    pub(super) async fn execute(&mut self, sql: &'static str) -> Result<(), sqlx::Error> {
        self.limit.apply(self.transaction.execute(sql)).await.map(drop)
    }

    pub(super) async fn commit(mut self) -> Result<(), sqlx::Error> {
        self.limit.apply(self.transaction.commit()).await
    }
}
