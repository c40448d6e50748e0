//! `POST /api/download`: description and request parser.

use serde::Serialize;
use serde_json::json;

use super::endpoint::{EMAIL, Endpoint, OK, SOURCE};
use crate::domain::consent::Via;
use crate::domain::signup::DownloadOrder;
use crate::domain::text::Source;
use crate::web::fields::Fields;
use crate::web::problem::{ErrorCode, Problem};
use crate::web::shape::{Field, FieldType, Shape};

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

/// The description of the endpoint if opt-ins have to be confirmed.
pub(super) const DOWNLOAD_TO_CONFIRM: Endpoint =
    Endpoint { request: Shape { fields: &[EMAIL, UPDATES_TO_CONFIRM, SOURCE], ..DOWNLOAD.request }, ..DOWNLOAD };

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
        deny_unknown_fields: true,
        fields: &[EMAIL, UPDATES, SOURCE],
    },
    result: Shape {
        name: "DownloadResult",
        description: "Where the app is.",
        deny_unknown_fields: false,
        fields: &[
            OK,
            Field::required("url", FieldType::Uri, "Where the disk image is; it always leads to the newest."),
            Field::required(
                "already",
                FieldType::Bool,
                "Whether this address had downloaded or joined the list before.",
            ),
        ],
    },
    errors: &[ErrorCode::InvalidJson, ErrorCode::InvalidBody, ErrorCode::InvalidEmail],
    request_example: || json!({ "email": "ada@example.com", "updates": false, "source": "my-agent" }),
};

#[derive(Serialize)]
pub(crate) struct DownloadResult {
    pub ok: bool,
    pub url: String,
    pub already: bool,
}

/// Parses the request of the endpoint and of the site's form.
pub(crate) fn parse_download_order(mut fields: Fields, via: Via) -> Result<DownloadOrder, Problem> {
    let email = fields.email(&EMAIL);
    let updates = fields.flag(&UPDATES);
    let source = fields.text(&SOURCE, Source::parse);
    let order = email.map(|email| DownloadOrder { email, updates, source, via });
    fields.finish(DOWNLOAD.request.fields, order)
}
