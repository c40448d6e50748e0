//! Statements over a batch of rows for SQLite, with each value bound on its own. This is several times faster than a JSON
//! array, of which SQLite parses every row once for each column.

use std::borrow::Cow;
use std::sync::OnceLock;

use sqlx::AssertSqlSafe;
use sqlx::query::Query;
use sqlx::sqlite::{Sqlite, SqliteArguments};

/// Texts for 1, 2, 4 … 1024 rows are kept.
const KEPT_TEXTS: usize = 11;

/// A statement over the table `batch`, whose columns are `column1`, `column2` and so on.
///
/// There is one text per power of two, so that few statements are prepared. The rows that are not bound are NULL.
pub(super) struct RowsStatement<const COLUMNS: usize> {
    before: &'static str,
    after: &'static str,
    texts: [OnceLock<String>; KEPT_TEXTS],
}

impl<const COLUMNS: usize> RowsStatement<COLUMNS> {
    pub(super) const fn new(before: &'static str, after: &'static str) -> Self {
        Self { before, after, texts: [const { OnceLock::new() }; KEPT_TEXTS] }
    }

    /// Returns a query to which the values of so many rows have to be bound, row by row.
    pub(super) fn query<'q>(&'static self, rows: usize) -> Query<'q, Sqlite, SqliteArguments> {
        let rows = rows.next_power_of_two();
        let text = match self.texts.get(rows.ilog2() as usize) {
            Some(text) => Cow::Borrowed(text.get_or_init(|| self.text(rows)).as_str()),
            None => Cow::Owned(self.text(rows)),
        };
        sqlx::query(AssertSqlSafe(text))
    }

    fn text(&self, rows: usize) -> String {
        let row = format!("({})", ["?"; COLUMNS].join(","));
        let Self { before, after, .. } = self;
        format!("{before} FROM (VALUES {}) AS batch {after}", vec![row; rows].join(","))
    }
}
