//! The published releases as this instance last read them.
//!
//! The database is the source of truth. A running service compares its revision twice a second (`serve/rebuild_site.rs`) and
//! reads the releases again when it has changed. No request waits for that, and while the database is unavailable the last
//! known ones are used.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use tokio::time::timeout;

use super::images::ImageStore;
use crate::actions::failure::Failure;
use crate::domain::releases::Releases;
use crate::store::{Store, StoreFailure};

/// How long a refresh may wait for the database.
const REFRESH_TIMEOUT: Duration = Duration::from_secs(2);

/// Cheap to clone; clones share one cache.
#[derive(Clone, Debug)]
pub struct ReleaseCatalog {
    store: Store,
    images: ImageStore,
    cache: Arc<RwLock<CachedReleases>>,
}

#[derive(Clone, Debug, Default)]
struct CachedReleases {
    /// `None` until the releases were read.
    revision: Option<i64>,
    releases: Arc<Releases>,
}

impl ReleaseCatalog {
    /// Creates an empty cache.
    pub fn new(store: Store, images: ImageStore) -> Self {
        Self { store, images, cache: Arc::default() }
    }

    fn cache(&self) -> CachedReleases {
        self.cache.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the releases as last read.
    pub fn cached(&self) -> Arc<Releases> {
        self.cache().releases
    }

    /// Returns the releases as last read, or a failure if the database was unavailable since the start.
    pub fn known(&self) -> Result<Arc<Releases>, Failure> {
        match self.cache().revision {
            Some(_) => Ok(self.cached()),
            None => Err(StoreFailure::timed_out().into()),
        }
    }

    /// Reads the releases again if they have changed.
    pub async fn refresh(&self) -> Result<(), StoreFailure> {
        timeout(REFRESH_TIMEOUT, self.read_if_changed()).await.unwrap_or_else(|_| Err(StoreFailure::timed_out()))
    }

    async fn read_if_changed(&self) -> Result<(), StoreFailure> {
        let revision = Some(self.store.releases_revision().await?);
        if self.cache().revision != revision {
            let releases = Arc::new(self.store.releases().await?);
            *self.cache.write().unwrap_or_else(PoisonError::into_inner) = CachedReleases { revision, releases };
        }
        Ok(())
    }

    /// Where the images of the releases are.
    pub const fn images(&self) -> &ImageStore {
        &self.images
    }
}
