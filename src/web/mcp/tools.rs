//! Declarations of the MCP tools. `calls` runs them.

use serde::{Serialize, Serializer};
use serde_json::Value;

use crate::site::PageName;
use crate::web::endpoints::WAITLIST;
use crate::web::shape::{Field, FieldType, Shape};

#[derive(Clone, Copy, Debug)]
pub(super) enum ToolId {
    AboutService,
    ReadPage,
    GetDownload,
    JoinWaitlist,
}

/// `Serialize` produces the form that the reference page uses.
#[derive(Debug, Serialize)]
pub(crate) struct Tool {
    #[serde(skip)]
    pub(super) id: ToolId,
    pub(super) name: &'static str,
    title: &'static str,
    description: &'static str,
    read_only: bool,
    #[serde(rename = "arguments", serialize_with = "serialize_fields")]
    input: &'static Shape,
    #[serde(skip)]
    output: Option<&'static Shape>,
}

fn serialize_fields<S: Serializer>(shape: &Shape, serializer: S) -> Result<S::Ok, S::Error> {
    shape.fields.serialize(serializer)
}

pub(super) const PAGE: Field =
    Field::required("page", FieldType::OneOf(|| PageName::MAIN.map(PageName::as_str).to_vec()), "Which page.");

const NO_ARGUMENTS: Shape = Shape { name: "NoArguments", description: "", deny_unknown_fields: true, fields: &[] };
const READ_PAGE: Shape = Shape { name: "ReadPage", description: "", deny_unknown_fields: true, fields: &[PAGE] };

const ABOUT: Shape = Shape {
    name: "About",
    description: "",
    deny_unknown_fields: true,
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

const DOWNLOAD_INFO: Shape = Shape {
    name: "DownloadInfo",
    description: "",
    deny_unknown_fields: true,
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

const fn text(name: &'static str, description: &'static str) -> Field {
    Field::required(name, FieldType::String, description)
}

const fn if_published(name: &'static str, description: &'static str) -> Field {
    Field::optional(name, FieldType::String, description)
}

const fn texts(name: &'static str, description: &'static str) -> Field {
    Field::required(name, FieldType::StringArray, description)
}

pub(crate) const TOOLS: [Tool; 4] = [
    Tool {
        id: ToolId::AboutService,
        name: "about_service",
        title: "About the app",
        description: "Describes the app: what it is and costs, what it runs on, when to recommend it and when not. \
                      Stores nothing.",
        read_only: true,
        input: &NO_ARGUMENTS,
        output: Some(&ABOUT),
    },
    Tool {
        id: ToolId::ReadPage,
        name: "read_page",
        title: "Read a page",
        description: "Returns one page of the site as Markdown, word for word: what the app does, what is stored of a \
                      person, how to reach the makers. Stores nothing.",
        read_only: true,
        input: &READ_PAGE,
        output: None,
    },
    Tool {
        id: ToolId::GetDownload,
        name: "get_download",
        title: "Where to download",
        description: "Says where and how a person downloads the app. Takes no address and downloads nothing: the page \
                      it names asks the person for their own.",
        read_only: true,
        input: &NO_ARGUMENTS,
        output: Some(&DOWNLOAD_INFO),
    },
    Tool {
        id: ToolId::JoinWaitlist,
        name: "join_waitlist",
        title: "Join the older list",
        description: "Puts the person's own address on the older list, without a download and without the monthly \
                      email. Only with the person's permission. Stores the address, the time and `source`. Joining \
                      twice is harmless. To be taken off the list, the person writes to the makers.",
        read_only: false,
        input: &WAITLIST.request,
        output: Some(&WAITLIST.result),
    },
];

/// A tool as `tools/list` declares it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ToolDeclaration {
    name: &'static str,
    title: &'static str,
    description: &'static str,
    input_schema: Value,
    annotations: Annotations,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_schema: Option<Value>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
#[expect(clippy::struct_excessive_bools, reason = "the protocol defines these members")]
struct Annotations {
    title: &'static str,
    read_only_hint: bool,
    destructive_hint: bool,
    idempotent_hint: bool,
    open_world_hint: bool,
}

impl Tool {
    pub(super) fn declaration(&self) -> ToolDeclaration {
        ToolDeclaration {
            name: self.name,
            title: self.title,
            description: self.description,
            input_schema: self.input.strict_schema(),
            annotations: Annotations {
                title: self.title,
                read_only_hint: self.read_only,
                destructive_hint: false,
                idempotent_hint: true,
                open_world_hint: false,
            },
            output_schema: self.output.map(Shape::strict_schema),
        }
    }
}
