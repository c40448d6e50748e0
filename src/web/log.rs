//! Maps HTTP methods to a fixed set of names, so that client input never reaches the log.

use http::Method;

/// Returns the name of a common method. Clients may invent methods, so all others are `other`.
pub(crate) fn method_name(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        Method::OPTIONS => "OPTIONS",
        _ => "other",
    }
}
