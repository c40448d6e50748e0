//! `/`: how the launch goes, on one page.

use axum::body::Body;
use axum::response::Response;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, StatusCode};
use serde_json::{Value, json};

use super::chart::{bars, grouped, line, rows, share};
use crate::actions::{Glance, Part, glance, readiness, statistics};
use crate::domain::calendar::{Day, Period};
use crate::domain::counts::{Counted, Totals};
use crate::domain::statistics::Statistics;
use crate::domain::time::Moment;
use crate::store::StoreFailure;
use crate::web::app::App;
use crate::web::pages::{HTML, text_response};

const TEMPLATE: &str = include_str!("desk.html");
pub(super) const STYLE: &str = include_str!("desk.css");
pub(super) const STYLE_PATH: &str = "/desk.css";

/// How many sources are worth a glance.
const SOURCES_SHOWN: usize = 8;
/// Over how many days it is told which version people take.
const ADOPTION_DAYS: i64 = 7;

/// What the page is made of.
struct Seen {
    chosen: Statistics,
    /// The last weeks day by day, whatever was chosen.
    days: Statistics,
    /// Calls of agents today, and yesterday.
    calls: [u64; 2],
    images_lately: Vec<(String, u64)>,
    glance: Glance,
}

pub(super) async fn dashboard(app: &App, query: Option<&str>) -> Response {
    let by = chosen(query);
    let now = app.service().clock.now();
    let parts = readiness(app.service()).await;
    let seen = look(app, by, Day::of(now)).await;
    let ranges = [Period::Day, Period::Week, Period::Month].map(|period| range(period, by));
    let made = app.made();
    let context = json!({
        "app": made.site.facts.name,
        "now": told(now),
        "ranges": ranges,
        "trouble": seen.as_ref().err().map(ToString::to_string),
        "seen": seen.as_ref().ok().map(|seen| describe(app, seen)),
        "parts": parts.iter().map(part).collect::<Value>(),
    });
    match made.site.fill("desk.html", TEMPLATE, &context) {
        Ok(html) => {
            let mut response = Response::new(Body::from(html));
            response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(HTML));
            if seen.is_err() {
                *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
            }
            response
        }
        Err(failure) => {
            tracing::error!(%failure, "the dashboard cannot be shown");
            text_response(StatusCode::INTERNAL_SERVER_ERROR, "The dashboard cannot be shown. The log says why.\n")
        }
    }
}

fn chosen(query: Option<&str>) -> Period {
    match query {
        Some("by=week") => Period::Week,
        Some("by=month") => Period::Month,
        _ => Period::Day,
    }
}

async fn look(app: &App, by: Period, today: Day) -> Result<Seen, StoreFailure> {
    let store = &app.service().desk;
    let days = statistics(store, Period::Day, None, today).await?;
    let calls_today = all(&store.counts_of(Counted::Tool, today).await?);
    let calls_of_two_days = all(&store.counts_of(Counted::Tool, today.before(1)).await?);
    Ok(Seen {
        chosen: if by == Period::Day { days.clone() } else { statistics(store, by, None, today).await? },
        days,
        calls: [calls_today, calls_of_two_days.saturating_sub(calls_today)],
        images_lately: store.counts_of(Counted::Image, today.before(ADOPTION_DAYS - 1)).await?,
        glance: glance(app.service()).await?,
    })
}

fn all(rows: &[(String, u64)]) -> u64 {
    rows.iter().map(|(_, times)| times).sum()
}

fn told(now: Moment) -> Value {
    let rfc3339 = now.rfc3339();
    let clock = rfc3339.get(11..16).unwrap_or_default();
    json!({ "machine": rfc3339, "people": format!("{}, {clock} UTC", Day::of(now).short()) })
}

fn range(period: Period, by: Period) -> Value {
    let (name, span) = match period {
        Period::Day => ("Days", "30 days"),
        Period::Week => ("Weeks", "13 weeks"),
        Period::Month => ("Months", "12 months"),
    };
    json!({ "by": period.as_str(), "name": name, "span": span, "current": period == by })
}

fn part(part: &Part) -> Value {
    let name = part.name.replace('_', " ");
    json!({ "name": name, "trouble": part.trouble })
}

fn describe(app: &App, seen: &Seen) -> Value {
    let named = |name: &str| if name.is_empty() { "no source given".to_owned() } else { name.to_owned() };
    let mut sources: Vec<_> =
        seen.chosen.sources.iter().map(|(name, totals)| (named(name), totals.downloads)).collect();
    sources.sort_by_key(|(_, downloads)| std::cmp::Reverse(*downloads));
    let more = sources.len().saturating_sub(SOURCES_SHOWN);
    let faces = seen.chosen.via.iter().map(|(via, totals)| (face(via), totals.downloads + totals.joins));
    json!({
        "tiles": tiles(app, seen),
        "downloads": downloads(&seen.chosen),
        "opt_ins": opt_ins(&seen.chosen),
        "sources": rows(&sources[..sources.len() - more]),
        "more_sources": more,
        "faces": rows(&faces.collect::<Vec<_>>()),
        "tools": rows(&seen.chosen.tools),
        "releases": rows(&seen.images_lately),
        "mail": mail(&seen.glance),
    })
}

fn face(via: &str) -> String {
    match via {
        "site" => "the site’s forms".to_owned(),
        "api" => "the API".to_owned(),
        "mcp" => "agents, by MCP".to_owned(),
        other => other.to_owned(),
    }
}

