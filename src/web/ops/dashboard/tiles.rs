//! Today at a summary, beside the whole of yesterday.

use serde_json::{Value, json};

use super::data::{ADOPTION_DAYS, DashboardData, total};
use super::words::{grouped, percent};
use crate::actions::NewestImage;
use crate::domain::counts::Totals;
use crate::web::app::App;

pub(super) fn tiles(app: &App, seen: &DashboardData) -> Value {
    let mut latest = seen.days.periods.iter().rev().map(|(_, totals)| *totals);
    let (today, yesterday) = (latest.next().unwrap_or_default(), latest.next().unwrap_or_default());
    let beside =
        |name, today, yesterday| tile(name, &grouped(today), &format!("all of yesterday: {}", grouped(yesterday)));
    let number = |name, of: fn(&Totals) -> u64| beside(name, of(&today), of(&yesterday));
    let opt_ins = |totals: &Totals| percent(totals.opt_ins, totals.downloads);
    json!([
        number("Downloads", |totals| totals.downloads),
        number("New people", |totals| totals.new_people),
        tile("New opt-ins", &opt_ins(&today), &format!("of downloads; all of yesterday: {}", opt_ins(&yesterday)),),
        number("Joins", |totals| totals.joins),
        number("Messages", |totals| totals.messages),
        beside("Agents’ calls", seen.calls[0], seen.calls[1]),
        newest_release(app, &seen.images_lately),
    ])
}

fn tile(name: &str, value: &str, note: &str) -> Value {
    json!({ "name": name, "value": value, "note": note })
}

/// The newest release, and how many take it, as far as it is taken from here.
fn newest_release(app: &App, images_lately: &[(String, u64)]) -> Value {
    let releases = app.catalogue().cached();
    let led_elsewhere = matches!(app.service().newest_image, NewestImage::External(_));
    let (value, note) = match releases.newest() {
        None if led_elsewhere => ("elsewhere".to_owned(), "images there are not counted".to_owned()),
        None => ("none".to_owned(), "nothing is published yet".to_owned()),
        Some(release) => {
            let version = release.version.to_string();
            let sent = images_lately.iter().find(|(name, _)| *name == version).map_or(0, |(_, sent)| *sent);
            let note = if sent == 0 && (led_elsewhere || release.elsewhere.is_some()) {
                "its image lies elsewhere and is not counted".to_owned()
            } else if total(images_lately) == 0 {
                format!("no image sent in {ADOPTION_DAYS} days")
            } else {
                format!("{} of images sent in {ADOPTION_DAYS} days", percent(sent, total(images_lately)))
            };
            (version, note)
        }
    };
    tile("Newest release", &value, &note)
}
