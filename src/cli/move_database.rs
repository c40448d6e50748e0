//! `porchlight move`

use super::backup::{print_contents, progress_bar};
use super::{Access, CommandFailure, block_on, eprint_line, open_store};
use crate::actions::Progress;
use crate::config::{InvalidSettings, Settings};
use crate::store::{CopyFailure, CopyOutcome, Database, SourceWrites, Store, Task};

/// Why nothing was copied, in one sentence.
#[derive(Debug, thiserror::Error)]
pub(super) enum MoveFailure {
    #[error(
        "Nothing was copied: {0} is not an embedded database. Use `porchlight backup` and `porchlight restore` instead."
    )]
    NotEmbedded(Database),
    #[error("Nothing was copied: {0} is not empty, and was not changed. Choose a new and empty database.")]
    NotEmpty(Database),
    #[error(
        "Nothing was copied: {0} holds an earlier copy, and one of the two databases has changed since ({1}). If the \
         service already uses {0}, you are done. If it still uses the old database, choose a new and empty one."
    )]
    Diverged(Database, String),
    #[error("{}", .1.sentence(&format!("Nothing was copied to {}", .0)))]
    Copy(Database, CopyFailure),
}

pub(super) fn run(settings: &Settings, to: &str) -> Result<(), CommandFailure> {
    let from = Database::from_settings(settings)?;
    let to = match Database::parse(to) {
        Ok(to @ Database::Postgres(_)) => to,
        Err(error) if to.starts_with("postgres") => return Err(InvalidSettings::flag("--to", error).into()),
        _ => return Err(InvalidSettings::flag("--to", "it must start with postgres://").into()),
    };
    if matches!(from, Database::Postgres(_)) {
        return Err(MoveFailure::NotEmbedded(from).into());
    }
    block_on(async {
        let source = open_store(settings, Access::Read).await?;
        let target = Store::open(&to)?;
        let (bar, mut progress) = progress_bar();
        let copied = source.copy_to(&target, SourceWrites::Blocked, |phase, done, total| {
            progress(Progress::Rows { phase, done, total });
        });
        let copied = copied.await;
        bar.finish_and_clear();
        if copied.is_ok()
            && let Some(last_backup) = source.last_time(Task::Backup).await?
        {
            target.record_task(Task::Backup, last_backup).await?;
        }
        source.close().await;
        target.close().await;
        let copied = copied.map_err(|failure| match failure {
            CopyFailure::NotEmpty => MoveFailure::NotEmpty(to.clone()),
            CopyFailure::Diverged(difference) => MoveFailure::Diverged(to.clone(), difference),
            failure => MoveFailure::Copy(to.clone(), failure),
        })?;
        let (tables, outcome) = match &copied {
            CopyOutcome::Copied(tables) => (tables, "Everything was copied to"),
            CopyOutcome::AlreadyPresent(tables) => (tables, "Everything is already in"),
        };
        print_contents(tables, &[]);
        eprint_line(&format!("{outcome} {to}, and every table was compared row by row."));
        eprint_line(
            "Set `database_url` to it and restart the service. Later writes to the old database are not copied.",
        );
        Ok(())
    })
}
