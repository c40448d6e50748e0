//! The page that confirms an opt-in to the monthly email. The setting `confirm_updates` need not be on any more.

use axum::extract::Request;
use axum::response::Response;
use http::Method;

use super::app::App;
use super::response::method_not_allowed;
use super::token_page::{incomplete_request, refusal_of_unknown_token, respond, respond_to_post, says_not_me};
use super::{body, pages};
use crate::actions::{confirm_opt_in, decline_opt_in, is_opt_in_confirmed};
use crate::domain::confirmation::{CONFIRMATION_PATH, ConfirmationToken};

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
            let confirmed = is_opt_in_confirmed(app.service(), &token).await;
            let page = if matches!(confirmed, Ok(Some(true))) { &built.confirmed } else { &built.confirm };
            respond(&built, confirmed.map(|confirmed| confirmed.is_some()), page, &head.headers)
        }
        Method::POST => {
            let Ok(body) = body::read(&head.headers, body).await else { return incomplete_request() };
            if says_not_me(&body) {
                let known = decline_opt_in(app.service(), &token).await;
                return respond_to_post(&app, &head, &built, known, &built.never_again);
            }
            let known = confirm_opt_in(app.service(), &token).await;
            respond_to_post(&app, &head, &built, known, &built.confirmed)
        }
        _ => method_not_allowed("GET, HEAD, POST"),
    }
}
