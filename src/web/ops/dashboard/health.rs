//! Mail, health, and the alarms at the top of the page.

use serde::Serialize;

use super::format::{grouped, grouped_quantity};
use super::ranks::{RankTable, ranks};
use crate::actions::{OpsSummary, ReadinessCheck};
use crate::domain::calendar::Day;
use crate::store::StoreFailure;

/// A problem that needs a maker, with the id of the section that says more.
#[derive(Serialize)]
pub(super) struct Alarm {
    name: String,
    section: &'static str,
    text: String,
}

#[derive(Serialize)]
pub(super) struct PartView<'a> {
    name: String,
    problem: Option<&'a str>,
}

#[derive(Serialize)]
pub(super) struct MailView<'a> {
    waiting: String,
    age: Option<String>,
    failed: String,
    has_failed: bool,
    letter: Option<LetterView<'a>>,
}

#[derive(Serialize)]
struct LetterView<'a> {
    subject: &'a str,
    started: String,
    recipients: String,
    states: RankTable,
}

pub(super) fn alarms(parts: &[ReadinessCheck], summary: Result<&OpsSummary, &StoreFailure>) -> Vec<Alarm> {
    let mut alarms = Vec::new();
    if let Err(failure) = summary {
        let text = format!("nothing can be shown: {failure}");
        alarms.push(Alarm { name: "Numbers".to_owned(), section: "health", text });
    }
    // If the numbers cannot be read, their alarm already says what is wrong with the database.
    let shown = parts.iter().filter(|part| summary.is_ok() || part.name != "database");
    alarms.extend(
        shown.filter_map(|part| Some(Alarm { name: name(part), section: "health", text: part.problem.clone()? })),
    );
    if let Some(failed) = summary.ok().map(|summary| summary.backlog.failed).filter(|failed| *failed > 0) {
        let text = format!("{} given up on", grouped_quantity(failed, "message was", "messages were"));
        alarms.push(Alarm { name: "Mail".to_owned(), section: "mail", text });
    }
    alarms
}

pub(super) fn parts(parts: &[ReadinessCheck]) -> Vec<PartView<'_>> {
    parts.iter().map(|part| PartView { name: name(part), problem: part.problem.as_deref() }).collect()
}

/// Returns the name of a part with a capital letter and spaces.
fn name(part: &ReadinessCheck) -> String {
    let name = part.name.replace('_', " ");
    let mut letters = name.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

pub(super) fn mail(summary: &OpsSummary) -> MailView<'_> {
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
        LetterView {
            subject: &letter.subject,
            started: Day::of(letter.started_at).long(),
            recipients: grouped_quantity(counts.recipients, "person", "people"),
            states: ranks(["State", "People"], &states.map(|(state, count)| (state.to_owned(), count))),
        }
    });
    MailView { waiting: grouped(waiting), age, failed: grouped(backlog.failed), has_failed: backlog.failed > 0, letter }
}
