//! `POST /api/waitlist`, deprecated and still supported: description and request parser.

use serde::Serialize;
use serde_json::json;

use super::endpoint::{EMAIL, Endpoint, OK, SOURCE};
use crate::domain::consent::Via;
use crate::domain::signup::WaitlistOrder;
use crate::domain::text::Source;
use crate::web::fields::Fields;
use crate::web::problem::{ErrorCode, Problem};
use crate::web::shape::{Field, FieldType, Shape};

pub(crate) const WAITLIST: Endpoint = Endpoint {
    operation_id: "joinWaitlist",
    path: "/api/waitlist",
    summary: "Join the waiting list",
    description: "Puts an address on the app's waiting list, without a download and without the monthly email; nothing \
                  is mailed because of it. Deprecated: new callers use the download. Call it only when the person asked, \
                  with their own address. Joining twice is harmless.",
    deprecated: true,
    request: Shape {
        name: "WaitlistRequest",
        description: "A person wants to be on the waiting list.",
        deny_unknown_fields: true,
        fields: &[EMAIL, SOURCE],
    },
    result: Shape {
        name: "WaitlistResult",
        description: "The address is on the list.",
        deny_unknown_fields: false,
        fields: &[OK, Field::required("already", FieldType::Bool, "Whether the address was on the list before.")],
    },
    errors: &[ErrorCode::InvalidJson, ErrorCode::InvalidBody, ErrorCode::InvalidEmail],
    request_example: || json!({ "email": "ada@example.com", "source": "my-agent" }),
};

#[derive(Serialize)]
pub(crate) struct WaitlistResult {
    pub ok: bool,
    pub already: bool,
}

/// Parses the request of the endpoint and of the MCP tool.
pub(crate) fn parse_waitlist_order(mut fields: Fields, via: Via) -> Result<WaitlistOrder, Problem> {
    let email = fields.email(&EMAIL);
    let source = fields.text(&SOURCE, Source::parse);
    let order = email.map(|email| WaitlistOrder { email, source, via });
    fields.finish(WAITLIST.request.fields, order)
}
