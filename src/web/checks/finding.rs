//! What a check found.

use std::fmt::Display;
use std::time::Duration;

use serde::Serialize;

/// How long the check of the site's certificate and of the sender's DNS records may take each.
pub(super) const PROBE_TIMEOUT: Duration = Duration::from_secs(5);

/// The result of one check.
#[derive(Clone, Debug, Serialize)]
pub struct Finding {
    pub name: &'static str,
    pub state: State,
    /// May quote what a server replied, and names of files.
    pub detail: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    Ok,
    /// It works but could be improved, or could not be checked.
    Note,
    /// It does not work and must be fixed.
    #[serde(rename = "trouble")]
    Failed,
}

fn because(state: State, detail: impl Display) -> Finding {
    Finding { name: "", state, detail: detail.to_string() }
}

pub(super) fn ok(detail: impl Display) -> Finding {
    because(State::Ok, detail)
}

pub(super) fn note(detail: impl Display) -> Finding {
    because(State::Note, detail)
}

pub(super) fn failed(detail: impl Display) -> Finding {
    because(State::Failed, detail)
}

/// What was found, in the order of the checks.
#[derive(Debug, Default)]
pub(super) struct Findings(pub(super) Vec<Finding>);

impl Findings {
    /// Nothing is added if there is nothing to say.
    pub(super) fn add(&mut self, name: &'static str, finding: impl Into<Option<Finding>>) {
        self.0.extend(finding.into().map(|finding| Finding { name, ..finding }));
    }
}
