//! Checks how the opt-ins to the monthly letter came about.

use super::finding::Finding;
use crate::actions::confirmations_in_words;
use crate::config::Settings;
use crate::domain::plural::quantity;
use crate::store::{MailKind, OptInCounts, Store};

/// Returns nothing if there is nothing to say.
pub(super) async fn check_opt_ins(settings: &Settings, store: &Store) -> Option<Finding> {
    const NAME: &str = "opt-ins";
    let counts = store.opt_in_counts().await.ok()?;
    let mails = store.backlog(MailKind::Confirmation).await.ok()?;
    let mut sentences = opt_in_sentences(counts, settings.confirm_updates);
    if mails.waiting + mails.leased + mails.failed > 0 {
        sentences.push(format!("{}.", confirmations_in_words(&mails)));
    }
    match (sentences.is_empty(), counts.unconfirmed_from_programs + mails.failed > 0) {
        (true, _) => None,
        (false, true) => Some(Finding::note(NAME, sentences.join(" "))),
        (false, false) => Some(Finding::ok(NAME, sentences.join(" "))),
    }
}

/// What makers should know before they send a letter.
pub(in crate::cli) fn opt_in_sentences(counts: OptInCounts, confirm_updates: bool) -> Vec<String> {
    let mut sentences = Vec::new();
    if counts.pending > 0 {
        sentences.push(format!(
            "{} not confirmed yet and {} no letter.",
            quantity(counts.pending, "opt-in is", "opt-ins are"),
            if counts.pending == 1 { "gets" } else { "get" },
        ));
    }
    if counts.unconfirmed_from_programs > 0 {
        let came = quantity(counts.unconfirmed_from_programs, "opt-in", "opt-ins");
        let remedy = if confirm_updates { "" } else { " `confirm_updates` asks people by mail first." };
        sentences.push(format!("{came} came through programs, and nobody confirmed them by mail.{remedy}"));
    }
    sentences
}
