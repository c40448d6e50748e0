//! `tools/call`: runs a tool.

use serde_json::json;

use super::message::{INVALID_PARAMS, RpcError};
use super::results::{structured, text_result};
use super::tools::{PAGE, Tool, ToolId, tools};
use crate::actions;
use crate::domain::signups::Via;
use crate::domain::statistics::Reader;
use crate::site::PageName;
use crate::web::app::App;
use crate::web::endpoints::parse_waitlist_request;
use crate::web::fields::Fields;
use crate::web::json::{self, Members};
use crate::web::problem::{ErrorCode, Problem};

/// Malformed params and unknown tools are protocol errors. Invalid arguments are a result with
/// `isError`, so that the model reads what to send instead.
pub(super) async fn call(app: &App, client: Reader, params: Option<&Members<'_>>) -> Result<String, RpcError> {
    let (name, fields) = parse_params(params)?;
    let built = app.built();
    let Some(tool) = tools(&built.site.facts).find(|tool| tool.name == name) else {
        let names = tools(&built.site.facts).map(|tool| tool.name).collect::<Vec<_>>().join(", ");
        return Err(RpcError::new(INVALID_PARAMS, format!("Invalid params: unknown tool; available tools: {names}")));
    };
    app.metrics.record_tool_call(tool.name, client);
    app.service.count_buffer.tool_called(tool.name, client, app.service.clock.now());
    let result = match tool.id {
        ToolId::AboutService => no_arguments(fields).map(|()| built.tool_results.about_service.clone()),
        ToolId::ReadPage => read_page(app, fields),
        ToolId::GetDownload => no_arguments(fields).map(|()| built.tool_results.get_download.clone()),
        ToolId::JoinWaitlist => join_waitlist(app, fields).await,
    };
    Ok(result.unwrap_or_else(|problem| error_result(&problem)))
}

/// Whether the call is one of a tool that records a person.
pub(super) fn is_signup(app: &App, params: Option<&Members<'_>>) -> bool {
    let name = params.and_then(|params| params.get("name")).and_then(json::as_string);
    let is_called = |tool: &Tool| name.as_deref() == Some(tool.name);
    tools(&app.built().site.facts).any(|tool| matches!(tool.id, ToolId::JoinWaitlist) && is_called(tool))
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
    fields.finish(&[], Some(())).map_err(|problem| problem.resolved_by("This tool takes no arguments: send {}."))
}

fn read_page(app: &App, mut fields: Fields) -> Result<String, Problem> {
    let built = app.built();
    let page = fields.string(&PAGE).and_then(|page| built.site.find(&page));
    if page.is_none() {
        let names = PageName::MAIN.map(PageName::as_str).join(", ");
        let or_path =
            if built.site.has_own_pages() { ", or the path of a page such as those in /sitemap.md" } else { "" };
        fields.invalid(&PAGE, &format!("must be one of {names}{or_path}"));
    }
    let page = fields.finish(&[PAGE], page)?;
    Ok(text_result(&page.markdown, false))
}

async fn join_waitlist(app: &App, fields: Fields) -> Result<String, Problem> {
    let order = parse_waitlist_request(fields, Via::Mcp)?;
    let already = actions::join_waitlist(&app.service, order).await?;
    Ok(structured(&json!({ "ok": true, "already": already })))
}

/// What was wrong and what to do next, for the model.
fn error_result(problem: &Problem) -> String {
    let next = match problem.code {
        ErrorCode::Unavailable => "Call the tool again in a few seconds.",
        _ => &problem.resolution,
    };
    let details: Vec<_> = problem.errors.iter().map(|error| error.detail.as_str()).collect();
    let details = if details.is_empty() { problem.detail.clone() } else { details.join(" ") };
    text_result(&format!("{details} {next}"), true)
}
