//! The letters that an instance shows on the site.

use std::sync::Arc;

use super::revision_cache::RevisionCache;
use crate::domain::letters::ArchivedLetter;
use crate::store::{Revision, Store, StoreFailure};

/// Cheap to clone; clones share one cache. Empty unless the setting `letters_archive` is on.
#[derive(Clone, Debug)]
pub struct LetterArchive {
    store: Store,
    is_on: bool,
    cache: Arc<RevisionCache<Vec<ArchivedLetter>>>,
}

impl LetterArchive {
    pub fn new(store: Store, is_on: bool) -> Self {
        Self { store, is_on, cache: Arc::new(RevisionCache::new(Revision::Letters)) }
    }

    /// Returns the letters as last read, the newest first.
    pub fn cached(&self) -> Arc<Vec<ArchivedLetter>> {
        self.cache.value()
    }

    /// Reads the letters again if they have changed. There may be many, so only each statement has a time limit.
    pub async fn refresh(&self) -> Result<(), StoreFailure> {
        if self.is_on { self.cache.refresh(&self.store, self.store.archived_letters()).await } else { Ok(()) }
    }
}
