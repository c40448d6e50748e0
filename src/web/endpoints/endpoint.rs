//! How an endpoint is described, and the fields that several endpoints share.

use serde_json::Value;

use crate::domain::limits;
use crate::web::problem::ErrorCode;
use crate::web::shape::{Field, Kind, Shape};

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

pub(super) const EMAIL: Field =
    Field { name: "email", kind: Kind::Email, required: true, about: "The person's own address." };
pub(super) const SOURCE: Field = Field {
    name: "source",
    kind: Kind::Text(limits::MAX_SOURCE_CHARS),
    required: false,
    about: "Where the request comes from, such as the name of the calling app.",
};
pub(super) const OK: Field = Field { name: "ok", kind: Kind::True, required: true, about: "It is done." };
