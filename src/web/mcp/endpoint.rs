//! `POST /mcp`. The order of checks: method, origin, body, message, limit per client, protocol version.

use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::{IntoResponse as _, Response};
use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_REQUEST_METHOD, ALLOW, CACHE_CONTROL, HeaderName, ORIGIN, VARY,
};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, StatusCode};

use super::calls;
use super::message::{
    INVALID_PARAMS, INVALID_REQUEST, Id, METHOD_NOT_FOUND, Message, PARSE_ERROR, RpcError, SERVER_ERROR,
    error_response, success_response,
};
use super::results::text_result;
use super::server_info::VERSIONS;
use crate::domain::limits;
use crate::domain::statistics::Reader;
use crate::domain::text::excerpt;
use crate::web::allowed_methods;
use crate::web::app::App;
use crate::web::body::{self, BodyError};
use crate::web::initiator::reader_of;
use crate::web::json::{self, Members};
use crate::web::problem::Problem;
use crate::web::refusal::ClientLimit;
use crate::web::response::json_response;

const VERSION_HEADER: HeaderName = HeaderName::from_static("mcp-protocol-version");

/// The method that runs a tool.
const CALL: &str = "tools/call";

/// A message, or the error of an invalid one with its id.
type ParsedMessage<'a> = Result<Message<'a>, (Id, RpcError)>;

pub(crate) async fn endpoint(State(app): State<App>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let origin = Origin::read(&head.headers, &app);
    let mut response = if head.method == Method::POST {
        post(&app, &head, &origin, body).await
    } else if is_preflight(&head.method, &head.headers) {
        preflight(&origin)
    } else {
        let error = RpcError::new(INVALID_REQUEST, "Method not allowed: send one JSON-RPC message by POST");
        ([(ALLOW, allowed_methods::CALL)], respond_without_id(StatusCode::METHOD_NOT_ALLOWED, &error)).into_response()
    };
    origin.add_cors_headers(response.headers_mut());
    response
}

async fn post(app: &App, head: &Parts, origin: &Origin, body: Body) -> Response {
    // Read even where the origin decides: a response sent while the body arrives may be lost with the connection.
    let body = body::read(&head.headers, body).await;
    let message = match (origin, &body) {
        (Origin::Forbidden, _) => Err(forbidden()),
        (_, Err(error)) => Err(respond_without_id(StatusCode::BAD_REQUEST, &unreadable(*error))),
        (_, Ok(body)) => Ok(Message::parse(body)),
    };
    // Every request counts, whatever its response will be.
    let within_limit = app.limits.count(limit_of(app, message.as_ref().ok()), head);
    let message = match message {
        Ok(message) => message,
        Err(response) => return response,
    };
    if let Err(over_limit) = within_limit {
        return refuse(message, &app.limits.refuse(over_limit));
    }
    match dispatch(app, &head.headers, message).await {
        Ok(Some(response)) => json_response(StatusCode::OK, response),
        Ok(None) => (StatusCode::ACCEPTED, [(CACHE_CONTROL, "no-store")]).into_response(),
        Err((id, error)) => json_response(StatusCode::BAD_REQUEST, error_response(&id, &error)),
    }
}

/// A call that joins the list counts with the other signups.
fn limit_of(app: &App, message: Option<&ParsedMessage<'_>>) -> ClientLimit {
    match message {
        Some(Ok(Message::Request { method, params, .. }))
            if method == CALL && calls::is_signup(app, params.as_ref()) =>
        {
            ClientLimit::Signups
        }
        _ => ClientLimit::McpRequests,
    }
}

/// Responds to a client that has exceeded a limit. A call gets a result, so that the model reads the reason.
fn refuse(message: ParsedMessage<'_>, problem: &Problem) -> Response {
    let id = match message {
        Ok(Message::Request { id, method, .. }) if method == CALL => {
            let result = text_result(&problem.detail, true);
            return json_response(StatusCode::OK, success_response(&id, &result));
        }
        Ok(Message::Request { id, .. }) | Err((id, _)) => id,
        Ok(Message::NotARequest) => Id::unknown(),
    };
    let error = RpcError::new(SERVER_ERROR, problem.detail.clone());
    (problem.retry_after(), json_response(problem.code.status(), error_response(&id, &error))).into_response()
}

