//! A prebuilt response: a page or file that is rendered once and sent many times.

use axum::response::{IntoResponse as _, Response};
use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ALLOW, CACHE_CONTROL, HeaderName, LINK, LOCATION, VARY,
};
use http::{HeaderMap, HeaderValue, Method, StatusCode};

use super::allowed_methods::{READ, READ_FROM_OTHER_SITES, method_not_allowed};
use super::headers::PRIVATE;
use super::negotiate::{self, PageFormat};
use super::representation::{HTML, MARKDOWN, Representation, UnencodedResponse};
use crate::domain::network::BaseUrl;
use crate::domain::statistics::Reading;
use crate::site::{ListedPage, Page};

/// The prebuilt response of one path.
#[derive(Debug)]
pub(crate) enum Served {
    /// HTML or Markdown, negotiated by `Accept`.
    Page {
        html: Representation,
        markdown: Representation,
    },
    File(Representation),
    /// Leads to another address for good.
    Redirect(HeaderValue),
    /// A file with CORS headers, so that pages of other origins may read it.
    CorsFile(Representation),
    /// Negotiated like a page, but always a 404.
    NotFound {
        html: Representation,
        markdown: Representation,
    },
}

/// `Link` relations of the home page, which agents can follow without reading it.
const HOME_LINKS: &str = "</.well-known/api-catalog>; rel=\"api-catalog\"; type=\"application/linkset+json\", \
                          </openapi.json>; rel=\"service-desc\"; type=\"application/json\", \
                          </developers>; rel=\"service-doc\"; type=\"text/html\", \
                          </llms.txt>; rel=\"describedby\"; type=\"text/plain\"";

impl Served {
    pub(crate) fn page(ListedPage { address, page, .. }: &ListedPage, base_url: &BaseUrl) -> Self {
        let mut links = format!("<{}>; rel=\"alternate\"; type=\"text/markdown\"", address.markdown_path);
        if address.path == "/" {
            links = format!("{HOME_LINKS}, {links}");
        }
        let html = UnencodedResponse::page(HTML, Reading::Page, page.html.clone());
        let html = UnencodedResponse { varies_by_accept: true, ..html }.with_header(LINK, links);
        let markdown = markdown(&page.markdown, &address.path, base_url);
        let markdown = UnencodedResponse { varies_by_accept: true, ..markdown };
        Self::Page { html: html.into(), markdown: markdown.into() }
    }

    /// The Markdown of a page at its own path, without negotiation.
    pub(crate) fn markdown_file(ListedPage { address, page, .. }: &ListedPage, base_url: &BaseUrl) -> Self {
        Self::File(markdown(&page.markdown, &address.path, base_url).into())
    }

    /// A page for one visitor, such as the page after a form: neither cached nor indexed.
    pub(crate) fn private_page(page: &Page) -> Self {
        let page = UnencodedResponse::page(HTML, Reading::Page, page.html.clone());
        Self::File(PRIVATE.into_iter().fold(page, |page, (name, value)| page.with_header(name, value)).into())
    }

    pub(crate) fn not_found(page: &Page) -> Self {
        let missing = |page: UnencodedResponse| UnencodedResponse {
            status: StatusCode::NOT_FOUND,
            varies_by_accept: true,
            ..page
        };
        Self::NotFound {
            html: missing(UnencodedResponse::file(HTML, page.html.clone())).into(),
            markdown: missing(UnencodedResponse::file(MARKDOWN, page.markdown.clone())).into(),
        }
    }

    pub(crate) fn respond(&self, method: &Method, headers: &HeaderMap) -> Response {
        self.read(method, headers).0
    }

    /// The response, and what it reads if it is counted and has a status that says so.
    pub(crate) fn read(&self, method: &Method, headers: &HeaderMap) -> (Response, Option<Reading>) {
        let reads = method == Method::GET || method == Method::HEAD;
        match self {
            Self::CorsFile(_) if method == Method::OPTIONS => (preflight(), None),
            Self::CorsFile(_) | Self::File(_) | Self::Page { .. } | Self::Redirect(_) if !reads => {
                (method_not_allowed(READ), None)
            }
            Self::Redirect(to) => {
                let headers = [(LOCATION, to.clone()), (CACHE_CONTROL, HeaderValue::from_static("no-cache"))];
                ((StatusCode::MOVED_PERMANENTLY, headers).into_response(), None)
            }
            Self::File(file) => respond_with(file, method, headers),
            Self::CorsFile(file) => {
                let (mut response, reading) = respond_with(file, method, headers);
                add_cors_headers(response.headers_mut());
                (response, reading)
            }
            Self::Page { html, markdown } => match negotiate::page_format(headers) {
                PageFormat::Html => respond_with(html, method, headers),
                PageFormat::Markdown => respond_with(markdown, method, headers),
                PageFormat::Neither => (not_acceptable(), None),
            },
            Self::NotFound { html, markdown } => match negotiate::page_format(headers) {
                PageFormat::Markdown => respond_with(markdown, method, headers),
                PageFormat::Html | PageFormat::Neither => respond_with(html, method, headers),
            },
        }
    }
}

fn respond_with(representation: &Representation, method: &Method, headers: &HeaderMap) -> (Response, Option<Reading>) {
    (representation.respond(method, headers), representation.reading())
}

fn markdown(text: &str, path: &str, base_url: &BaseUrl) -> UnencodedResponse {
    // A rough estimate of how many tokens a language model makes of the text: four characters each.
    let tokens = text.chars().count().div_ceil(4);
    UnencodedResponse::page(MARKDOWN, Reading::Markdown, text.to_owned())
        .with_header(LINK, format!("<{}>; rel=\"canonical\"", base_url.to(path)))
        .with_header(HeaderName::from_static("x-markdown-tokens"), tokens.to_string())
}

fn add_cors_headers(headers: &mut HeaderMap) {
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    headers.insert(ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("GET"));
    headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static("Content-Type, If-None-Match"));
    headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static("ETag"));
}

fn preflight() -> Response {
    let mut response = (StatusCode::NO_CONTENT, [(ALLOW, READ_FROM_OTHER_SITES)]).into_response();
    add_cors_headers(response.headers_mut());
    response
}

fn not_acceptable() -> Response {
    let text = "This page is available as text/html or text/markdown. Accept one of them, or send no Accept header.\n";
    (StatusCode::NOT_ACCEPTABLE, [(VARY, "Accept")], text).into_response()
}
