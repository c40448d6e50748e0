//! The result of one check, as a line and as JSON.

use serde_json::{Value, json};

use crate::cli::terminal::sanitize_line;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Ok,
    /// It works but could be improved, or could not be checked.
    Note,
    /// It does not work and must be fixed.
    Failed,
}

#[derive(Debug)]
pub(super) struct Finding {
    name: &'static str,
    pub(super) state: State,
    detail: String,
}

impl Finding {
    pub(super) fn ok(name: &'static str, detail: impl Into<String>) -> Self {
        Self { name, state: State::Ok, detail: detail.into() }
    }

    pub(super) fn note(name: &'static str, detail: impl Into<String>) -> Self {
        Self { name, state: State::Note, detail: detail.into() }
    }

    pub(super) fn failed(name: &'static str, detail: impl Into<String>) -> Self {
        Self { name, state: State::Failed, detail: detail.into() }
    }
}

pub(super) fn line(finding: &Finding) -> String {
    let mark = match finding.state {
        State::Ok => '✓',
        State::Note => '·',
        State::Failed => '✗',
    };
    format!("{mark} {:<9} {}", finding.name, sanitize_line(&finding.detail))
}

pub(super) fn report(findings: &[Finding], next_step: Option<&str>) -> Value {
    let state = |state| match state {
        State::Ok => "ok",
        State::Note => "note",
        State::Failed => "trouble",
    };
    json!({
        "ok": findings.iter().all(|finding| finding.state != State::Failed),
        "checks": findings
            .iter()
            .map(|finding| json!({ "name": finding.name, "state": state(finding.state), "detail": finding.detail }))
            .collect::<Value>(),
        "next": next_step,
    })
}
