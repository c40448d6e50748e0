//! A letter and its counts, as text and as JSON.

use serde_json::{Value, json};

use crate::cli::terminal::sanitize_line;
use crate::domain::letter::LetterCounts;
use crate::domain::plural::quantity;
use crate::store::StartedLetter;

pub(super) fn counts(letter: &StartedLetter) -> String {
    let counts = &letter.counts;
    let bounced = if counts.bounced > 0 { format!("; {} bounced", counts.bounced) } else { String::new() };
    format!(
        "“{}”: {}, {} sent, {} waiting, {} uncertain, {} refused, {} skipped{bounced}",
        sanitize_line(&letter.subject),
        quantity(counts.recipients, "recipient", "recipients"),
        counts.sent,
        counts.waiting,
        counts.uncertain,
        counts.refused,
        counts.skipped
    )
}

/// Formats the number of copies sent, and the other counts that are not zero.
pub(super) fn short_counts(counts: &LetterCounts) -> String {
    let others = [
        (counts.waiting, "waiting"),
        (counts.uncertain, "uncertain"),
        (counts.refused, "refused"),
        (counts.skipped, "skipped"),
        (counts.bounced, "bounced"),
    ];
    let sent = format!("{} of {} sent", counts.sent, counts.recipients);
    let others = others.iter().filter(|(count, _)| *count > 0).map(|(count, state)| format!("{count} {state}"));
    std::iter::once(sent).chain(others).collect::<Vec<_>>().join(", ")
}

pub(super) fn letter_json(letter: &StartedLetter) -> Value {
    let counts = &letter.counts;
    json!({
        "id": letter.id,
        "subject": letter.subject,
        "started": letter.started_at.rfc3339(),
        "recipients": counts.recipients,
        "sent": counts.sent,
        "waiting": counts.waiting,
        "uncertain": counts.uncertain,
        "refused": counts.refused,
        "skipped": counts.skipped,
        "bounced": counts.bounced,
    })
}
