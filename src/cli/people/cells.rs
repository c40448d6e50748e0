//! The cells of a CSV file: where a column is, what is wrong with a cell, and what keeps a spreadsheet from evaluating it.
//!
//! A spreadsheet evaluates a cell that starts with certain characters as a formula. Such a cell is written with an
//! apostrophe in front, and so is a part of a cell that follows what some spreadsheets take for a separator. The apostrophes
//! are removed when the cell is read.

use csv::StringRecord;

use crate::domain::mail::EmailAddress;
use crate::domain::text::{is_invisible, is_joiner};
use crate::domain::time::Timestamp;

/// What is wrong with a row.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub(super) struct Problem {
    text: String,
    /// The same about several rows that have it.
    pub kind: String,
}

impl Problem {
    pub(super) fn new(text: String, kind: &str) -> Self {
        Self { text, kind: kind.to_owned() }
    }
}

impl From<String> for Problem {
    fn from(text: String) -> Self {
        Self { kind: text.clone(), text }
    }
}

/// One row, and the names of the columns in lower case.
#[derive(Clone, Copy)]
pub(super) struct Cells<'a> {
    pub names: &'a [String],
    pub row: &'a StringRecord,
    pub now: Timestamp,
}

impl Cells<'_> {
    pub(super) fn cell(&self, column: &str) -> String {
        let index = self.names.iter().position(|name| name == column);
        unescape_formula(index.and_then(|index| self.row.get(index)).unwrap_or_default())
    }

    pub(super) fn trimmed(&self, column: &str) -> String {
        self.cell(column).trim().to_owned()
    }

    pub(super) fn invalid(&self, column: &str, why: &str) -> Problem {
        let text = format!("{column} is {:?}, which {why}", shorten(&self.trimmed(column)));
        Problem::new(text, &format!("{column} {why}"))
    }

    pub(super) fn email(&self, column: &str) -> Result<EmailAddress, Problem> {
        let email = EmailAddress::parse(&self.trimmed(column));
        email.map_err(|why| self.invalid(column, &format!("is not an address: {why}")))
    }

    /// Parses a cell, unless it is empty. `why` says what an invalid one is.
    pub(super) fn parse<T>(
        &self,
        column: &str,
        why: &str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Result<Option<T>, Problem> {
        match self.trimmed(column).as_str() {
            "" => Ok(None),
            text => parse(text).map(Some).ok_or_else(|| self.invalid(column, why)),
        }
    }
}

/// Shortens a cell for an error message.
pub(super) fn shorten(cell: &str) -> String {
    const MAX_CHARS: usize = 60;
    match cell.char_indices().nth(MAX_CHARS) {
        None => cell.to_owned(),
        Some((end, _)) => format!("{}…", &cell[..end]),
    }
}

pub(super) fn parse_boolean(cell: &str) -> Option<bool> {
    match cell.to_lowercase().as_str() {
        "true" | "yes" | "y" | "1" => Some(true),
        "false" | "no" | "n" | "0" => Some(false),
        _ => None,
    }
}

/// Spreadsheets in many languages take semicolons for separators, and tabs and line breaks, too. What follows one may
/// become a cell.
const SEPARATORS: [char; 4] = [';', '\t', '\r', '\n'];

/// Whether a part of a cell, with the separator that ends it, would be a formula, or looks like an escaped one. At the start
/// of the cell (`index` 0) spreadsheets skip tabs and line breaks, and anywhere what is not seen. Some read full-width characters as
/// the ASCII ones.
fn must_be_escaped(part: &str, index: usize) -> bool {
    let is_unseen = |c: char| (c.is_whitespace() || is_invisible(c) || is_joiner(c)) && !SEPARATORS.contains(&c);
    let start = part.trim_start_matches(|c| matches!(c, '\'' | '"') || is_unseen(c));
    start.starts_with(['=', '+', '-', '@', '＝', '＋', '－', '＠'])
        || (index == 0 && start.starts_with(['\t', '\r', '\n']))
}

/// Puts an apostrophe in front of each part that would be a formula.
pub(in crate::cli) fn escape_formula(cell: &str) -> String {
    let mut escaped = String::new();
    for (index, part) in cell.split_inclusive(SEPARATORS).enumerate() {
        if must_be_escaped(part, index) {
            escaped.push('\'');
        }
        escaped.push_str(part);
    }
    escaped
}

/// Removes the apostrophes of [`escape_formula`].
fn unescape_formula(cell: &str) -> String {
    let parts = cell.split_inclusive(SEPARATORS).enumerate();
    parts
        .map(|(index, part)| part.strip_prefix('\'').filter(|rest| must_be_escaped(rest, index)).unwrap_or(part))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn formulas_are_escaped() {
        for cell in ["=1+1", "+1@example.com", "-1", "@SUM(A1)", "\t1", "\r1", "\n1", "'=1", "''+1"] {
            assert_eq!(escape_formula(cell), format!("'{cell}"));
        }
        for cell in
            ["＝1+1", "＋1", "－1", "＠SUM(A1)", " =1", "\u{a0}=1", "\u{200b}=1", "\u{feff}' =1", "\u{200d}\u{b}+1"]
        {
            assert_eq!(escape_formula(cell), format!("'{cell}"));
        }
        for cell in ["", "'", "ada@example.com", "o'brien@example.com", "'tis", "a;b", "a\tb", "a-b;c"] {
            assert_eq!(escape_formula(cell), cell);
        }
        for (cell, escaped) in [
            ("a;=1+1", "a;'=1+1"),
            ("a\t@SUM(A1)", "a\t'@SUM(A1)"),
            ("a\n+1;-1", "a\n'+1;'-1"),
            ("a; =1;\u{200b}＝2", "a;' =1;'\u{200b}＝2"),
            ("a;\"=1\"", "a;'\"=1\""),
            ("\"=1\"", "'\"=1\""),
            ("=1;=2", "'=1;'=2"),
            ("\t=1", "'\t'=1"),
        ] {
            assert_eq!(escape_formula(cell), escaped);
        }
    }

    proptest! {
        #[test]
        fn unescaping_reverses_escaping(cell in "['\"=+@a;\t\n-]{0,8}") {
            let escaped = escape_formula(&cell);
            prop_assert_eq!(unescape_formula(&escaped), cell);
        }
    }
}
