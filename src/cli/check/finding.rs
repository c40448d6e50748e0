//! What was found out about one thing, and how it is told.

use serde_json::{Value, json};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Good,
    /// Works, and could be better.
    Note,
    /// Does not work until somebody acts.
    Trouble,
}

/// What was found out about one thing.
#[derive(Debug)]
pub(super) struct Finding {
    name: &'static str,
    pub(super) state: State,
    words: String,
}

impl Finding {
    pub(super) fn good(name: &'static str, words: impl Into<String>) -> Self {
        Self { name, state: State::Good, words: words.into() }
    }

    pub(super) fn note(name: &'static str, words: impl Into<String>) -> Self {
        Self { name, state: State::Note, words: words.into() }
    }

    pub(super) fn trouble(name: &'static str, words: impl Into<String>) -> Self {
        Self { name, state: State::Trouble, words: words.into() }
    }
}

pub(super) fn line(finding: &Finding) -> String {
    let mark = match finding.state {
        State::Good => '✓',
        State::Note => '·',
        State::Trouble => '✗',
    };
    format!("{mark} {:<9} {}", finding.name, finding.words)
}

pub(super) fn described(findings: &[Finding]) -> Value {
    let state = |state| match state {
        State::Good => "ok",
        State::Note => "note",
        State::Trouble => "trouble",
    };
    json!({
        "ok": findings.iter().all(|finding| finding.state != State::Trouble),
        "checks": findings
            .iter()
            .map(|finding| json!({ "name": finding.name, "state": state(finding.state), "detail": finding.words }))
            .collect::<Value>(),
    })
}
