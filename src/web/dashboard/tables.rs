//! Tables with a bar in each row: sources, channels, readers, tool calls, versions, systems and the states of a letter.

use serde_json::{Value, json};

use super::charts::row_length;
use super::format::{self, NO_VALUE, grouped, grouped_quantity, percent};
use crate::domain::statistics::{ReadTotals, Reader, ReaderKind, Statistics, Totals};
use crate::domain::text::sanitize_label;

const MAX_SOURCES_SHOWN: usize = 8;

/// A table with one number per row, and its share of their sum.
pub(super) fn bar_table(headings: [&'static str; 2], counts: &[(impl AsRef<str>, u64)]) -> Value {
    let max = counts.iter().map(|(_, count)| *count).max().unwrap_or_default();
    let sum = counts.iter().map(|(_, count)| count).sum();
    let rows = counts.iter().map(|(name, count)| {
        json!({
            "name": name.as_ref(),
            "is_placeholder": false,
            "cells": [grouped(*count), percent(*count, sum)],
            "bar": { "solid": row_length(*count, max), "hollow": 0 },
        })
    });
    table(&[headings[0], headings[1], "Share"], rows)
}

pub(super) fn sources(statistics: &Statistics) -> Value {
    let mut rows = Vec::new();
    for (source, totals) in statistics.sources.iter().take(MAX_SOURCES_SHOWN) {
        // A label of ours looks different from a source that a client sent.
        let (name, is_placeholder) =
            if source.is_empty() { ("no source given".to_owned(), true) } else { (sanitize_label(source), false) };
        rows.push((name, is_placeholder, *totals));
    }
    let mut table = signups("Source", &rows, statistics);
    let others = statistics.other_sources(MAX_SOURCES_SHOWN).filter(|others| others.downloads + others.joins > 0);
    if let Some(others) = others {
        let cells = signup_cells(&others, &statistics.total);
        table["remainder"] = json!({ "name": "all others", "is_placeholder": true, "cells": cells, "bar": null });
    }
    table
}

/// Downloads and joins by channel.
pub(super) fn channels(statistics: &Statistics) -> Value {
    let name = |via: &str| match via {
        "site" => "the site’s forms".to_owned(),
        "api" => "the API".to_owned(),
        "mcp" => "agents, by MCP".to_owned(),
        other => other.to_owned(),
    };
    let rows: Vec<_> = statistics.via.iter().map(|(via, totals)| (name(via), false, *totals)).collect();
    signups("Channel", &rows, statistics)
}

pub(super) fn tools(statistics: &Statistics) -> Value {
    let calls = statistics.tools.iter().map(|(_, calls)| calls).sum();
    let since = format::period_name(statistics.by, statistics.since);
    let mut table = bar_table(["Tool", "Calls"], &statistics.tools);
    table["caption"] = format!("{} since {since}.", grouped_quantity(calls, "call", "calls")).into();
    table
}

/// Reads by reader: those known by name, then people and other programs.
pub(super) fn readers(statistics: &Statistics) -> Value {
    let rows = statistics.readers.rows();
    let max = rows.iter().map(|(_, totals)| totals.sum()).max().unwrap_or_default();
    let row = |(reader, totals): &(Reader, ReadTotals)| {
        json!({
            "name": reader.name(),
            "is_placeholder": matches!(reader.kind(), ReaderKind::Person | ReaderKind::Program),
            "cells": totals.named().map(|(_, count)| grouped(count)),
            "bar": { "solid": row_length(totals.sum(), max), "hollow": 0 },
        })
    };
    table(&["Reader", "Pages", "Markdown", "Briefings", "Tools"], rows.iter().map(row))
}

/// A table of downloads, their share of all downloads, and joins. The caption states the total that the shares refer to.
fn signups(heading: &'static str, rows: &[(String, bool, Totals)], statistics: &Statistics) -> Value {
    let max = rows.iter().map(|(_, _, totals)| totals.downloads + totals.joins).max().unwrap_or_default();
    let row = |(name, is_placeholder, totals): &(String, bool, Totals)| {
        json!({
            "name": name,
            "is_placeholder": is_placeholder,
            "cells": signup_cells(totals, &statistics.total),
            "bar": { "solid": row_length(totals.downloads, max), "hollow": row_length(totals.joins, max) },
        })
    };
    let Totals { downloads, joins, .. } = statistics.total;
    let since = format::period_name(statistics.by, statistics.since);
    let joins = grouped_quantity(joins, "join", "joins");
    let caption = format!("{} and {joins} since {since}.", format::downloads(downloads));
    let mut table = table(&[heading, "Downloads", "Share", "Joins"], rows.iter().map(row));
    table["caption"] = caption.into();
    table["has_legend"] = true.into();
    table
}

/// `has_legend` is whether the headings explain the two kinds of bars, `remainder` the sum of the rows that are not shown.
fn table(headings: &[&str], rows: impl Iterator<Item = Value>) -> Value {
    json!({
        "caption": null,
        "headings": headings,
        "has_legend": false,
        "rows": rows.collect::<Vec<_>>(),
        "remainder": null,
    })
}

fn signup_cells(totals: &Totals, all: &Totals) -> [String; 3] {
    let share = if totals.downloads == 0 { NO_VALUE.to_owned() } else { percent(totals.downloads, all.downloads) };
    [grouped(totals.downloads), share, grouped(totals.joins)]
}
