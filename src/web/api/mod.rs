//! The JSON endpoints: what they have in common, and the table of them.

mod contact;
mod download;
mod waitlist;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::Response;
use http::header::{CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Method};
use serde::Serialize;
use serde_json::Value;

use super::app::App;
use super::body::{self, BodyFault};
use super::fields::Fields;
use super::problem::{ErrorCode, Problem};
use super::shape::{Field, Kind, Shape};
use crate::domain::limits;

pub(crate) use contact::{CONTACT, contact, read_contact_message};
pub(crate) use download::{DOWNLOAD, download, read_download_order};
pub(crate) use waitlist::{WAITLIST, WaitlistResult, read_waitlist_order, waitlist};

/// One JSON endpoint, as the document and the reference page describe it.
#[derive(Debug)]
pub(crate) struct Endpoint {
    pub operation_id: &'static str,
    pub path: &'static str,
    pub summary: &'static str,
    pub description: &'static str,
    pub deprecated: bool,
    pub request: Shape,
    pub result: Shape,
    pub refusals: &'static [ErrorCode],
    pub request_example: fn() -> Value,
}

impl Endpoint {
    /// Every code that it may answer with: its own refusals, and those of all endpoints.
    pub(crate) fn codes(&self) -> impl Iterator<Item = ErrorCode> {
        let shared = [ErrorCode::MethodNotAllowed, ErrorCode::ServerError, ErrorCode::Unavailable];
        self.refusals.iter().copied().chain(shared)
    }
}

pub(crate) const ENDPOINTS: [&Endpoint; 3] = [&DOWNLOAD, &WAITLIST, &CONTACT];

const EMAIL: Field = Field { name: "email", kind: Kind::Email, required: true, about: "The person's own address." };
const SOURCE: Field = Field {
    name: "source",
    kind: Kind::Text(limits::MAX_SOURCE_CHARS),
    required: false,
    about: "Where the request comes from, such as the name of the calling app.",
};
const OK: Field = Field { name: "ok", kind: Kind::True, required: true, about: "It is done." };

/// Goes through the checks that all endpoints share, in the promised order, lets `act` do the rest,
/// and dresses what comes back.
async fn answer<T: Serialize>(
    app: &App,
    request: Request,
    act: impl AsyncFnOnce(Fields) -> Result<T, Problem>,
) -> Response {
    let (head, body) = request.into_parts();
    let outcome = async {
        if head.method != Method::POST {
            return Err(Problem::new(ErrorCode::MethodNotAllowed, "This address takes POST only."));
        }
        let body = body::read(&head.headers, body).await.map_err(unreadable)?;
        check_media_type(&head.headers)?;
        act(Fields::of_body(&body)?).await
    };
    match outcome.await {
        Ok(result) => json_response(&result),
        Err(problem) => problem.respond(app.base_url(), head.uri.path()),
    }
}

/// Any address under `/api/` that is not an endpoint.
pub(crate) async fn unknown(State(app): State<App>, request: Request) -> Response {
    Problem::new(ErrorCode::NotFound, "No endpoint has this address.").respond(app.base_url(), request.uri().path())
}

fn json_response(value: &impl Serialize) -> Response {
    let mut response = Response::new(Body::from(serde_json::to_vec(value).unwrap_or_default()));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

fn unreadable(fault: BodyFault) -> Problem {
    match fault {
        BodyFault::TooLarge => {
            let kib = limits::MAX_BODY_BYTES / 1024;
            Problem::new(ErrorCode::InvalidBody, format!("The body is larger than {kib} KiB."))
                .resolved_by("Send a smaller body; every documented request fits.")
        }
        BodyFault::TooSlow => Problem::new(ErrorCode::InvalidJson, "The body did not arrive in time."),
        BodyFault::Broken => Problem::new(ErrorCode::InvalidJson, "The body did not arrive whole."),
    }
}

fn check_media_type(headers: &HeaderMap) -> Result<(), Problem> {
    let refuse = |detail: &str| Err(Problem::new(ErrorCode::InvalidJson, detail));
    let mut types = headers.get_all(CONTENT_TYPE).into_iter();
    let (Some(media_type), None) = (types.next(), types.next()) else {
        return refuse("There has to be one Content-Type header.");
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

fn is_json(media_type: &str) -> bool {
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
