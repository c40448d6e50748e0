//! What an instance keeps in memory of the database. The database is the source of truth: a running service compares a revision
//! twice a second (`serve/background.rs`) and reads again what has changed. No request waits for that, and while the database is
//! unavailable the last known state is used.

use std::sync::{Arc, PoisonError, RwLock};

use crate::store::{Revision, Store, StoreFailure};

#[derive(Debug)]
pub(super) struct RevisionCache<T> {
    of: Revision,
    cached: RwLock<Cached<T>>,
}

#[derive(Debug, Default)]
struct Cached<T> {
    /// `None` until it was read.
    revision: Option<i64>,
    value: Arc<T>,
}

impl<T: Default> RevisionCache<T> {
    /// Creates an empty cache.
    pub(super) fn new(of: Revision) -> Self {
        Self { of, cached: RwLock::default() }
    }

    /// Returns what was read last.
    pub(super) fn value(&self) -> Arc<T> {
        Arc::clone(&self.cached.read().unwrap_or_else(PoisonError::into_inner).value)
    }

    fn revision(&self) -> Option<i64> {
        self.cached.read().unwrap_or_else(PoisonError::into_inner).revision
    }

    /// Whether it was read since the start.
    pub(super) fn is_known(&self) -> bool {
        self.revision().is_some()
    }

    /// Awaits `read` if the revision in the database has changed.
    pub(super) async fn refresh(
        &self,
        store: &Store,
        read: impl Future<Output = Result<T, StoreFailure>>,
    ) -> Result<(), StoreFailure> {
        let revision = Some(store.revision(self.of).await?);
        if self.revision() != revision {
            let value = Arc::new(read.await?);
            *self.cached.write().unwrap_or_else(PoisonError::into_inner) = Cached { revision, value };
        }
        Ok(())
    }
}
