//! A cache of the published releases, one per instance.
//!
//! The database is the source of truth. Concurrent requests share one query, which began after each of them arrived. The
//! releases are read again only when they have changed, and while the database is unavailable the last known ones are used.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::timeout;

use super::image_store::ImageStore;
use super::single_flight::SingleFlight;
use crate::domain::release::Releases;
use crate::store::{ReleasesRevision, Store, StoreFailure};

/// How long a refresh may wait for the database.
const REFRESH_TIMEOUT: Duration = Duration::from_secs(2);
/// How long a caller waits for a refresh, which may have to wait for an earlier one to end.
const CALLER_TIMEOUT: Duration = Duration::from_secs(4);

/// Cheap to clone; clones share one cache.
#[derive(Clone, Debug)]
pub struct ReleaseCatalog {
    store: Store,
    images: ImageStore,
    cache: Arc<watch::Sender<CachedReleases>>,
    refreshes: Arc<SingleFlight<Result<(), StoreFailure>>>,
}

#[derive(Clone, Debug, Default)]
struct CachedReleases {
    revision: Option<ReleasesRevision>,
    releases: Arc<Releases>,
}

/// Waits for changes of the releases.
#[derive(Debug)]
pub struct CatalogWatcher(watch::Receiver<CachedReleases>);

impl CatalogWatcher {
    pub async fn changed(&mut self) {
        // Without a sender nothing can change any more.
        if self.0.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

impl ReleaseCatalog {
    /// Creates an empty cache.
    pub fn new(store: Store, images: ImageStore) -> Self {
        Self { store, images, cache: Arc::default(), refreshes: Arc::default() }
    }

    /// Returns the releases as last read.
    pub fn cached(&self) -> Arc<Releases> {
        Arc::clone(&self.cache.borrow().releases)
    }

    /// Refreshes the cache and returns the releases; if that fails, returns them as last read.
    pub async fn current(&self) -> Arc<Releases> {
        if let Err(failure) = self.refresh().await {
            tracing::warn!(%failure, "using the last known releases");
        }
        self.cached()
    }

    /// Reads the releases again if they have changed.
    pub async fn refresh(&self) -> Result<(), StoreFailure> {
        let timed_out = |_| Err(StoreFailure::timed_out());
        let refresh = async { timeout(REFRESH_TIMEOUT, self.read_if_changed()).await.unwrap_or_else(timed_out) };
        timeout(CALLER_TIMEOUT, self.refreshes.run(refresh)).await.unwrap_or_else(timed_out)
    }

    async fn read_if_changed(&self) -> Result<(), StoreFailure> {
        let revision = Some(self.store.releases_revision().await?);
        if self.cache.borrow().revision != revision {
            let releases = Arc::new(self.store.releases().await?);
            self.cache.send_replace(CachedReleases { revision, releases });
        }
        Ok(())
    }

    pub fn watch(&self) -> CatalogWatcher {
        CatalogWatcher(self.cache.subscribe())
    }

    /// Where the images of the releases are.
    pub const fn images(&self) -> &ImageStore {
        &self.images
    }
}
