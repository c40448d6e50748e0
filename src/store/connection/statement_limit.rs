//! Ends what waits for the answer of a PostgreSQL host: after a time, or as soon as another host is selected. The server has its
//! own limit for a statement, but one that vanished from the network enforces nothing.

use std::io;
use std::time::Duration;

use sqlx::Error;
use tokio::sync::watch;
use tokio::time::sleep;

use super::selected_host::SelectedHost;
use super::timeouts::{MARGIN, Timeouts};

/// For a migration, or a part of a backup. It only ends what waits on a dead connection.
const LONG: Duration = Duration::from_hours(24);

/// The limit of each statement on one connection.
#[derive(Clone, Debug)]
pub(super) struct StatementLimit {
    time: Duration,
    choice: SelectedHost,
    /// Whether a later choice of the same host, which did not answer for a while, ends statements, too.
    needs_same_choice: bool,
    choices: watch::Receiver<Option<SelectedHost>>,
}

impl StatementLimit {
    pub(super) fn new(
        timeouts: Timeouts,
        choice: SelectedHost,
        choices: watch::Receiver<Option<SelectedHost>>,
    ) -> Self {
        Self { time: timeouts.statement.saturating_add(MARGIN), choice, needs_same_choice: true, choices }
    }

    /// For statements that may take long. Their connection may be intact although the host did not answer others.
    pub(super) const fn allow_long_statements(&mut self) {
        (self.time, self.needs_same_choice) = (LONG, false);
    }

    /// Runs what waits for one answer of the host.
    pub(super) async fn apply<T>(&mut self, answer: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
        let (chosen, needs_same_choice) = (self.choice, self.needs_same_choice);
        let is_left = |latest: &Option<SelectedHost>| {
            latest.is_some_and(|latest| latest != chosen && (needs_same_choice || latest.host() != chosen.host()))
        };
        tokio::select! {
            biased;
            result = answer => result,
            Ok(_) = self.choices.wait_for(is_left) => {
                let why = "the database host stopped responding, or another one was selected";
                Err(io::Error::new(io::ErrorKind::ConnectionAborted, why).into())
            }
            () = sleep(self.time) => Err(Error::PoolTimedOut),
        }
    }
}
