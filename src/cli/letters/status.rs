//! `porchlight letter status` and `porchlight letter list`

use std::path::Path;

use serde_json::json;

use super::letter_file::read;
use super::recipients::find;
use crate::cli::failure::Failure;
use crate::cli::run::{Access, with_store};
use crate::cli::terminal::{ListPrinter, format_row, print_record, sanitize_line, terminal_width};
use crate::config::Settings;
use crate::domain::letters::{LetterCounts, LetterReference};
use crate::domain::text::quantity;
use crate::store::{StartedLetter, Store};

/// How much of a letter's id is shown.
const SHORT_ID_CHARS: usize = 8;

pub(super) const NO_LETTERS: &str = "No letter has been sent yet. `porchlight letter send --help` shows how.";

/// `letter` is a file, or an id if there is no file of that name.
pub(super) fn status(settings: &Settings, letter: Option<&Path>, as_json: bool) -> Result<(), Failure> {
    with_store(settings, Access::Read, async |store| {
        let reference = |path: &Path| LetterReference::parse(path.to_str()?).ok().filter(|_| !path.exists());
        let id = match (letter, letter.and_then(reference)) {
            (_, Some(reference)) => Some(find(store, &reference).await?),
            (file, None) => file.map(|file| read(file).map(|letter| letter.id)).transpose()?,
        };
        let (letter, missing) = match &id {
            Some(id) => (
                store.letter(id).await?,
                "That letter has not been sent yet. `porchlight letter list` lists those that have.",
            ),
            None => (store.latest_letter().await?, NO_LETTERS),
        };
        let letter = letter.ok_or_else(|| Failure::new(missing))?;
        print_record(as_json, &json!(letter), &outcome(store, &letter).await?);
        Ok(())
    })
}

pub(super) fn list(settings: &Settings, as_json: bool) -> Result<(), Failure> {
    with_store(settings, Access::Read, async |store| {
        let letters = store.letters().await?;
        let summary =
            |letter: &StartedLetter| short_counts(&letter.counts) + if letter.archived { ", archived" } else { "" };
        let width = letters.iter().map(|letter| summary(letter).len()).max().unwrap_or_default();
        let mut list = ListPrinter::new(as_json, None);
        for letter in &letters {
            let reference = letter.id.chars().take(SHORT_ID_CHARS).collect();
            let cells = [(reference, SHORT_ID_CHARS), (letter.started_at.date(), 10), (summary(letter), width)];
            list.push(&json!(letter), &format_row(&cells, &sanitize_line(&letter.subject), terminal_width()));
        }
        list.finish(NO_LETTERS);
        Ok(())
    })
}

/// The counts, and why recipients were skipped.
pub(super) async fn outcome(store: &Store, letter: &StartedLetter) -> Result<String, Failure> {
    if letter.counts.skipped == 0 {
        return Ok(counts(letter));
    }
    let reasons = store.skip_reasons(&letter.id).await?;
    let reasons: Vec<_> = reasons.into_iter().map(|(reason, people)| format!("{reason} ({people})")).collect();
    Ok(format!("{}\nSkipped: {}.", counts(letter), reasons.join(", ")))
}

pub(super) fn counts(letter: &StartedLetter) -> String {
    let counts = &letter.counts;
    let bounced = if counts.bounced > 0 { format!("; {} bounced", counts.bounced) } else { String::new() };
    let archived = if letter.archived { "; archived" } else { "" };
    format!(
        "“{}”: {}, {} sent, {} waiting, {} uncertain, {} refused, {} skipped{bounced}{archived}",
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
fn short_counts(counts: &LetterCounts) -> String {
    let [_, others @ ..] = counts.named();
    let sent = format!("{} of {} sent", counts.sent, counts.recipients);
    let others = others.iter().filter(|(_, count)| *count > 0).map(|(name, count)| format!("{count} {name}"));
    std::iter::once(sent).chain(others).collect::<Vec<_>>().join(", ")
}
