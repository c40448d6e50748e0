//! The tiles at the top: today so far, next to all of yesterday.

use serde::Serialize;

use super::data::{ADOPTION_DAYS, DashboardData, sum};
use super::format::{grouped, percent};

use crate::actions::NewestImage;
use crate::domain::counts::Totals;
use crate::web::app::App;

#[derive(Serialize)]
pub(super) struct Tile {
    name: &'static str,
    value: String,
    note: String,
}

pub(super) fn tiles(app: &App, data: &DashboardData) -> [Tile; 7] {
    let mut latest = data.daily.periods.iter().rev().map(|(_, totals)| *totals);
    let (today, yesterday) = (latest.next().unwrap_or_default(), latest.next().unwrap_or_default());
    let with_yesterday = |name, today, yesterday| Tile {
        name,
        value: grouped(today),
        note: format!("all of yesterday: {}", grouped(yesterday)),
    };
    let count = |name, of: fn(&Totals) -> u64| with_yesterday(name, of(&today), of(&yesterday));
    let opt_ins = |totals: &Totals| percent(totals.opt_ins, totals.downloads);
    [
        count("Downloads", |totals| totals.downloads),
        count("New people", |totals| totals.new_people),
        Tile {
            name: "New opt-ins",
            value: opt_ins(&today),
            note: format!("of downloads; all of yesterday: {}", opt_ins(&yesterday)),
        },
        count("Joins", |totals| totals.joins),
        count("Messages", |totals| totals.messages),
        with_yesterday("MCP tool calls", data.tool_calls[0], data.tool_calls[1]),
        newest_release(app, &data.recent_images),
    ]
}

/// The newest release, and its share of recent downloads. Images on another host are not counted.
fn newest_release(app: &App, recent_images: &[(String, u64)]) -> Tile {
    let releases = app.catalog().cached();
    let is_external = matches!(app.service().newest_image, NewestImage::External(_));
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
    Tile { name: "Newest release", value, note }
}
