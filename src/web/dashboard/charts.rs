//! The charts by day, week or month: downloads, the opt-ins that came with them, who reads, and update checks. Each has a
//! summary, and the same numbers as a table. The template draws them as SVG.
//!
//! A chart is 300 units wide and 100 high and is stretched to the available width, so it contains no
//! text. Every value above 0 is visible.

use serde_json::{Value, json};

use super::format::{self, grouped, new_people, percent};
use crate::domain::statistics::{ReaderKind, ReadsByReader, Statistics, Totals, UpdateStatistics};

const WIDTH: f64 = 300.0;
const HEIGHT: f64 = 100.0;
const MIN_BAR_HEIGHT: f64 = 1.5;
const MIN_ROW_LENGTH: f64 = 1.0;

pub(super) fn downloads(statistics: &Statistics) -> Value {
    let pairs: Vec<_> = statistics.periods.iter().map(|(_, totals)| (totals.downloads, totals.new_people)).collect();
    let row = |totals: &Totals| {
        let counts = format!("{}, {}", format::downloads(totals.downloads), new_people(totals.new_people));
        (counts, cells(totals))
    };
    let mut chart = period_chart(statistics, &pairs, &downloads_summary(statistics), row);
    chart["total"] = json!(cells(&statistics.total));
    chart
}

/// All downloads, those with a new opt-in in front.
pub(super) fn opt_ins(statistics: &Statistics) -> Value {
    let pairs: Vec<_> = statistics.periods.iter().map(|(_, totals)| (totals.downloads, totals.opt_ins)).collect();
    let row = |totals: &Totals| {
        let Totals { downloads, opt_ins, unsubscribes, .. } = *totals;
        let cells = [grouped(downloads), grouped(opt_ins), percent(opt_ins, downloads), grouped(unsubscribes)];
        let with_opt_in = format::grouped_quantity(opt_ins, "new opt-in", "new opt-ins");
        (format!("{}, {with_opt_in}", format::downloads(downloads)), cells.into())
    };
    period_chart(statistics, &pairs, &opt_ins_summary(statistics), row)
}

/// All reads, those by people in front, and a table by kind of reader with the downloads beside.
pub(super) fn reads(statistics: &Statistics) -> Value {
    let by_kind = |reads: &ReadsByReader| ReaderKind::ALL.map(|kind| reads.sum_of(kind));
    let counts: Vec<_> = statistics.readers_by_period.iter().map(by_kind).collect();
    let pairs: Vec<_> = counts.iter().map(|kinds| (kinds.iter().sum(), kinds[0])).collect();
    let cells = |kinds: [u64; 4], downloads: u64| kinds.into_iter().chain([downloads]).map(grouped).collect::<Vec<_>>();
    let mut kinds_of_period = counts.iter().copied();
    let row = |totals: &Totals| {
        let kinds = kinds_of_period.next().unwrap_or_default();
        let counts = format!("{}, {} by people", reads_quantity(kinds.iter().sum()), grouped(kinds[0]));
        (counts, cells(kinds, totals.downloads))
    };
    let all = by_kind(&statistics.readers);
    let since = format::period_name(statistics.by, statistics.since);
    let [people, agents, crawlers, programs] = all.map(grouped);
    let summary = format!(
        "{} since {since}: {people} by people, {agents} by agents, {crawlers} by crawlers, {programs} by other programs.",
        reads_quantity(all.iter().sum()),
    );
    let mut chart = period_chart(statistics, &pairs, &summary, row);
    chart["total"] = json!(cells(all, statistics.total.downloads));
    chart
}

/// All update checks, those from the newest version in front, and a table by version. `None` if there were none.
pub(super) fn update_checks(statistics: &Statistics, newest: Option<&str>) -> Option<Value> {
    let updates = &statistics.updates;
    let place = updates.versions.iter().position(|(version, _)| newest == Some(version));
    let pair = |checks: &[u64]| (checks.iter().sum(), place.map_or(0, |place| checks[place]));
    let pairs: Vec<_> = updates.by_period.iter().map(|checks| pair(checks)).collect();
    let words = |all, when: &str, part: &str| {
        let checks = format::grouped_quantity(all, "update check", "update checks");
        format!("{checks}{when}{}", newest.map(|newest| format!(", {part} from {newest}")).unwrap_or_default())
    };
    let mut periods = pairs.iter().zip(&updates.by_period);
    let row = |_: &Totals| {
        let Some(((all, part), checks)) = periods.next() else { return Default::default() };
        let cells = UpdateStatistics::cells(checks).into_iter().map(grouped).collect();
        (words(*all, "", &grouped(*part)), cells)
    };
    let (all, part) = pair(&updates.versions.iter().map(|(_, checks)| *checks).collect::<Vec<_>>());
    let since = format::period_name(statistics.by, statistics.since);
    let summary = format!("{}.", words(all, &format!(" since {since}"), &percent(part, all)));
    let mut chart = period_chart(statistics, &pairs, &summary, row);
    chart["newest"] = newest.into();
    chart["headings"] = json!([vec!["Update checks"], updates.columns()].concat());
    chart["total"] = updates.total().into_iter().map(grouped).collect();
    (all > 0).then_some(chart)
}

/// Draws a pair of numbers for each period. `row` returns both in words, and the cells of the period in the table.
fn period_chart(
    statistics: &Statistics,
    pairs: &[(u64, u64)],
    summary: &str,
    mut row: impl FnMut(&Totals) -> (String, Vec<String>),
) -> Value {
    let periods = statistics.periods.iter().zip(format::period_names(statistics));
    let rows = periods.map(|((_, totals), period)| {
        let (counts, cells) = row(totals);
        json!({ "tooltip": format!("{period}: {counts}"), "period": period, "cells": cells })
    });
    json!({
        "drawing": bar_chart(pairs),
        "summary": summary,
        "axis": axis(statistics),
        "total": null,
        "current_period": format::current_period(statistics.by),
        "rows": rows.collect::<Vec<_>>(),
    })
}

