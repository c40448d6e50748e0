//! `porchlight stats`

use clap::{Args, ValueEnum};
use serde_json::{Map, Value, json};

use super::terminal::{pad, terminal_width, truncate};
use super::{Access, CommandFailure, block_on, open_store, print_json, print_line};
use crate::actions::{StatisticsRange, statistics};
use crate::clock::Clock;
use crate::config::{InvalidSettings, Settings};
use crate::domain::calendar::{Day, Period};
use crate::domain::counts::Totals;
use crate::domain::display_text::sanitize_label;
use crate::domain::statistics::Statistics;

pub(super) const EXAMPLES: &str = "\
Examples:
  porchlight stats
  porchlight stats --by week --since 2026-09-01
  porchlight stats --by month --json";

#[derive(Args, Debug)]
pub(super) struct StatsArguments {
    /// Group by day, week or month; weeks begin on Monday, days at midnight UTC
    #[arg(long, value_enum, default_value_t)]
    by: By,

    /// First day, such as 2026-11-01 [default: 30 days, 13 weeks or 12 months ago]
    #[arg(long, value_name = "DATE", value_parser = Day::parse)]
    since: Option<Day>,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum By {
    #[default]
    Day,
    Week,
    Month,
}

impl From<By> for Period {
    fn from(by: By) -> Self {
        match by {
            By::Day => Self::Day,
            By::Week => Self::Week,
            By::Month => Self::Month,
        }
    }
}

pub(super) fn run(arguments: &StatsArguments, settings: &Settings) -> Result<(), CommandFailure> {
    block_on(async {
        let today = Day::of(Clock::System.now());
        validate_since(arguments.since, today)?;
        let range = arguments.since.map_or(StatisticsRange::Default, StatisticsRange::Since);
        let store = open_store(settings, Access::Read).await?;
        let statistics = statistics(&store, arguments.by.into(), range, today).await?;
        store.close().await;
        if arguments.json {
            print_json(&statistics_json(&statistics));
        } else {
            for line in chart(&statistics, terminal_width()) {
                print_line(&line);
            }
        }
        Ok(())
    })
}

/// The longest range in days, which bounds the number of rows.
const MAX_DAYS: i64 = 10 * 366;

fn validate_since(since: Option<Day>, today: Day) -> Result<(), InvalidSettings> {
    match since {
        Some(day) if day > today => {
            Err(InvalidSettings::flag("--since", format!("{} is in the future; today is {}", day.date(), today.date())))
        }
        Some(day) if day < today.before(MAX_DAYS) => {
            Err(InvalidSettings::flag("--since", format!("{} is more than ten years ago", day.date())))
        }
        _ => Ok(()),
    }
}

fn statistics_json(statistics: &Statistics) -> Value {
    let counts_by = |name: &str, number: &str, rows: &[(String, u64)]| -> Value {
        rows.iter().map(|(value, count)| json!({ name: value, number: count })).collect()
    };
    json!({
        "by": statistics.by.as_str(),
        "since": statistics.since.date(),
        "until": statistics.until.date(),
        "total": totals_json(&statistics.total),
        "periods": statistics.periods.iter().map(|(day, totals)| row_json("start", day.date().into(), totals)).collect::<Value>(),
        "sources": sources_json(statistics),
        "via": totals_by("via", &statistics.via).collect::<Value>(),
        "tool_calls": counts_by("tool", "calls", &statistics.tools),
        "images": counts_by("version", "sent", &statistics.images),
    })
}

fn totals_by(name: &'static str, rows: &[(String, Totals)]) -> impl Iterator<Item = Value> {
    rows.iter().map(move |(value, totals)| row_json(name, null_if_empty(value), totals))
}

/// The last row has the rest, if there is one. No source has the member `others`.
fn sources_json(statistics: &Statistics) -> Value {
    let rest = statistics.other_sources(usize::MAX).map(|totals| {
        let mut row = row_json("source", Value::Null, &totals);
        row["others"] = true.into();
        row
    });
    totals_by("source", &statistics.sources).chain(rest).collect()
}

fn null_if_empty(name: &str) -> Value {
    if name.is_empty() { Value::Null } else { name.into() }
}

fn totals_json(totals: &Totals) -> Map<String, Value> {
    totals.named().into_iter().map(|(name, count)| (name.to_owned(), count.into())).collect()
}

fn row_json(name: &str, value: Value, totals: &Totals) -> Value {
    let mut row = Map::from_iter([(name.to_owned(), value)]);
    row.extend(totals_json(totals));
    Value::Object(row)
}

/// The headings of the columns, in the order of [`Totals::named`].
const COLUMNS: [&str; 6] = ["downloads", "new people", "opt-ins", "joins", "messages", "unsubscribed"];
/// How many sources the table lists; the last row has the others.
const MAX_SOURCES: usize = 12;
/// The widest label in terminal columns. Some characters take two.
const MAX_LABEL_WIDTH: usize = 18;
/// The range of bar lengths. Where there is less space, no bar is drawn.
const BAR_WIDTH: std::ops::RangeInclusive<usize> = 8..=60;

/// Returns the lines of the table; with a terminal width, each row has a bar for its downloads.
fn chart(statistics: &Statistics, width: Option<usize>) -> Vec<String> {
    let by = statistics.by;
    let label = |day: &Day| match by {
        Period::Month => day.date().rsplit_once('-').map_or_else(String::new, |(month, _)| month.to_owned()),
        _ => day.date(),
    };
    let periods: Vec<_> = statistics.periods.iter().map(|(day, totals)| (label(day), *totals)).collect();
    let mut sources: Vec<_> =
        statistics.sources.iter().take(MAX_SOURCES).map(|(source, totals)| (source_label(source), *totals)).collect();
    sources.sort_by_key(|(_, totals)| std::cmp::Reverse(totals.downloads));
    sources.extend(statistics.other_sources(MAX_SOURCES).map(|totals| ("(others)".to_owned(), totals)));
    let total = ("total".to_owned(), statistics.total);
    let table = Table::for_rows(periods.iter().chain(&sources).chain([&total]), width);

    let mut lines = vec![table.header(by.as_str())];
    lines.extend(table.rows(&periods));
    lines.push(table.row(&total.0, &total.1, None));
    if !sources.is_empty() {
        lines.push(String::new());
        lines.push(table.header("source"));
        lines.extend(table.rows(&sources));
    }
    lines
}

fn source_label(source: &str) -> String {
    if source.is_empty() {
        return "(none)".to_owned();
    }
    truncate(&sanitize_label(source), Some(MAX_LABEL_WIDTH))
}

/// Widths of the parts of a table.
struct Table {
    label: usize,
    /// All columns, or only downloads on a narrow terminal.
    columns: Vec<usize>,
    bar: Option<usize>,
}

impl Table {
    fn for_rows<'a>(rows: impl Iterator<Item = &'a (String, Totals)>, width: Option<usize>) -> Self {
        let (mut label, mut columns, mut digits) = (0, COLUMNS.map(str::len).to_vec(), 0);
        for (name, totals) in rows {
            label = label.max(console::measure_text_width(name).min(MAX_LABEL_WIDTH));
            digits = digits.max(totals.downloads.to_string().len());
            for (column, (_, count)) in columns.iter_mut().zip(totals.named()) {
                *column = (*column).max(count.to_string().len());
            }
        }
        let mut table = Self { label, columns, bar: None };
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

    fn header(&self, label: &str) -> String {
        self.line(label, COLUMNS.map(str::to_owned))
    }

    fn rows(&self, rows: &[(String, Totals)]) -> Vec<String> {
        let max = rows.iter().map(|(_, totals)| totals.downloads).max();
        rows.iter().map(|(label, totals)| self.row(label, totals, max)).collect()
    }

    /// Formats one row. With `max`, it ends with a bar for the downloads in proportion to `max`.
    fn row(&self, label: &str, totals: &Totals, max: Option<u64>) -> String {
        let line = self.line(label, totals.named().map(|(_, count)| count.to_string()));
        let bar = self.bar.zip(max).map(|(length, max)| bar(totals.downloads, max, length));
        format!("{line}  {}", bar.unwrap_or_default()).trim_end().to_owned()
    }

    fn line(&self, label: &str, cells: [String; COLUMNS.len()]) -> String {
        let label = pad(label, self.label);
        let cells =
            self.columns.iter().zip(cells).map(|(width, cell)| format!("{:>width$}", truncate(&cell, Some(*width))));
        std::iter::once(label).chain(cells).collect::<Vec<_>>().join("  ")
    }
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

    fn statistics(downloads: &[u64]) -> Statistics {
        let last = Day::parse("2026-11-15").unwrap();
        let since = last.before(i64::try_from(downloads.len()).unwrap() - 1);
        let totals = |downloads| Totals { downloads, new_people: downloads / 2, ..Totals::default() };
        Statistics {
            by: Period::Day,
            since,
            until: last,
            total: totals(downloads.iter().sum()),
            periods: Period::Day.starts(since, last).into_iter().zip(downloads.iter().map(|d| totals(*d))).collect(),
            sources: ["a\u{1b}[31m", "\u{202e}b", " ", "", "漢字漢字漢字漢字漢字漢字"]
                .map(|source| (source.to_owned(), totals(3)))
                .into(),
            via: Vec::new(),
            tools: Vec::new(),
            images: Vec::new(),
        }
    }

    #[test]
    fn a_chart_is_never_wider_than_the_terminal() {
        for width in [12, 20, 24, 40, 60, 79, 80, 100, 132, 400] {
            let lines = chart(&statistics(&[0, 1, 123_456_789, 77]), Some(width));
            let widest = lines.iter().map(|line| console::measure_text_width(line)).max().unwrap();
            assert!(lines[3].contains("123456789"), "numbers are not truncated:\n{}", lines.join("\n"));
            assert!(widest <= width, "{widest} of {width}:\n{}", lines.join("\n"));
            assert_eq!(lines.iter().any(|line| line.contains('█')), width >= 40, "{}", lines.join("\n"));
        }
    }

    #[test]
    fn without_a_terminal_there_are_numbers_and_no_bars() {
        let lines = chart(&statistics(&[4, 0, 12]), None);
        assert!(!lines.concat().contains('█'));
        assert_eq!(lines[3].split_whitespace().collect::<Vec<_>>(), ["2026-11-15", "12", "6", "0", "0", "0", "0"]);
        assert!(lines[4].starts_with("total"), "{lines:#?}");
    }

    #[test]
    fn a_source_cannot_control_the_terminal() {
        let lines = chart(&statistics(&[1]), Some(120)).concat();
        assert!(
            !lines.contains(['\u{1b}', '\u{202e}']) && lines.contains("(blank)") && lines.contains("(none)"),
            "{lines}"
        );
    }

    #[test]
    fn bars_are_proportional_and_only_zero_has_none() {
        assert_eq!(bar(10, 10, 4), "████");
        assert_eq!(bar(5, 10, 4), "██");
        assert_eq!(bar(1, 1_000_000, 4), "▏");
        assert_eq!(bar(0, 10, 4), "");
        assert_eq!(bar(0, 0, 4), "");
    }
}
