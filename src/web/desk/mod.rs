//! The desk: what makers change over HTTP, with a token or in a browser, on the ops listener, and at `base_url` if `desk` says so.

mod access;
mod activity;
mod api;
mod pages;
mod releases;

use axum::extract::{Request, State};
use axum::response::{IntoResponse as _, Response};
use http::StatusCode;
use http::request::Parts;

use super::app::App;
use super::fallback::fallback;
use super::headers::PRIVATE;
use crate::domain::network::Peer;
use access::Place;
pub(crate) use access::{PAGE_ROUTE, ROOT, is_below};
pub(crate) use api::{NOTES_ROUTE, RELEASE_ROUTE, RELEASES};

/// Responds on the public listener. Where the desk is not open there, it is an unknown path.
pub(crate) async fn public(State(app): State<App>, request: Request) -> Response {
    let is_open = request.extensions().get::<Peer>().is_some_and(|peer| app.opens_desk_to(*peer));
    if is_open && api::is_route(request.uri().path()) {
        api::respond(&app, request).await
    } else if is_open && app.has_public_pages_of_desk() {
        Box::pin(pages::respond(&app, Place::public(&app.base_url), request)).await
    } else {
        fallback(State(app), request).await
    }
}

/// Responds on the ops listener, where the pages are for browsers on this machine alone.
pub(crate) async fn on_ops_listener(app: &App, request: Request) -> Response {
    if api::is_route(request.uri().path()) {
        return api::respond(app, request).await;
    }
    let (head, body) = request.into_parts();
    if let Some(place) = Place::on_ops_listener(&head) {
        return Box::pin(pages::respond(app, place, Request::from_parts(head, body))).await;
    }
    let text = "The desk is here for browsers on this machine alone. `ssh -L 8081:127.0.0.1:8081 HOST` leads from yours to it.\n";
    (StatusCode::FORBIDDEN, PRIVATE, text).into_response()
}

/// Whether a browser that sent this request to the ops listener can sign in there.
pub(crate) fn opens_to(head: &Parts) -> bool {
    Place::on_ops_listener(head).is_some()
}
