//! The methods that paths take: the `Allow` header of a 405, and of the answer to OPTIONS.

use axum::response::{IntoResponse as _, Response};
use http::StatusCode;
use http::header::ALLOW;

/// Pages, files and the ops listener.
pub(crate) const READ: &str = "GET, HEAD";
/// Files that other sites may read.
pub(crate) const READ_FROM_OTHER_SITES: &str = "GET, HEAD, OPTIONS";
/// Pages with a form.
pub(crate) const READ_AND_SUBMIT: &str = "GET, HEAD, POST";
/// The JSON endpoints and MCP.
pub(crate) const CALL: &str = "POST";

/// A 405 as text. `allow` is one of the lists above.
pub(crate) fn method_not_allowed(allow: &'static str) -> Response {
    let text = format!("Method not allowed. Use one of: {allow}.\n");
    (StatusCode::METHOD_NOT_ALLOWED, [(ALLOW, allow)], text).into_response()
}
