//! Ends what waits for the answer of a PostgreSQL host: after a time, or as soon as another host is chosen. The server has its own
//! limit for a statement, but one that vanished from the network enforces nothing.

use std::time::Duration;

use sqlx::Error;
use tokio::sync::watch;
use tokio::time::sleep;

use super::connect::Timeouts;
use super::hosts::Choice;

/// So that the server's own limit, whose error says more, comes first.
const MARGIN: Duration = Duration::from_millis(500);

/// The limit of the statements on one connection.
#[derive(Clone, Debug)]
pub(super) struct StatementLimit {
    time: Duration,
    host: Choice,
    choices: watch::Receiver<Option<Choice>>,
}

impl StatementLimit {
    pub(super) fn new(timeouts: Timeouts, host: Choice, choices: watch::Receiver<Option<Choice>>) -> Self {
        Self { time: timeouts.statement.saturating_add(MARGIN), host, choices }
    }

    /// Only the choice of another host ends the statements.
    pub(super) fn without_time(self) -> Self {
        Self { time: Duration::MAX, ..self }
    }

    /// Runs what waits for one answer of the host.
    pub(super) async fn apply<T>(&mut self, answer: impl Future<Output = Result<T, Error>> + Send) -> Result<T, Error> {
        let host = Some(self.host);
        tokio::select! {
            biased;
            result = answer => result,
            Ok(_) = self.choices.wait_for(|choice| *choice != host) => {
                Err(Error::Protocol("another host takes writes now".to_owned()))
            }
            () = sleep(self.time) => Err(Error::PoolTimedOut),
        }
    }
}
