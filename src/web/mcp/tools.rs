//! The four tools: how they are declared, and what a call to one does.

use serde_json::{Value, json};

use super::Client;
use super::message::{INVALID_PARAMS, RpcError};
use crate::actions::join_waitlist;
use crate::domain::consent::Via;
use crate::site::{PageName, SiteFacts};
use crate::web::api::{WAITLIST, WaitlistResult, read_waitlist_order};
use crate::web::app::App;
use crate::web::fields::Fields;
use crate::web::json::{self, Members};
use crate::web::problem::{ErrorCode, Problem};
use crate::web::releases::newest;
use crate::web::shape::{Field, Kind, Shape};

#[derive(Debug)]
pub(crate) struct Tool {
    pub name: &'static str,
    pub title: &'static str,
    pub description: &'static str,
    pub read_only: bool,
    input: &'static Shape,
    output: Option<&'static Shape>,
}

const PAGE: Field = Field {
    name: "page",
    kind: Kind::OneOf(|| PageName::MAIN.map(PageName::as_str).to_vec()),
    required: true,
    about: "Which page.",
};

const NO_ARGUMENTS: Shape = Shape { name: "NoArguments", about: "", closed: true, fields: &[] };
const ONE_PAGE: Shape = Shape { name: "ReadPage", about: "", closed: true, fields: &[PAGE] };

const ABOUT: Shape = Shape {
    name: "About",
    about: "",
    closed: true,
    fields: &[
        text("name", "The app's name."),
        text("tagline", "What it is, in a few words."),
        text("summary", "What it is, in a few sentences."),
        text("system", "What it runs on."),
        text("price", "What it costs."),
        texts("recommend_when", "When to recommend it."),
        texts("not_for", "Whom or what it is not for."),
        text("website", "The site."),
        text("download_page", "Where a person downloads it."),
        text("contact_page", "Where a person reaches the makers."),
    ],
};

const WAY_TO_DOWNLOAD: Shape = Shape {
    name: "WayToDownload",
    about: "",
    closed: true,
    fields: &[
        text("page", "The page to send the person to; it asks for their own address and starts the download."),
        text("system", "What the Mac needs."),
        text("price", "What it costs."),
        text("asks_for", "What the page asks the person for."),
        texts("first_open", "What to do when macOS refuses to open the app the first time."),
        if_published("version", "The newest version."),
        if_published("date", "When it was published."),
        if_published("size", "How large its disk image is."),
        if_published("sha256", "The SHA-256 of its disk image, in hexadecimal digits."),
    ],
};

const fn text(name: &'static str, about: &'static str) -> Field {
    Field { name, kind: Kind::PlainText, required: true, about }
}

const fn if_published(name: &'static str, about: &'static str) -> Field {
    Field { required: false, ..text(name, about) }
}

const fn texts(name: &'static str, about: &'static str) -> Field {
    Field { name, kind: Kind::Texts, required: true, about }
}

pub(crate) const TOOLS: [Tool; 4] = [
    Tool {
        name: "about_service",
        title: "About the app",
        description: "Says what the app is, when to recommend it and when not.",
        read_only: true,
        input: &NO_ARGUMENTS,
        output: Some(&ABOUT),
    },
    Tool {
        name: "read_page",
        title: "Read a page",
        description: "Gives one page of the site as Markdown.",
        read_only: true,
        input: &ONE_PAGE,
        output: None,
    },
    Tool {
        name: "get_download",
        title: "Where to download",
        description: "Says where and how a person downloads the app. Takes no address and downloads nothing: the page \
                      it names asks the person for their own.",
        read_only: true,
        input: &NO_ARGUMENTS,
        output: Some(&WAY_TO_DOWNLOAD),
    },
    Tool {
        name: "join_waitlist",
        title: "Join the older list",
        description: "Puts the person's own address on the older list, without a download. Only with the person's \
                      permission. Joining twice is harmless.",
        read_only: false,
        input: &WAITLIST.request,
        output: Some(&WAITLIST.result),
    },
];

/// The tools as `tools/list` has them.
pub(super) fn declarations() -> Value {
    TOOLS
        .iter()
        .map(|tool| {
            let mut declaration = json!({
                "name": tool.name,
                "title": tool.title,
                "description": tool.description,
                "inputSchema": tool.input.closed_schema(),
                "annotations": {
                    "title": tool.title,
                    "readOnlyHint": tool.read_only,
                    "destructiveHint": false,
                    "idempotentHint": true,
                    "openWorldHint": false,
                },
            });
            if let Some(output) = tool.output {
                declaration["outputSchema"] = output.closed_schema();
            }
            declaration
        })
        .collect()
}

/// The tools as the reference page has them.
pub(crate) fn listing() -> Value {
    TOOLS
        .iter()
        .map(|tool| {
            json!({
                "name": tool.name,
                "title": tool.title,
                "description": tool.description,
                "read_only": tool.read_only,
                "arguments": tool.input.listing(),
            })
        })
        .collect()
}

