//! The charts by day, week or month: downloads, the opt-ins that came with them, and who reads.

use serde::Serialize;

use super::chart::{BarChart, LineChart};
use super::format::{self, grouped, new_people, percent, share};
use crate::domain::counts::{Statistics, Totals};
use crate::domain::reader::ReaderKind;
use crate::domain::reads::ReadsByReader;

/// A chart with its summary, and the same numbers as a table.
#[derive(Serialize)]
pub(super) struct PeriodChart<Drawing> {
    drawing: Drawing,
    summary: String,
    /// One label per period; most of them are empty.
    axis: Vec<String>,
    current_period: &'static str,
    rows: Vec<PeriodRow>,
    total: Option<Vec<String>>,
}

#[derive(Serialize)]
struct PeriodRow {
    period: String,
    tooltip: Option<String>,
    cells: Vec<String>,
}

/// Labels the first, the middle and the last period.
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

pub(super) fn downloads(statistics: &Statistics) -> PeriodChart<BarChart> {
    let pairs: Vec<_> = statistics.periods.iter().map(|(_, totals)| (totals.downloads, totals.new_people)).collect();
    let rows = statistics.periods.iter().zip(format::period_names(statistics)).map(|((_, totals), period)| {
        let counts = format!("{}, {}", format::downloads(totals.downloads), new_people(totals.new_people));
        PeriodRow { tooltip: Some(format!("{period}: {counts}")), period, cells: cells(totals) }
    });
    PeriodChart {
        drawing: BarChart::new(&pairs),
        summary: downloads_summary(statistics),
        axis: axis(statistics),
        current_period: format::current_period(statistics.by),
        rows: rows.collect(),
        total: Some(cells(&statistics.total)),
    }
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

/// An opt-in comes with a download, so a share is never above 100 %.
pub(super) fn opt_ins(statistics: &Statistics) -> PeriodChart<LineChart> {
    let shares = statistics.periods.iter().map(|(_, totals)| share(totals.opt_ins, totals.downloads));
    let rows = statistics.periods.iter().zip(format::period_names(statistics)).map(|((_, totals), period)| {
        let Totals { downloads, opt_ins, unsubscribes, .. } = *totals;
        let cells = vec![grouped(downloads), grouped(opt_ins), percent(opt_ins, downloads), grouped(unsubscribes)];
        PeriodRow { period, tooltip: None, cells }
    });
    PeriodChart {
        drawing: LineChart::new(&shares.collect::<Vec<_>>()),
        summary: opt_ins_summary(statistics),
        axis: axis(statistics),
        current_period: format::current_period(statistics.by),
        rows: rows.collect(),
        total: None,
    }
}

/// All reads, those by people in front, and a table by kind of reader with the downloads beside.
pub(super) fn reads(statistics: &Statistics) -> PeriodChart<BarChart> {
    let by_kind = |reads: &ReadsByReader| ReaderKind::ALL.map(|kind| reads.sum_of(kind));
    let counts: Vec<_> = statistics.readers_by_period.iter().map(by_kind).collect();
    let pairs: Vec<_> = counts.iter().map(|kinds| (kinds.iter().sum(), kinds[0])).collect();
    let cells = |kinds: &[u64; 4], downloads: u64| kinds.iter().copied().chain([downloads]).map(grouped).collect();
    let periods = statistics.periods.iter().zip(format::period_names(statistics)).zip(&counts);
    let rows = periods.map(|(((_, totals), period), kinds)| PeriodRow {
        tooltip: Some(format!("{period}: {}, {} by people", reads_quantity(kinds.iter().sum()), grouped(kinds[0]))),
        period,
        cells: cells(kinds, totals.downloads),
    });
    let all = by_kind(&statistics.readers);
    let since = format::period_name(statistics.by, statistics.since);
    PeriodChart {
        drawing: BarChart::new(&pairs),
        summary: format!(
            "{} since {since}: {} by people, {} by agents, {} by crawlers, {} by other programs.",
            reads_quantity(all.iter().sum()),
            grouped(all[0]),
            grouped(all[1]),
            grouped(all[2]),
            grouped(all[3])
        ),
        axis: axis(statistics),
        current_period: format::current_period(statistics.by),
        rows: rows.collect(),
        total: Some(cells(&all, statistics.total.downloads)),
    }
}

fn reads_quantity(number: u64) -> String {
    format::grouped_quantity(number, "read", "reads")
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
