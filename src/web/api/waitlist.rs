//! `POST /api/waitlist`, deprecated and still supported.

use axum::extract::{Request, State};
use axum::response::Response;
use http::header::{HeaderName, LINK};
use http::{HeaderMap, HeaderValue};
use serde::Serialize;
use serde_json::json;

use super::{DOWNLOAD, EMAIL, Endpoint, OK, SOURCE, answer};
use crate::actions::join_waitlist;
use crate::domain::base_url::BaseUrl;
use crate::domain::consent::Via;
use crate::domain::signup::WaitlistOrder;
use crate::domain::text::Source;
use crate::web::app::App;
use crate::web::fields::Fields;
use crate::web::problem::{ErrorCode, Problem};
use crate::web::shape::{Field, Kind, Shape};

/// Since when it is deprecated: 15 November 2026, in the form of RFC 9745.
const DEPRECATED_SINCE: HeaderValue = HeaderValue::from_static("@1794700800");

pub(crate) const WAITLIST: Endpoint = Endpoint {
    operation_id: "joinWaitlist",
    path: "/api/waitlist",
    summary: "Join the older list",
    description: "Puts an address on the older list, without a download and without the monthly email. Deprecated: \
                  new callers use the download. Call it only when the person asked, with their own address. Joining \
                  twice is harmless.",
    deprecated: true,
    request: Shape {
        name: "WaitlistRequest",
        about: "Somebody wants to be on the older list.",
        closed: true,
        fields: &[EMAIL, SOURCE],
    },
    result: Shape {
        name: "WaitlistResult",
        about: "The address is on the list.",
        closed: false,
        fields: &[
            OK,
            Field {
                name: "already",
                kind: Kind::Boolean,
                required: true,
                about: "Whether the address was on the list before.",
            },
        ],
    },
    refusals: &[ErrorCode::InvalidJson, ErrorCode::InvalidBody, ErrorCode::InvalidEmail],
    request_example: || json!({ "email": "ada@example.com", "source": "my-agent" }),
};

#[derive(Serialize)]
pub(crate) struct WaitlistResult {
    pub ok: bool,
    pub already: bool,
}

/// Puts the address on the list.
pub(crate) async fn waitlist(State(app): State<App>, request: Request) -> Response {
    let mut response = answer(&app, request, async |fields| {
        let order = read_waitlist_order(fields, Via::Api)?;
        let already = join_waitlist(app.service(), order).await?;
        Ok(WaitlistResult { ok: true, already })
    })
    .await;
    add_deprecation(response.headers_mut(), app.base_url());
    response
}

/// The same for JSON and for the MCP tool.
pub(crate) fn read_waitlist_order(mut fields: Fields, via: Via) -> Result<WaitlistOrder, Problem> {
    let email = fields.email(&EMAIL);
    let source = fields.text(&SOURCE, Source::parse);
    fields.finish()?;
    Ok(WaitlistOrder { email: email.judge()?, source, via })
}

/// What every answer of the deprecated endpoint carries, whatever its status.
fn add_deprecation(headers: &mut HeaderMap, base_url: &BaseUrl) {
    headers.insert(HeaderName::from_static("deprecation"), DEPRECATED_SINCE);
    let links = format!(
        "<{}>; rel=\"deprecation\"; type=\"text/html\", <{}>; rel=\"successor-version\"",
        base_url.to("/developers#waitlist"),
        base_url.to(DOWNLOAD.path),
    );
    if let Ok(links) = HeaderValue::from_str(&links) {
        headers.insert(LINK, links);
    }
}
