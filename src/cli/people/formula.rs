//! Formulas in cells of a CSV file.
//!
//! A spreadsheet evaluates a cell that starts with certain characters as a formula. Such a cell is written with an
//! apostrophe in front, and so is a part of a cell that follows what some spreadsheets take for a separator. The apostrophes
//! are removed when the cell is read.

/// Spreadsheets in many languages take semicolons for separators, and tabs and line breaks, too. What follows one may
/// become a cell.
pub(super) const SEPARATORS: [char; 4] = [';', '\t', '\r', '\n'];

/// Whether a part of a cell, with the separator that ends it, would be a formula, or looks like an escaped one. At the start
/// of the cell (`index` 0) spreadsheets skip tabs and line breaks.
fn must_be_escaped(part: &str, index: usize) -> bool {
    let start = part.trim_start_matches(['\'', '"']);
    start.starts_with(['=', '+', '-', '@']) || (index == 0 && start.starts_with(['\t', '\r', '\n']))
}

/// Puts an apostrophe in front of each part that would be a formula.
pub(super) fn escape_formula(cell: &str) -> String {
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
pub(super) fn unescape_formula(cell: &str) -> String {
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
        for cell in ["", "'", "ada@example.com", "o'brien@example.com", "'tis", "a;b", "a\tb", "a-b;c"] {
            assert_eq!(escape_formula(cell), cell);
        }
        for (cell, escaped) in [
            ("a;=1+1", "a;'=1+1"),
            ("a\t@SUM(A1)", "a\t'@SUM(A1)"),
            ("a\n+1;-1", "a\n'+1;'-1"),
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
