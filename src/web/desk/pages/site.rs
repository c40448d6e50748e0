//! The site, and who is signed in: reads the site again, and ends sessions.

use axum::response::Response;
use serde_json::{Value, json};
use uuid::Uuid;

use super::failure::DeskFailure;
use super::form::Form;
use super::visit::{Visit, see_other};
use crate::domain::desk::{Change, Session};
use crate::domain::text::sanitize_line;
use crate::domain::time::Day;
use crate::probe::NameServers;
use crate::web::checks::{Finding, run_checks};
use crate::web::desk::access::Cookie;

pub(super) async fn page(visit: &Visit<'_>) -> Result<Response, DeskFailure> {
    let app = visit.app;
    let built = app.built();
    let sessions = visit.database().sessions(visit.now).await?;
    let page = json!({
        "title": "Site",
        "base_url": app.base_url.as_str(),
        "notes": built.site.notes.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "sessions": sessions.iter().map(|session| row(visit, session)).collect::<Vec<_>>(),
    });
    Ok(visit.page("site.html", "/desk/site", page))
}

/// What `porchlight check` says, of the running service.
pub(super) async fn check(visit: &Visit<'_>) -> Result<Response, DeskFailure> {
    let (service, settings) = (&visit.app.service, &visit.app.settings);
    let Ok(_one_at_a_time) = visit.app.checking.try_lock() else {
        let text = "The checks are being run for another page. Look again in half a minute.";
        return Err(DeskFailure::Invalid(text.to_owned()));
    };
    let report = run_checks(settings, &NameServers::from_system(), &service.clock, Some(&service.store)).await;
    let finding = |Finding { name, state, detail }: &Finding| json!({ "name": name, "state": state, "detail": sanitize_line(detail) });
    let page = json!({
        "title": "Checks",
        "failures": report.failures(),
        "findings": report.findings.iter().map(finding).collect::<Vec<_>>(),
        "next": report.next_step,
    });
    Ok(visit.page("check.html", "/desk/site", page))
}

fn row(visit: &Visit<'_>, session: &Session) -> Value {
    let Session { id, name, started, last_used } = session;
    json!({
        "id": id,
        "name": name.as_str(),
        "started": Day::of(*started).long(),
        "last_used": Day::of(*last_used).long(),
        "is_this": *id == visit.session.id,
    })
}

/// On all instances: each looks for a change twice a second.
pub(super) async fn read_again(visit: &Visit<'_>) -> Result<Response, DeskFailure> {
    visit.database().request_reading_site().await?;
    visit.record(Change::ReadSiteAgain).await;
    Ok(see_other("/desk/site?done=site-read"))
}

pub(super) async fn end_session(visit: &Visit<'_>, form: &Form) -> Result<Response, DeskFailure> {
    let id = Uuid::parse_str(form.text("id")).map_err(|_| DeskFailure::NotFound)?;
    let name = visit.database().delete_session(id).await?.ok_or(DeskFailure::NotFound)?;
    visit.record(Change::EndedSession(name)).await;
    Ok(see_other("/desk/site?done=session-ended"))
}

pub(super) async fn end_all_sessions(visit: &Visit<'_>) -> Result<Response, DeskFailure> {
    visit.database().delete_all_sessions().await?;
    visit.record(Change::EndedAllSessions).await;
    let mut response = see_other("/desk/sign-in?done=signed-out");
    if let Some(deleted) = visit.place.set(Cookie::Session, None) {
        response.headers_mut().append(http::header::SET_COOKIE, deleted);
    }
    Ok(response)
}
