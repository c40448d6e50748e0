//! Mail, health, and the alerts at the top of the page.

use serde::Serialize;

use super::bar_table::{BarTable, bar_table};
use super::format::{grouped, grouped_quantity};
use crate::actions::{self, OpsSummary, ReadinessCheck, Service};
use crate::domain::calendar::Day;
use crate::site::SiteFacts;
use crate::store::StoreFailure;
use crate::web::app::App;
use crate::web::refusal::Refusal;

/// A problem that needs an operator, with the id of the section that says more.
#[derive(Serialize)]
pub(super) struct Alert {
    name: String,
    section: &'static str,
    text: String,
}

#[derive(Serialize)]
pub(super) struct CheckView<'a> {
    name: String,
    problem: Option<&'a str>,
    note: Option<&'a str>,
}

/// How often this instance refused, by reason.
#[derive(Serialize)]
pub(super) struct RefusalView {
    title: &'static str,
    count: String,
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
    states: BarTable,
}

pub(super) fn alerts(checks: &[ReadinessCheck], summary: Result<&OpsSummary, &StoreFailure>) -> Vec<Alert> {
    let mut alerts = Vec::new();
    if let Err(failure) = summary {
        let text = format!("unavailable: {failure}");
        alerts.push(Alert { name: "Statistics".to_owned(), section: "health", text });
    }
    // If the statistics cannot be read, their alert already says what is wrong with the database.
    let shown = checks.iter().filter(|check| summary.is_ok() || check.name != "database");
    alerts.extend(
        shown.filter_map(|check| Some(Alert { name: name(check), section: "health", text: check.problem.clone()? })),
    );
    if let Some(failed) = summary.ok().map(|summary| summary.backlog.failed).filter(|failed| *failed > 0) {
        let text = format!("{} failed", grouped_quantity(failed, "message", "messages"));
        alerts.push(Alert { name: "Mail".to_owned(), section: "mail", text });
    }
    alerts
}

/// Without marks of code: the dashboard shows commands that can be run as they are, and these need words of the makers.
pub(super) fn setup_steps(app: &App, facts: &SiteFacts) -> Vec<String> {
    let Service { newest_image, catalog, forwards_messages, .. } = app.service();
    let steps = actions::setup_steps(facts, newest_image, &catalog.cached(), app.base_url(), *forwards_messages);
    steps.into_iter().map(|step| step.replace('`', "")).collect()
}

pub(super) fn checks(checks: &[ReadinessCheck]) -> Vec<CheckView<'_>> {
    checks
        .iter()
        .map(|check| CheckView { name: name(check), problem: check.problem.as_deref(), note: check.note.as_deref() })
        .collect()
}

pub(super) fn refusals(app: &App) -> [RefusalView; Refusal::ALL.len()] {
    Refusal::ALL.map(|refusal| RefusalView { title: refusal.title(), count: grouped(app.refused(refusal)) })
}

/// Returns the name of a check with a capital letter and spaces.
fn name(check: &ReadinessCheck) -> String {
    let name = check.name.replace('_', " ");
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
            // A part of those that were sent, or may have been.
            ("bounced", counts.bounced),
        ];
        LetterView {
            subject: &letter.subject,
            started: Day::of(letter.started_at).long(),
            recipients: grouped_quantity(counts.recipients, "person", "people"),
            states: bar_table(["State", "People"], &states.map(|(state, count)| (state.to_owned(), count))),
        }
    });
    MailView { waiting: grouped(waiting), age, failed: grouped(backlog.failed), has_failed: backlog.failed > 0, letter }
}
