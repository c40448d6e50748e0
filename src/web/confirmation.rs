//! The page that confirms an opt-in to the monthly email. The setting `confirm_updates` need not be on any more.

use axum::extract::Request;
use axum::response::Response;
use http::Method;

use super::app::App;
use super::built_site::BuiltSite;
use super::response::method_not_allowed;
use super::served::Served;
use super::token_page::{incomplete_request, refusal_of_unknown_token, respond, respond_to_post, says_not_me};
use super::{body, pages};
use crate::actions::{Failure, confirm_opt_in, confirmation_link, decline_opt_in};
use crate::domain::confirmation::{CONFIRMATION_PATH, ConfirmationToken, LinkState};

/// `GET` and `POST /confirm/{token}`
pub(crate) async fn confirmation_page(app: App, request: Request) -> Response {
    let token = request.uri().path().strip_prefix(CONFIRMATION_PATH).and_then(ConfirmationToken::parse);
    let built = app.built();
    let (head, body) = request.into_parts();
    let Some(token) = token else {
        return match refusal_of_unknown_token(&app, &head) {
            Some(refusal) => refusal,
            None => pages::fallback(&app, &Request::from_parts(head, body)),
        };
    };
    match head.method {
        Method::GET | Method::HEAD => {
            let link = confirmation_link(app.service(), &token).await;
            let page = page_of(&built, &link);
            respond(&built, link.map(|link| link.is_some()), page, &head.headers)
        }
        Method::POST => {
            let Ok(body) = body::read(&head.headers, body).await else { return incomplete_request() };
            if says_not_me(&body) {
                let known = decline_opt_in(app.service(), &token).await;
                return respond_to_post(&app, &head, &built, known, &built.never_again);
            }
            let link = confirm_opt_in(app.service(), &token).await;
            let page = page_of(&built, &link);
            respond_to_post(&app, &head, &built, link.map(|link| link.is_some()), page)
        }
        _ => method_not_allowed("GET, HEAD, POST"),
    }
}

/// The page for what the link leads to.
fn page_of<'a>(built: &'a BuiltSite, link: &Result<Option<LinkState>, Failure>) -> &'a Served {
    match link {
        Ok(Some(LinkState::Confirmed)) => &built.confirmed,
        Ok(Some(LinkState::Declined)) => &built.never_again,
        Ok(Some(LinkState::Pending) | None) | Err(_) => &built.confirm,
    }
}
