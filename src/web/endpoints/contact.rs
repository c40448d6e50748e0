//! `POST /api/contact`: description and request parser.

use serde::Serialize;
use serde_json::json;

use super::endpoint::{Endpoint, OK};
use crate::domain::contact::ContactMessage;
use crate::domain::limits;
use crate::domain::text::SenderName;
use crate::web::fields::Fields;
use crate::web::problem::{ErrorCode, Problem};
use crate::web::shape::{Field, FieldType, Shape};

const NAME: Field = Field::optional("name", FieldType::BoundedString(limits::MAX_NAME_CHARS), "The sender's name.");
const EMAIL: Field = Field::required("email", FieldType::Email, "Where to send the answer.");
const MESSAGE: Field =
    Field::required("message", FieldType::ContactMessage, "What the sender has to say, as plain text.");

pub(crate) const CONTACT: Endpoint = Endpoint {
    operation_id: "sendContactMessage",
    path: "/api/contact",
    summary: "Write to the makers",
    description: "Sends a message to the makers, who answer by email to the address given. For questions, data \
                  requests, press and security reports. Call it only when the person asked, with their own address.",
    deprecated: false,
    request: Shape {
        name: "ContactRequest",
        description: "A person writes to the makers.",
        deny_unknown_fields: true,
        fields: &[NAME, EMAIL, MESSAGE],
    },
    result: Shape {
        name: "Ok",
        description: "The message is with the makers.",
        deny_unknown_fields: false,
        fields: &[OK],
    },
    errors: &[
        ErrorCode::InvalidJson,
        ErrorCode::InvalidBody,
        ErrorCode::InvalidEmail,
        ErrorCode::EmptyMessage,
        ErrorCode::MessageTooLong,
    ],
    request_example: || json!({ "name": "Ada", "email": "ada@example.com", "message": "Does it run on macOS 15?" }),
};

#[derive(Serialize)]
pub(crate) struct ContactResult {
    pub ok: bool,
}

/// Parses the request of the endpoint and of the site's form.
pub(crate) fn parse_contact_message(mut fields: Fields) -> Result<ContactMessage, Problem> {
    let name = fields.text(&NAME, SenderName::parse);
    let email = fields.email(&EMAIL);
    let text = fields.message(&MESSAGE);
    let message = email.zip(text).map(|(email, text)| ContactMessage { name, email, text });
    fields.finish(CONTACT.request.fields, message)
}
