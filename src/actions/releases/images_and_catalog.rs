//! What an instance serves: the releases as it last read them, where their images are (in a folder or in a bucket), and the URL
//! of the newest one.

use std::io::{self, SeekFrom};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::{BoxStream, StreamExt as _};
use tokio::fs::File;
use tokio::io::{AsyncReadExt as _, AsyncSeekExt as _};
use tokio::time::timeout;
use tokio_util::io::ReaderStream;

use crate::actions::failure::Failure;
use crate::actions::revision_cache::RevisionCache;
use crate::bucket::{ANSWER_TIMEOUT, Bucket, BucketFailure};
use crate::clock::Clock;
use crate::config::{ImagePlace, InvalidSettings};
use crate::domain::network::BaseUrl;
use crate::domain::releases::{Channel, Release, Releases, file_stem};
use crate::domain::text::io_error_in_words;
use crate::store::{Revision, Store, StoreFailure};

/// Read buffer per download.
const CHUNK_SIZE: usize = 64 * 1024;

/// Cheap to clone.
#[derive(Clone, Debug)]
pub enum ImageStore {
    Folder(Arc<Path>),
    Bucket(Bucket),
}

/// Why an image cannot be read. Follows the name of the image and "cannot be read".
#[derive(Debug, thiserror::Error)]
pub enum ImageFailure {
    #[error("{}", io_error_in_words(.0))]
    File(#[from] io::Error),
    #[error("{0}")]
    Bucket(#[from] BucketFailure),
}

impl ImageStore {
    pub fn open(place: &ImagePlace, clock: Clock) -> Result<Self, InvalidSettings> {
        Ok(match place {
            ImagePlace::Folder(folder) => Self::Folder(folder.as_path().into()),
            ImagePlace::Bucket(bucket) => Self::Bucket(Bucket::open(bucket, clock)?),
        })
    }

    /// Checks that the image of a release is there, as it was published.
    pub async fn check(&self, release: &Release) -> Result<(), ImageFailure> {
        match self {
            Self::Folder(folder) => open_file(folder, release).await.map(drop).map_err(Into::into),
            Self::Bucket(bucket) => bucket.check(release).await.map_err(Into::into),
        }
    }

    /// Reads `length` bytes of the image from the position `first`.
    pub async fn read(
        &self,
        release: &Release,
        first: u64,
        length: u64,
    ) -> Result<BoxStream<'static, io::Result<Bytes>>, ImageFailure> {
        match self {
            Self::Folder(folder) => {
                let mut file = open_file(folder, release).await?;
                file.seek(SeekFrom::Start(first)).await?;
                Ok(ReaderStream::with_capacity(file.take(length), CHUNK_SIZE).boxed())
            }
            Self::Bucket(bucket) => Ok(bucket.read(ANSWER_TIMEOUT, release, first, length).await?.boxed()),
        }
    }

    /// The URL that a download of the image is redirected to, if it is not sent by this service.
    pub fn redirect_url(&self, release: &Release) -> Option<String> {
        match self {
            Self::Bucket(bucket) if !bucket.is_proxied() => Some(bucket.signed_url(release)),
            _ => None,
        }
    }
}

async fn open_file(folder: &Path, release: &Release) -> io::Result<File> {
    let file = File::open(folder.join(&release.file)).await?;
    let length = file.metadata().await?.len();
    if length == release.length {
        Ok(file)
    } else {
        Err(io::Error::other(format!("it has {length} bytes instead of {}", release.length)))
    }
}

/// The URL that every download gets. It stays the same from release to release.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NewestImage {
    /// The setting `download_url`: images are hosted elsewhere.
    External(String),
    /// A local preview: the newest release, or a sample image if there is none.
    Preview(String),
    /// The newest release.
    Published(String),
}

impl NewestImage {
    pub fn choose(download_url: Option<&str>, base_url: &BaseUrl, app: &str) -> Self {
        let latest = || base_url.to(&latest_path(app));
        match download_url {
            Some(url) => Self::External(url.to_owned()),
            None if base_url.is_loopback() => Self::Preview(latest()),
            None => Self::Published(latest()),
        }
    }

    pub fn url(&self) -> &str {
        match self {
            Self::External(url) | Self::Preview(url) | Self::Published(url) => url,
        }
    }

    /// Whether the URL leads to an image.
    pub fn is_available(&self, releases: &Releases) -> bool {
        !self.requires_release() || releases.newest().is_some()
    }

    /// Whether the URL leads to an image only if there is a release.
    pub const fn requires_release(&self) -> bool {
        matches!(self, Self::Published(_))
    }
}

/// The path that redirects to the newest release.
pub fn latest_path(app: &str) -> String {
    format!("/releases/latest/{}.dmg", file_stem(app))
}

/// The path that redirects to the newest release of a channel.
pub fn latest_path_of(channel: &Channel, app: &str) -> String {
    format!("/releases/latest/{channel}/{}.dmg", file_stem(app))
}

/// How long a refresh may wait for the database.
const REFRESH_TIMEOUT: Duration = Duration::from_secs(2);

/// Cheap to clone; clones share one cache.
#[derive(Clone, Debug)]
pub struct ReleaseCatalog {
    store: Store,
    images: ImageStore,
    cache: Arc<RevisionCache<Releases>>,
}

impl ReleaseCatalog {
    /// Creates an empty cache.
    pub fn new(store: Store, images: ImageStore) -> Self {
        Self { store, images, cache: Arc::new(RevisionCache::new(Revision::Releases)) }
    }

    /// Whether other instances may serve the same releases.
    pub const fn may_be_shared(&self) -> bool {
        matches!(self.store, Store::Postgres(_))
    }

    /// Returns the releases as last read.
    pub fn cached(&self) -> Arc<Releases> {
        self.cache.value()
    }

    /// Returns the releases as last read, or a failure if the database was unavailable since the start.
    pub fn known(&self) -> Result<Arc<Releases>, Failure> {
        if self.cache.is_known() { Ok(self.cached()) } else { Err(StoreFailure::timed_out().into()) }
    }

    /// Reads the releases again if they have changed.
    pub async fn refresh(&self) -> Result<(), StoreFailure> {
        let refresh = self.cache.refresh(&self.store, self.store.releases());
        timeout(REFRESH_TIMEOUT, refresh).await.unwrap_or_else(|_| Err(StoreFailure::timed_out()))
    }

    /// Where the images of the releases are.
    pub const fn images(&self) -> &ImageStore {
        &self.images
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_release_only_a_preview_and_an_external_url_lead_to_an_image() {
        let choose = |url, base| NewestImage::choose(url, &BaseUrl::parse(base).unwrap(), "Tea Time");
        let (no_releases, latest) = (Releases::default(), "/releases/latest/Tea-Time.dmg");

        let preview = choose(None, "http://127.0.0.1:8080");
        assert_eq!(preview.url(), format!("http://127.0.0.1:8080{latest}"));
        assert!(preview.is_available(&no_releases));

        let published = choose(None, "https://tea.example");
        assert_eq!(published.url(), format!("https://tea.example{latest}"));
        assert!(!published.is_available(&no_releases));

        let external = choose(Some("https://files.example/latest.dmg"), "https://tea.example");
        assert_eq!(external.url(), "https://files.example/latest.dmg");
        assert!(external.is_available(&no_releases));
    }
}
