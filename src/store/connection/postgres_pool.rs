//! Connections to the PostgreSQL host that takes writes.
//!
//! A connection has settings that durability and the limits of time depend on. Behind a pooler they belong to each transaction
//! instead, because its sessions are handed to others, and every statement with arguments runs in a transaction.
//!
//! A connection is used again only if its last statement or transaction was completed. Any other one is closed, because it may
//! be in the middle of a statement or of a transaction, or in a session that is read-only.
//!
//! When another host is chosen, the connections to the one before are closed, and statements that are under way there fail.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use futures_util::stream::{self, BoxStream, StreamExt, TryStreamExt};
use sqlx::error::DatabaseError;
use sqlx::migrate::Migration;
use sqlx::pool::PoolConnection;
use sqlx::postgres::{PgArguments, PgConnectOptions, PgPool, PgPoolOptions};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, Executor, Postgres, Row, SqlSafeStr, SqlStr};
use tokio::sync::watch;
use tokio::time::timeout;

use super::failure::StoreFailure;
use super::hosts::Hosts;
use super::migrations::POSTGRES_MIGRATIONS;
use super::rows::{Rows, run_postgres};
use super::selected_host::SelectedHost;
use super::statement_limit::StatementLimit;
use super::timeouts::Timeouts;

const BEGIN: &str = "BEGIN ISOLATION LEVEL READ COMMITTED";
/// Migrations of several instances run one after another. While one waits for a lock on a table, nobody else gets one, so it gives
/// up soon. Without `client_min_messages` every migration logs the notice that the table of migrations exists.
const PREPARE_MIGRATION: &str = "SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = 500; \
     SET LOCAL client_min_messages = warning; SELECT pg_advisory_xact_lock(hashtext('porchlight migrations'))";

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
    Open(SelectedHost, PgPool),
    Closed,
}

