//! What makers should know of opt-ins before they send a letter.

use crate::domain::text::quantity;
use crate::store::OptInCounts;

/// Says how many opt-ins are not confirmed, or came through programs.
pub fn opt_in_sentences(counts: OptInCounts, confirm_updates: bool) -> Vec<String> {
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
