//! Handlers of the JSON endpoints, and the checks that they share.

use axum::extract::{Request, State};
use axum::response::Response;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderName, LINK};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use serde_json::{Value, json};

use super::app::App;
use super::body::{self, BodyError};
use super::endpoints::{DOWNLOAD, parse_contact_message, parse_download_request, parse_waitlist_request};
use super::fields::Fields;
use super::initiator::Initiator;
use super::problem::{ErrorCode, Problem};
use super::refusal::ClientLimit;
use super::response::json_response;
use crate::actions::{StartedDownload, join_waitlist, send_contact, start_download};
use crate::domain::limits;
use crate::domain::network::BaseUrl;
use crate::domain::signups::{DownloadRequest, Via};
use crate::site::Language;

/// When `/api/waitlist` became deprecated: 15 November 2026, in the format of RFC 9745.
const DEPRECATED_SINCE: HeaderValue = HeaderValue::from_static("@1794700800");

/// Records the download and returns the URL of the newest disk image.
pub(crate) async fn download(State(app): State<App>, request: Request) -> Response {
    let via = via(&app, request.headers());
    respond(&app, ClientLimit::Signups, request, async |fields, head| {
        let order = parse_download_request(fields, via)?;
        app.limits.count_opt_in(&app.service, &order, head)?;
        let wording = match via {
            // The script of the site sends the forms of English pages.
            Via::Site => app.built().site.opt_in_wording(&Language::default()),
            _ => order.wording,
        };
        let order = DownloadRequest { wording, ..order };
        let StartedDownload { url, already } = start_download(&app.service, order).await?;
        Ok(json!({ "ok": true, "url": url, "already": already }))
    })
    .await
}

/// Puts the address on the deprecated waitlist, if the site has one.
pub(crate) async fn waitlist(State(app): State<App>, request: Request) -> Response {
    if !app.built().site.facts.waitlist {
        return not_found(State(app), request).await;
    }
    let via = via(&app, request.headers());
    let mut response = respond(&app, ClientLimit::Signups, request, async |fields, _| {
        let order = parse_waitlist_request(fields, via)?;
        let already = join_waitlist(&app.service, order).await?;
        Ok(json!({ "ok": true, "already": already }))
    })
    .await;
    add_deprecation(response.headers_mut(), &app.base_url);
    response
}

/// Stores a message to the makers.
pub(crate) async fn contact(State(app): State<App>, request: Request) -> Response {
    respond(&app, ClientLimit::Messages, request, async |fields, _| {
        send_contact(&app.service, parse_contact_message(fields)?).await?;
        Ok(json!({ "ok": true }))
    })
    .await
}

/// The script of the site calls these endpoints too, from its pages.
fn via(app: &App, headers: &HeaderMap) -> Via {
    match Initiator::of(headers, &app.base_url) {
        Initiator::OwnPage => Via::Site,
        Initiator::OtherSite | Initiator::Unknown => Via::Api,
    }
}

/// The fallback under `/api/`.
pub(crate) async fn not_found(State(app): State<App>, request: Request) -> Response {
    let endpoints = app.built().endpoint_paths.join(", ");
    Problem::new(ErrorCode::NotFound, "No endpoint has this address.")
        .resolved_by(format!("Send a POST to one of these endpoints: {endpoints}."))
        .respond(&app.base_url, request.uri().path())
}

/// Runs the checks that all endpoints share in the documented order, then `action`, and encodes its
/// result.
async fn respond(
    app: &App,
    limit: ClientLimit,
    request: Request,
    action: impl AsyncFnOnce(Fields, &Parts) -> Result<Value, Problem>,
) -> Response {
    let (head, body) = request.into_parts();
    let outcome = async {
        if head.method != Method::POST {
            return Err(Problem::new(ErrorCode::MethodNotAllowed, "This address takes POST only."));
        }
        let body = body::read(&head.headers, body).await;
        // Every request counts, whatever its response will be.
        let within_limit = app.limits.count(limit, &head);
        let body = body.map_err(unreadable)?;
        within_limit.map_err(|over_limit| app.limits.refuse(over_limit))?;
        check_media_type(&head.headers)?;
        action(Fields::parse_body(&body)?, &head).await
    };
    match outcome.await {
        Ok(result) => json_response(StatusCode::OK, result.to_string()),
        Err(problem) => problem.respond(&app.base_url, head.uri.path()),
    }
}

/// Every response of the deprecated endpoint has these headers, whatever its status.
fn add_deprecation(headers: &mut HeaderMap, base_url: &BaseUrl) {
    headers.insert(HeaderName::from_static("deprecation"), DEPRECATED_SINCE);
    let links = format!(
        "<{}>; rel=\"deprecation\"; type=\"text/html\", <{}>; rel=\"successor-version\"",
        base_url.to("/developers#waitlist"),
        base_url.to(DOWNLOAD.path),
    );
    if let Ok(links) = HeaderValue::from_str(&links) {
        headers.insert(LINK, links);
    }
}

/// A body that was cut off or timed out is `invalid_json`, because the part that arrived is not a JSON object.
fn unreadable(error: BodyError) -> Problem {
    match error {
        BodyError::TooLarge => {
            let kib = limits::MAX_BODY_BYTES / 1024;
            Problem::new(ErrorCode::InvalidBody, format!("The body is larger than {kib} KiB."))
                .resolved_by("Send a smaller body; every documented request fits.")
        }
        BodyError::TimedOut => Problem::new(ErrorCode::InvalidJson, "The body did not arrive in time."),
        BodyError::Incomplete => Problem::new(ErrorCode::InvalidJson, "The body is incomplete."),
    }
}

fn check_media_type(headers: &HeaderMap) -> Result<(), Problem> {
    let refuse = |detail: &str| Err(Problem::new(ErrorCode::InvalidJson, detail));
    let mut types = headers.get_all(CONTENT_TYPE).into_iter();
    let (Some(media_type), None) = (types.next(), types.next()) else {
        return refuse("There must be exactly one Content-Type header.");
    };
    if !media_type.to_str().is_ok_and(is_json) {
        return refuse("The Content-Type is not application/json.");
    }
    let mut codings = headers.get_all(CONTENT_ENCODING).into_iter();
    if codings.any(|coding| !coding.as_bytes().eq_ignore_ascii_case(b"identity")) {
        return Err(Problem::new(ErrorCode::InvalidJson, "The body is compressed.")
            .resolved_by("Send the JSON object plain, without a Content-Encoding header."));
    }
    Ok(())
}

pub(crate) fn is_json(media_type: &str) -> bool {
    let essence = media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    essence == "application/json"
        || essence
            .split_once('/')
            .is_some_and(|(kind, subtype)| !kind.is_empty() && subtype.len() > 5 && subtype.ends_with("+json"))
}

#[cfg(test)]
mod tests {
    use super::is_json;

    #[test]
    fn json_goes_by_several_names() {
        for json in ["application/json", "Application/JSON; charset=utf-8", "application/vnd.x+json", "text/x+json;a=b"]
        {
            assert!(is_json(json), "{json}");
        }
        for other in ["", "text/plain", "application/jsonp", "application/x-www-form-urlencoded", "+json", "a/+json"] {
            assert!(!is_json(other), "{other}");
        }
    }
}
