//! Which requests the desk takes, from whom, and what handles them.

use axum::extract::Request;
use axum::response::Response;
use http::header::AUTHORIZATION;
use http::request::Parts;
use http::{HeaderMap, Method};

use super::parameters;
use super::problem::{DeskError, DeskProblem};
use super::releases;
use crate::actions::authorize_token;
use crate::domain::releases::Version;
use crate::domain::tokens::{CredentialName, TokenRight, TokenSecret};
use crate::web::app::App;
use crate::web::refusal::Refusal;
use crate::web::tokens::look_up;

pub(crate) const RELEASES: &str = "/desk/releases/";
pub(crate) const RELEASE_ROUTE: &str = "/desk/releases/{version}";
pub(crate) const NOTES_ROUTE: &str = "/desk/releases/{version}/notes";

/// Whether a token leads to this path, which is one of the routes above.
pub(crate) fn is_route(path: &str) -> bool {
    path.strip_prefix(RELEASES).is_some_and(|version| !version.trim_end_matches("/notes").contains('/'))
}

/// Responds to whoever has a token.
pub(crate) async fn respond(app: &App, request: Request) -> Response {
    let path = request.uri().path().to_owned();
    handle(app, &path, request).await.unwrap_or_else(|problem| problem.respond(&path))
}

async fn handle(app: &App, path: &str, request: Request) -> Result<Response, DeskProblem> {
    let (head, body) = request.into_parts();
    let (by, secret) = authorize(app, &head).await?;
    let (version, query) = (path.strip_prefix(RELEASES).unwrap_or_default(), head.uri.query());
    if version.is_empty() {
        return match head.method {
            Method::GET | Method::HEAD => {
                parameters::none(query)?;
                releases::list(app).await
            }
            _ => Err(DeskProblem::method_not_allowed("GET, HEAD")),
        };
    }
    if let Some(version) = version.strip_suffix("/notes") {
        return match head.method {
            Method::PUT | Method::POST => {
                parameters::none(query)?;
                releases::set_notes(app, &by, &parse_version(version)?, &head, body).await
            }
            _ => Err(DeskProblem::method_not_allowed("POST, PUT")),
        };
    }
    match head.method {
        Method::PUT => {
            let new_release = parameters::new_release(parse_version(version)?, query)?;
            releases::upload(app, (&by, secret), new_release, &head, body).await
        }
        Method::GET | Method::HEAD => {
            parameters::none(query)?;
            releases::show(app, &parse_version(version)?).await
        }
        Method::DELETE => {
            let reason = parameters::reason(query)?;
            releases::withdraw(app, &by, &parse_version(version)?, reason).await
        }
        _ => Err(DeskProblem::method_not_allowed("DELETE, GET, HEAD, PUT")),
    }
}

fn parse_version(text: &str) -> Result<Version, DeskProblem> {
    parameters::parse("version", Version::parse(text))
}

/// Returns whose token it is, and the token. A wrong one is counted, and answered late if there were many.
async fn authorize(app: &App, head: &Parts) -> Result<(CredentialName, TokenSecret), DeskProblem> {
    let Some(sent) = bearer(&head.headers) else {
        return Err(DeskProblem::new(DeskError::UNAUTHORIZED, "The request has no token in its header Authorization."));
    };
    let (service, now) = (&app.service, app.service.clock.now());
    let known = match TokenSecret::parse(sent) {
        None => None,
        Some(secret) => {
            let known = async { Ok(authorize_token(&service.store, &secret, TokenRight::Publish, now).await?) };
            look_up(&app.desk_lookups, known).await?.map(|name| (name, secret))
        }
    };
    if let Some(known) = known {
        return Ok(known);
    }
    app.limits.record(Refusal::WrongTokens);
    app.wrong_tokens.count(now).wait().await;
    let detail = "The token is unknown, was revoked, or its last day has passed.";
    Err(DeskProblem::new(DeskError::UNAUTHORIZED, detail))
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = headers.get(AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}