/// One label per period, most of them empty: labels the first, the middle and the last period.
fn axis(statistics: &Statistics) -> Vec<String> {
    let last = statistics.periods.len().saturating_sub(1);
    let label = |(index, (day, _)): (usize, &(_, _))| match index {
        _ if index == last => format::current_period(statistics.by).to_owned(),
        _ if index == 0 || index == last.div_ceil(2) => format::axis_label(statistics.by, *day),
        _ => String::new(),
    };
    statistics.periods.iter().enumerate().map(label).collect()
}

fn cells(totals: &Totals) -> Vec<String> {
    totals.named().map(|(_, count)| grouped(count)).into()
}

fn downloads_summary(statistics: &Statistics) -> String {
    let Totals { downloads, new_people: people, .. } = statistics.total;
    let since = format::period_name(statistics.by, statistics.since);
    let sums = format!("{} and {} since {since}.", format::downloads(downloads), new_people(people));
    let periods = statistics.periods.iter().zip(format::period_names(statistics));
    match periods.max_by_key(|((_, totals), _)| totals.downloads) {
        Some(((_, totals), period)) if totals.downloads > 0 => {
            format!("{sums} The most were {} ({period}).", grouped(totals.downloads))
        }
        _ => sums,
    }
}

fn opt_ins_summary(statistics: &Statistics) -> String {
    let Totals { opt_ins, downloads, .. } = statistics.total;
    let since = format::period_name(statistics.by, statistics.since);
    if downloads == 0 {
        return format!("No downloads since {since}.");
    }
    let share = percent(opt_ins, downloads);
    format!("{share} of downloads since {since} came with a new opt-in to the monthly email.")
}

fn reads_quantity(number: u64) -> String {
    format::grouped_quantity(number, "read", "reads")
}

/// Returns the smallest round number that is at least `max` and has a round half.
fn round_up(max: u64) -> u64 {
    let mut unit = 1;
    loop {
        if let Some(top) =
            [2, 4, 6, 8, 10, 12, 14, 16, 18, 24, 30].into_iter().map(|step| step * unit).find(|top| *top >= max)
        {
            return top;
        }
        unit *= 10;
    }
}

/// One bar per period, with a narrower bar in front of it. Each pair is their values.
fn bar_chart(pairs: &[(u64, u64)]) -> Value {
    let top = round_up(pairs.iter().map(|(outer, inner)| *outer.max(inner)).max().unwrap_or_default());
    let step = WIDTH / as_f64(pairs.len() as u64).max(1.0);
    let bars = pairs.iter().enumerate().map(|(index, (outer, inner))| {
        let left = step * as_f64(index as u64);
        let [outer, inner] = [outer, inner].map(|number| scaled(*number, top, HEIGHT, MIN_BAR_HEIGHT));
        json!({
            "left": rounded(left),
            "step": rounded(step),
            "x": rounded(left + step * 0.12),
            "width": rounded(step * 0.76),
            "y": rounded(HEIGHT - outer),
            "height": rounded(outer),
            "inner_x": rounded(left + step * 0.3),
            "inner_width": rounded(step * 0.4),
            "inner_y": rounded(HEIGHT - inner),
            "inner_height": rounded(inner),
        })
    });
    let scale = [top, top / 2, 0].map(grouped);
    json!({ "bars": bars.collect::<Vec<_>>(), "scale": scale })
}

/// Returns the length of a row's bar, out of 100.
pub(super) fn row_length(number: u64, max: u64) -> f64 {
    rounded(scaled(number, max.max(1), 100.0, MIN_ROW_LENGTH))
}

/// Scales `number` so that `whole` fills `extent`. Anything above 0 takes up at least `min`.
fn scaled(number: u64, whole: u64, extent: f64, min: f64) -> f64 {
    if number == 0 { 0.0 } else { (as_f64(number) / as_f64(whole) * extent).max(min) }
}

#[expect(clippy::cast_precision_loss, reason = "a chart does not need that precision")]
const fn as_f64(number: u64) -> f64 {
    number as f64
}

fn rounded(number: f64) -> f64 {
    (number * 100.0).round() / 100.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heights(chart: &Value, index: usize) -> [f64; 2] {
        ["height", "inner_height"].map(|name| chart["bars"][index][name].as_f64().unwrap())
    }

    #[test]
    #[expect(clippy::float_cmp, reason = "rounded to hundredths")]
    fn the_scale_is_round_and_covers_every_value() {
        for (max, round) in [(0, 2), (2, 2), (3, 4), (7, 8), (11, 12), (59, 60), (61, 80), (1366, 1400), (1900, 2400)] {
            assert_eq!(round_up(max), round, "{max}");
        }
        let chart = bar_chart(&[(0, 0), (1330, 665)]);
        assert_eq!(chart["scale"], json!(["1,400", "700", "0"]));
        assert_eq!(heights(&chart, 1), [95.0, 47.5]);
    }

    #[test]
    #[expect(clippy::float_cmp, reason = "rounded to hundredths")]
    fn bars_and_rows_never_vanish_beside_a_million() {
        let chart = bar_chart(&[(1_000_000, 900_000), (2, 1), (0, 0)]);
        assert_eq!((heights(&chart, 1), heights(&chart, 2)), ([1.5, 1.5], [0.0, 0.0]));
        assert_eq!([1, 0, 500_000].map(|number| row_length(number, 1_000_000)), [1.0, 0.0, 50.0]);
    }
}
