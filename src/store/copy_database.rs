//! Everything that one database holds into another, table by table, whatever the tables are.
//!
//! Tables and columns are those that the migrations make, so a new one is carried without a word
//! here. Rows travel as JSON, which both databases write and read. All of it is one transaction of
//! the target: whatever ends the program in between, the target is as it was.

use futures_util::TryStreamExt;
use futures_util::stream::BoxStream;
use sqlx::{AssertSqlSafe, Executor, Postgres, Sqlite, Transaction};

use super::migrations::SQLITE_MIGRATIONS;
use super::tables::{Table, TableSummary, migrations_up_to, tables};
use super::{Store, StoreFailure};

/// Rows are handed over so many at a time, or fewer when they are long.
const BATCH_ROWS: usize = 1000;
const BATCH_BYTES: usize = 1024 * 1024;

/// Whether others may write to the source meanwhile. What they write is not carried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SourceWrites {
    Allowed,
    Blocked,
}

#[derive(Clone, Debug)]
pub enum Copied {
    Now(Vec<TableSummary>),
    /// Everything was there already.
    Earlier(Vec<TableSummary>),
}

/// Nothing was carried, and why.
#[derive(Clone, Debug, thiserror::Error)]
pub enum CopyFailure {
    #[error("it holds something already, and that stays")]
    NotEmpty,
    #[error("it holds this database as it was once carried, and one of the two was written to since ({0})")]
    Diverged(String),
    #[error("the table {0} did not arrive as it was")]
    Differs(String),
    #[error("{0}")]
    Store(#[from] StoreFailure),
}

impl CopyFailure {
    /// As [`StoreFailure::sentence`].
    #[must_use]
    pub fn sentence(&self, outcome: &str) -> String {
        match self {
            Self::Store(failure) => failure.sentence(outcome),
            other => format!("{outcome}: {other}."),
        }
    }
}

impl From<sqlx::Error> for CopyFailure {
    fn from(error: sqlx::Error) -> Self {
        StoreFailure::from(error).into()
    }
}

/// A transaction in which everything is read or written.
enum Session {
    Sqlite(Transaction<'static, Sqlite>),
    Postgres(Transaction<'static, Postgres>),
}

impl Session {
    /// Sees the database as it is at this moment, whatever is written later.
    async fn reading(store: &Store, writes: SourceWrites) -> Result<Self, sqlx::Error> {
        Ok(match store {
            Store::Sqlite(pool) => Self::Sqlite(match writes {
                SourceWrites::Allowed => pool.begin().await?,
                SourceWrites::Blocked => pool.begin_with("BEGIN IMMEDIATE").await?,
            }),
            Store::Postgres(pool) => {
                let mut tx = pool.begin_with("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY").await?;
                tx.execute("SET LOCAL statement_timeout = 0").await?;
                Self::Postgres(tx)
            }
        })
    }

    /// One at a time: who comes second waits for the first, or for the server to notice its end.
    async fn writing(store: &Store) -> Result<Self, sqlx::Error> {
        Ok(match store {
            Store::Sqlite(pool) => Self::Sqlite(pool.begin_with("BEGIN IMMEDIATE").await?),
            Store::Postgres(pool) => {
                let mut tx = pool.begin().await?;
                tx.execute(
                    "SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = '30s'; \
                     SELECT pg_advisory_xact_lock(hashtext('porchlight carries'))",
                )
                .await?;
                Self::Postgres(tx)
            }
        })
    }

    async fn execute(&mut self, statement: String) -> Result<(), sqlx::Error> {
        match self {
            Self::Sqlite(tx) => tx.execute(AssertSqlSafe(statement)).await.map(drop),
            Self::Postgres(tx) => tx.execute(AssertSqlSafe(statement)).await.map(drop),
        }
    }

    async fn count(&mut self, table: &Table) -> Result<u64, sqlx::Error> {
        let count = AssertSqlSafe(format!("SELECT COUNT(*) FROM \"{}\"", table.name));
        let rows: i64 = match self {
            Self::Sqlite(tx) => sqlx::query_scalar(count).fetch_one(&mut **tx).await?,
            Self::Postgres(tx) => sqlx::query_scalar(count).fetch_one(&mut **tx).await?,
        };
        Ok(u64::try_from(rows).unwrap_or_default())
    }

    async fn count_all(&mut self, tables: &[Table]) -> Result<u64, sqlx::Error> {
        let mut all = 0;
        for table in tables {
            all += self.count(table).await?;
        }
        Ok(all)
    }

    /// Each row as a JSON object.
    fn rows<'a>(&'a mut self, table: &Table) -> BoxStream<'a, Result<String, sqlx::Error>> {
        let name = &table.name;
        match self {
            Self::Sqlite(tx) => {
                let members = table.listed(|column| format!("'{column}', \"{column}\""));
                sqlx::query_scalar(AssertSqlSafe(format!("SELECT json_object({members}) FROM \"{name}\"")))
                    .fetch(&mut **tx)
            }
            Self::Postgres(tx) => {
                sqlx::query_scalar(AssertSqlSafe(format!("SELECT row_to_json(t)::text FROM \"{name}\" t")))
                    .fetch(&mut **tx)
            }
        }
    }

