//! Pages and files that are made once: what is served where, in which form.

use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::Response;
use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ALLOW, CONTENT_TYPE, HeaderName, LINK, VARY,
};
use http::{HeaderMap, HeaderValue, Method, StatusCode};

use super::app::App;
use super::negotiate::{self, PageFormat};
use super::representation::{Draft, Representation};
use crate::domain::base_url::BaseUrl;
use crate::site::{Page, PageName};

/// What one path answers with.
#[derive(Debug)]
pub(crate) enum Served {
    /// HTML or Markdown, as the caller likes.
    Page {
        html: Representation,
        markdown: Representation,
    },
    File(Representation),
    /// A file that pages of other sites may read, too.
    OpenFile(Representation),
    /// Negotiated like a page, but a 404 whatever is asked for.
    NotFound {
        html: Representation,
        markdown: Representation,
    },
}

pub(crate) const HTML: &str = "text/html; charset=utf-8";
pub(crate) const MARKDOWN: &str = "text/markdown; charset=utf-8";

/// Relations of the home page: what an agent finds without reading it.
const HOME_LINKS: &str = "</.well-known/api-catalog>; rel=\"api-catalog\"; type=\"application/linkset+json\", \
                          </openapi.json>; rel=\"service-desc\"; type=\"application/json\", \
                          </developers>; rel=\"service-doc\"; type=\"text/html\", \
                          </llms.txt>; rel=\"describedby\"; type=\"text/plain\"";

impl Served {
    pub(crate) fn page(name: PageName, page: &Page, base_url: &BaseUrl) -> Self {
        let mut links = format!("<{}>; rel=\"alternate\"; type=\"text/markdown\"", name.markdown_path());
        if name == PageName::Home {
            links = format!("{HOME_LINKS}, {links}");
        }
        let html = Draft { varies_by_accept: true, ..Draft::file(HTML, page.html.clone()) }.with(LINK, links);
        let markdown = Draft { varies_by_accept: true, ..markdown(&page.markdown, name, base_url) };
        Self::Page { html: html.into(), markdown: markdown.into() }
    }

    /// The Markdown of a page at its own address, whatever the caller accepts.
    pub(crate) fn markdown_twin(name: PageName, page: &Page, base_url: &BaseUrl) -> Self {
        Self::File(markdown(&page.markdown, name, base_url).into())
    }

    /// Where a form leads that did what it was asked: for one person, once.
    pub(crate) fn after_form(page: &Page) -> Self {
        let private = Draft { cache_control: "no-store", ..Draft::file(HTML, page.html.clone()) };
        Self::File(private.with(HeaderName::from_static("x-robots-tag"), "noindex").into())
    }

    pub(crate) fn not_found(page: &Page) -> Self {
        let missing = |draft: Draft| Draft {
            status: StatusCode::NOT_FOUND,
            cache_control: "no-cache",
            varies_by_accept: true,
            ..draft
        };
        Self::NotFound {
            html: missing(Draft::file(HTML, page.html.clone())).into(),
            markdown: missing(Draft::file(MARKDOWN, page.markdown.clone())).into(),
        }
    }

    pub(crate) fn respond(&self, method: &Method, headers: &HeaderMap) -> Response {
        let reads = method == Method::GET || method == Method::HEAD;
        match self {
            Self::OpenFile(_) if method == Method::OPTIONS => open_to_all(),
            Self::OpenFile(_) | Self::File(_) | Self::Page { .. } if !reads => read_only(),
            Self::File(file) => file.respond(headers),
            Self::OpenFile(file) => {
                let mut response = file.respond(headers);
                add_cors(response.headers_mut());
                response
            }
            Self::Page { html, markdown } => match negotiate::form(headers) {
                PageFormat::Html => html.respond(headers),
                PageFormat::Markdown => markdown.respond(headers),
                PageFormat::Neither => not_acceptable(),
            },
            Self::NotFound { html, markdown } => match negotiate::form(headers) {
                PageFormat::Markdown => markdown.respond(headers),
                PageFormat::Html | PageFormat::Neither => html.respond(headers),
            },
        }
    }
}

fn markdown(text: &str, name: PageName, base_url: &BaseUrl) -> Draft {
    Draft::file(MARKDOWN, text.to_owned())
        .with(LINK, format!("<{}>; rel=\"canonical\"", base_url.to(name.path())))
        .with(HeaderName::from_static("x-markdown-tokens"), tokens(text).to_string())
}

/// About how many tokens a language model makes of a text: a token is four characters or so.
pub(crate) fn tokens(text: &str) -> usize {
    text.chars().count().div_ceil(4)
}

/// Any path that nobody else answers: unknown, or known for another method.
pub(crate) async fn unknown(State(app): State<App>, request: Request) -> Response {
    let made = app.built();
    let served = made.served.get(request.uri().path()).unwrap_or(&made.not_found);
    served.respond(request.method(), request.headers())
}

pub(crate) fn text_response(status: StatusCode, text: impl Into<Body>) -> Response {
    let mut response = Response::new(text.into());
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response
}

/// What browsers need to know to hand a file to a page of another site.
fn add_cors(headers: &mut HeaderMap) {
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    headers.insert(ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("GET"));
    headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static("Content-Type, If-None-Match"));
    headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static("ETag"));
}

fn open_to_all() -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD, OPTIONS"));
    add_cors(response.headers_mut());
    response
}

fn read_only() -> Response {
    let mut response = text_response(StatusCode::METHOD_NOT_ALLOWED, "This address takes GET and HEAD only.\n");
    response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
    response
}

fn not_acceptable() -> Response {
    let mut response = text_response(
        StatusCode::NOT_ACCEPTABLE,
        "This page comes as text/html or text/markdown. Accept one of them, or send no Accept header.\n",
    );
    response.headers_mut().insert(VARY, HeaderValue::from_static("Accept"));
    response
}
