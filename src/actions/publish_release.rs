//! Publishes a release.
//!
//! Into a folder, the image is copied to `.partial`, synced to disk, renamed, and recorded last: a file without a row is
//! not served. Into a bucket, it is uploaded, verified there, and recorded last.
//! If the process dies in between, the newest release stays, and publishing can be repeated from the start.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use tempfile::TempPath;

use super::image_store::ImageStore;
use crate::bucket::{Bucket, BucketFailure};
use crate::domain::Invalid;
use crate::domain::disk_image::{self, ImageName, TRAILER_SIZE};
use crate::domain::release::{Notes, PublishRejection, Release, Releases, Signature};
use crate::domain::sha256::{Sha256, Sha256Hasher};
use crate::domain::time::Timestamp;
use crate::domain::version::{BuildNumber, MacosVersion, Version};
use crate::store::{Store, StoreFailure};

/// A release to publish.
#[derive(Clone, Debug)]
pub struct NewRelease {
    pub version: Version,
    pub image: ImageSource,
    pub notes: Notes,
    pub build: Option<BuildNumber>,
    pub signature: Option<Signature>,
    pub minimum_macos: Option<MacosVersion>,
    pub prerelease: bool,
    /// Publish even if a higher version exists.
    pub force: bool,
}

#[derive(Clone, Debug)]
pub enum ImageSource {
    File(PathBuf),
    /// Hosted elsewhere. Length and SHA-256 are as given, not verified.
    External {
        url: String,
        length: u64,
        sha256: Sha256,
    },
}

