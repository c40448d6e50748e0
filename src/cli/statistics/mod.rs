//! `porchlight stats`

mod table;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use serde_json::{Value, json};

use super::failure::Failure;
use super::run::{Access, with_store};
use super::terminal::{print_record, terminal_width, truncate};
use crate::actions::StatisticsRange;
use crate::actions::statistics;
use crate::clock::Clock;
use crate::config::{InvalidSettings, Settings};
use crate::domain::statistics::{
    PeopleTotals, ReadTotals, Reader, ReaderKind, ReadsByReader, Statistics, Totals, UpdateStatistics,
};
use crate::domain::text::sanitize_label;
use crate::domain::time::{Day, Period};
use table::{MAX_LABEL_WIDTH, Row, Table, first, sum};

pub(super) const EXAMPLES: &str = "\
Examples:
  porchlight stats
  porchlight stats --by week --since 2026-09-01
  porchlight stats --by month --json";

#[derive(Args, Debug)]
pub(super) struct StatsArguments {
    /// Group by day, week or month; weeks begin on Monday, days at midnight UTC
    #[arg(long, default_value = "day", value_parser = PossibleValuesParser::new(Period::ALL.map(Period::as_str)).map(|name| Period::parse(&name).unwrap_or_default()))]
    by: Period,

    /// First day, such as 2026-11-01 [default: 30 days, 13 weeks or 12 months ago]
    #[arg(long, value_name = "DATE", value_parser = Day::parse)]
    since: Option<Day>,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: &StatsArguments, settings: &Settings) -> Result<(), Failure> {
    let today = Day::of(Clock::System.now());
    validate_since(arguments.since, today)?;
    let range = arguments.since.map_or(StatisticsRange::Default, StatisticsRange::Since);
    with_store(settings, Access::Read, async |store| {
        let statistics = statistics(store, arguments.by, range, today).await?;
        let people = store.people_totals().await?;
        let lines = [people_lines(&people), chart(&statistics, terminal_width())].concat();
        print_record(arguments.json, &statistics_json(&statistics, &people), &lines.join("\n"));
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

/// Opt-ins that wait for their confirmation are not in the total of the period.
fn statistics_json(statistics: &Statistics, people: &PeopleTotals) -> Value {
    let counts_by = |name: &str, number: &str, rows: &[(String, u64)]| -> Value {
        rows.iter().map(|(value, count)| json!({ name: value, number: count })).collect()
    };
    let totals_by = |name: &str, rows: &[(String, Totals)]| -> Vec<Value> {
        let null_if_empty = |value: &String| Some(value.clone()).filter(|value| !value.is_empty());
        let row =
            |(value, totals): &(String, Totals)| with_counts(json!({ name: null_if_empty(value) }), totals.named());
        rows.iter().map(row).collect()
    };
    let UpdateStatistics { versions, by_period, macos, processors } = &statistics.updates;
    let checks = |counts: &[u64]| {
        let counted = versions.iter().zip(counts).filter(|(_, count)| **count > 0);
        counted.map(|((version, _), count)| json!({ "version": version, "checks": count })).collect::<Value>()
    };
    let periods = statistics.periods.iter().enumerate().map(|(index, (day, totals))| {
        let mut period = with_counts(json!({ "start": day.date() }), totals.named());
        period["readers"] = readers_json(&statistics.readers_by_period[index]);
        period["update_checks"] = checks(&by_period[index]);
        period
    });
    let mut sources = totals_by("source", &statistics.sources);
    // The last row has the rest, if there is one. No source has the member `others`.
    sources.extend(statistics.other_sources(usize::MAX).map(|totals| {
        let mut rest = with_counts(json!({ "source": null }), totals.named());
        rest["others"] = true.into();
        rest
    }));
    json!({
        "by": statistics.by.as_str(),
        "since": statistics.since.date(),
        "until": statistics.until.date(),
        "totals": people,
        "total": with_counts(json!({}), statistics.total.named()),
        "pending_opt_ins": people.pending,
        "periods": periods.collect::<Value>(),
        "readers": readers_json(&statistics.readers),
        "sources": sources,
        "via": totals_by("via", &statistics.via),
        "tool_calls": counts_by("tool", "calls", &statistics.tools),
        "images": counts_by("version", "sent", &statistics.images),
        "update_checks": counts_by("version", "checks", versions),
        "update_macos": counts_by("macos", "checks", macos),
        "update_processors": counts_by("processor", "checks", processors),
    })
}

fn readers_json(readers: &ReadsByReader) -> Value {
    let row = |(reader, totals): (Reader, ReadTotals)| {
        with_counts(json!({ "reader": reader.name(), "kind": reader.kind().as_str() }), totals.named())
    };
    readers.rows().into_iter().map(row).collect()
}

/// Adds counts to the members of a row.
fn with_counts<const N: usize>(mut row: Value, counts: [(&str, u64); N]) -> Value {
    for (name, count) in counts {
        row[name] = count.into();
    }
    row
}

/// The headings of the columns, in the order of [`Totals::named`].
const COLUMNS: &[&str] = &["downloads", "new people", "opt-ins", "joins", "messages", "unsubscribed"];
/// Reads by kind of reader, in the order of [`ReaderKind::ALL`], and the downloads beside them.
const KIND_COLUMNS: &[&str] = &["people", "agents", "crawlers", "programs", "downloads"];
/// The headings of the columns, in the order of [`ReadTotals::named`].
const READ_COLUMNS: &[&str] = &["pages", "markdown", "briefings", "tools"];
/// How many sources the table lists; the last row has the others.
const MAX_SOURCES: usize = 12;

fn people_lines(people: &PeopleTotals) -> Vec<String> {
    let rows = [
        ("people", people.people),
        ("opted in", people.opted_in),
        ("pending", people.pending),
        ("suppressed", people.suppressed),
    ];
    let digits = rows.iter().map(|(_, count)| count.to_string().len()).max().unwrap_or_default();
    rows.map(|(name, count)| format!("{name:10}  {count:>digits$}")).into()
}

/// Returns the lines of the period and its tables, without what is empty; with a terminal width, rows have bars.
fn chart(statistics: &Statistics, width: Option<usize>) -> Vec<String> {
    let period = format!("{} to {}", statistics.since.date(), statistics.until.date());
    let periods = period_rows(statistics, |index| counts(&statistics.periods[index].1));
    let total = ("total".to_owned(), counts(&statistics.total));
    let sources = source_rows(statistics);
    let table = Table::for_rows(COLUMNS, periods.iter().chain(&sources).chain([&total]), width);
    let mut lines = vec![String::new(), truncate(&period, width)];
    if periods.is_empty() {
        lines.push(truncate("Nobody signed up or wrote.", width));
    } else {
        lines.extend([String::new(), table.header(statistics.by.as_str())]);
        lines.extend(table.rows(&periods, first));
        lines.push(table.row(&total));
    }
    if !sources.is_empty() {
        lines.push(String::new());
        lines.push(table.header("source"));
        lines.extend(table.rows(&sources, first));
    }
    lines.extend(reader_lines(statistics, width));
    lines.extend(update_lines(statistics, width));
    lines
}

/// Who read: by period, and by reader.
fn reader_lines(statistics: &Statistics, width: Option<usize>) -> Vec<String> {
    let readers: Vec<Row> = statistics
        .readers
        .rows()
        .into_iter()
        .map(|(reader, totals)| (reader.name().to_owned(), totals.named().map(|(_, count)| count).into()))
        .collect();
    if readers.is_empty() {
        return Vec::new();
    }
    let by_kind = |reads: &ReadsByReader, downloads: u64| {
        ReaderKind::ALL.into_iter().map(|kind| reads.sum_of(kind)).chain([downloads]).collect::<Vec<_>>()
    };
    let mut periods = period_rows(statistics, |index| {
        by_kind(&statistics.readers_by_period[index], statistics.periods[index].1.downloads)
    });
    periods.retain(|(_, counts)| sum(&counts[..ReaderKind::ALL.len()]) > 0);
    let total = ("total".to_owned(), by_kind(&statistics.readers, statistics.total.downloads));
    let table = Table::for_rows(KIND_COLUMNS, periods.iter().chain([&total]), width);
    let mut lines = vec![String::new(), table.header("reads")];
    lines.extend(table.rows(&periods, |counts| sum(&counts[..ReaderKind::ALL.len()])));
    lines.push(table.row(&total));
    let table = Table::for_rows(READ_COLUMNS, readers.iter(), width);
    lines.extend([String::new(), table.header("reader")]);
    lines.extend(table.rows(&readers, sum));
    lines
}

/// Update checks: by period and version, and by what the profiles of some say.
fn update_lines(statistics: &Statistics, width: Option<usize>) -> Vec<String> {
    let updates = &statistics.updates;
    if updates.versions.is_empty() {
        return Vec::new();
    }
    let headings = [vec!["checks"], updates.columns()].concat();
    let periods = period_rows(statistics, |index| UpdateStatistics::cells(&updates.by_period[index]));
    let total = ("total".to_owned(), updates.total());
    let table = Table::for_rows(&headings, periods.iter().chain([&total]), width);
    let mut lines = vec![String::new(), table.header("updates")];
    lines.extend(table.rows(&periods, first));
    lines.push(table.row(&total));
    let macos = updates.macos.iter().map(|(name, checks)| (format!("macOS {name}"), vec![*checks]));
    let processors = updates.processors.iter().map(|(name, checks)| (format!("{name} processor"), vec![*checks]));
    let systems: Vec<Row> = macos.chain(processors).collect();
    if !systems.is_empty() {
        let table = Table::for_rows(&["checks"], systems.iter(), width);
        lines.extend([String::new(), table.header("system")]);
        lines.extend(table.rows(&systems, first));
    }
    lines
}

/// One row for each period that is not empty, with the numbers that `counts` returns for its index.
fn period_rows(statistics: &Statistics, counts: impl Fn(usize) -> Vec<u64>) -> Vec<Row> {
    let label = |day: &Day| match statistics.by {
        Period::Month => day.date().rsplit_once('-').map_or_else(String::new, |(month, _)| month.to_owned()),
        _ => day.date(),
    };
    let rows = statistics.periods.iter().enumerate().map(|(index, (day, _))| (label(day), counts(index)));
    rows.filter(|(_, counts)| sum(counts) > 0).collect()
}

fn source_rows(statistics: &Statistics) -> Vec<Row> {
    let listed = statistics.sources.iter().take(MAX_SOURCES);
    let mut rows: Vec<_> = listed.map(|(source, totals)| (source_label(source), counts(totals))).collect();
    rows.sort_by_key(|(_, counts)| std::cmp::Reverse(first(counts)));
    rows.extend(statistics.other_sources(MAX_SOURCES).map(|totals| ("(others)".to_owned(), counts(&totals))));
    rows
}

fn counts(totals: &Totals) -> Vec<u64> {
    totals.named().map(|(_, count)| count).into()
}

fn source_label(source: &str) -> String {
    if source.is_empty() {
        return "(none)".to_owned();
    }
    truncate(&sanitize_label(source), Some(MAX_LABEL_WIDTH))
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
            readers: ReadsByReader::default(),
            readers_by_period: vec![ReadsByReader::default(); downloads.len()],
            sources: ["a\u{1b}[31m", "\u{202e}b", " ", "", "漢字漢字漢字漢字漢字漢字"]
                .map(|source| (source.to_owned(), totals(3)))
                .into(),
            via: Vec::new(),
            tools: Vec::new(),
            images: Vec::new(),
            updates: UpdateStatistics::default(),
        }
    }

    #[test]
    fn a_chart_is_never_wider_than_the_terminal() {
        for width in [12, 20, 24, 40, 60, 79, 80, 100, 132, 400] {
            let lines = chart(&statistics(&[0, 1, 123_456_789, 77]), Some(width));
            let widest = lines.iter().map(|line| console::measure_text_width(line)).max().unwrap();
            assert!(lines[5].contains("123456789"), "numbers are not truncated:\n{}", lines.join("\n"));
            assert!(widest <= width, "{widest} of {width}:\n{}", lines.join("\n"));
            assert_eq!(lines.iter().any(|line| line.contains('█')), width >= 40, "{}", lines.join("\n"));
        }
    }

    #[test]
    fn without_a_terminal_there_are_numbers_and_no_bars() {
        let lines = chart(&statistics(&[4, 0, 12]), None);
        assert!(!lines.concat().contains('█'));
        assert_eq!(lines[1], "2026-11-13 to 2026-11-15");
        assert_eq!(lines[5].split_whitespace().collect::<Vec<_>>(), ["2026-11-15", "12", "6", "0", "0", "0", "0"]);
        assert!(lines[6].starts_with("total"), "{lines:#?}");
        assert!(!lines.concat().contains("2026-11-14 "), "a day without events is left out: {lines:#?}");
    }

    #[test]
    fn a_period_without_events_is_one_sentence() {
        let empty = Statistics { sources: Vec::new(), ..statistics(&[0, 0]) };
        assert_eq!(chart(&empty, None), ["", "2026-11-14 to 2026-11-15", "Nobody signed up or wrote."]);
        let people = PeopleTotals { people: 1200, opted_in: 3, ..PeopleTotals::default() };
        let lines = people_lines(&people);
        assert_eq!(lines, ["people      1200", "opted in       3", "pending        0", "suppressed     0"]);
    }

    #[test]
    fn a_source_cannot_control_the_terminal() {
        let lines = chart(&statistics(&[1]), Some(120)).concat();
        assert!(
            !lines.contains(['\u{1b}', '\u{202e}']) && lines.contains("(blank)") && lines.contains("(none)"),
            "{lines}"
        );
    }
}
