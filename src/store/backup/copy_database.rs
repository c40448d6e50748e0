//! Copies all rows of one database to another, for backup, restore and move.
//!
//! Tables and columns are read from the migrations, so a new table needs no change here. Rows are copied as JSON, which
//! both databases read and write, as long as columns are text or integers. The target is written in one transaction: if
//! the copy is interrupted, the target is unchanged.

use futures_util::TryStreamExt;
use futures_util::stream::BoxStream;
use sqlx::AssertSqlSafe;
use sqlx::sqlite::{SqliteConnectOptions, SqlitePool, SqlitePoolOptions};

use super::tables::{TableSchema, TableSummary, tables};
use crate::store::connection::{
    SQLITE_MIGRATIONS, Statement, Store, StoreFailure, Transaction, count, migrations_up_to, values,
};

/// A batch is inserted when it has this many rows or bytes.
const BATCH_ROWS: usize = 1000;
const BATCH_BYTES: usize = 1024 * 1024;

/// Whether other connections may write to a SQLite source during the copy. Their writes are not part of the snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SourceWrites {
    Allowed,
    Blocked,
}

#[derive(Clone, Debug)]
pub enum CopyOutcome {
    Copied(Vec<TableSummary>),
    /// The target had all rows already.
    AlreadyPresent(Vec<TableSummary>),
}

/// Why nothing was copied.
#[derive(Clone, Debug, thiserror::Error)]
pub enum CopyFailure {
    #[error("the target is not empty")]
    NotEmpty,
    #[error("the target has an earlier copy of this database, and one of the two has changed since ({0})")]
    Diverged(String),
    #[error("the table {0} differs after the copy")]
    VerificationFailed(String),
    #[error("{0}")]
    Store(#[from] StoreFailure),
}

impl CopyFailure {
    /// As [`StoreFailure::sentence`].
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

/// A transaction that reads or writes whole tables.
struct CopyTransaction(Transaction);

impl CopyTransaction {
    /// Begins a transaction that reads one snapshot.
    async fn begin_read(store: &Store, writes: SourceWrites) -> Result<Self, StoreFailure> {
        Ok(Self(match (store, writes) {
            (Store::Sqlite(pool), SourceWrites::Allowed) => Transaction::Sqlite(pool.begin().await?),
            (Store::Sqlite(_), SourceWrites::Blocked) => store.begin().await?,
            (Store::Postgres(pool), _) => {
                let tx = pool.begin_with("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY").await?;
                let mut tx = tx.for_long_statements();
                tx.execute("SET LOCAL statement_timeout = 0").await?;
                Transaction::Postgres(tx)
            }
        }))
    }

    /// Begins a transaction that writes. A second copy to the same database waits for the first one.
    async fn begin_write(store: &Store) -> Result<Self, StoreFailure> {
        Ok(Self(match store.begin().await? {
            Transaction::Postgres(tx) => {
                let mut tx = tx.for_long_statements();
                tx.execute(
                    "SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = '30s'; \
                     SELECT pg_advisory_xact_lock(hashtext('porchlight copy'))",
                )
                .await?;
                Transaction::Postgres(tx)
            }
            tx @ Transaction::Sqlite(_) => tx,
        }))
    }

    async fn count_all(&mut self, tables: &[TableSchema]) -> Result<u64, StoreFailure> {
        let mut total = 0;
        for table in tables {
            total += self.count(table).await?;
        }
        Ok(total)
    }

    async fn count(&mut self, table: &TableSchema) -> Result<u64, StoreFailure> {
        let rows = self.0.run_text(format!("SELECT COUNT(*) FROM \"{}\"", table.name), &[]).await?;
        Ok(count(rows.one::<(i64,)>()?.0))
    }

    /// Streams the rows of a table, each as a JSON object.
    fn rows<'a>(&'a mut self, table: &TableSchema) -> BoxStream<'a, Result<String, sqlx::Error>> {
        let name = &table.name;
        match &mut self.0 {
            Transaction::Sqlite(tx) => {
                let members = table.join_columns(|column| format!("'{column}', \"{column}\""));
                sqlx::query_scalar(AssertSqlSafe(format!("SELECT json_object({members}) FROM \"{name}\"")))
                    .fetch(&mut **tx)
            }
            Transaction::Postgres(tx) => tx.texts(format!("SELECT row_to_json(t)::text FROM \"{name}\" t")),
        }
    }

