//! Tables with a bar in each row: sources, channels, readers, tool calls and versions.

use serde::Serialize;

use super::chart::row_length;
use super::format::{self, NO_VALUE, grouped, grouped_quantity, percent};
use crate::domain::counts::{Statistics, Totals};
use crate::domain::display_text::sanitize_label;
use crate::domain::reader::{Reader, ReaderKind};
use crate::domain::reads::ReadTotals;

const MAX_SOURCES_SHOWN: usize = 8;

#[derive(Serialize)]
pub(super) struct BarTable {
    /// States the total that the shares refer to.
    caption: Option<String>,
    headings: Vec<&'static str>,
    /// Whether the headings explain the two kinds of bars.
    has_legend: bool,
    rows: Vec<BarTableRow>,
    /// The sum of the rows that are not shown.
    remainder: Option<BarTableRow>,
}

#[derive(Serialize)]
struct BarTableRow {
    name: String,
    /// Whether the name is a label of ours instead of a source that a client sent.
    is_placeholder: bool,
    cells: Vec<String>,
    bar: Option<RowBar>,
}

#[derive(Serialize)]
struct RowBar {
    solid: f64,
    hollow: f64,
}

/// A table with one number per row, and its share of their sum.
pub(super) fn bar_table(headings: [&'static str; 2], counts: &[(String, u64)]) -> BarTable {
    let max = counts.iter().map(|(_, count)| *count).max().unwrap_or_default();
    let sum = counts.iter().map(|(_, count)| count).sum();
    let row = |(name, count): &(String, u64)| BarTableRow {
        name: name.clone(),
        is_placeholder: false,
        cells: vec![grouped(*count), percent(*count, sum)],
        bar: Some(RowBar { solid: row_length(*count, max), hollow: 0.0 }),
    };
    BarTable {
        caption: None,
        headings: vec![headings[0], headings[1], "Share"],
        has_legend: false,
        rows: counts.iter().map(row).collect(),
        remainder: None,
    }
}

pub(super) fn sources(statistics: &Statistics) -> BarTable {
    let mut rows = Vec::new();
    for (source, totals) in statistics.sources.iter().take(MAX_SOURCES_SHOWN) {
        let (name, is_placeholder) =
            if source.is_empty() { ("no source given".to_owned(), true) } else { (sanitize_label(source), false) };
        rows.push((name, is_placeholder, *totals));
    }
    let others = statistics.other_sources(MAX_SOURCES_SHOWN).filter(|others| others.downloads + others.joins > 0);
    let remainder = others.map(|others| BarTableRow {
        name: "all others".to_owned(),
        is_placeholder: true,
        cells: signup_cells(&others, &statistics.total),
        bar: None,
    });
    BarTable { remainder, ..signups("Source", rows, statistics) }
}

/// Downloads and joins by channel.
pub(super) fn channels(statistics: &Statistics) -> BarTable {
    let name = |via: &str| match via {
        "site" => "the site’s forms".to_owned(),
        "api" => "the API".to_owned(),
        "mcp" => "agents, by MCP".to_owned(),
        other => other.to_owned(),
    };
    let rows = statistics.via.iter().map(|(via, totals)| (name(via), false, *totals)).collect();
    signups("Channel", rows, statistics)
}

pub(super) fn tools(statistics: &Statistics) -> BarTable {
    let calls = statistics.tools.iter().map(|(_, calls)| calls).sum();
    let since = format::period_name(statistics.by, statistics.since);
    let caption = format!("{} since {since}.", grouped_quantity(calls, "call", "calls"));
    BarTable { caption: Some(caption), ..bar_table(["Tool", "Calls"], &statistics.tools) }
}

/// Reads by reader: those known by name, then people and other programs.
pub(super) fn readers(statistics: &Statistics) -> BarTable {
    let rows = statistics.readers.rows();
    let max = rows.iter().map(|(_, totals)| totals.sum()).max().unwrap_or_default();
    let row = |(reader, totals): (Reader, ReadTotals)| BarTableRow {
        name: reader.name().to_owned(),
        is_placeholder: matches!(reader.kind(), ReaderKind::Person | ReaderKind::Program),
        cells: totals.named().map(|(_, count)| grouped(count)).into(),
        bar: Some(RowBar { solid: row_length(totals.sum(), max), hollow: 0.0 }),
    };
    BarTable {
        caption: None,
        headings: vec!["Reader", "Pages", "Markdown", "Briefings", "Tools"],
        has_legend: false,
        rows: rows.into_iter().map(row).collect(),
        remainder: None,
    }
}

/// A table of downloads, their share of all downloads, and joins.
fn signups(heading: &'static str, rows: Vec<(String, bool, Totals)>, statistics: &Statistics) -> BarTable {
    let max = rows.iter().map(|(_, _, totals)| totals.downloads + totals.joins).max().unwrap_or_default();
    let row = |(name, is_placeholder, totals): (String, bool, Totals)| BarTableRow {
        name,
        is_placeholder,
        cells: signup_cells(&totals, &statistics.total),
        bar: Some(RowBar { solid: row_length(totals.downloads, max), hollow: row_length(totals.joins, max) }),
    };
    let Totals { downloads, joins, .. } = statistics.total;
    let since = format::period_name(statistics.by, statistics.since);
    let joins = grouped_quantity(joins, "join", "joins");
    BarTable {
        caption: Some(format!("{} and {joins} since {since}.", format::downloads(downloads))),
        headings: vec![heading, "Downloads", "Share", "Joins"],
        has_legend: true,
        rows: rows.into_iter().map(row).collect(),
        remainder: None,
    }
}

fn signup_cells(totals: &Totals, all: &Totals) -> Vec<String> {
    let share = if totals.downloads == 0 { NO_VALUE.to_owned() } else { percent(totals.downloads, all.downloads) };
    vec![grouped(totals.downloads), share, grouped(totals.joins)]
}
