//! Where the images of releases are: in a folder, or in a bucket.

use std::io::{self, SeekFrom};
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::stream::{BoxStream, StreamExt as _};
use tokio::fs::File;
use tokio::io::{AsyncReadExt as _, AsyncSeekExt as _};
use tokio::task::spawn_blocking;
use tokio_util::io::ReaderStream;

use super::backup_folder::verify;
use crate::bucket::{Bucket, BucketFailure};
use crate::clock::Clock;
use crate::config::{ImagePlace, InvalidSettings};
use crate::domain::release::Release;

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
    #[error("{0}")]
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

    /// As [`Self::check`], before a visitor is redirected to the image.
    pub async fn check_for_visitor(&self, release: &Release) -> Result<(), ImageFailure> {
        match self {
            Self::Folder(_) => self.check(release).await,
            Self::Bucket(bucket) => bucket.check_for_visitor(release).await.map_err(Into::into),
        }
    }

    /// As [`Self::check`], and compares every byte with the SHA-256 of the release. A bucket has computed it at the upload.
    pub async fn verify(&self, release: &Release) -> Result<(), ImageFailure> {
        match self {
            Self::Folder(folder) => {
                let (path, release) = (folder.join(&release.file), release.clone());
                let verified = spawn_blocking(move || verify(&path, &release, |_| {})).await;
                Ok(verified.map_err(io::Error::other)??)
            }
            Self::Bucket(_) => self.check(release).await,
        }
    }

    /// Reads so many bytes of the image from the position `first`.
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
            Self::Bucket(bucket) => Ok(bucket.read(release, first, length).await?.boxed()),
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
