//! The pages whose path ends in a token from a mail: unsubscribing, and confirming an opt-in.
//!
//! `GET` changes nothing, because programs follow links in emails. The token is the only credential, so requests from any
//! origin are accepted.

use std::time::Duration;

use axum::extract::{Request, State};
use axum::response::{IntoResponse as _, Response};
use http::header::RETRY_AFTER;
use http::request::Parts;
use http::{HeaderMap, Method, StatusCode};
use tokio::sync::Semaphore;
use tokio::time::timeout;
use url::form_urlencoded;

use super::allowed_methods::{READ_AND_SUBMIT, method_not_allowed};
use super::app::App;
use super::body;
use super::headers::PRIVATE;
use super::problem::RETRY_AFTER_SECONDS;
use super::refusal::ClientLimit;
use super::served::Served;
use crate::actions::{Failure, can_unsubscribe, confirm_opt_in, confirmation_link, decline_opt_in, unsubscribe};
use crate::domain::letters::{
    CONFIRMATION_PATH, ConfirmationToken, LinkState, TEST_COPY_TOKEN, UNSUBSCRIBE_PATH, UnsubscribeKind,
    UnsubscribeToken,
};

/// `GET` and `POST /unsubscribe/{token}`, also the one-click unsubscribe of mail clients (RFC 8058). Any body unsubscribes,
/// because mail clients send their own. Only the page's checkbox also suppresses the mailbox.
pub(crate) async fn unsubscribe_page(State(app): State<App>, request: Request) -> Response {
    let token = request.uri().path().strip_prefix(UNSUBSCRIBE_PATH).unwrap_or_default();
    let (is_test_copy, token) = (token == TEST_COPY_TOKEN, UnsubscribeToken::parse(token));
    let built = app.built();
    respond(&app, request, &built.not_found, async |not_me| {
        if is_test_copy {
            return Ok(Some(&built.test_copy));
        }
        let Some(token) = token else { return Ok(None) };
        if !look_up(&app.token_lookups, can_unsubscribe(&app.service, &token)).await? {
            return Ok(None);
        }
        let (known, page) = match not_me {
            None => (true, &built.unsubscribe),
            Some(false) => {
                (unsubscribe(&app.service, &token, UnsubscribeKind::Unsubscribe).await?, &built.unsubscribed)
            }
            Some(true) => (unsubscribe(&app.service, &token, UnsubscribeKind::NotMe).await?, &built.never_again),
        };
        Ok(known.then_some(page))
    })
    .await
}

/// `GET` and `POST /confirm/{token}`. The setting `confirm_updates` need not be on any more.
pub(crate) async fn confirmation_page(State(app): State<App>, request: Request) -> Response {
    let token = request.uri().path().strip_prefix(CONFIRMATION_PATH).and_then(ConfirmationToken::parse);
    let built = app.built();
    respond(&app, request, &built.confirm_expired, async |not_me| {
        let Some(token) = token else { return Ok(None) };
        let Some(link) = look_up(&app.token_lookups, confirmation_link(&app.service, &token)).await? else {
            return Ok(None);
        };
        let link = match not_me {
            None => Some(link),
            Some(false) => confirm_opt_in(&app.service, &token).await?,
            Some(true) => decline_opt_in(&app.service, &token).await?.then_some(LinkState::Declined),
        };
        Ok(link.map(|link| match link {
            LinkState::Pending => &built.confirm,
            LinkState::Confirmed => &built.confirmed,
            LinkState::Declined => &built.never_again,
        }))
    })
    .await
}

/// How long a token waits for its turn. What follows has the rest of five seconds.
const TURN_TIMEOUT: Duration = Duration::from_millis(500);

/// Asks the database about a token. Only the database knows tokens, and anybody can invent them, so a few at a time are looked up:
/// the other connections stay free for the rest of the service.
pub(crate) async fn look_up<T>(
    turns: &Semaphore,
    question: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    let turn = timeout(TURN_TIMEOUT, turns.acquire()).await;
    let Ok(Ok(_turn)) = turn else { return Err(Failure::Unavailable("too many tokens are looked up".to_owned())) };
    question.await
}

/// Responds with the page that `action` returns, or with `unknown`, which is a 404, if the token is unknown. `action` gets `None` for a read, and for a
/// `POST` whether the form says that the reader did not ask for mail.
async fn respond<'a>(
    app: &App,
    request: Request,
    unknown: &Served,
    action: impl AsyncFnOnce(Option<bool>) -> Result<Option<&'a Served>, Failure>,
) -> Response {
    let (head, body) = request.into_parts();
    let not_me = match head.method {
        Method::GET | Method::HEAD => None,
        Method::POST => match body::read(&head.headers, body).await {
            Ok(body) => Some(says_not_me(&body)),
            Err(_) => {
                return (StatusCode::BAD_REQUEST, "The request is incomplete. Please send it again.\n").into_response();
            }
        },
        _ => return method_not_allowed(READ_AND_SUBMIT),
    };
    // Conditions and negotiation are for reads.
    let none = HeaderMap::new();
    let headers = if not_me.is_none() { &head.headers } else { &none };
    match action(not_me).await {
        Ok(Some(page)) => page.respond(&Method::GET, headers),
        Ok(None) => refuse_unknown_token(app, &head).unwrap_or_else(|| unknown.respond(&Method::GET, headers)),
        Err(failure) => {
            tracing::error!(%failure, "a request with a token failed");
            let text = "This did not work just now, and nothing was changed. Please try again in a minute.\n";
            (StatusCode::SERVICE_UNAVAILABLE, PRIVATE, [(RETRY_AFTER, RETRY_AFTER_SECONDS)], text).into_response()
        }
    }
}

fn says_not_me(body: &[u8]) -> bool {
    let not_me = ("reason", UnsubscribeKind::NotMe.as_str());
    form_urlencoded::parse(body).any(|(name, value)| (name.as_ref(), value.as_ref()) == not_me)
}

/// Counts a `POST` with an unknown token, and returns the response if the client has sent too many. A valid token is
/// never refused, because mail providers unsubscribe many readers from one address.
fn refuse_unknown_token(app: &App, head: &Parts) -> Option<Response> {
    if head.method != Method::POST {
        return None;
    }
    let over_limit = app.limits.count(ClientLimit::UnknownTokens, head).err()?;
    let problem = app.limits.refuse(over_limit);
    let text = format!("{}\n", problem.detail);
    Some((problem.code.status(), PRIVATE, problem.retry_after(), text).into_response())
}
