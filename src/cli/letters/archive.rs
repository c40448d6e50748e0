//! `porchlight letter archive`

use super::recipients::find;
use crate::cli::activity::record;
use crate::cli::failure::Failure;
use crate::cli::terminal::{print_line, sanitize_line};
use crate::config::Settings;
use crate::domain::desk::Change;
use crate::domain::letters::{LetterReference, letter_path};
use crate::store::Store;

/// Puts a letter into the archive, or takes it out.
pub(super) async fn archive(
    settings: &Settings,
    store: &Store,
    reference: &LetterReference,
    is_removed: bool,
) -> Result<(), Failure> {
    let id = find(store, reference).await?;
    let letter = store.letter(&id).await?.ok_or_else(|| Failure::new("The letter was deleted meanwhile."))?;
    let is_changed = store.set_archived(&id, !is_removed).await?;
    if is_changed {
        let change = if is_removed { Change::UnarchivedLetter } else { Change::ArchivedLetter };
        record(store, change(letter.subject.clone())).await;
    }
    let now = if is_changed { "now" } else { "already" };
    let url = settings.public_url().to(&letter_path(&id, &letter.subject));
    let (subject, off) = (sanitize_line(&letter.subject), "It is shown once `letters_archive` is set to yes.");
    print_line(&match is_removed {
        true => format!("“{subject}” is {now} out of the archive, and {url} is an unknown page."),
        false if settings.letters_archive => format!("“{subject}” is {now} in the archive: {url}"),
        false => format!("“{subject}” is {now} in the archive. {off}"),
    });
    Ok(())
}
