//! Which browser pages may call the MCP server. Callers that are no browsers send no `Origin`.

use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_REQUEST_METHOD, ORIGIN, VARY,
};
use http::{HeaderMap, HeaderValue, Method};

use crate::web::app::App;

#[derive(Debug)]
pub(super) enum Caller {
    /// No `Origin`: not a page of another site.
    Direct,
    /// A page that may call; its origin is echoed.
    Page(HeaderValue),
    Foreign,
}

impl Caller {
    pub(super) fn of(headers: &HeaderMap, app: &App) -> Self {
        let mut origins = headers.get_all(ORIGIN).into_iter();
        match (origins.next(), origins.next()) {
            (None, _) => Self::Direct,
            (Some(origin), None) if origin.to_str().is_ok_and(|origin| app.allows_origin(origin)) => {
                Self::Page(origin.clone())
            }
            _ => Self::Foreign,
        }
    }

    pub(super) fn mark(&self, headers: &mut HeaderMap) {
        headers.insert(VARY, HeaderValue::from_static("Origin"));
        if let Self::Page(origin) = self {
            headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
        }
    }
}

/// A browser asks whether it may send the real request.
pub(super) fn is_preflight(method: &Method, headers: &HeaderMap) -> bool {
    method == Method::OPTIONS && headers.contains_key(ORIGIN) && headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD)
}

pub(super) fn allow_post(headers: &mut HeaderMap) {
    headers.insert(ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("POST"));
    headers
        .insert(ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static("content-type, accept, mcp-protocol-version"));
}
