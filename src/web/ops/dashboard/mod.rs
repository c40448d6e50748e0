//! The dashboard at `/`: downloads, people, mail and health on one page.

mod bar_table;
mod chart;
mod data;
mod format;
mod health;
mod period_charts;
mod tiles;

use axum::body::Body;
use axum::response::Response;
use http::header::{CONTENT_TYPE, REFRESH};
use http::{HeaderValue, StatusCode};
use serde::Serialize;

use self::bar_table::BarTable;
use self::chart::{BarChart, LineChart};
use self::data::DashboardData;
use self::health::{Alert, CheckView, MailView, RefusalView};
use self::period_charts::PeriodChart;
use self::tiles::Tile;
use crate::actions::readiness;
use crate::domain::calendar::{Day, Period};
use crate::domain::time::Timestamp;
use crate::web::app::App;
use crate::web::refusal::Refusal;
use crate::web::representation::HTML;
use crate::web::response::text_response;

const TEMPLATE: &str = include_str!("dashboard.html");
/// The complete style of the page, so that a `site_dir` cannot make it unreadable.
pub(super) const STYLE: &str = include_str!("dashboard.css");
pub(super) const STYLE_PATH: &str = "/dashboard.css";
/// The font that the style refers to, and its name among the files of the site.
pub(super) const SERIF_PATH: &str = "/serif.woff2";
pub(super) const SERIF: &str = "assets/serif.woff2";

/// The context of the template.
#[derive(Serialize)]
struct Dashboard<'a> {
    app_name: &'a str,
    now: Now,
    reload: Reload,
    ranges: [RangeLink; 3],
    alerts: Vec<Alert>,
    /// What makers still have to do, in order.
    setup_steps: Vec<String>,
    /// Absent if the database cannot be read.
    data: Option<DataView<'a>>,
    checks: Vec<CheckView<'a>>,
    refusals: [RefusalView; Refusal::ALL.len()],
}

#[derive(Serialize)]
struct Now {
    rfc3339: String,
    short: String,
}

#[derive(Serialize)]
struct Reload {
    on: bool,
    toggle_query: String,
}

#[derive(Serialize)]
struct RangeLink {
    name: &'static str,
    span: &'static str,
    query: String,
    current: bool,
}

#[derive(Serialize)]
struct DataView<'a> {
    tiles: [Tile; 7],
    downloads: PeriodChart<BarChart>,
    opt_ins: PeriodChart<LineChart>,
    reads: PeriodChart<BarChart>,
    readers: BarTable,
    sources: BarTable,
    channels: BarTable,
    tools: BarTable,
    releases: BarTable,
    mail: MailView<'a>,
}

/// What the query string selects.
#[derive(Clone, Copy)]
struct ViewOptions {
    by: Period,
    /// Whether the browser reloads the page every minute.
    reload: bool,
}

impl ViewOptions {
    /// Ignores what it does not know.
    fn parse(query: Option<&str>) -> Self {
        let mut options = Self { by: Period::Day, reload: false };
        for parameter in query.unwrap_or_default().split('&') {
            match parameter {
                "by=week" => options.by = Period::Week,
                "by=month" => options.by = Period::Month,
                "reload=minute" => options.reload = true,
                _ => {}
            }
        }
        options
    }

    fn query(self) -> String {
        format!("by={}{}", self.by.as_str(), if self.reload { "&reload=minute" } else { "" })
    }
}

pub(super) async fn dashboard(app: &App, query: Option<&str>) -> Response {
    let options = ViewOptions::parse(query);
    let now = app.service().clock.now();
    let checks = readiness(app.service()).await;
    let data = DashboardData::load(app, options.by, Day::of(now)).await;
    let built = app.built();
    let context = Dashboard {
        app_name: &built.site.facts.name,
        now: Now::new(now),
        reload: Reload { on: options.reload, toggle_query: ViewOptions { reload: !options.reload, ..options }.query() },
        ranges: [Period::Day, Period::Week, Period::Month].map(|by| RangeLink::new(by, options)),
        alerts: health::alerts(&checks, data.as_ref().map(|data| &data.summary)),
        setup_steps: health::setup_steps(app, &built.site.facts),
        data: data.as_ref().ok().map(|data| DataView::new(app, data)),
        checks: health::checks(&checks),
        refusals: health::refusals(app),
    };
    match built.site.render_str("dashboard.html", TEMPLATE, &context) {
        Ok(html) => {
            let mut response = Response::new(Body::from(html));
            response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(HTML));
            if options.reload {
                response.headers_mut().insert(REFRESH, HeaderValue::from_static("60"));
            }
            if data.is_err() {
                *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
            }
            response
        }
        Err(failure) => {
            tracing::error!(%failure, "cannot render the dashboard");
            text_response(StatusCode::INTERNAL_SERVER_ERROR, "The dashboard cannot be shown. The log says why.\n")
        }
    }
}

impl Now {
    fn new(now: Timestamp) -> Self {
        let rfc3339 = now.rfc3339();
        let time = rfc3339.get(11..16).unwrap_or_default();
        Self { short: format!("{}, {time} UTC", Day::of(now).short()), rfc3339 }
    }
}

impl RangeLink {
    fn new(by: Period, options: ViewOptions) -> Self {
        let (name, span) = match by {
            Period::Day => ("Days", "30 days"),
            Period::Week => ("Weeks", "13 weeks"),
            Period::Month => ("Months", "12 months"),
        };
        Self { name, span, query: ViewOptions { by, ..options }.query(), current: by == options.by }
    }
}

impl<'a> DataView<'a> {
    fn new(app: &App, data: &'a DashboardData) -> Self {
        Self {
            tiles: tiles::tiles(app, data),
            downloads: period_charts::downloads(&data.selected),
            opt_ins: period_charts::opt_ins(&data.selected),
            reads: period_charts::reads(&data.selected),
            readers: bar_table::readers(&data.selected),
            sources: bar_table::sources(&data.selected),
            channels: bar_table::channels(&data.selected),
            tools: bar_table::tools(&data.selected),
            releases: bar_table::bar_table(["Version", "Images"], &data.recent_images),
            mail: health::mail(&data.summary),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::site::Content;

    #[test]
    fn the_colors_and_fonts_are_those_of_the_built_in_site() {
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
