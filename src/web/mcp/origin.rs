//! Which origins may call the MCP server from a browser. Other clients send no `Origin`.

use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_REQUEST_METHOD, ORIGIN, VARY,
};
use http::{HeaderMap, HeaderValue, Method};

use crate::web::app::App;

#[derive(Debug)]
pub(super) enum Origin {
    /// Not a browser.
    None,
    Allowed(HeaderValue),
    Forbidden,
}

impl Origin {
    pub(super) fn read(headers: &HeaderMap, app: &App) -> Self {
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
    pub(super) fn add_cors_headers(&self, headers: &mut HeaderMap) {
        headers.insert(VARY, HeaderValue::from_static("Origin"));
        if let Self::Allowed(origin) = self {
            headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
        }
    }
}

/// A browser's request for permission to send the real one.
pub(super) fn is_preflight(method: &Method, headers: &HeaderMap) -> bool {
    method == Method::OPTIONS && headers.contains_key(ORIGIN) && headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD)
}

pub(super) fn add_preflight_headers(headers: &mut HeaderMap) {
    headers.insert(ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("POST"));
    headers
        .insert(ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static("content-type, accept, mcp-protocol-version"));
}
