//! Tables of numbers for the terminal, with a bar in each row where there is space.

use crate::cli::terminal::{pad, truncate};

/// The widest label in terminal columns. Some characters take two.
pub(super) const MAX_LABEL_WIDTH: usize = 18;
/// The range of bar lengths. Where there is less space, no bar is drawn.
const BAR_WIDTH: std::ops::RangeInclusive<usize> = 8..=60;

/// A row: its label, and a number for each column. The first number is the one that matters most: on a narrow terminal it
/// is the only one.
pub(super) type Row = (String, Vec<u64>);

/// Headings and widths of a table.
pub(super) struct Table<'a> {
    headings: &'a [&'a str],
    label: usize,
    /// All columns, or only the first on a narrow terminal.
    columns: Vec<usize>,
    bar: Option<usize>,
}

impl<'a> Table<'a> {
    /// A table that fits these rows and, with a terminal width, the terminal.
    pub(super) fn for_rows<'r>(
        headings: &'a [&'a str],
        rows: impl Iterator<Item = &'r Row>,
        width: Option<usize>,
    ) -> Self {
        let (mut label, mut digits) = (0, 0);
        let mut columns: Vec<_> = headings.iter().map(|heading| heading.len()).collect();
        for (name, counts) in rows {
            label = label.max(console::measure_text_width(name).min(MAX_LABEL_WIDTH));
            digits = digits.max(first(counts).to_string().len());
            for (column, count) in columns.iter_mut().zip(counts) {
                *column = (*column).max(count.to_string().len());
            }
        }
        let mut table = Self { headings, label, columns, bar: None };
        if let Some(width) = width {
            if table.width() + 2 + BAR_WIDTH.start() > width {
                table.columns.truncate(1);
            }
            // Numbers are never truncated; headings and labels may be.
            if table.width() > width {
                let column = digits.max(width.saturating_sub(table.label + 2));
                table.columns = vec![column];
                table.label = table.label.min(width.saturating_sub(column + 2));
            }
            let available = width.saturating_sub(table.width() + 2).min(*BAR_WIDTH.end());
            table.bar = BAR_WIDTH.contains(&available).then_some(available);
        }
        table
    }

    fn width(&self) -> usize {
        self.label + self.columns.iter().map(|column| column + 2).sum::<usize>()
    }

    pub(super) fn header(&self, label: &str) -> String {
        self.line(label, self.headings.iter().map(|heading| (*heading).to_owned()))
    }

    /// Formats rows, each with a bar for `measure` in proportion to the largest.
    pub(super) fn rows(&self, rows: &[Row], measure: fn(&[u64]) -> u64) -> Vec<String> {
        let max = rows.iter().map(|(_, counts)| measure(counts)).max().unwrap_or_default();
        let row = |row: &Row| {
            let bar = self.bar.map(|length| bar(measure(&row.1), max, length)).unwrap_or_default();
            format!("{}  {bar}", self.row(row)).trim_end().to_owned()
        };
        rows.iter().map(row).collect()
    }

    /// Formats one row without a bar.
    pub(super) fn row(&self, (label, counts): &Row) -> String {
        self.line(label, counts.iter().map(u64::to_string))
    }

    fn line(&self, label: &str, cells: impl Iterator<Item = String>) -> String {
        let label = pad(label, self.label);
        let cells =
            self.columns.iter().zip(cells).map(|(width, cell)| format!("{:>width$}", truncate(&cell, Some(*width))));
        std::iter::once(label).chain(cells).collect::<Vec<_>>().join("  ")
    }
}

/// The number that matters most.
pub(super) fn first(counts: &[u64]) -> u64 {
    counts.first().copied().unwrap_or_default()
}

pub(super) fn sum(counts: &[u64]) -> u64 {
    counts.iter().sum()
}

/// Draws a bar with a resolution of an eighth of a character, rounded up so that only zero has no bar.
fn bar(count: u64, max: u64, length: usize) -> String {
    const PARTS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let eighths = (u128::from(count) * (length as u128) * 8).div_ceil(u128::from(max.max(1)));
    let (whole, part) = (eighths / 8, eighths % 8);
    let part = PARTS.get(usize::try_from(part).unwrap_or_default()).copied().unwrap_or_default();
    "█".repeat(usize::try_from(whole).unwrap_or(length)) + part
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_proportional_and_only_zero_has_none() {
        assert_eq!(bar(10, 10, 4), "████");
        assert_eq!(bar(5, 10, 4), "██");
        assert_eq!(bar(1, 1_000_000, 4), "▏");
        assert_eq!(bar(0, 10, 4), "");
        assert_eq!(bar(0, 0, 4), "");
    }
}
