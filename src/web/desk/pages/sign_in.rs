//! Signing in with a link that works once, and signing out.
//!
//! Programs open links of mails, so opening one changes nothing: its page has a button.

use axum::response::{IntoResponse as _, Response};
use http::header::SET_COOKIE;
use http::request::Parts;
use http::{HeaderValue, StatusCode};
use serde_json::json;

use super::failure::DeskFailure;
use super::visit::{Visit, done, in_turn, record_wrong_token, see_other, session_of};
use crate::actions::{self, sign_in};
use crate::domain::desk::{Actor, Change, SignInToken};
use crate::domain::tokens::CredentialName;
use crate::web::app::App;
use crate::web::desk::access::{Cookie, Place};
use crate::web::desk::activity::record;
use crate::web::refusal::ClientLimit;
use crate::web::shell::{self, Frame};

/// The text is the same whether or not a link is mailed, so that it tells nobody anything.
pub(super) fn page(app: &App, query: Option<&str>) -> Response {
    let is_asked = query == Some("asked");
    let page = json!({ "mails_links": app.desk_email().is_some(), "is_asked": is_asked });
    let frame = Frame { is_of_desk: true, done: done(query), ..Frame::default() };
    shell::render(app, StatusCode::OK, "sign_in.html", &frame, page)
}

/// The page that a link leads to.
pub(super) async fn link_page(app: &App, place: &Place, token: &str) -> Result<Response, DeskFailure> {
    let (store, now) = (&app.service.store, app.service.clock.now());
    let known = match SignInToken::parse(token) {
        None => false,
        Some(token) => in_turn(app, place, store.has_sign_in_link(&token.hash(), now)).await?,
    };
    if !known {
        return Err(refuse(app).await);
    }
    let frame = Frame { is_of_desk: true, ..Frame::default() };
    Ok(shell::render(
        app,
        StatusCode::OK,
        "sign_in_link.html",
        &frame,
        json!({ "action": format!("/desk/sign-in/{token}") }),
    ))
}

pub(super) async fn use_link(app: &App, place: &Place, head: &Parts, token: &str) -> Result<Response, DeskFailure> {
    let (store, now) = (&app.service.store, app.service.clock.now());
    let browser = place.read(Cookie::Browser, &head.headers);
    let signed_in = match SignInToken::parse(token) {
        None => None,
        Some(token) => in_turn(app, place, sign_in(store, &token, browser.as_ref(), place.scope(), now)).await?,
    };
    let Some((cookie, name)) = signed_in else { return Err(refuse(app).await) };
    // That of this browser before. It would last without anybody who has it.
    if let Some(before) = session_of(app, place, head).await? {
        store.delete_session(before.id).await?;
    }
    tracing::info!(session = name.as_str(), "a maker signed in to the desk");
    record(app, &Actor::Session(name), &Change::SignedIn).await;
    let cookies = [place.set(Cookie::Session, Some(&cookie)), place.set(Cookie::Browser, None)];
    Ok(with_cookies(see_other("/desk"), cookies))
}

/// Counts a wrong link, and answers late if there were many.
async fn refuse(app: &App) -> DeskFailure {
    record_wrong_token(app).await;
    let text = "This link does not work: it was used, is older than ten minutes, or was mailed to another browser. Get a new \
                one with `porchlight desk`, or on the page where you sign in.";
    DeskFailure::Invalid(text.to_owned())
}

/// Mails a link to `desk_email` alone. What the browser is told does not depend on whether it is mailed.
pub(super) async fn mail_link(app: &App, place: &Place, head: &Parts) -> Result<Response, DeskFailure> {
    let asked = see_other("/desk/sign-in?asked");
    let Some(email) = app.desk_email() else { return Ok(asked) };
    if let Err(over_limit) = app.limits.count(ClientLimit::SignInMails, head) {
        app.limits.refuse(over_limit);
        return Ok(asked);
    }
    let local_part = email.email().as_typed().split(['@', '+']).next().unwrap_or_default();
    let name = CredentialName::parse(local_part).unwrap_or_else(|_| CredentialName::from_stored("mail"));
    let url = |token: &SignInToken| format!("{}/desk/sign-in/{}", place.origin, token.expose());
    let service = &app.service;
    let mailed = actions::mail_sign_in_link(&service.store, &name, url, place.scope(), service.clock.now());
    let browser = in_turn(app, place, mailed).await?;
    service.writer.new_mail().notify_one();
    Ok(with_cookies(asked, [place.set(Cookie::Browser, Some(&browser))]))
}

pub(super) async fn sign_out(visit: &Visit<'_>) -> Result<Response, DeskFailure> {
    visit.database().delete_session(visit.session.id).await?;
    visit.record(Change::SignedOut).await;
    let deleted = visit.place.set(Cookie::Session, None);
    Ok(with_cookies(see_other("/desk/sign-in?done=signed-out"), [deleted]))
}

fn with_cookies(response: Response, cookies: impl IntoIterator<Item = Option<HeaderValue>>) -> Response {
    let mut response = response.into_response();
    for cookie in cookies.into_iter().flatten() {
        response.headers_mut().append(SET_COOKIE, cookie);
    }
    response
}