/// Today, beside yesterday.
fn tiles(app: &App, seen: &Seen) -> Value {
    let mut latest = seen.days.periods.iter().rev().map(|(_, totals)| *totals);
    let (today, yesterday) = (latest.next().unwrap_or_default(), latest.next().unwrap_or_default());
    let tile = |name: &str, value: String, note: String| json!({ "name": name, "value": value, "note": note });
    let number = |name: &str, of: fn(&Totals) -> u64| {
        tile(name, grouped(of(&today)), format!("{} yesterday", grouped(of(&yesterday))))
    };
    let percent = |totals: &Totals| {
        share(totals.opt_ins, totals.new_people).map_or_else(|| "–".to_owned(), |share| format!("{share} %"))
    };
    let releases = app.catalogue().known();
    let newest = releases.newest().map(|release| release.version.to_string());
    let sent = all(&seen.images_lately);
    let newest_sent = seen.images_lately.iter().find(|(version, _)| Some(version) == newest.as_ref());
    let adoption = share(newest_sent.map_or(0, |(_, sent)| *sent), sent);
    json!([
        number("Downloads", |totals| totals.downloads),
        number("New people", |totals| totals.new_people),
        tile("Opt-in share", percent(&today), format!("{} yesterday", percent(&yesterday))),
        number("Messages", |totals| totals.messages),
        tile("Agents’ calls", grouped(seen.calls[0]), format!("{} yesterday", grouped(seen.calls[1]))),
        tile(
            "Newest release",
            newest.unwrap_or_else(|| "none".to_owned()),
            adoption.map_or_else(
                || "no image sent lately".to_owned(),
                |share| format!("{share} % of images, {ADOPTION_DAYS} days")
            ),
        ),
    ])
}

/// What a period is called under a chart and in its table.
fn label(by: Period, day: Day) -> String {
    match by {
        Period::Day => day.short(),
        Period::Week => format!("week of {}", day.short()),
        Period::Month => day.month_name(),
    }
}

/// The first, the middle and the last.
fn when(statistics: &Statistics) -> Value {
    let periods = &statistics.periods;
    let places = [0, periods.len() / 2, periods.len().saturating_sub(1)];
    let name = |day: Day| if statistics.by == Period::Month { day.month_name() } else { day.short() };
    places.iter().filter_map(|place| Some(name(periods.get(*place)?.0))).collect()
}

fn downloads(statistics: &Statistics) -> Value {
    let pairs: Vec<_> = statistics.periods.iter().map(|(_, totals)| (totals.downloads, totals.new_people)).collect();
    let mut chart = bars(&pairs);
    let rows: Vec<_> = statistics
        .periods
        .iter()
        .map(|(day, totals)| json!({
            "when": label(statistics.by, *day),
            "cells": totals.named().map(|(_, times)| grouped(times)),
            "tip": format!("{}: {} downloads, {} new people", label(statistics.by, *day), grouped(totals.downloads), grouped(totals.new_people)),
        }))
        .collect();
    let best = statistics.periods.iter().max_by_key(|(_, totals)| totals.downloads);
    let best = best.filter(|(_, totals)| totals.downloads > 0).map_or_else(String::new, |(day, totals)| {
        format!(" The most were {} ({}).", grouped(totals.downloads), label(statistics.by, *day))
    });
    let Totals { downloads, new_people, .. } = statistics.total;
    chart["desc"] = format!(
        "{} downloads and {} new people since {}.{best}",
        grouped(downloads),
        grouped(new_people),
        label(statistics.by, statistics.since)
    )
    .into();
    chart["when"] = when(statistics);
    chart["rows"] = rows.into();
    chart["total"] = json!(statistics.total.named().map(|(_, times)| grouped(times)));
    chart
}

fn opt_ins(statistics: &Statistics) -> Value {
    let shares: Vec<_> =
        statistics.periods.iter().map(|(_, totals)| share(totals.opt_ins, totals.new_people)).collect();
    let mut chart = line(&shares);
    let whole = share(statistics.total.opt_ins, statistics.total.new_people);
    chart["whole"] = whole.map_or_else(|| "–".to_owned(), |share| format!("{share} %")).into();
    chart["desc"] = match whole {
        Some(share) => {
            format!(
                "{share} % of new people since {} asked for the monthly email.",
                label(statistics.by, statistics.since)
            )
        }
        None => "Nobody new yet.".to_owned(),
    }
    .into();
    chart["when"] = when(statistics);
    chart["rows"] = statistics
        .periods
        .iter()
        .zip(shares)
        .map(|((day, totals), share)| {
            json!({
                "when": label(statistics.by, *day),
                "opt_ins": grouped(totals.opt_ins),
                "share": share.map_or_else(|| "–".to_owned(), |share| format!("{share} %")),
                "left": grouped(totals.unsubscribes),
            })
        })
        .collect();
    chart
}

fn mail(glance: &Glance) -> Value {
    let Glance { backlog, letter, outbox_age, .. } = glance;
    let waiting = backlog.waiting + backlog.under_way;
    let minutes = outbox_age.as_secs() / 60;
    let age = match minutes {
        _ if waiting == 0 => None,
        0 => Some("less than a minute".to_owned()),
        1..120 => Some(format!("{minutes} min")),
        _ => Some(format!("{} h", minutes / 60)),
    };
    json!({
        "waiting": grouped(waiting),
        "age": age,
        "failed": grouped(backlog.failed),
        "has_failed": backlog.failed > 0,
        "letter": (letter.recipients > 0).then(|| json!({
            "recipients": grouped(letter.recipients),
            "states": rows(&[
                ("sent".to_owned(), letter.sent),
                ("waiting".to_owned(), letter.waiting),
                ("uncertain".to_owned(), letter.uncertain),
                ("refused".to_owned(), letter.refused),
                ("skipped".to_owned(), letter.skipped),
            ]),
        })),
    })
}
