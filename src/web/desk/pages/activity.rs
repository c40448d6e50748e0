//! What the makers did, the newest first.

use axum::response::Response;
use serde_json::{Value, json};
use uuid::Uuid;

use super::failure::DeskFailure;
use super::visit::Visit;
use crate::domain::desk::{ActorKind, RecordedChange};
use crate::domain::limits::DESK_PAGE_ROWS;
use crate::domain::paging::{Page, PageStart};
use crate::domain::time::Day;
use crate::domain::tokens::CredentialName;

pub(super) async fn page(visit: &Visit<'_>, query: Option<&str>) -> Result<Response, DeskFailure> {
    let mut start = start(query);
    let mut found = visit.store().activity(&start, DESK_PAGE_ROWS + 1).await?;
    if start.leads_to_newest(found.len(), DESK_PAGE_ROWS) {
        start = PageStart::Newest;
        found = visit.store().activity(&start, DESK_PAGE_ROWS + 1).await?;
    }
    let Page { items, has_newer, has_older } = Page::new(&start, found, DESK_PAGE_ROWS);
    let link = |has: bool, name: &str, change: Option<&RecordedChange>| {
        change.filter(|_| has).map(|change| format!("/desk/activity?{name}={}", change.id))
    };
    let page = json!({
        "title": "Activity",
        "changes": items.iter().map(row).collect::<Vec<_>>(),
        "newer": link(has_newer, "newer", items.first()),
        "older": link(has_older, "older", items.last()),
    });
    Ok(visit.page("activity.html", "/desk/activity", page))
}

fn row(change: &RecordedChange) -> Value {
    let name = change.name.as_ref().map(CredentialName::as_str);
    let by = match change.by {
        ActorKind::Command => "a command",
        ActorKind::Token => "the token",
        ActorKind::Session => "",
    };
    let rfc3339 = change.at.rfc3339();
    let when = format!("{}, {} UTC", Day::of(change.at).short(), rfc3339.get(11..16).unwrap_or_default());
    json!({ "by": by, "name": name, "what": change.what, "at": rfc3339, "when": when })
}

/// Where a page begins, from its query. Anything unknown is the newest page.
fn start(query: Option<&str>) -> PageStart<Uuid> {
    let mut pairs = query.unwrap_or_default().split('&').filter_map(|pair| pair.split_once('='));
    let start = pairs.find_map(|(name, id)| match (name, Uuid::parse_str(id)) {
        ("older", Ok(id)) => Some(PageStart::OlderThan(id)),
        ("newer", Ok(id)) => Some(PageStart::NewerThan(id)),
        _ => None,
    });
    start.unwrap_or(PageStart::Newest)
}
