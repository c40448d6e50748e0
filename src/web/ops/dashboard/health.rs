//! What is on its way, what works, and what needs a maker.

use serde_json::{Value, json};

use super::ranks::ranks;
use super::words::{counted, grouped};
use crate::actions::{OpsSummary, ReadinessCheck};
use crate::domain::calendar::Day;
use crate::store::StoreFailure;

/// What a maker should hear first, each with the place that says more.
pub(super) fn alarms(parts: &[ReadinessCheck], summary: Result<&OpsSummary, &StoreFailure>) -> Value {
    let mut alarms = Vec::new();
    if let Err(failure) = summary {
        alarms
            .push(json!({ "name": "Numbers", "place": "health", "words": format!("nothing can be shown: {failure}") }));
    }
    // While nothing can be read, the database is what the numbers say.
    let told = parts.iter().filter(|part| summary.is_ok() || part.name != "database");
    alarms.extend(
        told.filter_map(|part| Some(json!({ "name": name(part), "place": "health", "words": part.problem.as_ref()? }))),
    );
    if let Some(failed) = summary.ok().map(|summary| summary.backlog.failed).filter(|failed| *failed > 0) {
        alarms.push(json!({
            "name": "Mail",
            "place": "mail",
            "words": format!("{} given up on", counted(failed, "message was", "messages were")),
        }));
    }
    alarms.into()
}

pub(super) fn parts(parts: &[ReadinessCheck]) -> Value {
    parts.iter().map(|part| json!({ "name": name(part), "trouble": part.problem })).collect()
}

fn name(part: &ReadinessCheck) -> String {
    let name = part.name.replace('_', " ");
    let mut letters = name.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

pub(super) fn mail(summary: &OpsSummary) -> Value {
    let OpsSummary { backlog, letter, outbox_age, .. } = summary;
    let waiting = backlog.waiting + backlog.leased;
    let minutes = outbox_age.as_secs() / 60;
    let age = match minutes {
        _ if waiting == 0 => None,
        0 => Some("less than a minute".to_owned()),
        1..120 => Some(format!("{minutes} min")),
        _ => Some(format!("{} h", minutes / 60)),
    };
    let letter = letter.as_ref().map(|letter| {
        let counts = letter.counts;
        let states = [
            ("sent", counts.sent),
            ("waiting", counts.waiting),
            ("uncertain", counts.uncertain),
            ("refused", counts.refused),
            ("skipped", counts.skipped),
        ];
        json!({
            "subject": letter.subject,
            "started": Day::of(letter.started_at).long(),
            "to": counted(counts.recipients, "person", "people"),
            "states": ranks(["State", "People"], &states.map(|(state, number)| (state.to_owned(), number))),
        })
    });
    json!({
        "waiting": grouped(waiting),
        "age": age,
        "failed": grouped(backlog.failed),
        "has_failed": backlog.failed > 0,
        "letter": letter,
    })
}
