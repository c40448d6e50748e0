//! The page that asks once before something is done that cannot be undone.

use axum::response::Response;
use serde::Serialize;
use serde_json::json;

use super::visit::Visit;

#[derive(Serialize)]
pub(super) struct Confirmation<'a> {
    /// The question.
    pub title: &'static str,
    /// Whom or what it is about, as a stranger wrote it.
    pub about: String,
    /// What will be lost, and what stays.
    pub text: Vec<String>,
    pub button: &'static str,
    /// Where the answer is sent, and with what.
    pub action: &'a str,
    pub fields: &'a [(&'a str, &'a str)],
    /// A line that may be left empty: its name, its label, and how long it can be.
    pub line: Option<(&'static str, &'static str, usize)>,
    /// The page of those who do not want it.
    pub back: &'a str,
}

impl Confirmation<'_> {
    pub(super) fn page(self, visit: &Visit<'_>, current: &str) -> Response {
        visit.page("confirm.html", current, json!(self))
    }
}