/// Returns the response, or `None` if the message gets none. An invalid message is an error.
async fn dispatch(
    app: &App,
    headers: &HeaderMap,
    message: ParsedMessage<'_>,
) -> Result<Option<String>, (Id, RpcError)> {
    let message = message?;
    let response_id = match &message {
        Message::Request { id, .. } => id.clone(),
        Message::NotARequest => Id::unknown(),
    };
    check_version(headers).map_err(|error| (response_id, error))?;
    let Message::Request { id, method, params } = message else {
        return Ok(None);
    };
    let result = match method.as_str() {
        "initialize" => {
            app.metrics.record_initialization(named_client(params.as_ref()));
            let version = params.as_ref().and_then(|params| params.get("protocolVersion")).and_then(json::as_string);
            Ok(app.built().server_info.initialize(version.as_deref()))
        }
        "ping" => Ok("{}".to_owned()),
        "tools/list" => list(app, params.as_ref()),
        // Without sessions, a call only identifies its client by `User-Agent`.
        CALL => calls::call(app, reader_of(headers, false), params.as_ref()).await,
        _ => Err(RpcError::new(
            METHOD_NOT_FOUND,
            "Method not found; supported methods: initialize, ping, tools/list, tools/call",
        )),
    };
    Ok(Some(match result {
        Ok(result) => success_response(&id, &result),
        Err(error) => error_response(&id, &error),
    }))
}

/// The client that `initialize` names.
fn named_client(params: Option<&Members<'_>>) -> Reader {
    let info = params.and_then(|params| params.get("clientInfo")).and_then(Members::of);
    Reader::of_client_name(info.and_then(|info| json::as_string(info.get("name")?)).as_deref())
}

fn list(app: &App, params: Option<&Members<'_>>) -> Result<String, RpcError> {
    match params.and_then(|params| params.get("cursor")) {
        None => Ok(app.built().server_info.tools_list.clone()),
        Some(_) => Err(RpcError::new(INVALID_PARAMS, "Invalid params: the list has one page, so there are no cursors")),
    }
}

fn check_version(headers: &HeaderMap) -> Result<(), RpcError> {
    for version in headers.get_all(VERSION_HEADER) {
        let version = String::from_utf8_lossy(version.as_bytes());
        if !VERSIONS.contains(&version.as_ref()) {
            let version = excerpt(&version, limits::MAX_ECHOED_VERSION_CHARS);
            return Err(RpcError::new(
                INVALID_REQUEST,
                format!(
                    "Bad Request: Unsupported protocol version: {version} (supported versions: {})",
                    VERSIONS.join(", ")
                ),
            ));
        }
    }
    Ok(())
}

fn preflight(origin: &Origin) -> Response {
    if matches!(origin, Origin::Forbidden) {
        return forbidden();
    }
    let headers = [
        (CACHE_CONTROL, "no-store"),
        (ACCESS_CONTROL_ALLOW_METHODS, "POST"),
        (ACCESS_CONTROL_ALLOW_HEADERS, "content-type, accept, mcp-protocol-version"),
    ];
    (StatusCode::NO_CONTENT, headers).into_response()
}

fn forbidden() -> Response {
    let error = RpcError::new(INVALID_REQUEST, "Forbidden: this Origin may not call the server from a browser");
    respond_without_id(StatusCode::FORBIDDEN, &error)
}

/// Responds to a request whose message was not read.
fn respond_without_id(status: StatusCode, error: &RpcError) -> Response {
    json_response(status, error_response(&Id::unknown(), error))
}

fn unreadable(error: BodyError) -> RpcError {
    match error {
        BodyError::TooLarge => RpcError::new(
            INVALID_REQUEST,
            format!("Invalid Request: the body is larger than {} KiB", limits::MAX_BODY_BYTES / 1024),
        ),
        BodyError::TimedOut | BodyError::Incomplete => {
            RpcError::new(PARSE_ERROR, "Parse error: the body is incomplete")
        }
    }
}

/// Which origin calls the server from a browser. Other clients send no `Origin`.
#[derive(Debug)]
enum Origin {
    /// Not a browser.
    None,
    Allowed(HeaderValue),
    Forbidden,
}

impl Origin {
    fn read(headers: &HeaderMap, app: &App) -> Self {
        let mut origins = headers.get_all(ORIGIN).into_iter();
        match (origins.next(), origins.next()) {
            (None, _) => Self::None,
            (Some(origin), None) if origin.to_str().is_ok_and(|origin| app.allows_origin(origin)) => {
                Self::Allowed(origin.clone())
            }
            _ => Self::Forbidden,
        }
    }

    /// Lets the browser hand the response to a page of an allowed origin.
    fn add_cors_headers(&self, headers: &mut HeaderMap) {
        headers.insert(VARY, HeaderValue::from_static("Origin"));
        if let Self::Allowed(origin) = self {
            headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
        }
    }
}

/// A browser's request for permission to send the real one.
fn is_preflight(method: &Method, headers: &HeaderMap) -> bool {
    method == Method::OPTIONS && headers.contains_key(ORIGIN) && headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD)
}
