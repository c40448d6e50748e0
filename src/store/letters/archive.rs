//! The letters that everybody can read on the site. Every change also changes their revision.

use crate::domain::letters::ArchivedLetter;
use crate::domain::sha256::Sha256;
use crate::domain::time::Timestamp;
use crate::store::connection::{Store, StoreFailure, values};
use crate::store::revisions::Revision;

const SELECT_ARCHIVED: &str =
    "SELECT id, started_at FROM letters WHERE archived = 1 AND started_at IS NOT NULL ORDER BY started_at DESC, id";

const SET_ARCHIVED: &str =
    "UPDATE letters SET archived = $2 WHERE id = $1 AND archived <> $2 AND started_at IS NOT NULL";

impl Store {
    /// Returns the letters in the archive, the newest first.
    pub async fn archived_letters(&self) -> Result<Vec<ArchivedLetter>, StoreFailure> {
        let rows: Vec<(String, Timestamp)> = self.run(SELECT_ARCHIVED, &[]).await?.all()?;
        let mut letters = Vec::with_capacity(rows.len());
        for (id, sent) in rows {
            let Some(id) = Sha256::from_hex(&id) else { continue };
            letters.extend(self.stored_letter(&id).await?.map(|letter| ArchivedLetter { letter, sent }));
        }
        Ok(letters)
    }

    /// Puts a letter that was started into the archive, or takes it out. Returns `false` if that is where it is.
    pub async fn set_archived(&self, letter: &Sha256, archived: bool) -> Result<bool, StoreFailure> {
        let mut tx = self.begin().await?;
        let is_changed = tx.run(SET_ARCHIVED, values![letter.hex(), archived]).await?.affected > 0;
        if is_changed {
            tx.change_revision(Revision::Letters).await?;
            tx.commit().await?;
        }
        Ok(is_changed)
    }
}
