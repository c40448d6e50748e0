//! What the makers did, the newest first.

use axum::response::Response;
use serde_json::{Value, json};
use uuid::Uuid;

use super::failure::DeskFailure;
use super::visit::Visit;
use crate::domain::desk::{ActorKind, RecordedChange};
use crate::domain::limits::DESK_PAGE_ROWS;
use crate::domain::time::Day;
use crate::domain::tokens::CredentialName;
use crate::store::Cursor;

pub(super) async fn page(visit: &Visit<'_>, query: Option<&str>) -> Result<Response, DeskFailure> {
    let from = cursor(query);
    // One more than is shown tells whether there are others.
    let mut changes = visit.store().activity(from, DESK_PAGE_ROWS + 1).await?;
    let is_cut = changes.len() > DESK_PAGE_ROWS;
    if is_cut {
        match from {
            Cursor::NewerThan(_) => drop(changes.remove(0)),
            Cursor::Newest | Cursor::OlderThan(_) => changes.truncate(DESK_PAGE_ROWS),
        }
    }
    let (has_newer, has_older) = match from {
        Cursor::Newest => (false, is_cut),
        Cursor::OlderThan(_) => (true, is_cut),
        Cursor::NewerThan(_) => (is_cut, true),
    };
    let link = |has: bool, name: &str, change: Option<&RecordedChange>| {
        change.filter(|_| has).map(|change| format!("/desk/activity?{name}={}", change.id))
    };
    let page = json!({
        "title": "Activity",
        "changes": changes.iter().map(row).collect::<Vec<_>>(),
        "newer": link(has_newer, "newer", changes.first()),
        "older": link(has_older, "older", changes.last()),
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

/// A place in a list, from the query of the page. An unknown one is the beginning.
pub(super) fn cursor(query: Option<&str>) -> Cursor {
    let place = |name: &str| {
        let pairs = query.unwrap_or_default().split('&').filter_map(|pair| pair.split_once('='));
        let mut ids = pairs.filter(|(key, _)| *key == name).filter_map(|(_, id)| Uuid::parse_str(id).ok());
        ids.next()
    };
    let older = place("older").map(Cursor::OlderThan);
    older.or_else(|| place("newer").map(Cursor::NewerThan)).unwrap_or(Cursor::Newest)
}
