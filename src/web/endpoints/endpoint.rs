//! How an endpoint is described, and the fields that several endpoints share.

use serde::Serialize;
use serde_json::Value;

use crate::domain::limits;
use crate::web::problem::ErrorCode;
use crate::web::shape::{Field, FieldType, Shape};

/// The description of a JSON endpoint. `Serialize` produces the form that the reference page uses.
#[derive(Debug, Serialize)]
pub(crate) struct Endpoint {
    pub operation_id: &'static str,
    pub path: &'static str,
    pub summary: &'static str,
    pub description: &'static str,
    pub deprecated: bool,
    pub request: Shape,
    pub result: Shape,
    #[serde(skip)]
    pub errors: &'static [ErrorCode],
    #[serde(skip)]
    pub request_example: fn() -> Value,
}

impl Endpoint {
    /// Every error code of the endpoint: its own, and those of all endpoints.
    pub(crate) fn error_codes(&self) -> impl Iterator<Item = ErrorCode> {
        let shared = [ErrorCode::MethodNotAllowed, ErrorCode::ServerError, ErrorCode::Unavailable];
        self.errors.iter().copied().chain(shared)
    }
}

pub(super) const EMAIL: Field = Field::required("email", FieldType::Email, "The person's own address.");
pub(super) const SOURCE: Field = Field::optional(
    "source",
    FieldType::BoundedString(limits::MAX_SOURCE_CHARS),
    "The name of the calling program, such as `my-agent`; nothing about the person.",
);
pub(super) const OK: Field = Field::required("ok", FieldType::AlwaysTrue, "The request succeeded.");
