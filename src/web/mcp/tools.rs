//! Declarations of the MCP tools. `calls` runs them.

use serde::Serialize;
use serde_json::{Value, json};

use crate::site::{ListedPage, PageName, Site, SiteFacts};
use crate::web::endpoints::WAITLIST;
use crate::web::shape::{Field, FieldType, closed_schema};

#[derive(Clone, Copy, Debug)]
pub(super) enum ToolId {
    AboutService,
    ReadPage,
    GetDownload,
    JoinWaitlist,
}

#[derive(Debug, Serialize)]
pub(crate) struct Tool {
    #[serde(skip)]
    pub(super) id: ToolId,
    pub(super) name: &'static str,
    title: &'static str,
    /// `{app}` stands for the name of the app: a person may have many servers connected. `{first_open}` stands for what is
    /// said about the first open.
    description: &'static str,
    read_only: bool,
    arguments: &'static [Field],
    /// The members of the structured result, if there is one.
    #[serde(skip)]
    result: Option<&'static [Field]>,
}

pub(super) const PAGE: Field =
    Field::required("page", FieldType::OneOf(|| PageName::MAIN.map(PageName::as_str).to_vec()), "Which page.");

const ABOUT: [Field; 18] = [
    text("name"),
    text("tagline"),
    text("summary"),
    text("system"),
    text("price"),
    text("signature"),
    text("licence"),
    optional_text("licence_url"),
    optional_text("source_url"),
    text("maker"),
    optional_text("maker_country"),
    Field::optional("works_with", FieldType::StringArray, ""),
    texts("recommend_when"),
    texts("not_for"),
    text("note"),
    text("website"),
    text("download_page"),
    text("contact_page"),
];

const DOWNLOAD_INFO: [Field; 11] = [
    Field::required("page", FieldType::String, "Send the person here."),
    text("system"),
    text("price"),
    text("asks_for"),
    text("signature"),
    texts("first_open"),
    Field::optional("note", FieldType::String, "Set if no release is published."),
    optional_text("version"),
    optional_text("date"),
    optional_text("size"),
    optional_text("sha256"),
];

/// Most pages that the description of `read_page` names: models read all declarations.
const MAX_PATHS: usize = 15;

/// A member of a result whose name says what it is: models read all declarations, so these are short.
const fn text(name: &'static str) -> Field {
    Field::required(name, FieldType::String, "")
}

const fn optional_text(name: &'static str) -> Field {
    Field::optional(name, FieldType::String, "")
}

const fn texts(name: &'static str) -> Field {
    Field::required(name, FieldType::StringArray, "")
}

/// The tools of a site.
pub(crate) fn tools(facts: &SiteFacts) -> impl Iterator<Item = &'static Tool> {
    let has_waitlist = facts.waitlist;
    TOOLS.iter().filter(move |tool| has_waitlist || !matches!(tool.id, ToolId::JoinWaitlist))
}

static TOOLS: [Tool; 4] = [
    Tool {
        id: ToolId::AboutService,
        name: "about_service",
        title: "About the app",
        description: "The facts about the Mac app {app}, to answer a person's questions and to decide whether it suits them: \
                      what it does, needs and costs, licence, Apple's signature, who makes it, when to recommend it and \
                      when not. Call it before you recommend the app. Stores nothing.",
        read_only: true,
        arguments: &[],
        result: Some(&ABOUT),
    },
    Tool {
        id: ToolId::ReadPage,
        name: "read_page",
        title: "Read a page",
        description: "One page of {app}'s site as Markdown, word for word. home: what the app does, download, first open, \
                      questions and answers. about: how it works, whom it suits, licence, makers. privacy: what is stored \
                      of a person, why, how long, mail, copies and erasure. developers: JSON endpoints, limits, errors, \
                      MCP. contact: how to ask the makers, request one's data, report a security problem. Stores nothing.",
        read_only: true,
        arguments: &[PAGE],
        result: None,
    },
    Tool {
        id: ToolId::GetDownload,
        name: "get_download",
        title: "Where to download",
        description: "Where a person downloads {app}: the page to send them to, the newest version with date, size and \
                      SHA-256, what the Mac needs, and {first_open}. It takes no \
                      address, and downloads and stores nothing: the page asks the person for their own address, and the \
                      download starts there.",
        read_only: true,
        arguments: &[],
        result: Some(&DOWNLOAD_INFO),
    },
    Tool {
        id: ToolId::JoinWaitlist,
        name: "join_waitlist",
        title: "Join the waiting list",
        description: "Puts the person's own address on {app}'s waiting list. Deprecated, but working: the app is out, so \
                      offer get_download first. The list is neither a download nor the monthly email nor news of \
                      versions, and there is none for other systems; nothing is mailed because of it. Call it only if the person asked for this list and gave \
                      you their own address; never respell one. Stores the address, the time and `source`. Joining twice \
                      is harmless. To leave it, they write on the contact page; no tool sends a message.",
        read_only: false,
        arguments: WAITLIST.request.fields,
        result: Some(WAITLIST.result.fields),
    },
];

impl Tool {
    fn description_for(&self, facts: &SiteFacts) -> String {
        let first_open = if facts.may_be_refused() {
            "what to do if macOS refuses the first open"
        } else {
            "how to open it the first time"
        };
        self.description.replace("{app}", &facts.name).replace("{first_open}", first_open)
    }

    /// The tool as the reference page lists it.
    pub(crate) fn listing(&self, facts: &SiteFacts) -> Value {
        let mut listing = json!(self);
        listing["description"] = self.description_for(facts).into();
        listing
    }

    /// The tool as `tools/list` declares it. With pages that the makers added, `read_page` takes paths, too.
    pub(super) fn declaration(&self, site: &Site) -> Value {
        let mut declaration = json!({
            "name": self.name,
            "title": self.title,
            "description": self.description_for(&site.facts),
            "inputSchema": closed_schema(self.arguments),
            "annotations": {
                "title": self.title,
                "readOnlyHint": self.read_only,
                "destructiveHint": false,
                "idempotentHint": true,
                "openWorldHint": false,
            },
        });
        if matches!(self.id, ToolId::ReadPage) && site.has_own_pages() {
            declaration["inputSchema"]["properties"]["page"] =
                json!({ "type": "string", "description": page_or_path(site) });
        }
        if let Some(result) = self.result {
            declaration["outputSchema"] = closed_schema(result);
            for (name, _) in site.facts.only_if_set() {
                declaration["outputSchema"]["properties"][name] = json!({ "type": "string" });
            }
        }
        declaration
    }
}

/// What `read_page` takes on a site with pages of its own.
fn page_or_path(site: &Site) -> String {
    let names = PageName::MAIN.map(PageName::as_str).join(", ");
    let own = site.pages().iter().filter(|listed| listed.is_prominent && !listed.is_built_in).take(MAX_PATHS);
    let paths = own.map(|ListedPage { address, page, .. }| format!(", {} ({})", address.path, page.title));
    format!("One of {names}, or a path{}. All paths: /sitemap.md.", paths.collect::<String>())
}
