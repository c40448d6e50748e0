//! What is drawn by day, week or month: downloads, and the opt-ins that came with them.

use serde_json::{Value, json};

use super::chart::{bars, line};
use super::words::{self, grouped, new_people, percent, share};
use crate::domain::counts::Totals;
use crate::domain::statistics::Statistics;

/// What stands beneath each place of a drawing: the first, the middle and the last have words.
fn when(statistics: &Statistics) -> Value {
    let last = statistics.periods.len().saturating_sub(1);
    let words = statistics.periods.iter().enumerate().map(|(place, (day, _))| match place {
        _ if place == last => words::running(statistics.by).to_owned(),
        _ if place == 0 || place == last.div_ceil(2) => words::under_chart(statistics.by, *day),
        _ => String::new(),
    });
    words.collect()
}

pub(super) fn downloads(statistics: &Statistics) -> Value {
    let pairs: Vec<_> = statistics.periods.iter().map(|(_, totals)| (totals.downloads, totals.new_people)).collect();
    let mut chart = bars(&pairs);
    let rows = statistics.periods.iter().zip(words::periods(statistics)).map(|((_, totals), when)| {
        let tip = format!("{when}: {}, {}", words::downloads(totals.downloads), new_people(totals.new_people));
        json!({ "when": when, "tip": tip, "cells": totals.named().map(|(_, times)| grouped(times)) })
    });
    chart["rows"] = rows.collect();
    chart["words"] = in_words(statistics).into();
    chart["when"] = when(statistics);
    chart["running"] = words::running(statistics.by).into();
    chart["total"] = json!(statistics.total.named().map(|(_, times)| grouped(times)));
    chart
}

fn in_words(statistics: &Statistics) -> String {
    let Totals { downloads, new_people: people, .. } = statistics.total;
    let best = statistics.periods.iter().zip(words::periods(statistics));
    let best = best.max_by_key(|((_, totals), _)| totals.downloads).filter(|((_, totals), _)| totals.downloads > 0);
    let most = best.map(|((_, totals), when)| format!(" The most were {} ({when}).", grouped(totals.downloads)));
    let since = words::period(statistics.by, statistics.since);
    let sums = format!("{} and {} since {since}.", words::downloads(downloads), new_people(people));
    sums + &most.unwrap_or_default()
}

/// An opt-in comes with a download, so there are never more of them.
pub(super) fn opt_ins(statistics: &Statistics) -> Value {
    let periods = &statistics.periods;
    let mut chart =
        line(&periods.iter().map(|(_, totals)| share(totals.opt_ins, totals.downloads)).collect::<Vec<_>>());
    let Totals { opt_ins, downloads, .. } = statistics.total;
    let since = words::period(statistics.by, statistics.since);
    chart["words"] = if downloads == 0 {
        format!("No downloads since {since}.").into()
    } else {
        let share = percent(opt_ins, downloads);
        format!("{share} of downloads since {since} came with a new opt-in to the monthly email.").into()
    };
    chart["when"] = when(statistics);
    chart["running"] = words::running(statistics.by).into();
    let rows = periods.iter().zip(words::periods(statistics)).map(|((_, totals), when)| {
        let Totals { downloads, opt_ins, unsubscribes, .. } = *totals;
        let cells = [grouped(downloads), grouped(opt_ins), percent(opt_ins, downloads), grouped(unsubscribes)];
        json!({ "when": when, "cells": cells })
    });
    chart["rows"] = rows.collect();
    chart["total"] = Value::Null;
    chart
}
