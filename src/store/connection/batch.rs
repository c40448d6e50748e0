//! Statements over many rows: how rows become the text and the arguments of a statement, in both dialects.
//! `store/connection/statement.rs` runs them.

use super::value::Value;

/// A statement over many rows, which are its table `batch`.
#[derive(Clone, Copy, Debug)]
pub(in crate::store) struct BatchStatement {
    /// Names and types, `text` or `bigint`, such as `address text, at bigint`. The first column is never NULL.
    pub columns: &'static str,
    pub text: &'static str,
}

/// A statement with its rows.
///
/// SQLite gets the values one by one, which is several times faster than one JSON array. The placeholders have no numbers,
/// because it looks up numbered ones by search. There is one text per power of two, so that few statements are prepared; the
/// rows that are too many are NULL. PostgreSQL gets an array for each column. SQLite allows 32,766 values, so a batch has at
/// most a few thousand rows.
#[derive(Debug)]
pub(in crate::store) struct Batch<'a> {
    statement: BatchStatement,
    /// One row after the other.
    values: Vec<Value<'a>>,
    pub rows: usize,
}

impl BatchStatement {
    pub(in crate::store) const fn new(columns: &'static str, text: &'static str) -> Self {
        Self { columns, text }
    }

    pub(in crate::store) fn of<'a, const COLUMNS: usize>(
        self,
        rows: impl IntoIterator<Item = [Value<'a>; COLUMNS]>,
    ) -> Batch<'a> {
        let mut values = Vec::new();
        rows.into_iter().for_each(|row| values.extend(row));
        Batch { statement: self, rows: values.len() / COLUMNS, values }
    }

    /// The names of the columns, and their types.
    fn columns(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        self.columns.split(", ").filter_map(|column| column.split_once(' '))
    }
}

impl<'a> Batch<'a> {
    /// Appends the text for `count` rows.
    fn append_sqlite(&self, text: &mut String, count: usize) {
        text.push_str("WITH batch(");
        for (place, (name, _)) in self.statement.columns().enumerate() {
            text.push_str(if place > 0 { ", " } else { "" });
            text.push_str(name);
        }
        text.push_str(") AS (SELECT * FROM (VALUES ");
        let row = ",?".repeat(self.statement.columns().count());
        for number in 0..count {
            text.push_str(if number > 0 { ",(" } else { "(" });
            text.push_str(&row[1..]);
            text.push(')');
        }
        text.push_str(") WHERE column1 IS NOT NULL) ");
        text.push_str(self.statement.text);
    }

    /// The rows as a table `batch1`, the statement on it, and the arrays. The first of them has this place.
    fn for_postgres(self, number: usize, first_place: usize) -> (String, String, Vec<Argument<'a>>) {
        let (names, types): (Vec<_>, Vec<_>) = self.statement.columns().unzip();
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
pub(in crate::store) fn sqlite_batches(batches: Vec<Batch<'_>>) -> (String, Vec<Argument<'_>>) {
    let count = batches.iter().map(|batch| batch.rows).max().unwrap_or(0).next_power_of_two();
    let (mut text, mut arguments) = (String::with_capacity(1024 + 64 * count), Vec::new());
    for batch in batches {
        text.push_str(if text.is_empty() { "" } else { "; " });
        batch.append_sqlite(&mut text, count);
        let unused = (count - batch.rows) * batch.statement.columns().count();
        let unused = std::iter::repeat_n(Value::Text(None), unused);
        arguments.extend(batch.values.into_iter().chain(unused).map(Argument::Value));
    }
    (text, arguments)
}

/// One statement that runs several, and its arguments.
pub(in crate::store) fn postgres_batches(batches: Vec<Batch<'_>>) -> (String, Vec<Argument<'_>>) {
    let (mut arguments, mut parts, mut last) = (Vec::new(), Vec::new(), String::new());
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
pub(in crate::store) enum Argument<'a> {
    Value(Value<'a>),
    Texts(Vec<Value<'a>>),
    Integers(Vec<Value<'a>>),
}