impl HostPool {
    /// Closes the pool of an earlier choice. Its idle connections are closed when those in use have been given back.
    fn close_previous_pool(&mut self, choice: SelectedHost) {
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
            tokio::spawn(close_previous_pools(Arc::downgrade(&pool), hosts.choice()));
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

    async fn acquire(&self) -> Result<Session, sqlx::Error> {
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
                            return Ok(Session { connection, limit, is_named: !self.has_pooler(), has_succeeded: false });
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

    /// Begins a transaction, or without a statement only tests the connection. If it has ended since it was last used, another
    /// one is taken.
    async fn begin_on(&self, statement: Option<SqlStr>) -> Result<Session, sqlx::Error> {
        let mut unused = self.0.size;
        loop {
            let mut session = self.acquire().await?;
            let Session { connection, limit, .. } = &mut session;
            let first = async {
                match statement.clone() {
                    None => connection.ping().await,
                    Some(statement) => connection.execute(statement).await.map(drop),
                }
            };
            match limit.apply(first).await {
                Err(error) if unused > 0 && has_ended(&error) => unused -= 1,
                result => return result.map(|()| session),
            }
        }
    }

    /// For statements outside of a transaction. The test counts towards the time for a connection.
    async fn working_connection(&self) -> Result<Session, sqlx::Error> {
        let working = timeout(self.0.timeouts.connect, self.begin_on(None));
        working.await.unwrap_or(Err(sqlx::Error::PoolTimedOut))
    }

    /// Whether a session is given only for a transaction.
    pub(super) fn has_pooler(&self) -> bool {
        self.0.hosts.has_pooler()
    }

    pub(super) async fn begin(&self) -> Result<Session, sqlx::Error> {
        self.begin_with(BEGIN).await
    }

    pub(in crate::store) async fn begin_with(&self, statement: &'static str) -> Result<Session, sqlx::Error> {
        self.begin_on(Some(self.with_settings(statement))).await
    }

    /// Behind a pooler, a transaction begins with the settings that elsewhere belong to the session.
    fn with_settings(&self, begin: &'static str) -> SqlStr {
        if self.has_pooler() {
            AssertSqlSafe(format!("{begin}; {}", settings("SET LOCAL", self.0.timeouts))).into_sql_str()
        } else {
            begin.into_sql_str()
        }
    }

    /// Runs one migration, which may take long, unless it was run before. The transaction is that of the driver, which begins
    /// another one within. The driver names its statements here. Behind a pooler, names that an earlier user of the session left
    /// are removed first, and its own ones afterwards.
    pub(super) async fn migrate(&self, migration: &Migration) -> Result<(), StoreFailure> {
        if migration.no_tx {
            self.run_without_transaction(&migration.sql).await?;
        }
        let remove_names = if self.has_pooler() { "DEALLOCATE ALL" } else { "" };
        let mut session = self.working_connection().await?.for_long_statements();
        let Session { connection, limit, has_succeeded, .. } = &mut session;
        let migrate = async {
            let mut transaction = connection.begin_with(self.with_settings(BEGIN)).await?;
            transaction.execute(remove_names).await?;
            transaction.execute(PREPARE_MIGRATION).await?;
            let (version, only_record) = (Some(migration.version), migration.no_tx);
            POSTGRES_MIGRATIONS.run_direct(version, &mut *transaction, only_record).await?;
            transaction.execute(remove_names).await?;
            Ok::<_, StoreFailure>(transaction.commit().await?)
        };
        limit.apply(async { Ok(migrate.await) }).await??;
        *has_succeeded = true;
        Ok(())
    }

    /// Runs each statement by itself: `CREATE INDEX CONCURRENTLY` refuses a transaction, also that of a text with several
    /// statements. It has no limit of time, and no connection of the pool.
    async fn run_without_transaction(&self, statements: &SqlStr) -> Result<(), StoreFailure> {
        let mut connection = self.connect_options().await?.connect().await?;
        for statement in statements.as_str().split_inclusive(";\n") {
            connection.execute(AssertSqlSafe(statement.to_owned())).await?;
        }
        Ok(connection.close().await?)
    }

    /// Runs one statement on a connection of its own.
    pub(super) async fn run(&self, sql: SqlStr, arguments: PgArguments) -> Result<Rows, sqlx::Error> {
        if self.has_pooler() {
            let mut session = self.begin().await?;
            let rows = session.run(sql, arguments).await?;
            return session.commit().await.map(|()| rows);
        }
        let mut session = self.working_connection().await?;
        let rows = session.run(sql, arguments).await?;
        session.has_succeeded = true;
        Ok(rows)
    }

    /// Runs statements without parameters outside of a transaction, such as `VACUUM`, which may take long.
    pub(in crate::store) async fn execute_long(&self, sql: &'static str) -> Result<(), sqlx::Error> {
        let mut session = self.working_connection().await?.for_long_statements();
        session.execute(sql).await?;
        session.has_succeeded = true;
        Ok(())
    }

    /// Closes the connections, and opens no others.
    pub(super) async fn close(&self) {
        let pool = self.0.pool.lock().unwrap_or_else(PoisonError::into_inner).close();
        if let Some(pool) = pool {
            pool.close().await;
        }
    }

    async fn choice(&self) -> Result<SelectedHost, sqlx::Error> {
        let mut choices = self.0.hosts.choice();
        let found = timeout(self.0.timeouts.connect, choices.wait_for(Option::is_some)).await;
        let choice = found.ok().and_then(Result::ok).and_then(|choice| *choice);
        choice.ok_or_else(no_host)
    }

    /// The pool of the host. That of an earlier choice is closed, and a later one stays.
    fn pool(&self, choice: SelectedHost) -> Result<(SelectedHost, PgPool), sqlx::Error> {
        let mut current = self.0.pool.lock().unwrap_or_else(PoisonError::into_inner);
        current.close_previous_pool(choice);
        match &*current {
            HostPool::Closed => Err(sqlx::Error::Protocol("the connections to it are closed".to_owned())),
            HostPool::Open(of, pool) => Ok((*of, pool.clone())),
            HostPool::Unused => {
                let pool = self.0.open(choice);
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
async fn close_previous_pools(pool: Weak<Inner>, mut choices: watch::Receiver<Option<SelectedHost>>) {
    while choices.changed().await.is_ok() {
        let Some(pool) = pool.upgrade() else { return };
        let choice = *choices.borrow_and_update();
        if let Some(choice) = choice {
            pool.pool.lock().unwrap_or_else(PoisonError::into_inner).close_previous_pool(choice);
        }
    }
}

/// What a session or a transaction needs, whatever the server has as its defaults.
fn settings(set: &str, timeouts: Timeouts) -> String {
    let (statement, lock) = (timeouts.statement.as_millis(), timeouts.lock.as_millis());
    format!("{set} synchronous_commit = on; {set} statement_timeout = {statement}; {set} lock_timeout = {lock}")
}

impl Inner {
    fn open(&self, choice: SelectedHost) -> PgPool {
        let question = "SELECT pg_is_in_recovery()";
        let begin_session = if self.hosts.has_pooler() {
            question.to_owned()
        } else {
            let settings = settings("SET", self.timeouts);
            format!("{settings}; SET default_transaction_isolation = 'read committed'; {question}")
        };
        let accepts_standby = self.accepts_standby;
        PgPoolOptions::new()
            .max_connections(self.size)
            .acquire_timeout(self.timeouts.connect)
            .test_before_acquire(false)
            .after_connect(move |connection, _| {
                let begin_session = AssertSqlSafe(begin_session.clone());
                Box::pin(async move {
                    let is_standby: bool = connection.fetch_one(begin_session).await?.try_get(0)?;
                    if is_standby && !accepts_standby {
                        let problem = "this PostgreSQL server is a standby and accepts no writes";
                        return Err(sqlx::Error::Protocol(problem.to_owned()));
                    }
                    Ok(())
                })
            })
            .connect_lazy_with(self.hosts.options(choice).clone())
    }
}

/// A connection on which a statement or a transaction runs, with the limit for each statement. If it is dropped before it has
/// succeeded, the connection is closed, and a transaction is rolled back.
#[derive(Debug)]
pub(in crate::store) struct Session {
    connection: PoolConnection<Postgres>,
    limit: StatementLimit,
    /// Behind a pooler statements have no names: between transactions it hands the server's sessions to others, who would have
    /// statements of the same names.
    is_named: bool,
    has_succeeded: bool,
}

impl Drop for Session {
    fn drop(&mut self) {
        if !self.has_succeeded {
            self.connection.close_on_drop();
        }
    }
}

impl Session {
    /// For statements that may take long.
    pub(in crate::store) fn for_long_statements(mut self) -> Self {
        self.limit.allow_long_statements();
        self
    }

    pub(super) async fn run(&mut self, sql: SqlStr, arguments: PgArguments) -> Result<Rows, sqlx::Error> {
        self.limit.apply(run_postgres(&mut *self.connection, sql, arguments, self.is_named)).await
    }

    /// Streams the only column of a query without parameters. Each row has the limit of a statement.
    pub(in crate::store) fn texts(&mut self, sql: String) -> BoxStream<'_, Result<String, sqlx::Error>> {
        let rows = sqlx::query_scalar(AssertSqlSafe(sql)).persistent(self.is_named).fetch(&mut *self.connection);
        stream::try_unfold((rows, &mut self.limit), async |(mut rows, limit)| {
            let next = limit.apply(rows.try_next()).await?;
            Ok(next.map(|row| (row, (rows, limit))))
        })
        .boxed()
    }

    /// Runs statements without parameters.
    pub(in crate::store) async fn execute(&mut self, sql: &'static str) -> Result<(), sqlx::Error> {
        self.limit.apply(self.connection.execute(sql)).await.map(drop)
    }

    pub(super) async fn commit(mut self) -> Result<(), sqlx::Error> {
        self.execute("COMMIT").await?;
        self.has_succeeded = true;
        Ok(())
    }
}
