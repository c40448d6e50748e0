//! What a form of the desk sends.

use axum::body::Body;
use http::HeaderMap;
use url::form_urlencoded;

use super::failure::DeskFailure;
use crate::web::body;

/// The fields, in their order.
#[derive(Debug)]
pub(super) struct Form(Vec<(String, String)>);

impl Form {
    pub(super) async fn read(headers: &HeaderMap, body: Body) -> Result<Self, DeskFailure> {
        let incomplete = |_| DeskFailure::Invalid("What was sent is incomplete, or too large.".to_owned());
        let body = body::read(headers, body).await.map_err(incomplete)?;
        let pairs = form_urlencoded::parse(&body);
        // Browsers submit line breaks as CRLF.
        Ok(Self(pairs.map(|(name, value)| (name.into_owned(), value.replace("\r\n", "\n"))).collect()))
    }

    /// Reads the query of an address in the same way.
    pub(super) fn of_query(query: Option<&str>) -> Self {
        let pairs = form_urlencoded::parse(query.unwrap_or_default().as_bytes());
        Self(pairs.into_owned().collect())
    }

    /// The first field of this name, or an empty text.
    pub(super) fn text(&self, name: &str) -> &str {
        self.0.iter().find(|(key, _)| key == name).map_or("", |(_, value)| value)
    }
}
