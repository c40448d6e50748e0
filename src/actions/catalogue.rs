//! What has been published, as one instance of the service knows it.
//!
//! The database decides; an instance reads it again only when it has changed, and while the database
//! is away it goes by what it read last.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::fs::File;
use tokio::sync::watch;
use tokio::time::timeout;

use crate::domain::release::{Release, Releases};
use crate::store::{ReleasesRevision, Store, StoreFailure};

/// Longest wait for the database before going by what is known.
const ANSWER_WITHIN: Duration = Duration::from_secs(2);

/// Cheap to copy.
#[derive(Clone, Debug)]
pub struct Catalogue {
    store: Store,
    folder: Arc<Path>,
    cache: Arc<watch::Sender<CachedReleases>>,
}

#[derive(Clone, Debug, Default)]
struct CachedReleases {
    revision: Option<ReleasesRevision>,
    releases: Arc<Releases>,
}

/// Wakes up whoever has to do something anew when there is another release.
#[derive(Debug)]
pub struct CatalogueWatcher(watch::Receiver<CachedReleases>);

impl CatalogueWatcher {
    pub async fn changed(&mut self) {
        // The sender outlives the service; without it there is nothing to wait for.
        if self.0.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

impl Catalogue {
    /// Knows nothing until it has looked.
    #[must_use]
    pub fn new(store: Store, folder: PathBuf) -> Self {
        Self { store, folder: folder.into(), cache: Arc::new(watch::Sender::default()) }
    }

    /// As last read.
    #[must_use]
    pub fn cached(&self) -> Arc<Releases> {
        Arc::clone(&self.cache.borrow().releases)
    }

    /// As it is now, or as last read if the database does not answer.
    pub async fn current(&self) -> Arc<Releases> {
        if let Err(failure) = self.refresh().await {
            tracing::warn!(%failure, "the releases are those last known");
        }
        self.cached()
    }

    /// Reads what has been published, if anything changed.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn refresh(&self) -> Result<(), StoreFailure> {
        let looking = async {
            let revision = Some(self.store.releases_revision().await?);
            if self.cache.borrow().revision != revision {
                let releases = Arc::new(self.store.releases().await?);
                self.cache.send_replace(CachedReleases { revision, releases });
            }
            Ok(())
        };
        let slow = |_| Err(StoreFailure::Unavailable("it does not answer in time".to_owned()));
        timeout(ANSWER_WITHIN, looking).await.unwrap_or_else(slow)
    }

    #[must_use]
    pub fn watch(&self) -> CatalogueWatcher {
        CatalogueWatcher(self.cache.subscribe())
    }

    /// Opens an image that lies here, if it is there and as long as it was when it was published.
    ///
    /// # Errors
    /// When this instance cannot see it.
    pub async fn open(&self, release: &Release) -> io::Result<File> {
        let file = File::open(self.folder.join(&release.file)).await?;
        let found = file.metadata().await?.len();
        if found == release.length {
            Ok(file)
        } else {
            Err(io::Error::other(format!("it has {found} bytes instead of {}", release.length)))
        }
    }
}