/// Why nothing was published.
#[derive(Debug, thiserror::Error)]
pub enum PublishFailure {
    #[error("Nothing was published: {0}.")]
    Rejected(#[from] PublishRejection),
    #[error("Nothing was published: the app's name in site.toml is too long for a file name; shorten it.")]
    Name(Invalid),
    #[error("{} cannot be published: {why}.", .path.display())]
    NotAnImage { path: PathBuf, why: Invalid },
    #[error("{} cannot be published: it changed while it was being copied. Try again when it is complete.", .0.display())]
    Changed(PathBuf),
    #[error("{} cannot be read: {why}.", .path.display())]
    Unreadable { path: PathBuf, why: io::Error },
    #[error("Nothing was published: {} cannot be written: {why}.", .path.display())]
    Unwritable { path: PathBuf, why: io::Error },
    #[error("Nothing was published, because the image could not be stored as {object}: {why}.")]
    Bucket { object: String, why: BucketFailure },
    #[error("Another release is being published into {} right now. Try again when that is finished.", .0.display())]
    Busy(PathBuf),
    #[error("{}", .0.sentence("Nothing was published"))]
    Store(#[from] StoreFailure),
}

/// Where releases are stored.
#[derive(Debug)]
pub struct ReleaseStore<'a> {
    pub store: &'a Store,
    pub images: &'a ImageStore,
    /// The app's name, which starts the file names.
    pub app: &'a str,
}

/// Publishes a release. `progress` gets the number of copied bytes and of all bytes.
///
/// The newest release is the highest version that is neither withdrawn nor a prerelease ([`Releases::newest`]). A
/// version or file name is never reused, not even after a withdrawal ([`Releases::check_publishable`]); of two
/// concurrent publications of one version, [`Store::add_release`] records one.
pub async fn publish_release(
    release_store: &ReleaseStore<'_>,
    new_release: NewRelease,
    at: Timestamp,
    progress: impl FnMut(u64, u64) + Send + 'static,
) -> Result<Release, PublishFailure> {
    let file = ImageName::new(release_store.app, &new_release.version).map_err(PublishFailure::Name)?;
    let check_publishable = |releases: &Releases| {
        releases.check_publishable(&new_release.version, &file, new_release.prerelease, new_release.force)
    };
    check_publishable(&release_store.store.releases().await?)?;
    match new_release.image {
        ImageSource::External { ref url, length, sha256 } => {
            let release = build_release(&new_release, file.clone(), Some(url.clone()), (length, sha256), at);
            insert_release(release_store.store, release).await
        }
        ImageSource::File(ref source) => {
            check_disk_image(source)?;
            let folder = match release_store.images {
                ImageStore::Folder(folder) => folder,
                ImageStore::Bucket(bucket) => {
                    let release = build_release(&new_release, file.clone(), None, hash_image(source).await?, at);
                    upload(bucket, source, &release, progress).await?;
                    check_publishable(&release_store.store.releases().await?)?;
                    return insert_release(release_store.store, release).await;
                }
            };
            let unwritable = |why| PublishFailure::Unwritable { path: folder.to_path_buf(), why };
            // Held until the release is recorded.
            let _lock = lock_folder(folder)?;
            // Deleted when dropped. The name is fixed, so that the next run overwrites what a killed one left.
            let partial = TempPath::try_from_path(folder.join(".partial")).map_err(unwritable)?;
            let (source, target) = (source.clone(), partial.to_path_buf());
            let copied = tokio::task::spawn_blocking(move || copy_image(&source, &target, progress));
            let length_and_hash = copied.await.map_err(|why| unwritable(io::Error::other(why)))??;
            // Copying takes a while: another release may have been published meanwhile.
            check_publishable(&release_store.store.releases().await?)?;
            // A file of that name has no row: it is left from an interrupted new_release and is replaced.
            partial.persist(folder.join(&file)).map_err(|failure| unwritable(failure.error))?;
            File::open(folder).and_then(|folder| folder.sync_all()).map_err(unwritable)?;
            let release = build_release(&new_release, file.clone(), None, length_and_hash, at);
            insert_release(release_store.store, release).await
        }
    }
}

fn build_release(
    new_release: &NewRelease,
    file: ImageName,
    external_url: Option<String>,
    (length, sha256): (u64, Sha256),
    published: Timestamp,
) -> Release {
    Release {
        version: new_release.version.clone(),
        file,
        external_url,
        length,
        sha256,
        notes: new_release.notes.clone(),
        build: new_release.build.clone(),
        signature: new_release.signature.clone(),
        minimum_macos: new_release.minimum_macos.clone(),
        prerelease: new_release.prerelease,
        published,
        withdrawn: None,
    }
}

async fn insert_release(store: &Store, release: Release) -> Result<Release, PublishFailure> {
    if store.add_release(&release).await? {
        Ok(release)
    } else {
        Err(PublishRejection::VersionUsed(release.version).into())
    }
}

/// Checks by the trailer that the file is a complete disk image.
fn check_disk_image(path: &Path) -> Result<(), PublishFailure> {
    let unreadable = |why| PublishFailure::Unreadable { path: path.to_owned(), why };
    let mut file = File::open(path).map_err(unreadable)?;
    let metadata = file.metadata().map_err(unreadable)?;
    if metadata.is_dir() {
        return Err(unreadable(io::ErrorKind::IsADirectory.into()));
    }
    let mut trailer = [0; TRAILER_SIZE];
    if metadata.len() >= TRAILER_SIZE as u64 {
        file.seek(SeekFrom::Start(metadata.len() - TRAILER_SIZE as u64)).map_err(unreadable)?;
        file.read_exact(&mut trailer).map_err(unreadable)?;
    }
    disk_image::check(&trailer, metadata.len()).map_err(|why| PublishFailure::NotAnImage { path: path.to_owned(), why })
}

/// Locks the folder against other publications until the returned file is dropped.
fn lock_folder(folder: &Path) -> Result<File, PublishFailure> {
    let unwritable = |why| PublishFailure::Unwritable { path: folder.to_owned(), why };
    fs::create_dir_all(folder).map_err(unwritable)?;
    let lock = OpenOptions::new().create(true).truncate(false).write(true).open(folder.join(".lock"));
    let lock = lock.map_err(unwritable)?;
    lock.try_lock().map_err(|error| match error {
        TryLockError::WouldBlock => PublishFailure::Busy(folder.to_owned()),
        TryLockError::Error(why) => unwritable(why),
    })?;
    Ok(lock)
}

async fn upload(
    bucket: &Bucket,
    source: &Path,
    release: &Release,
    mut progress: impl FnMut(u64, u64) + Send + 'static,
) -> Result<(), PublishFailure> {
    let length = release.length;
    let uploaded = bucket.upload(source, release, move |done| progress(done, length)).await;
    uploaded.map_err(|why| PublishFailure::Bucket { object: bucket.object_name(release), why })
}

/// Returns the length and SHA-256 of the image.
async fn hash_image(path: &Path) -> Result<(u64, Sha256), PublishFailure> {
    let owned = path.to_owned();
    let hashed = tokio::task::spawn_blocking(move || read_image(&owned, |_, _| Ok(())));
    hashed.await.map_err(|why| PublishFailure::Unreadable { path: path.to_owned(), why: io::Error::other(why) })?
}

/// Copies the image to disk and returns its length and SHA-256.
fn copy_image(from: &Path, to: &Path, mut progress: impl FnMut(u64, u64)) -> Result<(u64, Sha256), PublishFailure> {
    let unwritable = |why| PublishFailure::Unwritable { path: to.to_owned(), why };
    let (mut copy, mut done) = (File::create(to).map_err(unwritable)?, 0);
    let length_and_hash = read_image(from, |chunk, length| {
        copy.write_all(chunk).map_err(unwritable)?;
        done += chunk.len() as u64;
        progress(done, length);
        Ok(())
    })?;
    copy.sync_all().map_err(unwritable)?;
    Ok(length_and_hash)
}

/// Reads the image and returns its length and SHA-256. `consume` gets each chunk, and the length of the whole.
fn read_image(
    from: &Path,
    mut consume: impl FnMut(&[u8], u64) -> Result<(), PublishFailure>,
) -> Result<(u64, Sha256), PublishFailure> {
    const CHUNK_SIZE: usize = 1024 * 1024;
    let unreadable = |why| PublishFailure::Unreadable { path: from.to_owned(), why };
    let mut source = File::open(from).map_err(unreadable)?;
    let length = source.metadata().map_err(unreadable)?.len();
    let (mut buffer, mut hasher, mut done) = (vec![0; CHUNK_SIZE], Sha256Hasher::default(), 0);
    loop {
        let count = match source.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(why) => return Err(unreadable(why)),
        };
        hasher.update(&buffer[..count]);
        done += count as u64;
        consume(&buffer[..count], length)?;
    }
    if done != length {
        return Err(PublishFailure::Changed(from.to_owned()));
    }
    Ok((length, hasher.finish()))
}
