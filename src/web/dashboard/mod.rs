//! The overview: downloads, people, mail and health on one page, on the ops listener and at the desk.

mod charts;
pub(super) mod format;
mod health;
mod tables;

use axum::response::Response;
use http::header::REFRESH;
use http::{HeaderValue, StatusCode};
use serde_json::{Value, json};

use crate::actions::{
    NewestImage, OpsSummary, StatisticsRange, empty_database_warning, ops_summary, readiness, statistics,
};
use crate::domain::statistics::{CountedEvent, Statistics, Totals};
use crate::domain::time::{Day, Period};
use crate::store::StoreFailure;
use crate::web::app::App;
use crate::web::shell::{self, Frame};
use format::{grouped, percent};

/// How many days count for the adoption of the newest release.
const ADOPTION_DAYS: i64 = 7;

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

/// The page at the path `here`.
pub(super) async fn dashboard(app: &App, here: &str, frame: &Frame<'_>, query: Option<&str>) -> Response {
    let options = ViewOptions::parse(query);
    let now = app.service.clock.now();
    let checks = readiness(&app.service).await;
    let data = DashboardData::load(app, options.by, Day::of(now)).await;
    let empty = empty_database_warning(&app.service.ops_pool, &app.base_url).await;
    let ranges = [Period::Day, Period::Week, Period::Month].map(|by| range_link(by, options));
    let context = json!({
        "here": here,
        "now": { "rfc3339": now.rfc3339(), "short": now.minute() },
        "reload": {
            "on": options.reload,
            "toggle_query": ViewOptions { reload: !options.reload, ..options }.query(),
        },
        "ranges": ranges,
        "alerts": health::alerts(&checks, data.as_ref().map(|data| &data.summary), empty),
        // What makers still have to do, in order.
        "setup_steps": health::setup_steps(app, frame.is_of_desk),
        // Absent if the database cannot be read.
        "data": data.as_ref().ok().map(|data| data.view(app)),
        "checks": health::checks(&checks),
        "refusals": health::refusals(app),
    });
    let status = if data.is_ok() { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let mut response = shell::render(app, status, "dashboard.html", frame, context);
    if options.reload {
        response.headers_mut().insert(REFRESH, HeaderValue::from_static("60"));
    }
    response
}

fn range_link(by: Period, options: ViewOptions) -> Value {
    let (name, span) = match by {
        Period::Day => ("Days", "30 days"),
        Period::Week => ("Weeks", "13 weeks"),
        Period::Month => ("Months", "12 months"),
    };
    let query = ViewOptions { by, ..options }.query();
    json!({ "name": name, "span": span, "query": query, "current": by == options.by })
}

/// The numbers that the dashboard shows, read from the database.
struct DashboardData {
    /// By the selected period.
    selected: Statistics,
    /// By day, whatever period is selected.
    daily: Statistics,
    /// Tool calls of agents today and yesterday.
    tool_calls: [u64; 2],
    /// Images sent within [`ADOPTION_DAYS`], by version.
    recent_images: Vec<(String, u64)>,
    summary: OpsSummary,
}

impl DashboardData {
    async fn load(app: &App, by: Period, today: Day) -> Result<Self, StoreFailure> {
        let store = &app.service.ops_pool;
        let daily = statistics(store, Period::Day, StatisticsRange::Chart, today).await?;
        let calls_today = sum(&store.counts_by_name(CountedEvent::ToolCall, today).await?);
        let calls_since_yesterday = sum(&store.counts_by_name(CountedEvent::ToolCall, today.before(1)).await?);
        Ok(Self {
            selected: if by == Period::Day {
                daily.clone()
            } else {
                statistics(store, by, StatisticsRange::Chart, today).await?
            },
            daily,
            tool_calls: [calls_today, calls_since_yesterday.saturating_sub(calls_today)],
            recent_images: store.counts_by_name(CountedEvent::ImageDownload, today.before(ADOPTION_DAYS - 1)).await?,
            summary: ops_summary(&app.service.ops_pool, app.service.clock.now()).await?,
        })
    }

    fn view(&self, app: &App) -> Value {
        json!({
            "tiles": tiles(app, self),
            "downloads": charts::downloads(&self.selected),
            "opt_ins": charts::opt_ins(&self.selected),
            "reads": charts::reads(&self.selected),
            "readers": tables::readers(&self.selected),
            "sources": tables::sources(&self.selected),
            "channels": tables::channels(&self.selected),
            "tools": tables::tools(&self.selected),
            "releases": tables::bar_table(["Version", "Images"], &self.recent_images),
            "update_checks": charts::update_checks(&self.selected, newest(app).as_deref()),
            "update_macos": tables::bar_table(["macOS", "Checks"], &self.selected.updates.macos),
            "update_processors": tables::bar_table(["Processor", "Checks"], &self.selected.updates.processors),
            "mail": health::mail(&self.summary),
        })
    }
}

/// The chart and the table of update checks by day, as the overview has them. `None` if there were none.
pub(super) async fn update_checks(app: &App) -> Result<Option<Value>, StoreFailure> {
    let today = Day::of(app.service.clock.now());
    let daily = statistics(&app.service.ops_pool, Period::Day, StatisticsRange::Chart, today).await?;
    Ok(charts::update_checks(&daily, newest(app).as_deref()))
}

fn newest(app: &App) -> Option<String> {
    app.service.catalog.cached().newest().map(|release| release.version.to_string())
}

fn sum(counts: &[(String, u64)]) -> u64 {
    counts.iter().map(|(_, count)| count).sum()
}

/// The tiles at the top: today so far, next to all of yesterday.
fn tiles(app: &App, data: &DashboardData) -> [Value; 7] {
    let mut latest = data.daily.periods.iter().rev().map(|(_, totals)| *totals);
    let (today, yesterday) = (latest.next().unwrap_or_default(), latest.next().unwrap_or_default());
    let with_yesterday =
        |name, today, yesterday| tile(name, &grouped(today), &format!("all of yesterday: {}", grouped(yesterday)));
    let count = |name, of: fn(&Totals) -> u64| with_yesterday(name, of(&today), of(&yesterday));
    let opt_ins = |totals: &Totals| percent(totals.opt_ins, totals.downloads);
    let opt_in_note = format!("of downloads; all of yesterday: {}", opt_ins(&yesterday));
    [
        count("Downloads", |totals| totals.downloads),
        count("New people", |totals| totals.new_people),
        tile("New opt-ins", &opt_ins(&today), &opt_in_note),
        count("Joins", |totals| totals.joins),
        count("Messages", |totals| totals.messages),
        with_yesterday("MCP tool calls", data.tool_calls[0], data.tool_calls[1]),
        newest_release(app, &data.recent_images),
    ]
}

fn tile(name: &str, value: &str, note: &str) -> Value {
    json!({ "name": name, "value": value, "note": note })
}

/// The newest release, and its share of recent downloads. Images on another host are not counted.
fn newest_release(app: &App, recent_images: &[(String, u64)]) -> Value {
    let releases = app.service.catalog.cached();
    let is_external = matches!(app.service.newest_image, NewestImage::External(_));
    let (value, note) = match releases.newest() {
        None if is_external => ("external".to_owned(), "images on other hosts are not counted".to_owned()),
        None => ("none".to_owned(), "nothing is published yet".to_owned()),
        Some(release) => {
            let version = release.version.to_string();
            let sent = recent_images.iter().find(|(name, _)| *name == version).map_or(0, |(_, sent)| *sent);
            let note = if sent == 0 && (is_external || release.external_url.is_some()) {
                "its image is on another host and is not counted".to_owned()
            } else if sum(recent_images) == 0 {
                format!("no image sent in {ADOPTION_DAYS} days")
            } else {
                format!("{} of images sent in {ADOPTION_DAYS} days", percent(sent, sum(recent_images)))
            };
            (version, note)
        }
    };
    tile("Newest release", &value, &note)
}
