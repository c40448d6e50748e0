//! Tables whose rows are their own chart: where people came from, what agents called, which version
//! was taken.

use serde_json::{Value, json};

use super::chart::length;
use super::words::{self, NOTHING, counted, grouped, percent};
use crate::domain::counts::Totals;
use crate::domain::display_text::sanitize_label;
use crate::domain::statistics::Statistics;

/// How many sources are worth a summary.
const SOURCES_SHOWN: usize = 8;

/// One number a row, with its share of them all.
pub(super) fn ranks(heads: [&str; 2], rows: &[(String, u64)]) -> Value {
    let most = rows.iter().map(|(_, number)| *number).max().unwrap_or_default();
    let all = rows.iter().map(|(_, number)| number).sum();
    let rows: Value = rows
        .iter()
        .map(|(name, number)| {
            let cells = [grouped(*number), percent(*number, all)];
            json!({ "name": name, "ours": false, "cells": cells, "solid": length(*number, most), "hollow": 0 })
        })
        .collect();
    json!({ "heads": [heads[0], heads[1], "Share"], "keyed": false, "rows": rows, "rest": null })
}

/// Where people came from. Strangers choose what their source is called.
pub(super) fn sources(statistics: &Statistics) -> Value {
    let mut rest = statistics.total;
    let mut rows = Vec::new();
    for (source, totals) in statistics.sources.iter().take(SOURCES_SHOWN) {
        rest.downloads = rest.downloads.saturating_sub(totals.downloads);
        rest.joins = rest.joins.saturating_sub(totals.joins);
        rows.push(if source.is_empty() {
            ours("no source given", *totals)
        } else {
            (sanitize_label(source), false, *totals)
        });
    }
    let mut table = people("Source", &rows, &statistics.total);
    if (rest.downloads, rest.joins) != (0, 0) {
        let cells = cells(&rest, &statistics.total);
        table["rest"] = json!({ "name": "all others", "ours": true, "cells": cells, "solid": null });
    }
    table["of"] = of_people(statistics).into();
    table
}

/// Through which part of the service they came.
pub(super) fn ways(statistics: &Statistics) -> Value {
    let name = |via: &str| match via {
        "site" => "the site’s forms".to_owned(),
        "api" => "the API".to_owned(),
        "mcp" => "agents, by MCP".to_owned(),
        other => other.to_owned(),
    };
    let rows: Vec<_> = statistics.via.iter().map(|(via, totals)| (name(via), false, *totals)).collect();
    let mut table = people("Way in", &rows, &statistics.total);
    table["of"] = of_people(statistics).into();
    table
}

pub(super) fn tools(statistics: &Statistics) -> Value {
    let calls = statistics.tools.iter().map(|(_, calls)| calls).sum();
    let since = words::period(statistics.by, statistics.since);
    let mut table = ranks(["Tool", "Calls"], &statistics.tools);
    table["of"] = format!("{} since {since}.", counted(calls, "call", "calls")).into();
    table
}

/// A name in our own words, which a source of the same name is told from.
fn ours(name: &str, totals: Totals) -> (String, bool, Totals) {
    (name.to_owned(), true, totals)
}

/// Downloads with their share of all, and joins behind them.
fn people(head: &str, rows: &[(String, bool, Totals)], all: &Totals) -> Value {
    let most = rows.iter().map(|(_, _, totals)| totals.downloads + totals.joins).max().unwrap_or_default();
    let drawn: Value = rows
        .iter()
        .map(|(name, ours, totals)| {
            json!({
                "name": name,
                "ours": ours,
                "cells": cells(totals, all),
                "solid": length(totals.downloads, most),
                "hollow": length(totals.joins, most),
            })
        })
        .collect();
    json!({ "heads": [head, "Downloads", "Share", "Joins"], "keyed": true, "rows": drawn, "rest": null })
}

fn cells(totals: &Totals, all: &Totals) -> [String; 3] {
    let share = if totals.downloads == 0 { NOTHING.to_owned() } else { percent(totals.downloads, all.downloads) };
    [grouped(totals.downloads), share, grouped(totals.joins)]
}

/// What the shares are shares of.
fn of_people(statistics: &Statistics) -> String {
    let Totals { downloads, joins, .. } = statistics.total;
    let since = words::period(statistics.by, statistics.since);
    format!("{} and {} since {since}.", words::downloads(downloads), counted(joins, "join", "joins"))
}
