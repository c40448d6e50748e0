//! `porchlight move`

use super::backup::{print_contents, progress_bar};
use super::{Access, Failure, block_on, eprint_line, open_store};
use crate::actions::Progress;
use crate::config::{InvalidSettings, Settings};
use crate::store::{CopyFailure, CopyOutcome, Database, SourceWrites, Store, Task};

pub(super) fn run(settings: &Settings, to: &str) -> Result<(), Failure> {
    let from = Database::from_settings(settings)?;
    let to = match Database::parse(to) {
        Ok(to @ Database::Postgres(_)) => to,
        Err(error) if to.starts_with("postgres") => return Err(InvalidSettings::flag("--to", error).into()),
        _ => return Err(InvalidSettings::flag("--to", "it must start with postgres://").into()),
    };
    if matches!(from, Database::Postgres(_)) {
        return Err(Failure::new(format!(
            "Nothing was copied: {from} is not an embedded database. Use `porchlight backup` and `porchlight restore` instead."
        )));
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
            CopyFailure::NotEmpty => Failure::new(format!(
                "Nothing was copied: {to} is not empty, and was not changed. Choose a new and empty database."
            )),
            CopyFailure::Diverged(difference) => Failure::new(format!(
                "Nothing was copied: {to} holds an earlier copy, and one of the two databases has changed since \
                 ({difference}). If the service already uses {to}, you are done. If it still uses the old database, \
                 choose a new and empty one."
            )),
            failure => Failure::copy(failure, &format!("Nothing was copied to {to}")),
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