    /// Inserts rows, given as a JSON array of objects.
    async fn insert(&mut self, table: &TableSchema, rows: String) -> Result<(), StoreFailure> {
        let (name, columns) = (&table.name, table.join_columns(|column| format!("\"{column}\"")));
        let selection = match &self.0 {
            Transaction::Sqlite(_) => {
                let values = table.join_columns(|column| format!("value ->> '{column}'"));
                format!("SELECT {values} FROM json_each($1)")
            }
            Transaction::Postgres(_) => {
                format!("SELECT {columns} FROM json_populate_recordset(NULL::\"{name}\", $1::json)")
            }
        };
        let insert = format!("INSERT INTO \"{name}\" ({columns}) {selection}");
        self.0.run_text(insert, values![rows]).await.map(drop)
    }

    async fn summaries(
        &mut self,
        tables: &[TableSchema],
        mut progress: impl FnMut(u64),
    ) -> Result<Vec<TableSummary>, CopyFailure> {
        let (mut summaries, mut done) = (Vec::new(), 0);
        for table in tables {
            let mut summary = table.empty_summary();
            let mut rows = self.rows(table);
            while let Some(row) = rows.try_next().await? {
                summary.add(&row, table)?;
                done += 1;
                progress(done);
            }
            drop(rows);
            summaries.push(summary);
        }
        Ok(summaries)
    }

