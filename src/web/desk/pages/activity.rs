//! What the makers did, the newest first.

use axum::response::Response;
use serde_json::{Value, json};
use uuid::Uuid;

use super::failure::DeskFailure;
use super::form::Form;
use super::pager::{pager, start};
use super::visit::Visit;
use crate::domain::desk::{ActorKind, RecordedChange};
use crate::domain::limits::DESK_PAGE_ROWS;
use crate::domain::paging::{Page, PageStart};
use crate::domain::tokens::CredentialName;

const PATH: &str = "/desk/activity";

pub(super) async fn page(visit: &Visit<'_>, query: &Form) -> Result<Response, DeskFailure> {
    let mut start = start(query, |id| Uuid::parse_str(id).ok());
    let mut found = visit.database().activity(&start, DESK_PAGE_ROWS + 1).await?;
    if start.leads_to_newest(found.len(), DESK_PAGE_ROWS) {
        start = PageStart::Newest;
        found = visit.database().activity(&start, DESK_PAGE_ROWS + 1).await?;
    }
    let page = Page::new(&start, found, DESK_PAGE_ROWS);
    let shown = json!({
        "title": "Activity",
        "changes": page.items.iter().map(row).collect::<Vec<_>>(),
        "pager": pager(&page, (PATH, &[]), false, |change| change.id.to_string()),
    });
    Ok(visit.page("activity.html", PATH, shown))
}

fn row(change: &RecordedChange) -> Value {
    let name = change.name.as_ref().map(CredentialName::as_str);
    let by = match change.by {
        ActorKind::Command => "a command",
        ActorKind::Token => "the token",
        ActorKind::Session => "",
    };
    json!({ "by": by, "name": name, "what": change.what, "at": change.at.rfc3339(), "when": change.at.minute() })
}