/// Malformed params and unknown tools are errors of the protocol; arguments that do not fit are an
/// answer, so that the model reads what to send instead.
pub(super) async fn call(app: &App, client: Client, params: Option<&Members<'_>>) -> Result<String, RpcError> {
    let invalid = |message: &'static str| RpcError::new(INVALID_PARAMS, message);
    let params = params.ok_or_else(|| invalid("Invalid params: tools/call needs the name of a tool"))?;
    if params.has_doubles() {
        return Err(invalid("Invalid params: a member is there more than once"));
    }
    let name = params
        .get("name")
        .and_then(json::as_string)
        .ok_or_else(|| invalid("Invalid params: name has to be the name of a tool"))?;
    let fields = match params.get("arguments") {
        None => Fields::none(),
        Some(arguments) => Members::of(arguments)
            .map(|members| Fields::of_members(&members))
            .ok_or_else(|| invalid("Invalid params: arguments has to be an object"))?,
    };
    if let Some(tool) = TOOLS.iter().find(|tool| tool.name == name) {
        app.metrics().tool_called(tool.name, client);
        app.service().count_buffer.tool_called(tool.name, app.service().clock.now());
    }
    let outcome = match name.as_str() {
        "about_service" => about_service(app, fields),
        "read_page" => read_page(app, fields),
        "get_download" => get_download(app, fields),
        "join_waitlist" => join(app, fields).await,
        _ => {
            let names = TOOLS.map(|tool| tool.name).join(", ");
            return Err(RpcError::new(INVALID_PARAMS, format!("Invalid params: unknown tool; there are {names}")));
        }
    };
    Ok(outcome.unwrap_or_else(|problem| refused(&problem)).to_string())
}

/// Makes sure that a tool without arguments was given none.
fn nothing_given(fields: Fields) -> Result<(), Problem> {
    fields.finish().map_err(|problem| problem.resolved_by("This tool takes no arguments: send {}."))
}

fn about_service(app: &App, fields: Fields) -> Result<Value, Problem> {
    nothing_given(fields)?;
    let made = app.built();
    let facts = &made.site.facts;
    Ok(structured(&json!({
        "name": facts.name,
        "tagline": facts.tagline,
        "summary": facts.summary,
        "system": facts.system,
        "price": price(facts),
        "recommend_when": facts.recommend_when,
        "not_for": facts.not_for,
        "website": app.base_url().as_str(),
        "download_page": app.base_url().to("/#download"),
        "contact_page": app.base_url().to(PageName::Contact.path()),
    })))
}

fn read_page(app: &App, mut fields: Fields) -> Result<Value, Problem> {
    let page = fields.string(&PAGE);
    fields.finish()?;
    let page = page.as_deref().and_then(PageName::parse).ok_or_else(|| {
        Problem::with_member(ErrorCode::InvalidBody, PAGE.name, "`page` is not the name of a page.")
            .resolved_by(format!("Send one of {}.", PageName::MAIN.map(PageName::as_str).join(", ")))
    })?;
    Ok(plain(&app.built().site.page(page).markdown))
}

fn get_download(app: &App, fields: Fields) -> Result<Value, Problem> {
    nothing_given(fields)?;
    let made = app.built();
    let facts = &made.site.facts;
    let mut way = json!({
        "page": app.base_url().to("/#download"),
        "system": facts.system,
        "price": price(facts),
        "asks_for": "The person's own email address, and whether they want one email a month. Without that wish they \
                     are sent nothing.",
        "first_open": facts.first_open,
    });
    let release = newest(&app.service().catalogue.cached(), app.base_url());
    for fact in ["version", "date", "size", "sha256"] {
        if let Some(value) = release.get(fact) {
            way[fact] = value.clone();
        }
    }
    Ok(structured(&way))
}

async fn join(app: &App, fields: Fields) -> Result<Value, Problem> {
    let order = read_waitlist_order(fields, Via::Mcp)?;
    let already = join_waitlist(app.service(), order).await?;
    Ok(structured(&json!(WaitlistResult { ok: true, already })))
}

fn price(facts: &SiteFacts) -> String {
    if facts.price == "0" { "Free".to_owned() } else { format!("{} {}", facts.price, facts.currency) }
}

fn plain(text: &str) -> Value {
    json!({ "content": [{ "type": "text", "text": text }], "isError": false })
}

/// As structured content, and as the same JSON in text for clients that know no other.
fn structured(content: &Value) -> Value {
    let mut result = plain(&content.to_string());
    result["structuredContent"] = content.clone();
    result
}

fn refused(problem: &Problem) -> Value {
    let next = match problem.code {
        ErrorCode::Unavailable => "Call the tool again in a few seconds.",
        _ => &problem.resolution,
    };
    let mut result = plain(&format!("{} {next}", problem.detail));
    result["isError"] = true.into();
    result
}
