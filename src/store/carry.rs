//! Everything that one database holds into another, table by table, whatever the tables are.
//!
//! Tables and columns are those that the migrations make, so a new one is carried without a word
//! here. Rows travel as JSON, which both databases write and read. All of it is one transaction of
//! the target: whatever ends the program in between, the target is as it was.

use futures_util::TryStreamExt;
use futures_util::stream::BoxStream;
use serde_json::{Map, Value};
use sqlx::{AssertSqlSafe, Connection, Executor, Postgres, Sqlite, SqliteConnection, Transaction};

use super::connect::SQLITE_MIGRATIONS;
use super::{Store, StoreFailure};
use crate::domain::digest::Digest;

/// Rows are handed over so many at a time, or fewer when they are long.
const BATCH_ROWS: usize = 1000;
const BATCH_BYTES: usize = 1024 * 1024;

/// What a table holds: how many rows, and a sum over what is in them that is the same in any order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contents {
    pub table: String,
    pub rows: u64,
    sum: u128,
}

/// Whether others may write to the source meanwhile. What they write is not carried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Others {
    MayWrite,
    Wait,
}

#[derive(Clone, Debug)]
pub enum Carried {
    Now(Vec<Contents>),
    /// Everything was there already.
    Before(Vec<Contents>),
}

/// Nothing was carried, and why.
#[derive(Clone, Debug, thiserror::Error)]
pub enum CarryFailure {
    #[error("it holds something already, and that stays")]
    Occupied,
    #[error("the table {0} did not arrive as it was")]
    Differs(String),
    #[error("{0}")]
    Store(#[from] StoreFailure),
}

impl CarryFailure {
    /// As [`StoreFailure::sentence`].
    #[must_use]
    pub fn sentence(&self, outcome: &str) -> String {
        match self {
            Self::Store(failure) => failure.sentence(outcome),
            other => format!("{outcome}: {other}."),
        }
    }
}

impl From<sqlx::Error> for CarryFailure {
    fn from(error: sqlx::Error) -> Self {
        StoreFailure::from(error).into()
    }
}

/// A table as the migrations make it.
struct Table {
    name: String,
    columns: Vec<String>,
    /// Rows that the migrations themselves put in.
    rows_at_first: u64,
}

/// In the order in which they were made: whatever a table refers to comes before it.
async fn tables() -> Result<Vec<Table>, StoreFailure> {
    const NAMES: &str = "SELECT name FROM sqlite_schema WHERE type = 'table' AND substr(name, 1, 7) <> 'sqlite_' \
                         AND name <> '_sqlx_migrations' ORDER BY rowid";
    const COLUMNS: &str = "SELECT name FROM pragma_table_info($1) ORDER BY cid";
    let mut model = SqliteConnection::connect("sqlite::memory:").await?;
    SQLITE_MIGRATIONS.run(&mut model).await?;
    let names: Vec<String> = sqlx::query_scalar(NAMES).fetch_all(&mut model).await?;
    let mut tables = Vec::new();
    for name in names {
        let columns = sqlx::query_scalar(COLUMNS).bind(&name).fetch_all(&mut model).await?;
        let rows: i64 =
            sqlx::query_scalar(AssertSqlSafe(format!("SELECT COUNT(*) FROM \"{name}\""))).fetch_one(&mut model).await?;
        tables.push(Table { name, columns, rows_at_first: u64::try_from(rows).unwrap_or_default() });
    }
    Ok(tables)
}

impl Table {
    fn listed(&self, each: impl Fn(&str) -> String) -> String {
        self.columns.iter().map(|column| each(column)).collect::<Vec<_>>().join(", ")
    }

    fn empty(&self) -> Contents {
        Contents { table: self.name.clone(), rows: 0, sum: 0 }
    }
}

impl Contents {
    /// Takes in a row, whichever way its database writes JSON.
    fn add(&mut self, row: &str, table: &Table) -> Result<(), StoreFailure> {
        let senseless = |_| StoreFailure::Unusable(format!("A row of the table {} cannot be read.", table.name));
        let members: Map<String, Value> = serde_json::from_str(row).map_err(senseless)?;
        let values: Vec<_> = table.columns.iter().map(|column| members.get(column)).collect();
        let digest = Digest::of(&serde_json::to_vec(&values).map_err(senseless)?);
        let (half, _) = digest.bytes().split_at(size_of::<u128>());
        let number = half.iter().fold(0, |number, byte| number << 8 | u128::from(*byte));
        self.rows += 1;
        self.sum = self.sum.wrapping_add(number);
        Ok(())
    }
}

/// A transaction in which everything is read or written.
enum Session {
    Sqlite(Transaction<'static, Sqlite>),
    Postgres(Transaction<'static, Postgres>),
}

impl Session {
    /// Sees the database as it is at this moment, whatever is written later.
    async fn reading(store: &Store, others: Others) -> Result<Self, sqlx::Error> {
        Ok(match store {
            Store::Sqlite(pool) => Self::Sqlite(match others {
                Others::MayWrite => pool.begin().await?,
                Others::Wait => pool.begin_with("BEGIN IMMEDIATE").await?,
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
    ) -> Result<Vec<Contents>, CarryFailure> {
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
    pub async fn carry_to(
        &self,
        target: &Self,
        others: Others,
        mut progress: impl FnMut(&'static str, u64, u64),
    ) -> Result<Carried, CarryFailure> {
        if target.is_somebody_elses().await? {
            return Err(CarryFailure::Occupied);
        }
        target.prepare().await?;
        let tables = tables().await?;
        let mut source = Session::reading(self, others).await?;
        let mut target = Session::writing(target).await?;
        let mut all = 0;
        for table in &tables {
            all += source.count(table).await?;
        }
        if !target.is_fresh(&tables).await? {
            let there = target.contents(&tables, |done| progress("comparing", done, all)).await?;
            let here = source.contents(&tables, |_| {}).await?;
            return if here == there { Ok(Carried::Before(there)) } else { Err(CarryFailure::Occupied) };
        }
        for table in tables.iter().rev().filter(|table| table.rows_at_first > 0) {
            target.execute(format!("DELETE FROM \"{}\"", table.name)).await?;
        }
        let (mut carried, mut done) = (Vec::new(), 0);
        for table in &tables {
            let contents = carry_table(&mut source, &mut target, table, |rows| {
                done += rows;
                progress("carrying", done, all);
            });
            carried.push(contents.await?);
        }
        let arrived = target.contents(&tables, |done| progress("checking", done, all)).await?;
        if let Some((table, _)) = carried.iter().zip(&arrived).find(|(left, arrived)| left != arrived) {
            return Err(CarryFailure::Differs(table.table.clone()));
        }
        target.commit().await?;
        Ok(Carried::Now(carried))
    }

    /// What each table holds, as one moment has it.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn contents(&self) -> Result<Vec<Contents>, CarryFailure> {
        Session::reading(self, Others::MayWrite).await?.contents(&tables().await?, |_| {}).await
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

async fn carry_table(
    source: &mut Session,
    target: &mut Session,
    table: &Table,
    mut progress: impl FnMut(u64),
) -> Result<Contents, CarryFailure> {
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
