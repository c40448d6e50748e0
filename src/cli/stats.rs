//! `porchlight stats`

use clap::{Args, ValueEnum};
use serde_json::{Map, Value, json};

use super::terminal::{cut, padded, width};
use super::{Access, CommandFailure, at_work, open_store, say, say_json};
use crate::actions::{LookBack, statistics};
use crate::clock::Clock;
use crate::config::{InvalidSettings, Settings};
use crate::domain::calendar::{Day, Period};
use crate::domain::counts::Totals;
use crate::domain::legible::legible;
use crate::domain::statistics::Statistics;

pub(super) const EXAMPLES: &str = "\
Examples:
  porchlight stats
  porchlight stats --by week --since 2026-09-01
  porchlight stats --by month --json";

#[derive(Args, Debug)]
pub(super) struct StatsArguments {
    /// What days are put together by; weeks begin on Monday, days at midnight UTC
    #[arg(long, value_enum, default_value_t)]
    by: By,

    /// The first day, such as 2026-11-01 [default: 30 days, 13 weeks or 12 months back]
    #[arg(long, value_name = "DATE", value_parser = Day::parse)]
    since: Option<Day>,

    /// As JSON, for programs
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
    at_work(async {
        let today = Day::of(Clock::System.now());
        check(arguments.since, today)?;
        let back = arguments.since.map_or(LookBack::Usual, LookBack::To);
        let store = open_store(settings, Access::Read).await?;
        let statistics = statistics(&store, arguments.by.into(), back, today).await?;
        store.close().await;
        if arguments.json {
            say_json(&described(&statistics));
        } else {
            for line in chart(&statistics, width()) {
                say(&line);
            }
        }
        Ok(())
    })
}

/// More days than these are no chart, and no service is as old.
const DAYS_BACK: i64 = 10 * 366;

fn check(since: Option<Day>, today: Day) -> Result<(), InvalidSettings> {
    match since {
        Some(day) if day > today => {
            Err(InvalidSettings::of("--since", format!("{} is yet to come; today is {}", day.date(), today.date())))
        }
        Some(day) if day < today.before(DAYS_BACK) => {
            Err(InvalidSettings::of("--since", format!("{} is more than ten years ago", day.date())))
        }
        _ => Ok(()),
    }
}

fn described(statistics: &Statistics) -> Value {
    let named = |name: &str, rows: &[(String, Totals)]| -> Value {
        rows.iter().map(|(value, totals)| with(name, given(value), totals)).collect()
    };
    let counted = |name: &str, number: &str, rows: &[(String, u64)]| -> Value {
        rows.iter().map(|(value, times)| json!({ name: value, number: times })).collect()
    };
    json!({
        "by": statistics.by.as_str(),
        "since": statistics.since.date(),
        "until": statistics.until.date(),
        "total": members(&statistics.total),
        "periods": statistics.periods.iter().map(|(day, totals)| with("start", day.date().into(), totals)).collect::<Value>(),
        "sources": named("source", &statistics.sources),
        "via": named("via", &statistics.via),
        "tool_calls": counted("tool", "calls", &statistics.tools),
        "images": counted("version", "sent", &statistics.images),
    })
}

/// No source is null, not an empty text.
fn given(name: &str) -> Value {
    if name.is_empty() { Value::Null } else { name.into() }
}

fn members(totals: &Totals) -> Map<String, Value> {
    totals.named().into_iter().map(|(name, times)| (name.to_owned(), times.into())).collect()
}

fn with(name: &str, value: Value, totals: &Totals) -> Value {
    let mut row = Map::from_iter([(name.to_owned(), value)]);
    row.extend(members(totals));
    Value::Object(row)
}

const COLUMNS: [&str; 6] = ["downloads", "people", "opt-ins", "joins", "messages", "left"];
/// How many sources people at a terminal are shown, and how much of a long one.
const SOURCES_SHOWN: usize = 12;
const LONGEST_LABEL: usize = 18;
/// Some characters take two columns.
const WIDEST_LABEL: usize = 18;
/// The shortest bar that is worth drawing, and the longest.
const BAR: std::ops::RangeInclusive<usize> = 8..=60;