    /// Puts in rows, as a JSON array of objects.
    async fn insert(&mut self, table: &Table, rows: String) -> Result<(), sqlx::Error> {
        let (name, columns) = (&table.name, table.listed(|column| format!("\"{column}\"")));
        match self {
            Self::Sqlite(tx) => {
                let values = table.listed(|column| format!("value ->> '{column}'"));
                let insert = format!("INSERT INTO \"{name}\" ({columns}) SELECT {values} FROM json_each($1)");
                sqlx::query(AssertSqlSafe(insert)).bind(rows).execute(&mut **tx).await.map(drop)
            }
            Self::Postgres(tx) => {
                let rows_of = format!("json_populate_recordset(NULL::\"{name}\", $1::json)");
                let insert = format!("INSERT INTO \"{name}\" ({columns}) SELECT {columns} FROM {rows_of}");
                sqlx::query(AssertSqlSafe(insert)).bind(rows).execute(&mut **tx).await.map(drop)
            }
        }
    }

    async fn contents(
        &mut self,
        tables: &[Table],
        mut progress: impl FnMut(u64),
    ) -> Result<Vec<TableSummary>, CopyFailure> {
        let (mut all, mut done) = (Vec::new(), 0);
        for table in tables {
            let mut contents = table.empty();
            let mut rows = self.rows(table);
            while let Some(row) = rows.try_next().await? {
                contents.add(&row, table)?;
                done += 1;
                progress(done);
            }
            drop(rows);
            all.push(contents);
        }
        Ok(all)
    }

    /// Whether there is nothing but what the migrations put in.
    async fn is_fresh(&mut self, tables: &[Table]) -> Result<bool, sqlx::Error> {
        for table in tables {
            if self.count(table).await? != table.rows_at_first {
                return Ok(false);
            }
        }
        Ok(true)
    }

