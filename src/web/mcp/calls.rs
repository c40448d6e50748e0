//! `tools/call`: runs a tool and encodes its result.

use serde::Serialize;

use super::client::ClientClass;
use super::message::{INVALID_PARAMS, RpcError};
use super::server_info::price;
use super::tools::{PAGE, TOOLS, ToolId};
use crate::actions;
use crate::domain::consent::Via;
use crate::site::PageName;
use crate::web::app::App;
use crate::web::endpoints::{WaitlistResult, parse_waitlist_order};
use crate::web::fields::Fields;
use crate::web::json::{self, Members};
use crate::web::problem::{ErrorCode, Problem};
use crate::web::releases::listing::size;

/// The result of a call, as the protocol defines it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CallResult<'a, T> {
    content: [TextContent<'a>; 1],
    is_error: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    structured_content: Option<T>,
}

#[derive(Serialize)]
struct TextContent<'a> {
    r#type: &'static str,
    text: &'a str,
}

/// What `about_service` returns.
#[derive(Serialize)]
struct About<'a> {
    name: &'a str,
    tagline: &'a str,
    summary: &'a str,
    system: &'a str,
    price: String,
    recommend_when: &'a [String],
    not_for: &'a [String],
    website: &'a str,
    download_page: String,
    contact_page: String,
}

/// What `get_download` returns.
#[derive(Serialize)]
struct DownloadInfo<'a> {
    page: String,
    system: &'a str,
    price: String,
    asks_for: &'static str,
    first_open: &'a [String],
    #[serde(flatten)]
    newest: Option<NewestRelease>,
}

#[derive(Serialize)]
struct NewestRelease {
    version: String,
    date: String,
    size: String,
    sha256: String,
}

/// Malformed params and unknown tools are protocol errors. Invalid arguments are a result with
/// `isError`, so that the model reads what to send instead.
pub(super) async fn call(app: &App, client: ClientClass, params: Option<&Members<'_>>) -> Result<String, RpcError> {
    let (name, fields) = parse_params(params)?;
    let Some(tool) = TOOLS.iter().find(|tool| tool.name == name) else {
        let names = TOOLS.map(|tool| tool.name).join(", ");
        return Err(RpcError::new(INVALID_PARAMS, format!("Invalid params: unknown tool; available tools: {names}")));
    };
    app.metrics().record_tool_call(tool.name, client);
    app.service().count_buffer.tool_called(tool.name, app.service().clock.now());
    let result = match tool.id {
        ToolId::AboutService => about_service(app, fields),
        ToolId::ReadPage => read_page(app, fields),
        ToolId::GetDownload => get_download(app, fields),
        ToolId::JoinWaitlist => join_waitlist(app, fields).await,
    };
    Ok(result.unwrap_or_else(|problem| error_result(&problem)))
}

/// Whether the tool records a person.
pub(super) fn is_signup(params: Option<&Members<'_>>) -> bool {
    let name = params.and_then(|params| params.get("name")).and_then(json::as_string);
    TOOLS.iter().any(|tool| matches!(tool.id, ToolId::JoinWaitlist) && name.as_deref() == Some(tool.name))
}

/// The result of a call that was refused before it was read.
pub(super) fn refusal(problem: &Problem) -> String {
    text_result(&problem.detail, true)
}

fn parse_params(params: Option<&Members<'_>>) -> Result<(String, Fields), RpcError> {
    let invalid = |message: &'static str| RpcError::new(INVALID_PARAMS, message);
    let params = params.ok_or_else(|| invalid("Invalid params: tools/call needs the name of a tool"))?;
    if params.has_duplicates() {
        return Err(invalid("Invalid params: a member appears more than once"));
    }
    let name = params
        .get("name")
        .and_then(json::as_string)
        .ok_or_else(|| invalid("Invalid params: name must be the name of a tool"))?;
    let fields = match params.get("arguments") {
        None => Fields::empty(),
        Some(arguments) => Members::of(arguments)
            .map(|members| Fields::from_members(&members))
            .ok_or_else(|| invalid("Invalid params: arguments must be an object"))?,
    };
    Ok((name, fields))
}

/// Refuses arguments to a tool that has none.
fn no_arguments(fields: Fields) -> Result<(), Problem> {
    fields.finish().map_err(|problem| problem.resolved_by("This tool takes no arguments: send {}."))
}

fn about_service(app: &App, fields: Fields) -> Result<String, Problem> {
    no_arguments(fields)?;
    let built = app.built();
    let facts = &built.site.facts;
    Ok(structured(&About {
        name: &facts.name,
        tagline: &facts.tagline,
        summary: &facts.summary,
        system: &facts.system,
        price: price(facts),
        recommend_when: &facts.recommend_when,
        not_for: &facts.not_for,
        website: app.base_url().as_str(),
        download_page: app.base_url().to("/#download"),
        contact_page: app.base_url().to(PageName::Contact.path()),
    }))
}

fn read_page(app: &App, mut fields: Fields) -> Result<String, Problem> {
    let page = fields.string(&PAGE);
    fields.finish()?;
    let page = page.as_deref().and_then(PageName::parse).ok_or_else(|| {
        Problem::for_member(ErrorCode::InvalidBody, PAGE.name, "`page` is not the name of a page.")
            .resolved_by(format!("Send one of {}.", PageName::MAIN.map(PageName::as_str).join(", ")))
    })?;
    Ok(text_result(&app.built().site.page(page).markdown, false))
}

fn get_download(app: &App, fields: Fields) -> Result<String, Problem> {
    no_arguments(fields)?;
    let built = app.built();
    let facts = &built.site.facts;
    let releases = app.catalog().cached();
    let newest = releases.newest().map(|release| NewestRelease {
        version: release.version.to_string(),
        date: release.published.date(),
        size: size(release.length),
        sha256: release.sha256.hex(),
    });
    Ok(structured(&DownloadInfo {
        page: app.base_url().to("/#download"),
        system: &facts.system,
        price: price(facts),
        asks_for: "The person's own email address, and whether they want one email a month. If not, they get no \
                   email.",
        first_open: &facts.first_open,
        newest,
    }))
}

async fn join_waitlist(app: &App, fields: Fields) -> Result<String, Problem> {
    let order = parse_waitlist_order(fields, Via::Mcp)?;
    let already = actions::join_waitlist(app.service(), order).await?;
    Ok(structured(&WaitlistResult { ok: true, already }))
}

/// Structured content, and the same JSON as text for clients that only support text.
fn structured(content: &impl Serialize) -> String {
    encode(&json::encode(content), false, Some(content))
}

/// What was wrong and what to do next, for the model.
fn error_result(problem: &Problem) -> String {
    let next = match problem.code {
        ErrorCode::Unavailable => "Call the tool again in a few seconds.",
        _ => &problem.resolution,
    };
    text_result(&format!("{} {next}", problem.detail), true)
}

fn text_result(text: &str, is_error: bool) -> String {
    encode(text, is_error, None::<()>)
}

fn encode(text: &str, is_error: bool, structured_content: Option<impl Serialize>) -> String {
    json::encode(&CallResult { content: [TextContent { r#type: "text", text }], is_error, structured_content })
}