/// The lines to print: on a terminal with a bar for the downloads.
fn chart(statistics: &Statistics, width: Option<usize>) -> Vec<String> {
    let by = statistics.by;
    let label = |day: &Day| match by {
        Period::Month => day.date().rsplit_once('-').map_or_else(String::new, |(month, _)| month.to_owned()),
        _ => day.date(),
    };
    let periods: Vec<_> = statistics.periods.iter().map(|(day, totals)| (label(day), *totals)).collect();
    let mut sources: Vec<_> =
        statistics.sources.iter().take(SOURCES_SHOWN).map(|(source, totals)| (shown(source), *totals)).collect();
    sources.sort_by_key(|(_, totals)| std::cmp::Reverse(totals.downloads));
    let others = statistics.sources.len() > sources.len();
    let total = ("total".to_owned(), statistics.total);
    let table = Table::for_rows(periods.iter().chain(&sources).chain([&total]), width);

    let mut lines = vec![table.head(by.as_str())];
    lines.extend(table.rows(&periods));
    lines.push(table.row(&total.0, &total.1, None));
    if !sources.is_empty() {
        lines.push(String::new());
        lines.push(table.head("source"));
        lines.extend(table.rows(&sources));
    }
    if others {
        lines.push("(and others)".to_owned());
    }
    lines
}

/// A source in the room that a row has for it.
fn shown(source: &str) -> String {
    if source.is_empty() {
        return "(none)".to_owned();
    }
    cut(&legible(source), Some(LONGEST_LABEL))
}

/// How wide everything is.
struct Table {
    label: usize,
    /// Of the columns that are shown: all of them, or downloads alone where there is no room.
    columns: Vec<usize>,
    bar: Option<usize>,
}

impl Table {
    fn for_rows<'a>(rows: impl Iterator<Item = &'a (String, Totals)>, width: Option<usize>) -> Self {
        let (mut label, mut columns, mut digits) = (0, COLUMNS.map(str::len).to_vec(), 0);
        for (name, totals) in rows {
            label = label.max(console::measure_text_width(name).min(WIDEST_LABEL));
            digits = digits.max(totals.downloads.to_string().len());
            for (column, (_, times)) in columns.iter_mut().zip(totals.named()) {
                *column = (*column).max(times.to_string().len());
            }
        }
        let mut table = Self { label, columns, bar: None };
        if let Some(width) = width {
            if table.width() + 2 + BAR.start() > width {
                table.columns.truncate(1);
            }
            // A number is never cut; its heading and the label may be.
            if table.width() > width {
                let column = digits.max(width.saturating_sub(table.label + 2));
                table.columns = vec![column];
                table.label = table.label.min(width.saturating_sub(column + 2));
            }
            let room = width.saturating_sub(table.width() + 2).min(*BAR.end());
            table.bar = BAR.contains(&room).then_some(room);
        }
        table
    }

    fn width(&self) -> usize {
        self.label + self.columns.iter().map(|column| column + 2).sum::<usize>()
    }

    fn head(&self, label: &str) -> String {
        self.line(label, COLUMNS.map(str::to_owned))
    }

    fn rows(&self, rows: &[(String, Totals)]) -> Vec<String> {
        let most = rows.iter().map(|(_, totals)| totals.downloads).max();
        rows.iter().map(|(label, totals)| self.row(label, totals, most)).collect()
    }

    /// One line; with `most`, a bar that is as long as its share of that.
    fn row(&self, label: &str, totals: &Totals, most: Option<u64>) -> String {
        let line = self.line(label, totals.named().map(|(_, times)| times.to_string()));
        let bar = self.bar.zip(most).map(|(length, most)| bar(totals.downloads, most, length));
        format!("{line}  {}", bar.unwrap_or_default()).trim_end().to_owned()
    }

    fn line(&self, label: &str, cells: [String; COLUMNS.len()]) -> String {
        let label = padded(label, self.label);
        let cells = self.columns.iter().zip(cells).map(|(width, cell)| format!("{:>width$}", cut(&cell, Some(*width))));
        std::iter::once(label).chain(cells).collect::<Vec<_>>().join("  ")
    }
}

/// A bar in eighths of a character. What happened at all is seen.
fn bar(times: u64, most: u64, length: usize) -> String {
    const PARTS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let full = u128::from(most.max(1));
    let eighths = (u128::from(times) * (length as u128) * 8).div_ceil(full);
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
            assert!(lines[3].contains("123456789"), "numbers are whole:\n{}", lines.join("\n"));
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
    fn what_strangers_call_themselves_cannot_steer_the_terminal() {
        let lines = chart(&statistics(&[1]), Some(120)).concat();
        assert!(
            !lines.contains(['\u{1b}', '\u{202e}']) && lines.contains("(blank)") && lines.contains("(none)"),
            "{lines}"
        );
    }

    #[test]
    fn bars_are_as_long_as_their_share_and_never_vanish() {
        assert_eq!(bar(10, 10, 4), "████");
        assert_eq!(bar(5, 10, 4), "██");
        assert_eq!(bar(1, 1_000_000, 4), "▏");
        assert_eq!(bar(0, 10, 4), "");
        assert_eq!(bar(0, 0, 4), "");
    }
}
