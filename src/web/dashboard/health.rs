//! Mail, health, and the alerts at the top of the page.

use serde_json::{Value, json};

use super::format::{grouped, grouped_quantity};
use super::tables::bar_table;
use crate::actions::{OpsSummary, PUBLISH_COMMAND, ReadinessCheck};
use crate::domain::text::capitalised;
use crate::domain::time::Day;
use crate::store::StoreFailure;
use crate::web::app::App;
use crate::web::refusal::Refusal;

/// The problems that need an operator, each with the id of the section that says more.
pub(super) fn alerts(
    checks: &[ReadinessCheck],
    summary: Result<&OpsSummary, &StoreFailure>,
    empty_database: Option<&str>,
) -> Vec<Value> {
    let alert = |name: &str, section: &str, text: &str| json!({ "name": name, "section": section, "text": text });
    let mut alerts = Vec::new();
    alerts.extend(empty_database.map(|text| alert("Database", "health", text)));
    if let Err(failure) = summary {
        alerts.push(alert("Statistics", "health", &format!("unavailable: {failure}")));
    }
    // If the statistics cannot be read, their alert already says what is wrong with the database.
    let shown = checks.iter().filter(|check| summary.is_ok() || check.name != "database");
    alerts.extend(shown.filter_map(|check| Some(alert(&name(check), "health", check.problem.as_deref()?))));
    if let Some(failed) = summary.ok().map(|summary| summary.backlog.failed).filter(|failed| *failed > 0) {
        let text = format!("{} failed", grouped_quantity(failed, "message", "messages"));
        alerts.push(alert("Mail", "mail", &text));
    }
    alerts
}

/// What stands before and after the link to the page that does the step, if the desk has one.
pub(super) fn setup_steps(app: &App, is_at_desk: bool) -> Vec<Value> {
    let split = |step: String| match step.split_once(PUBLISH_COMMAND).filter(|_| is_at_desk) {
        Some((before, after)) => json!([before, after]),
        None => json!([step, null]),
    };
    app.setup_steps().into_iter().map(split).collect()
}

pub(super) fn checks(checks: &[ReadinessCheck]) -> Vec<Value> {
    let check = |check: &ReadinessCheck| json!({ "name": name(check), "problem": check.problem, "note": check.note });
    checks.iter().map(check).collect()
}

/// How often this instance refused, by each reason that there was.
pub(super) fn refusals(app: &App) -> Vec<Value> {
    let refused = Refusal::ALL.into_iter().filter(|refusal| app.refused(*refusal) > 0);
    refused.map(|refusal| json!({ "title": refusal.title(), "count": grouped(app.refused(refusal)) })).collect()
}

/// Returns the name of a check with a capital letter and spaces.
fn name(check: &ReadinessCheck) -> String {
    capitalised(&check.name.replace('_', " "))
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
        json!({
            "subject": letter.subject,
            "started": Day::of(letter.started_at).long(),
            "recipients": grouped_quantity(letter.counts.recipients, "person", "people"),
            "states": bar_table(["State", "People"], &letter.counts.named()),
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
