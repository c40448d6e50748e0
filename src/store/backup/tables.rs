//! The tables of this schema version and of older ones, and checksums over their rows.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sqlx::migrate::Migrator;
use sqlx::{AssertSqlSafe, Connection, SqliteConnection};

use crate::domain::sha256::Sha256;
use crate::store::connection::StoreFailure;

/// The number of rows of a table, and a checksum that does not depend on their order. Backup manifests contain both,
/// so all versions of this program must compute the same checksum for the same rows.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct TableSummary {
    pub table: String,
    pub rows: u64,
    #[serde(rename = "sum", with = "hex")]
    checksum: u128,
}

/// A `u128` as hexadecimal text, because JSON numbers are too small for it.
mod hex {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(in crate::store) fn serialize<S: Serializer>(number: &u128, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&format!("{number:032x}"))
    }

    pub(in crate::store) fn deserialize<'a, D: Deserializer<'a>>(deserializer: D) -> Result<u128, D::Error> {
        u128::from_str_radix(&String::deserialize(deserializer)?, 16).map_err(D::Error::custom)
    }
}

/// A table as created by the migrations.
pub(in crate::store) struct TableSchema {
    pub name: String,
    columns: Vec<String>,
    /// The number of rows that the migrations insert.
    pub seed_rows: u64,
}

/// Returns all tables in the order of their creation, so that a table comes after those it references. Leaves out those that
/// only migrations write, what the instances on a database did last, which changes without the data, and what lets a maker in to
/// the desk.
pub(in crate::store) async fn tables(migrations: &Migrator) -> Result<Vec<TableSchema>, StoreFailure> {
    const NAMES: &str = "SELECT name FROM sqlite_schema WHERE type = 'table' AND substr(name, 1, 7) <> 'sqlite_' \
                         AND name NOT IN ('_sqlx_migrations', 'schema_versions', 'tasks', 'sign_in_links', 'sessions') \
                         ORDER BY rowid";
    const COLUMNS: &str = "SELECT name FROM pragma_table_info($1) ORDER BY cid";
    let mut schema = SqliteConnection::connect("sqlite::memory:").await?;
    migrations.run(&mut schema).await?;
    let names: Vec<String> = sqlx::query_scalar(NAMES).fetch_all(&mut schema).await?;
    let mut tables = Vec::new();
    for name in names {
        let columns = sqlx::query_scalar(COLUMNS).bind(&name).fetch_all(&mut schema).await?;
        let rows: i64 = sqlx::query_scalar(AssertSqlSafe(format!("SELECT COUNT(*) FROM \"{name}\"")))
            .fetch_one(&mut schema)
            .await?;
        tables.push(TableSchema { name, columns, seed_rows: u64::try_from(rows).unwrap_or_default() });
    }
    Ok(tables)
}

impl TableSchema {
    /// Formats each column and joins them with commas.
    pub fn join_columns(&self, format: impl Fn(&str) -> String) -> String {
        self.columns.iter().map(|column| format(column)).collect::<Vec<_>>().join(", ")
    }

    pub fn empty_summary(&self) -> TableSummary {
        TableSummary { table: self.name.clone(), rows: 0, checksum: 0 }
    }
}

impl TableSummary {
    /// Adds a row, given as JSON. The checksum does not depend on how the database formats it.
    pub(in crate::store) fn add(&mut self, row: &str, table: &TableSchema) -> Result<(), StoreFailure> {
        let unreadable = |_| StoreFailure::Unusable(format!("a row of the table {} cannot be read", table.name));
        let members: Map<String, Value> = serde_json::from_str(row).map_err(unreadable)?;
        let values: Vec<_> = table.columns.iter().map(|column| members.get(column)).collect();
        let hash = Sha256::of(&serde_json::to_vec(&values).map_err(unreadable)?);
        let (half, _) = hash.bytes().split_at(size_of::<u128>());
        let number = half.iter().fold(0, |number, byte| number << 8 | u128::from(*byte));
        self.rows += 1;
        self.checksum = self.checksum.wrapping_add(number);
        Ok(())
    }
}
