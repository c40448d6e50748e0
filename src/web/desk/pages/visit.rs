//! A request of a maker who is signed in.

use axum::response::{IntoResponse as _, Response};
use http::StatusCode;
use http::header::LOCATION;
use http::request::Parts;
use serde_json::Value;

use super::failure::DeskFailure;
use crate::actions::{Failure, find_session};
use crate::domain::desk::{Actor, Change, CookieScope, Session};
use crate::domain::limits::MAX_COUNTED_MAILS;
use crate::domain::releases::Version;
use crate::domain::time::Timestamp;
use crate::store::Store;
use crate::web::app::App;
use crate::web::dashboard::format::grouped;
use crate::web::desk::access::{Cookie, Place};
use crate::web::desk::activity::record;
use crate::web::headers::policy_with_frame;
use crate::web::refusal::Refusal;
use crate::web::shell::{self, Frame};
use crate::web::tokens::look_up;

/// Pages that others lead to.
pub(super) const INBOX: &str = "/desk/inbox";
pub(super) const PEOPLE: &str = "/desk/people";
pub(super) const LETTERS: &str = "/desk/letters";
pub(super) const DRAFTS: &str = "/desk/letters/drafts";
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

    /// A page without the frame.
    pub fn bare_page(&self, template: &str, page: Value) -> Response {
        shell::render(self.app, StatusCode::OK, template, &Frame::default(), page)
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

/// Returns whose session the cookie of the request is. A cookie without a session is counted, and answered late if there were many.
pub(super) async fn session_of(app: &App, place: &Place, head: &Parts) -> Result<Option<Session>, DeskFailure> {
    let Some(cookie) = place.read(Cookie::Session, &head.headers) else { return Ok(None) };
    let (service, hash) = (&app.service, cookie.hash(place.scope()));
    let session = in_turn(app, place, find_session(&service.store, &hash, service.clock.now())).await?;
    if session.is_none() {
        record_wrong_token(app).await;
    }
    Ok(session)
}

/// Asks the database about a session or a link. At the public URL few are looked up at once, because anybody can invent them.
pub(super) async fn in_turn<T, F: Into<Failure>>(
    app: &App,
    place: &Place,
    question: impl Future<Output = Result<T, F>>,
) -> Result<T, DeskFailure> {
    let question = async { question.await.map_err(Into::into) };
    Ok(match place.scope() {
        CookieScope::OpsListener => question.await?,
        CookieScope::PublicUrl => look_up(&app.desk_lookups, question).await?,
    })
}

/// Counts a wrong link or cookie, and waits if there were many.
pub(super) async fn record_wrong_token(app: &App) {
    app.limits.record(Refusal::WrongTokens);
    app.wrong_tokens.count(app.service.clock.now()).wait().await;
}

pub(super) fn release_path(version: &Version) -> String {
    format!("/desk/release/{version}")
}

pub(super) fn see_other(location: &str) -> Response {
    (StatusCode::SEE_OTHER, [(LOCATION, location)]).into_response()
}

/// What a page says that follows a change, by the word in its query.
const DONE: &[(&str, &str)] = &[
    ("site-read", "The site is read again on every instance, within a few seconds."),
    ("session-ended", "The session is ended."),
    ("signed-out", "You are signed out."),
    ("answered", "The message is marked as answered."),
    ("unanswered", "The message is marked as not answered."),
    ("retried", "What was not mailed is mailed within half a minute."),
    ("saved", "The draft is saved."),
    ("tested", "A test copy is on its way to you."),
    ("changed-meanwhile", "Nothing was sent: the draft was changed since you were asked. This is how it is now."),
    ("draft-deleted", "The draft was deleted."),
    ("discarded", "The message was deleted."),
    ("published", "The release is published, and shown on every instance within a second."),
    ("known", "This version was published before, with the same image. Nothing was changed."),
    ("edited", "The release was changed. The site shows it within a second."),
    ("withdrawn", "The release is withdrawn: nobody can download it any more."),
    ("restored", "The release is offered again."),
    ("suppressed", "The address is suppressed: it gets no mail, even if it opts in."),
    ("unsuppressed", "The address is no longer suppressed."),
];

pub(super) fn done(query: Option<&str>) -> Option<&'static str> {
    let word = query?.split('&').find_map(|pair| pair.strip_prefix("done="))?;
    DONE.iter().find(|(known, _)| *known == word).map(|(_, text)| *text)
}
