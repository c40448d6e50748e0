//! `POST /api/contact`: its description, and the request parsed.

use serde::Serialize;
use serde_json::json;

use super::endpoint::{Endpoint, OK};
use crate::domain::contact::ContactMessage;
use crate::domain::limits;
use crate::domain::text::SenderName;
use crate::web::fields::{Fields, judge_message};
use crate::web::problem::{ErrorCode, Problem};
use crate::web::shape::{Field, Kind, Shape};

const NAME: Field =
    Field { name: "name", kind: Kind::Text(limits::MAX_NAME_CHARS), required: false, about: "The sender's name." };
const EMAIL: Field = Field { name: "email", kind: Kind::Email, required: true, about: "Where to send the answer." };
const MESSAGE: Field =
    Field { name: "message", kind: Kind::Message, required: true, about: "What the sender has to say, as plain text." };

pub(crate) const CONTACT: Endpoint = Endpoint {
    operation_id: "sendContactMessage",
    path: "/api/contact",
    summary: "Write to the makers",
    description: "Hands a message to the makers, who answer by email to the address given. For questions, data \
                  requests, press and security reports. Call it only when the person asked, with their own address.",
    deprecated: false,
    request: Shape {
        name: "ContactRequest",
        about: "Somebody writes to the makers.",
        closed: true,
        fields: &[NAME, EMAIL, MESSAGE],
    },
    result: Shape { name: "Ok", about: "The message is with the makers.", closed: false, fields: &[OK] },
    refusals: &[
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

/// The same for JSON and for the site's form.
pub(crate) fn read_contact_message(mut fields: Fields) -> Result<ContactMessage, Problem> {
    let name = fields.text(&NAME, SenderName::parse);
    let email = fields.email(&EMAIL);
    let message = fields.string(&MESSAGE);
    fields.finish()?;
    Ok(ContactMessage { name, email: email.judge()?, message: judge_message(message.as_deref())? })
}
