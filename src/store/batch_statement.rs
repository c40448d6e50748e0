//! Statements over many rows: how rows become the text and the arguments of a statement, in both dialects. `store/statement.rs`
//! runs them.

use super::value::Value;

/// A statement over many rows, which are its table `batch`. It can also have parameters.
#[derive(Clone, Copy, Debug)]
pub(super) struct BatchStatement {
    /// Names and types, `text` or `bigint`, such as `address text, at bigint`. The first column is never NULL.
    pub columns: &'static str,
    pub text: &'static str,
}

/// A statement with its rows.
///
/// SQLite gets the values one by one, which is several times faster than one JSON array. Their places have no numbers, which it
/// would search for. There is one text per power of two, so that few statements are prepared; the rows that are too many are
/// NULL. PostgreSQL gets an array for each column. SQLite allows 32,766 values, so a batch has at most a few thousand rows.
#[derive(Debug)]
pub(super) struct Batch<'a> {
    statement: BatchStatement,
    /// One row after the other.
    values: Vec<Value<'a>>,
    pub rows: usize,
}

impl BatchStatement {
    pub(super) const fn new(columns: &'static str, text: &'static str) -> Self {
        Self { columns, text }
    }

    pub(super) fn of<'a, const COLUMNS: usize>(
        self,
        rows: impl IntoIterator<Item = [Value<'a>; COLUMNS]>,
    ) -> Batch<'a> {
        let mut values = Vec::new();
        rows.into_iter().for_each(|row| values.extend(row));
        Batch { statement: self, rows: values.len() / COLUMNS, values }
    }

    /// The names of the columns, and their types.
    fn columns(&self) -> (Vec<&'static str>, Vec<&'static str>) {
        self.columns.split(',').filter_map(|column| column.trim().split_once(' ')).unzip()
    }
}

impl<'a> Batch<'a> {
    /// The text for so many rows, and its arguments. The parameters come first, in a table of their own that nothing reads:
    /// the driver counts places without a number by themselves.
    fn for_sqlite(self, values: &[Value<'a>], count: usize) -> (String, impl Iterator<Item = Argument<'a>>) {
        let (names, _) = self.statement.columns();
        let columns = names.len();
        let row = format!("({})", vec!["?"; columns].join(","));
        let places = vec![row.as_str(); count].join(",");
        let (names, text) = (names.join(", "), self.statement.text);
        let given = if values.is_empty() {
            String::new()
        } else {
            format!("given AS (SELECT {}), ", vec!["?"; values.len()].join(","))
        };
        let sql =
            format!("WITH {given}batch({names}) AS (SELECT * FROM (VALUES {places}) WHERE column1 IS NOT NULL) {text}");
        let unused = std::iter::repeat_n(Value::Text(None), columns * (count - self.rows));
        let arguments = values.iter().cloned().chain(self.values).chain(unused);
        (sql, arguments.map(Argument::Value))
    }

    /// The rows as a table `batch1`, the statement on it, and the arrays. The first of them has this place.
    fn for_postgres(self, number: usize, first_place: usize) -> (String, String, Vec<Argument<'a>>) {
        let (names, types) = self.statement.columns();
        let places = (first_place..).zip(&types).map(|(place, name)| format!("${place}::{name}[]"));
        let (places, names) = (places.collect::<Vec<_>>().join(", "), names.join(", "));
        let name = format!("batch{number}");
        let table = format!("{name} AS (SELECT * FROM unnest({places}) AS batch ({names}))");
        let mut columns: Vec<Vec<_>> = types.iter().map(|_| Vec::with_capacity(self.rows)).collect();
        for (index, value) in self.values.into_iter().enumerate() {
            columns[index % types.len()].push(value);
        }
        let array = |(column, name)| if name == "text" { Argument::Texts(column) } else { Argument::Integers(column) };
        (table, self.statement.text.replace("batch", &name), columns.into_iter().zip(types).map(array).collect())
    }
}

/// The text of several statements, one after the other, and its arguments.
pub(super) fn sqlite_batches<'a>(values: &[Value<'a>], batches: Vec<Batch<'a>>) -> (String, Vec<Argument<'a>>) {
    let count = batches.iter().map(|batch| batch.rows).max().unwrap_or(0).next_power_of_two();
    let (texts, arguments): (Vec<_>, Vec<_>) = batches.into_iter().map(|batch| batch.for_sqlite(values, count)).unzip();
    (texts.join("; "), arguments.into_iter().flatten().collect())
}

/// One statement that runs several, and its arguments.
pub(super) fn postgres_batches<'a>(values: &[Value<'a>], batches: Vec<Batch<'a>>) -> (String, Vec<Argument<'a>>) {
    let mut arguments: Vec<_> = values.iter().cloned().map(Argument::Value).collect();
    let (mut parts, mut last) = (Vec::new(), String::new());
    for (number, batch) in batches.into_iter().enumerate() {
        if number > 0 {
            parts.push(format!("done{number} AS ({last})"));
        }
        let (table, text, arrays) = batch.for_postgres(number, arguments.len() + 1);
        parts.push(table);
        arguments.extend(arrays);
        last = text;
    }
    (format!("WITH {} {last}", parts.join(", ")), arguments)
}

/// What is bound to a place of a statement: a value, or in PostgreSQL an array of values of one type.
pub(super) enum Argument<'a> {
    Value(Value<'a>),
    Texts(Vec<Value<'a>>),
    Integers(Vec<Value<'a>>),
}
