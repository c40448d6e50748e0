//! `porchlight move`

use super::backup::{list, progress_bar};
use super::{Access, CommandFailure, at_work, open_store, tell};
use crate::actions::Progress;
use crate::config::{InvalidSettings, Settings};
use crate::store::{Copied, CopyFailure, Database, SourceWrites, Store};

/// Why nothing was moved, in one sentence.
#[derive(Debug, thiserror::Error)]
pub(super) enum MoveFailure {
    #[error("Nothing was moved: {0} is no embedded database. `porchlight backup` and `restore` carry any other over.")]
    NotEmbedded(Database),
    #[error("Nothing was moved: {0} holds something already, and that stays. Name a new and empty database.")]
    Occupied(Database),
    #[error(
        "Nothing was moved: {0} holds what was moved there before, and one of the two was written to since ({1}). If the \
         service uses {0} by now, you are done; if it still uses the old one, name a new and empty database."
    )]
    Diverged(Database, String),
    #[error("{}", .1.sentence(&format!("Nothing was moved to {}", .0)))]
    Copy(Database, CopyFailure),
}

pub(super) fn run(settings: &Settings, to: &str) -> Result<(), CommandFailure> {
    let from = Database::of(settings)?;
    let to = match Database::parse(to) {
        Ok(to @ Database::Postgres(_)) => to,
        Err(why) if to.starts_with("postgres") => return Err(InvalidSettings::of("--to", why).into()),
        _ => return Err(InvalidSettings::of("--to", "it has to start with postgres://").into()),
    };
    if matches!(from, Database::Postgres(_)) {
        return Err(MoveFailure::NotEmbedded(from).into());
    }
    at_work(async {
        let source = open_store(settings, Access::Read).await?;
        let target = Store::open(&to)?;
        let (bar, mut progress) = progress_bar();
        let carried = source.copy_to(&target, SourceWrites::Blocked, |doing, done, all| {
            progress(Progress::Rows { doing, done, all });
        });
        let carried = carried.await;
        bar.finish_and_clear();
        source.close().await;
        target.close().await;
        let carried = carried.map_err(|failure| match failure {
            CopyFailure::Occupied => MoveFailure::Occupied(to.clone()),
            CopyFailure::Diverged(how) => MoveFailure::Diverged(to.clone(), how),
            failure => MoveFailure::Copy(to.clone(), failure),
        })?;
        let (tables, moved) = match &carried {
            Copied::Now(tables) => (tables, "Everything was carried to"),
            Copied::Before(tables) => (tables, "Everything is already in"),
        };
        list(tables, &[]);
        tell(&format!("{moved} {to}, and every table was compared row by row."));
        tell(
            "Set `database_url` to it and start the service again. What is written to the old one from now on stays there.",
        );
        Ok(())
    })
}
