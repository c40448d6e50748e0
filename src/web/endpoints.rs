//! The JSON endpoints: descriptions and request parsers. The handlers are in `api`.
//!
//! OpenAPI, the MCP tools and the reference page are generated from the descriptions.

use serde::Serialize;
use serde_json::{Value, json};

use super::fields::Fields;
use super::problem::{ErrorCode, Problem};
use super::shape::{Field, FieldType, Shape};
use crate::domain::contact::ContactMessage;
use crate::domain::limits;
use crate::domain::signups::{DownloadRequest, Via, WaitlistRequest, Wording};
use crate::domain::text::{SenderName, Source};
use crate::site::{Policies, SiteFacts};

/// The version of the API, as the OpenAPI document states it.
pub(crate) const API_VERSION: &str = "1.0.0";

/// The endpoints of a site, described as its settings have it.
pub(crate) fn endpoints(facts: &SiteFacts, policies: &Policies) -> Vec<Endpoint> {
    let mut download = DOWNLOAD;
    if policies.confirm_updates {
        download.request.fields = &[EMAIL, UPDATES_TO_CONFIRM, SOURCE];
    }
    if !facts.waitlist {
        download.result.fields = &[OK, URL, ALREADY];
        return vec![download, CONTACT];
    }
    vec![download, WAITLIST, CONTACT]
}

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
    /// Besides those of all endpoints.
    #[serde(skip)]
    pub own_errors: &'static [ErrorCode],
    #[serde(skip)]
    pub request_example: fn() -> Value,
}

impl Endpoint {
    /// Every error code of the endpoint, those of its body first.
    pub(crate) fn error_codes(&self) -> impl Iterator<Item = ErrorCode> {
        let body = [ErrorCode::InvalidJson, ErrorCode::InvalidBody, ErrorCode::InvalidEmail];
        let others = [ErrorCode::MethodNotAllowed, ErrorCode::ServerError, ErrorCode::Unavailable];
        body.into_iter().chain(self.own_errors.iter().copied()).chain(others)
    }
}

const EMAIL: Field = Field::required("email", FieldType::Email, "The person's own address.");
const SOURCE: Field = Field::optional(
    "source",
    FieldType::BoundedString(limits::MAX_SOURCE_CHARS),
    "The name of the calling program, such as `my-agent`; nothing about the person.",
);
const OK: Field = Field::required("ok", FieldType::AlwaysTrue, "The request succeeded.");

const UPDATES: Field = Field::optional(
    "updates",
    FieldType::BoolDefaultFalse,
    "`true` only when the person asked for one email a month about what is new.",
);

/// With the setting `confirm_updates`.
const UPDATES_TO_CONFIRM: Field = Field {
    description: "`true` only when the person asked for one email a month about what is new. A mail then asks them to \
                  confirm it; without that, no letter is sent.",
    ..UPDATES
};

const URL: Field = Field::required("url", FieldType::Uri, "Where the disk image is; it always leads to the newest.");
const ALREADY_OR_JOINED: Field =
    Field::required("already", FieldType::Bool, "Whether this address had downloaded or joined the list before.");

/// Without a waiting list.
const ALREADY: Field = Field { description: "Whether this address was known before.", ..ALREADY_OR_JOINED };

pub(crate) const DOWNLOAD: Endpoint = Endpoint {
    operation_id: "startDownload",
    path: "/api/download",
    summary: "Start a download",
    description: "Records the address and returns the URL of the newest disk image. Call it only when the \
                  person asked to download, with their own address. Downloading twice is harmless.",
    deprecated: false,
    request: Shape {
        name: "DownloadRequest",
        description: "A person wants the app.",
        fields: &[EMAIL, UPDATES, SOURCE],
    },
    result: Shape { name: "DownloadResult", description: "Where the app is.", fields: &[OK, URL, ALREADY_OR_JOINED] },
    own_errors: &[],
    request_example: || json!({ "email": "ada@example.com", "updates": false, "source": "my-agent" }),
};

/// Parses the request of the endpoint and of the site's form.
pub(crate) fn parse_download_request(mut fields: Fields, via: Via) -> Result<DownloadRequest, Problem> {
    let email = fields.email(&EMAIL);
    let updates = fields.flag(&UPDATES);
    let source = fields.text(&SOURCE, Source::parse);
    let order = email.map(|email| DownloadRequest { email, updates, source, via, wording: Wording::BUILT_IN });
    fields.finish(DOWNLOAD.request.fields, order)
}

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
        fields: &[EMAIL, SOURCE],
    },
    result: Shape {
        name: "WaitlistResult",
        description: "The address is on the list.",
        fields: &[OK, Field::required("already", FieldType::Bool, "Whether the address was on the list before.")],
    },
    own_errors: &[],
    request_example: || json!({ "email": "ada@example.com", "source": "my-agent" }),
};

/// Parses the request of the endpoint and of the MCP tool.
pub(crate) fn parse_waitlist_request(mut fields: Fields, via: Via) -> Result<WaitlistRequest, Problem> {
    let email = fields.email(&EMAIL);
    let source = fields.text(&SOURCE, Source::parse);
    let order = email.map(|email| WaitlistRequest { email, source, via });
    fields.finish(WAITLIST.request.fields, order)
}

const SENDER_NAME: Field =
    Field::optional("name", FieldType::BoundedString(limits::MAX_NAME_CHARS), "The sender's name.");
const SENDER_EMAIL: Field = Field::required("email", FieldType::Email, "Where to send the answer.");
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
        fields: &[SENDER_NAME, SENDER_EMAIL, MESSAGE],
    },
    result: Shape { name: "Ok", description: "The message is with the makers.", fields: &[OK] },
    own_errors: &[ErrorCode::EmptyMessage, ErrorCode::MessageTooLong],
    request_example: || json!({ "name": "Ada", "email": "ada@example.com", "message": "Does it run on macOS 15?" }),
};

/// Parses the request of the endpoint and of the site's form.
pub(crate) fn parse_contact_message(mut fields: Fields) -> Result<ContactMessage, Problem> {
    let name = fields.text(&SENDER_NAME, SenderName::parse);
    let email = fields.email(&SENDER_EMAIL);
    let text = fields.message(&MESSAGE);
    let message = email.zip(text).map(|(email, text)| ContactMessage { name, email, text });
    fields.finish(CONTACT.request.fields, message)
}
