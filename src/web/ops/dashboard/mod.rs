//! `/`: how the launch goes, on one page.

mod chart;
mod data;
mod health;
mod over_time;
mod ranks;
mod tiles;
mod words;

use axum::body::Body;
use axum::response::Response;
use http::header::{CONTENT_TYPE, REFRESH};
use http::{HeaderValue, StatusCode};
use serde_json::{Value, json};

use self::data::DashboardData;
use crate::actions::readiness;
use crate::domain::calendar::{Day, Period};
use crate::domain::time::Timestamp;
use crate::web::app::App;
use crate::web::representation::HTML;
use crate::web::response::text_response;

const TEMPLATE: &str = include_str!("desk.html");
/// The whole look of the page: whatever the makers did to that of the site, this stays readable.
pub(super) const STYLE: &str = include_str!("desk.css");
pub(super) const STYLE_PATH: &str = "/desk.css";
/// The serif that the style asks for, and its name among the files of the site.
pub(super) const SERIF_PATH: &str = "/serif.woff2";
pub(super) const SERIF: &str = "assets/serif.woff2";

/// What whoever looks has chosen.
#[derive(Clone, Copy)]
struct Choice {
    by: Period,
    /// Whether the browser is to load the page anew every minute.
    reloads: bool,
}

impl Choice {
    fn read(query: Option<&str>) -> Self {
        let mut choice = Self { by: Period::Day, reloads: false };
        for wish in query.unwrap_or_default().split('&') {
            match wish {
                "by=week" => choice.by = Period::Week,
                "by=month" => choice.by = Period::Month,
                "reload=minute" => choice.reloads = true,
                _ => {}
            }
        }
        choice
    }

    /// What to ask for to have it.
    fn query(self) -> String {
        format!("by={}{}", self.by.as_str(), if self.reloads { "&reload=minute" } else { "" })
    }
}

pub(super) async fn dashboard(app: &App, query: Option<&str>) -> Response {
    let choice = Choice::read(query);
    let now = app.service().clock.now();
    let parts = readiness(app.service()).await;
    let seen = DashboardData::load(app, choice.by, Day::of(now)).await;
    let ranges = [Period::Day, Period::Week, Period::Month].map(|by| range(by, choice));
    let made = app.built();
    let context = json!({
        "app": made.site.facts.name,
        "now": told(now),
        "reload": { "on": choice.reloads, "other": Choice { reloads: !choice.reloads, ..choice }.query() },
        "ranges": ranges,
        "alarms": health::alarms(&parts, seen.as_ref().map(|seen| &seen.summary)),
        "seen": seen.as_ref().ok().map(|seen| describe(app, seen)),
        "parts": health::parts(&parts),
    });
    match made.site.render_str("desk.html", TEMPLATE, &context) {
        Ok(html) => {
            let mut response = Response::new(Body::from(html));
            response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(HTML));
            if choice.reloads {
                response.headers_mut().insert(REFRESH, HeaderValue::from_static("60"));
            }
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

fn told(now: Timestamp) -> Value {
    let rfc3339 = now.rfc3339();
    let clock = rfc3339.get(11..16).unwrap_or_default();
    json!({ "machine": rfc3339, "people": format!("{}, {clock} UTC", Day::of(now).short()) })
}

fn range(by: Period, choice: Choice) -> Value {
    let (name, span) = match by {
        Period::Day => ("Days", "30 days"),
        Period::Week => ("Weeks", "13 weeks"),
        Period::Month => ("Months", "12 months"),
    };
    json!({ "name": name, "span": span, "query": Choice { by, ..choice }.query(), "current": by == choice.by })
}

fn describe(app: &App, seen: &DashboardData) -> Value {
    json!({
        "tiles": tiles::tiles(app, seen),
        "downloads": over_time::downloads(&seen.chosen),
        "opt_ins": over_time::opt_ins(&seen.chosen),
        "sources": ranks::sources(&seen.chosen),
        "ways": ranks::ways(&seen.chosen),
        "tools": ranks::tools(&seen.chosen),
        "releases": ranks::ranks(["Version", "Images"], &seen.images_lately),
        "mail": health::mail(&seen.summary),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::site::Content;

    #[test]
    fn the_colours_and_letters_are_those_of_the_built_in_site() {
        let site = Content::default().text("assets/style.css").unwrap();
        let of_site: Vec<_> = site.lines().map(str::trim).collect();
        let (_, tokens) = STYLE.split_once("value by value. */").unwrap();
        let tokens: Vec<_> = tokens.lines().skip(2).take_while(|line| *line != "}").map(str::trim).collect();
        assert!(tokens.len() > 15, "{tokens:?}");
        for token in tokens {
            assert!(of_site.contains(&token), "{token}");
        }
    }
}