    async fn commit(self) -> Result<(), sqlx::Error> {
        match self {
            Self::Sqlite(tx) => tx.commit().await,
            Self::Postgres(tx) => tx.commit().await,
        }
    }
}

impl Store {
    /// Carries everything into `target`, which has to be fresh, and reads it back there before it
    /// counts. `progress` hears what is being done, and how many rows of how many are.
    ///
    /// # Errors
    /// When nothing was carried. The target is as it was, but for tables without rows.
    pub async fn copy_to(
        &self,
        target: &Self,
        writes: SourceWrites,
        progress: impl FnMut(&'static str, u64, u64),
    ) -> Result<Copied, CopyFailure> {
        if target.is_somebody_elses().await? {
            return Err(CopyFailure::NotEmpty);
        }
        target.prepare().await?;
        carry(self, target, writes, &tables(&SQLITE_MIGRATIONS).await?, progress).await
    }

    /// What an embedded database of an older version holds, which came up to the migration `version`, in one of this
    /// version. That one has no name on the disk and ends with this program, however it ends.
    ///
    /// # Errors
    /// When it cannot be read, or there is no room for temporary files.
    pub async fn upgraded_copy(
        &self,
        version: i64,
        progress: impl FnMut(&'static str, u64, u64),
    ) -> Result<Self, CopyFailure> {
        let (renewed, pool) = Self::without_a_name();
        let known = migrations_up_to(version);
        known.run(&pool).await.map_err(StoreFailure::from)?;
        carry(self, &renewed, SourceWrites::Allowed, &tables(&known).await?, progress).await?;
        SQLITE_MIGRATIONS.run(&pool).await.map_err(StoreFailure::from)?;
        Ok(renewed)
    }

    /// What each table holds, as one moment has it, of a database that came up to the migration `version`.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn table_summaries(
        &self,
        version: i64,
        mut progress: impl FnMut(u64, u64),
    ) -> Result<Vec<TableSummary>, CopyFailure> {
        let tables = tables(&migrations_up_to(version)).await?;
        let mut session = Session::reading(self, SourceWrites::Allowed).await?;
        let all = session.count_all(&tables).await?;
        session.contents(&tables, |done| progress(done, all)).await
    }

    /// Whether there are tables, and none of them ours.
    async fn is_somebody_elses(&self) -> Result<bool, StoreFailure> {
        const IN_SQLITE: &str = "SELECT COUNT(*), COUNT(CASE name WHEN '_sqlx_migrations' THEN 1 END) FROM sqlite_schema WHERE type = 'table'";
        const IN_POSTGRES: &str = "SELECT COUNT(*), COUNT(CASE tablename WHEN '_sqlx_migrations' THEN 1 END) \
                                   FROM pg_tables WHERE schemaname = current_schema()";
        let (tables, ours): (i64, i64) = match self {
            Self::Sqlite(pool) => sqlx::query_as(IN_SQLITE).fetch_one(pool).await?,
            Self::Postgres(pool) => sqlx::query_as(IN_POSTGRES).fetch_one(pool).await?,
        };
        Ok(tables > 0 && ours == 0)
    }
}

async fn carry(
    source: &Store,
    target: &Store,
    writes: SourceWrites,
    tables: &[Table],
    mut progress: impl FnMut(&'static str, u64, u64),
) -> Result<Copied, CopyFailure> {
    let mut source = Session::reading(source, writes).await?;
    let mut target = Session::writing(target).await?;
    let all = source.count_all(tables).await?;
    if !target.is_fresh(tables).await? {
        let there = target.contents(tables, |done| progress("reading target", done, all)).await?;
        let here = source.contents(tables, |done| progress("reading source", done, all)).await?;
        return if here == there { Ok(Copied::Earlier(there)) } else { Err(difference(&here, &there)) };
    }
    for table in tables.iter().rev().filter(|table| table.rows_at_first > 0) {
        target.execute(format!("DELETE FROM \"{}\"", table.name)).await?;
    }
    let (mut carried, mut done) = (Vec::new(), 0);
    for table in tables {
        let contents = carry_table(&mut source, &mut target, table, |rows| {
            done += rows;
            progress("copying rows", done, all);
        });
        carried.push(contents.await?);
    }
    let arrived = target.contents(tables, |done| progress("verifying", done, all)).await?;
    if let Some((table, _)) = carried.iter().zip(&arrived).find(|(left, arrived)| left != arrived) {
        return Err(CopyFailure::Differs(table.table.clone()));
    }
    target.commit().await?;
    Ok(Copied::Now(carried))
}

/// Every database has secrets and ids of its own, so two that have a table in common are of one origin.
fn difference(here: &[TableSummary], there: &[TableSummary]) -> CopyFailure {
    let pairs = || here.iter().zip(there);
    if !pairs().any(|(here, there)| here.rows > 0 && here == there) {
        return CopyFailure::NotEmpty;
    }
    let changed = pairs().filter(|(here, there)| here != there);
    let described = changed.map(|(here, there)| match (here.rows, there.rows) {
        (here_rows, there_rows) if here_rows == there_rows => format!("{}: changed rows", here.table),
        (here_rows, there_rows) => format!("{}: {here_rows} here, {there_rows} there", here.table),
    });
    CopyFailure::Diverged(described.collect::<Vec<_>>().join("; "))
}

async fn carry_table(
    source: &mut Session,
    target: &mut Session,
    table: &Table,
    mut progress: impl FnMut(u64),
) -> Result<TableSummary, CopyFailure> {
    let mut contents = table.empty();
    let (mut batch, mut count) = (String::new(), 0);
    let mut rows = source.rows(table);
    loop {
        let row = rows.try_next().await?;
        let full = count == BATCH_ROWS || batch.len() > BATCH_BYTES;
        if count > 0 && (full || row.is_none()) {
            target.insert(table, format!("[{batch}]")).await?;
            progress(count as u64);
            (batch, count) = (String::new(), 0);
        }
        let Some(row) = row else { return Ok(contents) };
        contents.add(&row, table)?;
        if count > 0 {
            batch.push(',');
        }
        batch.push_str(&row);
        count += 1;
    }
}
