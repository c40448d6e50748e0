//! Statements over a batch of rows for SQLite, with each value bound on its own. This is several times faster than a JSON
//! array, of which SQLite parses every row once for each column.

use std::borrow::Cow;
use std::sync::OnceLock;

use sqlx::query::Query;
use sqlx::sqlite::{Sqlite, SqliteArguments};
use sqlx::{Arguments, AssertSqlSafe};

/// Texts for 1, 2, 4 … 1024 rows are kept.
const KEPT_TEXTS: usize = 11;

/// A statement over the table `batch`, whose columns are `column1`, `column2` and so on.
///
/// There is one text per power of two, so that few statements are prepared. The rows that are too many are NULL.
pub(super) struct RowsStatement<const COLUMNS: usize> {
    before: &'static str,
    after: &'static str,
    texts: [OnceLock<String>; KEPT_TEXTS],
}

/// A value of a row.
#[derive(Clone, Debug)]
pub(super) enum Value<'a> {
    Null,
    Integer(i64),
    Text(Cow<'a, str>),
}

/// Statements that run one after another. They are sent to the thread of SQLite at once: to send one and to wait for it takes
/// as long as to store some rows.
#[derive(Debug, Default)]
pub(super) struct Script {
    text: String,
    arguments: SqliteArguments,
}

impl<const COLUMNS: usize> RowsStatement<COLUMNS> {
    pub(super) const fn new(before: &'static str, after: &'static str) -> Self {
        Self { before, after, texts: [const { OnceLock::new() }; KEPT_TEXTS] }
    }

    /// The text for a power of two.
    fn text(&'static self, rows: usize) -> Cow<'static, str> {
        match self.texts.get(rows.ilog2() as usize) {
            Some(text) => Cow::Borrowed(text.get_or_init(|| self.new_text(rows))),
            None => Cow::Owned(self.new_text(rows)),
        }
    }

    fn new_text(&self, rows: usize) -> String {
        let row = format!("({})", ["?"; COLUMNS].join(","));
        let Self { before, after, .. } = self;
        format!("{before} FROM (VALUES {}) AS batch {after};", vec![row; rows].join(","))
    }
}

impl Script {
    /// Appends a statement without parameters.
    pub(super) fn append_text(&mut self, statement: &'static str) {
        self.text.push_str(statement);
        self.text.push(';');
    }

    /// Appends a statement over these rows, unless there are none.
    pub(super) fn append<'a, const COLUMNS: usize>(
        &mut self,
        statement: &'static RowsStatement<COLUMNS>,
        rows: impl ExactSizeIterator<Item = [Value<'a>; COLUMNS]>,
    ) -> Result<(), sqlx::Error> {
        if rows.len() == 0 {
            return Ok(());
        }
        let count = rows.len().next_power_of_two();
        self.text.push_str(&statement.text(count));
        self.arguments.reserve(count * COLUMNS, 0);
        let unused = std::iter::repeat_n([const { Value::Null }; COLUMNS], count - rows.len());
        for value in rows.chain(unused).flatten() {
            match value {
                Value::Null => self.arguments.add(None::<i64>),
                Value::Integer(number) => self.arguments.add(number),
                Value::Text(text) => self.arguments.add(text),
            }
            .map_err(sqlx::Error::Encode)?;
        }
        Ok(())
    }

    pub(super) fn query<'q>(self) -> Query<'q, Sqlite, SqliteArguments> {
        sqlx::query_with(AssertSqlSafe(self.text), self.arguments)
    }
}

impl From<i64> for Value<'_> {
    fn from(number: i64) -> Self {
        Self::Integer(number)
    }
}

impl<'a> From<&'a str> for Value<'a> {
    fn from(text: &'a str) -> Self {
        Self::Text(Cow::Borrowed(text))
    }
}

impl From<String> for Value<'_> {
    fn from(text: String) -> Self {
        Self::Text(Cow::Owned(text))
    }
}

impl<T: Into<Self>> From<Option<T>> for Value<'_> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}
