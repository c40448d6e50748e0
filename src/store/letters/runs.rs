//! Who may send a letter: a command, the service, or nobody.

use super::recipients::END_DEFERRALS;
use crate::domain::letters::LetterRun;
use crate::domain::limits::MAX_ROWS_PER_STEP;
use crate::domain::sha256::Sha256;
use crate::domain::time::Timestamp;
use crate::store::connection::{Store, StoreFailure, values};

/// Whoever has finished one sets it back, so few are read.
/// Not one whose recipients were all deferred until later.
const SELECT_OF_SERVICE: &str = "SELECT id FROM letters WHERE run = 'service' AND (started_at IS NULL OR waiting = 0 \
     OR EXISTS (SELECT 1 FROM letter_recipients WHERE letter = letters.id AND state = 'waiting' AND at <= $1)) \
     ORDER BY id LIMIT 1";

const SELECT_WITHOUT_RECIPIENTS: &str =
    "SELECT id, subject, run FROM letters WHERE started_at IS NULL AND run <> 'command' ORDER BY id";

const SELECT_RUN: &str = "SELECT run, stop_reason FROM letters WHERE id = $1";

/// `$4` is who may send it now.
const SET_RUN: &str = "UPDATE letters SET run = $2, stop_reason = $3 WHERE id = $1 AND run = $4";

impl Store {
    /// Returns a letter that the service has to send now.
    pub async fn letter_of_service(&self, now: Timestamp) -> Result<Option<Sha256>, StoreFailure> {
        let id = self.run(SELECT_OF_SERVICE, values![now]).await?.column::<String>()?.pop();
        Ok(id.and_then(|id| Sha256::from_hex(&id)))
    }

    /// Returns the id and the subject of letters that somebody has begun or stopped and whose recipients are not known yet.
    pub async fn letters_without_recipients(&self) -> Result<Vec<(String, String, LetterRun)>, StoreFailure> {
        let rows: Vec<(String, String, String)> = self.run(SELECT_WITHOUT_RECIPIENTS, &[]).await?.all()?;
        let run = |run: String| LetterRun::parse(&run).unwrap_or(LetterRun::Stopped);
        Ok(rows.into_iter().map(|(id, subject, word)| (id, subject, run(word))).collect())
    }

    /// Returns who may send a letter, and why nobody may. `None`: the letter is not known.
    pub async fn letter_run(&self, id: &Sha256) -> Result<Option<(LetterRun, Option<String>)>, StoreFailure> {
        let row: Option<(String, Option<String>)> = self.run(SELECT_RUN, values![id.hex()]).await?.first()?;
        Ok(row.map(|(run, reason)| (LetterRun::parse(&run).unwrap_or(LetterRun::Stopped), reason)))
    }

    /// Changes who may send a letter. Returns `false` if it is not `from` any more, and nothing was changed.
    pub async fn change_letter_run(
        &self,
        id: &Sha256,
        from: LetterRun,
        to: LetterRun,
        reason: Option<&str>,
    ) -> Result<bool, StoreFailure> {
        let values = values![id.hex(), to.as_str(), reason, from.as_str()];
        Ok(self.run(SET_RUN, values).await?.affected > 0)
    }

    /// Makes recipients due whom the mail server deferred.
    pub async fn end_deferrals(&self, letter: &Sha256, at: Timestamp) -> Result<(), StoreFailure> {
        let (values, mut steps) = (values![letter.hex(), at, MAX_ROWS_PER_STEP], self.steps());
        while steps.should_repeat(self.run(END_DEFERRALS, values).await.map(|rows| rows.affected)).await? {}
        Ok(())
    }
}
