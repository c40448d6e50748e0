//! Which tables there are, in this version and in older ones, and what they hold.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sqlx::migrate::Migrator;
use sqlx::{AssertSqlSafe, Connection, SqliteConnection};

use super::StoreFailure;
use super::migrations::SQLITE_MIGRATIONS;
use crate::domain::sha256::Sha256;

/// What a table holds: how many rows, and a sum over what is in them that is the same in any order. Backups keep it, so
/// the sum of the same rows stays the same in all versions of this program.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct TableSummary {
    pub table: String,
    pub rows: u64,
    #[serde(with = "digits")]
    sum: u128,
}

/// Numbers that are too large for JSON, as hexadecimal digits.
mod digits {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(number: &u128, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&format!("{number:032x}"))
    }

    pub(super) fn deserialize<'a, D: Deserializer<'a>>(from: D) -> Result<u128, D::Error> {
        u128::from_str_radix(&String::deserialize(from)?, 16).map_err(D::Error::custom)
    }
}

/// Those of a database of an older version, or all.
pub(super) fn migrations_up_to(version: i64) -> Migrator {
    let known = SQLITE_MIGRATIONS.iter().filter(|migration| migration.version <= version);
    Migrator::with_migrations(known.cloned().collect())
}

/// A table as the migrations make it.
pub(super) struct Table {
    pub name: String,
    columns: Vec<String>,
    /// Rows that the migrations themselves put in.
    pub rows_at_first: u64,
}

/// All tables that these migrations make, in that order: whatever a table refers to comes before it.
pub(super) async fn tables(migrations: &Migrator) -> Result<Vec<Table>, StoreFailure> {
    const NAMES: &str = "SELECT name FROM sqlite_schema WHERE type = 'table' AND substr(name, 1, 7) <> 'sqlite_' \
                         AND name <> '_sqlx_migrations' ORDER BY rowid";
    const COLUMNS: &str = "SELECT name FROM pragma_table_info($1) ORDER BY cid";
    let mut model = SqliteConnection::connect("sqlite::memory:").await?;
    migrations.run(&mut model).await?;
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
    pub fn listed(&self, each: impl Fn(&str) -> String) -> String {
        self.columns.iter().map(|column| each(column)).collect::<Vec<_>>().join(", ")
    }

    pub fn empty(&self) -> TableSummary {
        TableSummary { table: self.name.clone(), rows: 0, sum: 0 }
    }
}

impl TableSummary {
    /// Takes in a row, whichever way its database writes JSON.
    pub(super) fn add(&mut self, row: &str, table: &Table) -> Result<(), StoreFailure> {
        let senseless = |_| StoreFailure::Unusable(format!("A row of the table {} cannot be read.", table.name));
        let members: Map<String, Value> = serde_json::from_str(row).map_err(senseless)?;
        let values: Vec<_> = table.columns.iter().map(|column| members.get(column)).collect();
        let digest = Sha256::of(&serde_json::to_vec(&values).map_err(senseless)?);
        let (half, _) = digest.bytes().split_at(size_of::<u128>());
        let number = half.iter().fold(0, |number, byte| number << 8 | u128::from(*byte));
        self.rows += 1;
        self.sum = self.sum.wrapping_add(number);
        Ok(())
    }
}
