//! A request of a maker who is signed in.

use axum::response::{IntoResponse as _, Response};
use http::StatusCode;
use http::header::LOCATION;
use http::request::Parts;
use serde_json::Value;

use super::failure::DeskFailure;
use crate::actions::find_session;
use crate::domain::desk::{Actor, Change, Session};
use crate::domain::limits::MAX_COUNTED_MAILS;
use crate::domain::releases::Version;
use crate::domain::time::Timestamp;
use crate::store::Store;
use crate::web::app::App;
use crate::web::dashboard::format::grouped;
use crate::web::desk::access::{Cookie, Place};
use crate::web::desk::activity::record;
use crate::web::headers::policy_with_frame;
use crate::web::shell::{self, Frame};
use crate::web::tokens::look_up;

/// Pages that others lead to.
pub(super) const INBOX: &str = "/desk/inbox";
pub(super) const PEOPLE: &str = "/desk/people";
pub(super) const RELEASES: &str = "/desk/releases";

pub(super) struct Visit<'a> {
    pub app: &'a App,
    pub place: &'a Place,
    pub session: Session,
    pub now: Timestamp,
    /// How many messages are not marked as answered, at most [`MAX_COUNTED_MAILS`].
    unanswered: u64,
    /// What was just done.
    done: Option<&'static str>,
}

impl<'a> Visit<'a> {
    /// Returns `None` unless the maker is signed in.
    pub async fn begin(app: &'a App, place: &'a Place, head: &Parts) -> Result<Option<Self>, DeskFailure> {
        let Some(session) = session_of(app, place, head).await? else { return Ok(None) };
        let unanswered = app.service.ops_pool.unanswered_messages().await?;
        let (now, done) = (app.service.clock.now(), done(head.uri.query()));
        Ok(Some(Self { app, place, session, now, unanswered, done }))
    }

    /// That of the ops listener: what a maker looks for never holds up a visitor.
    pub fn database(&self) -> &Store {
        &self.app.service.ops_pool
    }

    /// `current` is the path of the page in the navigation that this one belongs to.
    pub fn page(&self, template: &str, current: &str, page: Value) -> Response {
        shell::render(self.app, StatusCode::OK, template, &self.frame(current), page)
    }

    pub fn frame<'f>(&'f self, current: &'f str) -> Frame<'f> {
        let (session, more) = (Some(self.session.name.as_str()), self.unanswered >= MAX_COUNTED_MAILS.unsigned_abs());
        let unanswered = (self.unanswered > 0).then(|| grouped(self.unanswered) + if more { "+" } else { "" });
        Frame { current, session, is_of_desk: true, unanswered, done: self.done, ..Frame::default() }
    }

    /// The same, of a page that has a frame, and says why something was refused.
    pub fn page_with_frame(&self, status: StatusCode, template: &str, current: &str, page: Value) -> Response {
        ([policy_with_frame()], shell::render(self.app, status, template, &self.frame(current), page)).into_response()
    }

    /// Records what was just done.
    pub async fn record(&self, change: Change) {
        record(self.app, &self.actor(), &change).await;
    }

    pub fn actor(&self) -> Actor {
        Actor::Session(self.session.name.clone())
    }
}

/// Returns whose session the cookie of the request is. The public listener looks up few at once, because anybody can invent them.
async fn session_of(app: &App, place: &Place, head: &Parts) -> Result<Option<Session>, DeskFailure> {
    let Some(cookie) = place.read(Cookie::Session, &head.headers) else { return Ok(None) };
    let (service, hash) = (&app.service, cookie.hash());
    let found = async { Ok(find_session(&service.store, &hash, service.clock.now()).await?) };
    Ok(look_up(app, found).await?)
}

pub(super) fn release_path(version: &Version) -> String {
    format!("/desk/release/{version}")
}

pub(super) fn see_other(location: &str) -> Response {
    (StatusCode::SEE_OTHER, [(LOCATION, location)]).into_response()
}

/// What a page says that follows a change, by the word in its query.
const DONE: [(&str, &str); 13] = [
    ("site-read", "The site is read again on every instance, within a few seconds."),
    ("session-ended", "The session is ended."),
    ("signed-out", "You are signed out."),
    ("answered", "The message is marked as answered."),
    ("retried", "What was not mailed is mailed within half a minute."),
    ("discarded", "The message was deleted."),
    ("published", "The release is published, and shown on every instance within a second."),
    ("known", "This version was published before, with the same image. Nothing was changed."),
    ("edited", "The release was changed. The site shows it within a second."),
    ("withdrawn", "The release is withdrawn: nobody can download it any more."),
    ("restored", "The release is offered again."),
    ("suppressed", "The address is suppressed: it gets no mail, even if it opts in."),
    ("unsuppressed", "The address is no longer suppressed. If it is opted in, it gets the monthly letter."),
];

pub(super) fn done(query: Option<&str>) -> Option<&'static str> {
    let word = query?.split('&').find_map(|pair| pair.strip_prefix("done="))?;
    DONE.iter().find(|(known, _)| *known == word).map(|(_, text)| *text)
}