    /// Whether there are no rows but those that the migrations insert.
    async fn is_empty(&mut self, tables: &[TableSchema]) -> Result<bool, StoreFailure> {
        for table in tables {
            if self.count(table).await? != table.seed_rows {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

impl Store {
    /// Copies all rows to `target`, which has to be empty, and compares them before the commit. `progress` gets the
    /// phase, the number of rows done, and the number of all rows.
    pub async fn copy_to(
        &self,
        target: &Self,
        writes: SourceWrites,
        progress: impl FnMut(&'static str, u64, u64),
    ) -> Result<CopyOutcome, CopyFailure> {
        target.create_private_file()?;
        if target.belongs_to_another_program().await? {
            return Err(CopyFailure::NotEmpty);
        }
        self.require_known_schema().await?;
        target.migrate().await?;
        target.require_known_schema().await?;
        copy(self, target, writes, &tables(&SQLITE_MIGRATIONS).await?, progress).await
    }

    /// Copies a SQLite database whose newest migration is `version` to a temporary database and migrates that.
    pub async fn migrated_copy(
        &self,
        version: i64,
        progress: impl FnMut(&'static str, u64, u64),
    ) -> Result<Self, CopyFailure> {
        let (migrated, pool) = Self::temporary();
        let migrations = migrations_up_to(version);
        migrations.run(&pool).await.map_err(StoreFailure::from)?;
        copy(self, &migrated, SourceWrites::Allowed, &tables(&migrations).await?, progress).await?;
        SQLITE_MIGRATIONS.run(&pool).await.map_err(StoreFailure::from)?;
        Ok(migrated)
    }

    /// Creates an empty temporary database. SQLite unlinks its file right after opening it, so no other user can read it,
    /// and the space is freed with the only connection even if the process is killed.
    fn temporary() -> (Self, SqlitePool) {
        let options = SqliteConnectOptions::new().filename("").create_if_missing(true);
        let pool = SqlitePoolOptions::new().max_connections(1).idle_timeout(None).max_lifetime(None);
        let pool = pool.connect_lazy_with(options);
        (Self::Sqlite(pool.clone()), pool)
    }

    /// Summarizes each table of a database whose newest migration is `version`, from one snapshot.
    pub async fn table_summaries(
        &self,
        version: i64,
        mut progress: impl FnMut(u64, u64),
    ) -> Result<Vec<TableSummary>, CopyFailure> {
        let tables = tables(&migrations_up_to(version)).await?;
        let mut transaction = CopyTransaction::begin_read(self, SourceWrites::Allowed).await?;
        let total = transaction.count_all(&tables).await?;
        transaction.summaries(&tables, |done| progress(done, total)).await
    }

    /// Whether the database has tables, but not that of our migrations.
    async fn belongs_to_another_program(&self) -> Result<bool, StoreFailure> {
        const COUNT_TABLES: Statement = Statement {
            sqlite: "SELECT COUNT(*), COUNT(CASE name WHEN '_sqlx_migrations' THEN 1 END) FROM sqlite_schema \
                     WHERE type = 'table'",
            postgres: "SELECT COUNT(*), COUNT(CASE tablename WHEN '_sqlx_migrations' THEN 1 END) \
                       FROM pg_tables WHERE schemaname = current_schema()",
        };
        let (tables, ours): (i64, i64) = self.run(COUNT_TABLES, &[]).await?.one()?;
        Ok(tables > 0 && ours == 0)
    }
}

async fn copy(
    source: &Store,
    target: &Store,
    writes: SourceWrites,
    tables: &[TableSchema],
    mut progress: impl FnMut(&'static str, u64, u64),
) -> Result<CopyOutcome, CopyFailure> {
    let mut source = CopyTransaction::begin_read(source, writes).await?;
    let mut target = CopyTransaction::begin_write(target).await?;
    let total = source.count_all(tables).await?;
    if !target.is_empty(tables).await? {
        let in_target = target.summaries(tables, |done| progress("reading target", done, total)).await?;
        let in_source = source.summaries(tables, |done| progress("reading source", done, total)).await?;
        return if differing_tables(&in_source, &in_target).next().is_none() {
            Ok(CopyOutcome::AlreadyPresent(in_target))
        } else {
            Err(difference(&in_source, &in_target))
        };
    }
    for table in tables.iter().rev().filter(|table| table.seed_rows > 0) {
        target.0.run_text(format!("DELETE FROM \"{}\"", table.name), &[]).await?;
    }
    let (mut read, mut done) = (Vec::new(), 0);
    for table in tables {
        let summary = copy_table(&mut source, &mut target, table, |rows| {
            done += rows;
            progress("copying rows", done, total);
        });
        read.push(summary.await?);
    }
    let written = target.summaries(tables, |done| progress("verifying", done, total)).await?;
    if let Some((summary, _)) = read.iter().zip(&written).find(|(read, written)| read != written) {
        return Err(CopyFailure::VerificationFailed(summary.table.clone()));
    }
    target.0.commit().await?;
    Ok(CopyOutcome::Copied(read))
}

/// The tables that differ since an earlier copy. That the makers copied the database is recorded in the target alone.
fn differing_tables<'a>(
    source: &'a [TableSummary],
    target: &'a [TableSummary],
) -> impl Iterator<Item = (&'a TableSummary, &'a TableSummary)> {
    source.iter().zip(target).filter(|(source, target)| source != target && source.table != "activity")
}

/// Explains why the target is not a copy. Ids and secrets are random, so if any non-empty table is equal, the target was
/// copied from this source earlier (`Diverged`); otherwise it is unrelated (`NotEmpty`).
fn difference(source: &[TableSummary], target: &[TableSummary]) -> CopyFailure {
    if !source.iter().zip(target).any(|(source, target)| source.rows > 0 && source == target) {
        return CopyFailure::NotEmpty;
    }
    let described = differing_tables(source, target).map(|(source, target)| {
        if source.rows == target.rows {
            format!("{}: changed rows", source.table)
        } else {
            format!("{}: {} in the source, {} in the target", source.table, source.rows, target.rows)
        }
    });
    CopyFailure::Diverged(described.collect::<Vec<_>>().join("; "))
}

async fn copy_table(
    source: &mut CopyTransaction,
    target: &mut CopyTransaction,
    table: &TableSchema,
    mut progress: impl FnMut(u64),
) -> Result<TableSummary, CopyFailure> {
    let mut summary = table.empty_summary();
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
        let Some(row) = row else { return Ok(summary) };
        summary.add(&row, table)?;
        if count > 0 {
            batch.push(',');
        }
        batch.push_str(&row);
        count += 1;
    }
}
