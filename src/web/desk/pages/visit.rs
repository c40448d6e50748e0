//! A request of a maker who is signed in.

use axum::response::{IntoResponse as _, Response};
use http::StatusCode;
use http::header::LOCATION;
use http::request::Parts;
use serde_json::Value;

use super::failure::DeskFailure;
use crate::actions::find_session;
use crate::domain::desk::{Actor, Change, Session};
use crate::domain::time::Timestamp;
use crate::store::Store;
use crate::web::app::App;
use crate::web::desk::access::{Cookie, Place};
use crate::web::desk::activity::record;
use crate::web::shell::{self, Frame};
use crate::web::tokens::look_up;

pub(super) struct Visit<'a> {
    pub app: &'a App,
    pub place: &'a Place,
    pub session: Session,
    pub now: Timestamp,
    /// What was just done.
    pub done: Option<&'static str>,
}

impl Visit<'_> {
    pub fn store(&self) -> &Store {
        &self.app.service.store
    }

    /// `current` is the path of the page in the navigation that this one belongs to.
    pub fn page(&self, template: &str, current: &str, page: Value) -> Response {
        shell::render(self.app, StatusCode::OK, template, &self.frame(current), page)
    }

    pub fn frame<'a>(&'a self, current: &'a str) -> Frame<'a> {
        let session = Some(self.session.name.as_str());
        Frame { current, session, is_of_desk: true, done: self.done, ..Frame::default() }
    }

    /// Records what was just done.
    pub async fn record(&self, change: Change) {
        record(self.app, &Actor::Session(self.session.name.clone()), &change).await;
    }
}

/// Returns whose session the cookie of the request is. The public listener looks up few at once, because anybody can invent them.
pub(super) async fn session_of(app: &App, place: &Place, head: &Parts) -> Result<Option<Session>, DeskFailure> {
    let Some(cookie) = place.read(Cookie::Session, &head.headers) else { return Ok(None) };
    let (service, hash) = (&app.service, cookie.hash());
    let found = async { Ok(find_session(&service.store, &hash, service.clock.now()).await?) };
    Ok(look_up(app, found).await?)
}

pub(super) fn see_other(location: &str) -> Response {
    (StatusCode::SEE_OTHER, [(LOCATION, location)]).into_response()
}

/// What a page says that follows a change, by the word in its query.
const DONE: [(&str, &str); 3] = [
    ("site-read", "The site is read again on every instance, within a few seconds."),
    ("session-ended", "The session is ended."),
    ("signed-out", "You are signed out."),
];

pub(super) fn done(query: Option<&str>) -> Option<&'static str> {
    let word = query?.split('&').find_map(|pair| pair.strip_prefix("done="))?;
    DONE.iter().find(|(known, _)| *known == word).map(|(_, text)| *text)
}
